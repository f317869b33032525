/* recovery.c - memories of senders and receivers are set, read and handed over. */
#include "cluster/recovery.h"

#include "base/core/error.h"

void recovery_restore(tn_dedup *o, uint64_t incarnation, uint64_t low)
{
    tn_dedup_begin(o, incarnation);
    o->low = o->top = low;
}

/* Whether open[0..n) ascends below `next` and fits one window. */
static bool is_list(uint64_t next, const uint64_t *open, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (open[i] >= next || open[i] <= (i == 0 ? 0 : open[i - 1])) {
            return false;
        }
    }
    return n == 0 || next - open[0] <= TN_DEDUP_WINDOW;
}

bool recovery_adopt(tn_dedup *o, uint64_t incarnation, uint64_t next, const uint64_t *open,
                    uint32_t n)
{
    if (incarnation == 0 || next == 0 || !is_list(next, open, n)) {
        return false;
    }
    const uint64_t first = n == 0 ? next : open[0];
    recovery_restore(o, incarnation, first - 1);
    uint32_t k = 0;
    for (uint64_t s = first; s < next; s++) {
        if (k < n && open[k] == s) {
            k++;
        } else {
            tn_dedup_mark(o, s);
        }
    }
    return true;
}

uint64_t recovery_holes(const tn_dedup *o)
{
    TN_ASSERT(o->low + o->above <= o->top);
    return o->top - o->low - o->above;
}

void recovery_init(tn_retransmit *r, uint64_t seed, uint64_t timeout_ns, uint64_t low)
{
    tn_retransmit_init(r, seed, timeout_ns);
    r->next = low + 1;
}

void recovery_reconnected(tn_retransmit *r)
{
    r->unsent = r->oldest;
}

uint32_t recovery_open(const tn_retransmit *r, uint64_t out[TN_RETRANSMIT_MAX])
{
    uint32_t n = 0;
    for (const tn_retransmit_request *x = r->oldest; x != NULL; x = x->next) {
        out[n++] = x->sequence;
    }
    TN_ASSERT(n == r->n);
    return n;
}

uint64_t recovery_acknowledged(const tn_retransmit *r)
{
    return r->next - 1 - r->n;
}
