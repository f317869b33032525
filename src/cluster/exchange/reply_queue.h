/* reply_queue.h - replies of other ranks, from the net thread to the worker that waits for them.
 *
 *     tn-net       tn_reply_queue_put      after the other replies, wakeup
 *     any thread   tn_reply_queue_end      all waits end with this status, also later ones
 *     worker       for (;;) {
 *                      seen = tn_reply_queue_read(q, receive, arg);   each reply, oldest first
 *                      TN_TRY(tn_reply_queue_check(q, err));
 *                      .. return when everything due has come, give up when it is late ..
 *                      tn_reply_queue_wait(q, seen, tn_clock_ns());
 *                  }
 *
 * The queue owns a reply from put until `receive` has returned. The first failure stays, whether
 * the group ended or a reply was bad: every later check returns it. The wakeup serves the worker
 * for other news, too. One worker; put, end and waits_for are for any thread and never wait.
 */
#pragma once

#include "cluster/net/link.h"
#include "cluster/net/wakeup.h"

typedef struct tn_reply_queue {
    tn_wakeup wakeup;
    _Atomic uint32_t late; /* 1 + the rank that the worker waits for; 0: none. Set by the worker */
    tn_status failed;      /* the worker's: status of the first failure */
    tn_error err;          /* text of that failure */
    pthread_mutex_t lock;
    tn_in_message *first, *last; /* guarded by lock, like the rest: oldest first */
    tn_status ended;             /* status given to tn_reply_queue_end */
    tn_error why;
} tn_reply_queue;

void tn_reply_queue_init(tn_reply_queue *q);
void tn_reply_queue_done(tn_reply_queue *q); /* closes the replies that nobody read */

void tn_reply_queue_put(tn_reply_queue *q, tn_in_message *reply);
void tn_reply_queue_end(tn_reply_queue *q, tn_status status,
                        const char *why); /* the first counts */

/* Passes on all replies. Returns the wakeup's count from before. */
uint64_t tn_reply_queue_read(tn_reply_queue *q,
                             void (*receive)(void *arg, const tn_frame *reply, uint32_t from),
                             void *arg);
tn_status tn_reply_queue_check(const tn_reply_queue *q, tn_error *err) TN_MUST_USE;
/* Waits until there is news after `seen`, at most 0.1 s. */
void tn_reply_queue_wait(tn_reply_queue *q, uint64_t seen, uint64_t now_ns);

/* Makes the call fail, for `receive`, since the reply is useless (`what`: "rows") or a REFUSED. */
void tn_reply_queue_reject(tn_reply_queue *q, uint32_t from, const char *what);
void tn_reply_queue_refused(tn_reply_queue *q, const tn_frame *refusal, uint32_t from);
