/* retransmit.c - the list of requests without a reply, and the clock of retransmissions.
 *
 * The list has two halves: requests that were sent and wait, then those to be sent now, from
 * `unsent` on. A repetition moves `unsent` back to the oldest. The clock is that of the oldest
 * request alone: an answer to a later one says nothing about an earlier one that was lost.
 */
#include "cluster/net/retransmit.h"

#include "base/core/error.h"
#include "base/math/rng.h"

enum { DOUBLINGS_MAX = 5 }; /* .2 s x 2^5 is over the cap */

void tn_retransmit_init(tn_retransmit *r, uint64_t seed, uint64_t timeout_ns)
{
    TN_ASSERT(timeout_ns > 0);
    *r = (tn_retransmit){.next = 1, .timeout_ns = timeout_ns, .stream = tn_stream0(seed)};
}

void tn_retransmit_clear(tn_retransmit *r)
{
    tn_retransmit_request *x = r->oldest;
    r->oldest = r->newest = r->unsent = NULL;
    r->n = r->round = 0;
    while (x != NULL) {
        tn_retransmit_request *next = x->next;
        x->release(x);
        x = next;
    }
}

bool tn_retransmit_is_full(const tn_retransmit *r)
{
    return r->n == TN_RETRANSMIT_MAX ||
           (r->n > 0 && r->next - r->oldest->sequence >= TN_DEDUP_WINDOW);
}

void tn_retransmit_put(tn_retransmit *r, tn_retransmit_request *x)
{
    TN_ASSERT(!tn_retransmit_is_full(r) && x->release != NULL);
    x->sequence = r->next++;
    x->next = NULL;
    if (r->oldest == NULL) {
        r->oldest = x;
    } else {
        r->newest->next = x;
    }
    r->newest = x;
    r->unsent = r->unsent == NULL ? x : r->unsent;
    r->n++;
}

/* Draws a wait with full jitter: anything up to a limit that doubles. */
static uint64_t backoff(tn_retransmit *r, uint32_t k)
{
    uint64_t most = TN_RETRANSMIT_FIRST_NS << (k < DOUBLINGS_MAX ? k : DOUBLINGS_MAX);
    most = most < TN_RETRANSMIT_CAP_NS ? most : TN_RETRANSMIT_CAP_NS;
    return (uint64_t)((double)most * tn_open(tn_draw(r->stream, r->drawn++)));
}

tn_retransmit_request *tn_retransmit_due(tn_retransmit *r, uint64_t now_ns)
{
    if (r->unsent == NULL && r->oldest != NULL && now_ns >= r->due_ns) {
        r->unsent = r->oldest;
        r->round++;
    }
    return r->unsent;
}

void tn_retransmit_sent(tn_retransmit *r, uint64_t now_ns)
{
    tn_retransmit_request *x = r->unsent;
    TN_ASSERT(x != NULL);
    x->sent_ns = now_ns;
    r->unsent = x->next;
    if (x == r->oldest) {
        r->due_ns = now_ns + (r->round == 0 ? r->timeout_ns : backoff(r, r->round - 1));
    }
}

/* Takes x out of the list, where it follows `before` (NULL: it is the oldest). */
static void take(tn_retransmit *r, tn_retransmit_request *x, tn_retransmit_request *before)
{
    r->unsent = r->unsent == x ? x->next : r->unsent;
    r->newest = r->newest == x ? before : r->newest;
    TN_ASSERT(r->n > 0);
    r->n--;
    if (before != NULL) {
        before->next = x->next;
        return;
    }
    r->oldest = x->next;
    r->round = 0;
    if (r->oldest != NULL && r->oldest != r->unsent) {
        r->due_ns = r->oldest->sent_ns + r->timeout_ns;
    }
}

bool tn_retransmit_acknowledge(tn_retransmit *r, uint64_t sequence)
{
    tn_retransmit_request *before = NULL;
    tn_retransmit_request *x = r->oldest;
    while (x != NULL && x->sequence < sequence) {
        before = x;
        x = x->next;
    }
    if (x == NULL || x->sequence != sequence) {
        return false;
    }
    take(r, x, before);
    x->release(x);
    return true;
}

uint64_t tn_retransmit_deadline(const tn_retransmit *r)
{
    if (r->unsent != NULL) {
        return 0;
    }
    return r->oldest == NULL ? TN_RETRANSMIT_NEVER : r->due_ns;
}
