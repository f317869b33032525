/* retransmit.h - the sender's side of exactly once: requests that one destination has not
 * acknowledged, and when they are retransmitted.
 *
 * Requests to a destination are numbered from 1. Each is kept until its reply comes. All requests
 * that are kept are sent again, oldest first, when the oldest has waited too long:
 *
 *     if (!tn_retransmit_is_full(r)) {
 *         seal the frame with sequence r->next
 *         tn_retransmit_put(r, &buffer->request);
 *     }
 *     while ((x = tn_retransmit_due(r, now)) != NULL && send(buffer of x)) {
 *         tn_retransmit_sent(r, now);                                first sendings, too
 *     }
 *     poll until tn_retransmit_deadline(r)
 *     a reply:  if (tn_retransmit_acknowledge(r, sequence)) give the permit back
 *
 * The wait before the first retransmission is `timeout_ns`. After the k-th (from 0) it is drawn
 * between 0 and .2 s x 2^k, at most 5 s (full jitter), from a stream of counters: the same seed
 * gives the same waits. It never gives up; that a destination is lost is found by heartbeats.
 *
 * A reply counts when it is of the destination's present incarnation and meant for the sender's:
 * a destination that was started again has forgotten what its former start acknowledged.
 *
 * A request is a member of the caller's buffer: lent from put until `release`, which is called when
 * it is acknowledged or by tn_retransmit_clear. Nothing is allocated. One thread. Times are
 * nanoseconds of one clock that never goes back.
 */
#pragma once

#include "cluster/wire/dedup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TN_RETRANSMIT_MAX = 64 };

#define TN_RETRANSMIT_TIMEOUT_NS UINT64_C(1000000000)
#define TN_RETRANSMIT_FIRST_NS UINT64_C(200000000)
#define TN_RETRANSMIT_CAP_NS UINT64_C(5000000000)
#define TN_RETRANSMIT_NEVER UINT64_MAX

typedef struct tn_retransmit_request {
    void (*release)(struct tn_retransmit_request *x); /* may free what x is a member of */
    /* Set by put and private. */
    uint64_t sequence;
    uint64_t sent_ns; /* the last time */
    struct tn_retransmit_request *next;
} tn_retransmit_request;

typedef struct tn_retransmit {
    uint64_t next;                 /* sequence of the next request */
    uint64_t timeout_ns;           /* time until the first repetition */
    uint64_t stream, drawn;        /* stream of random waits, and how many were drawn */
    uint64_t due_ns;               /* when all are sent again, unless something is unsent */
    uint32_t n, round;             /* kept; repetitions of the oldest */
    tn_retransmit_request *oldest; /* requests in ascending order of sequence */
    tn_retransmit_request *newest;
    /* the first one that is to be sent now, with all after it; NULL: none */
    tn_retransmit_request *unsent;
} tn_retransmit;

/* Begins. `seed` should differ between senders and between destinations. */
void tn_retransmit_init(tn_retransmit *r, uint64_t seed, uint64_t timeout_ns);

/* Releases all requests; the numbers go on. */
void tn_retransmit_clear(tn_retransmit *r);

/* Returns whether TN_RETRANSMIT_MAX requests are kept, or so many came after the oldest that the
 * destination would take the next for nonsense (dedup.h). The caller waits for an
 * acknowledgement. */
bool tn_retransmit_is_full(const tn_retransmit *r);

/* Keeps a request under the number r->next, to be sent now. Not when full. */
void tn_retransmit_put(tn_retransmit *r, tn_retransmit_request *x);

/* Returns the next request to send, oldest first; NULL: none before tn_retransmit_deadline. It
 * stays due until tn_retransmit_sent says that the transport took it. */
tn_retransmit_request *tn_retransmit_due(tn_retransmit *r, uint64_t now_ns);
void tn_retransmit_sent(tn_retransmit *r, uint64_t now_ns);

/* Acknowledges a request, in any order. Returns false when it is not kept (never was, or is
 * acknowledged already). */
bool tn_retransmit_acknowledge(tn_retransmit *r, uint64_t sequence);

/* Returns when to ask tn_retransmit_due again: 0 at once, TN_RETRANSMIT_NEVER if nothing is
 * kept. */
uint64_t tn_retransmit_deadline(const tn_retransmit *r);
