/* dedup.c - a window of sequence numbers that were applied.
 *
 * The window is a ring of bits. A bit at or below low is clear, so moving low needs no shifting.
 */
#include "cluster/wire/dedup.h"

#include "base/core/error.h"

enum { WORD_BITS = 64 };

static uint64_t mask_of(uint64_t sequence)
{
    return UINT64_C(1) << (sequence % WORD_BITS);
}

static uint64_t word_of(uint64_t sequence)
{
    return sequence % TN_DEDUP_WINDOW / WORD_BITS;
}

static bool is_set(const tn_dedup *o, uint64_t sequence)
{
    return (o->bit[word_of(sequence)] & mask_of(sequence)) != 0;
}

tn_dedup_verdict tn_dedup_check(const tn_dedup *o, uint64_t incarnation, uint64_t sequence)
{
    if (incarnation == 0 || incarnation != o->incarnation) {
        return TN_DEDUP_STALE;
    }
    if (sequence == 0) {
        return TN_DEDUP_BEYOND;
    }
    if (sequence <= o->low) {
        return TN_DEDUP_REPEATED;
    }
    if (sequence - o->low > TN_DEDUP_WINDOW) {
        return TN_DEDUP_BEYOND;
    }
    return is_set(o, sequence) ? TN_DEDUP_REPEATED : TN_DEDUP_APPLY;
}

void tn_dedup_mark(tn_dedup *o, uint64_t sequence)
{
    TN_ASSERT(sequence > o->low && sequence - o->low <= TN_DEDUP_WINDOW);
    TN_ASSERT(!is_set(o, sequence));
    o->bit[word_of(sequence)] |= mask_of(sequence);
    o->above++;
    o->top = sequence > o->top ? sequence : o->top;
    /* No bit stands above top, so this ends there at the latest. */
    while (o->above > 0 && is_set(o, o->low + 1)) {
        o->low++;
        o->above--;
        o->bit[word_of(o->low)] &= ~mask_of(o->low);
    }
    TN_ASSERT(o->low + o->above <= o->top);
}

void tn_dedup_begin(tn_dedup *o, uint64_t incarnation)
{
    tn_dedup_restore(o, incarnation, 0);
}

void tn_dedup_restore(tn_dedup *o, uint64_t incarnation, uint64_t low)
{
    TN_ASSERT(incarnation != 0);
    *o = (tn_dedup){.incarnation = incarnation, .low = low, .top = low};
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

bool tn_dedup_adopt(tn_dedup *o, uint64_t incarnation, uint64_t next, const uint64_t *open,
                    uint32_t n)
{
    if (incarnation == 0 || next == 0 || !is_list(next, open, n)) {
        return false;
    }
    const uint64_t first = n == 0 ? next : open[0];
    tn_dedup_restore(o, incarnation, first - 1);
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

uint64_t tn_dedup_holes(const tn_dedup *o)
{
    TN_ASSERT(o->low + o->above <= o->top);
    return o->top - o->low - o->above;
}
