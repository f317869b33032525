/* reply_queue.c - a list of replies under a lock, and the first failure of a worker's calls. */
#include "cluster/exchange/reply_queue.h"

#include <inttypes.h>

static const uint64_t look_ns = 100000000; /* how often failures are checked at least */

void tn_reply_queue_init(tn_reply_queue *q)
{
    *q = (tn_reply_queue){0};
    tn_wakeup_init(&q->wakeup);
    (void)pthread_mutex_init(&q->lock, NULL);
}

void tn_reply_queue_done(tn_reply_queue *q)
{
    while (q->first != NULL) {
        tn_in_message *reply = q->first;
        q->first = reply->next;
        tn_in_message_close(reply);
    }
    tn_wakeup_done(&q->wakeup);
    (void)pthread_mutex_destroy(&q->lock);
}

void tn_reply_queue_put(tn_reply_queue *q, tn_in_message *reply)
{
    reply->next = NULL;
    (void)pthread_mutex_lock(&q->lock);
    if (q->first == NULL) {
        q->first = reply;
    } else {
        q->last->next = reply;
    }
    q->last = reply;
    (void)pthread_mutex_unlock(&q->lock);
    tn_wakeup_signal(&q->wakeup);
}

void tn_reply_queue_end(tn_reply_queue *q, tn_status status, const char *why)
{
    (void)pthread_mutex_lock(&q->lock);
    if (q->ended == TN_OK) {
        q->ended = tn_fail(&q->why, status, "%s", why);
    }
    (void)pthread_mutex_unlock(&q->lock);
    tn_wakeup_signal(&q->wakeup);
}

uint64_t tn_reply_queue_read(tn_reply_queue *q,
                             void (*receive)(void *arg, const tn_frame *reply, uint32_t from),
                             void *arg)
{
    const uint64_t seen = tn_wakeup_count(&q->wakeup);
    (void)pthread_mutex_lock(&q->lock);
    tn_in_message *reply = q->first;
    q->first = NULL;
    if (q->ended != TN_OK && q->failed == TN_OK) {
        q->err = q->why;
        q->failed = q->ended;
    }
    (void)pthread_mutex_unlock(&q->lock);
    while (reply != NULL) {
        tn_in_message *next = reply->next;
        receive(arg, &reply->frame, reply->from);
        tn_in_message_close(reply);
        reply = next;
    }
    return seen;
}

tn_status tn_reply_queue_check(const tn_reply_queue *q, tn_error *err)
{
    return q->failed == TN_OK ? TN_OK : tn_fail(err, q->failed, "%s", q->err.text);
}

void tn_reply_queue_wait(tn_reply_queue *q, uint64_t seen, uint64_t now_ns)
{
    (void)tn_wakeup_wait(&q->wakeup, seen, now_ns + look_ns);
}

void tn_reply_queue_reject(tn_reply_queue *q, uint32_t from, const char *what)
{
    if (q->failed == TN_OK) {
        q->failed = tn_fail(&q->err, TN_E_PEER, "rank %u sent %s that nobody can use", from, what);
    }
}

void tn_reply_queue_refused(tn_reply_queue *q, const tn_frame *refusal, uint32_t from)
{
    if (q->failed == TN_OK) {
        const bool diverged = refusal->code == TN_REFUSAL_DIVERGED;
        q->failed = tn_fail(&q->err, diverged ? TN_E_DIVERGED : TN_E_PEER,
                            "rank %u refused a request of step %" PRIu64 ": %s", from,
                            refusal->step + 1, tn_refusal_text(refusal->code));
    }
}
