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
    return incarnation == 0 || incarnation != o->incarnation ? TN_DEDUP_STALE
           : sequence == 0 || (sequence > o->low && sequence - o->low > TN_DEDUP_WINDOW)
               ? TN_DEDUP_BEYOND
           : sequence <= o->low || is_set(o, sequence) ? TN_DEDUP_REPEATED
                                                       : TN_DEDUP_APPLY;
}

void tn_dedup_mark(tn_dedup *o, uint64_t sequence)
{
    TN_ASSERT(sequence > o->low && sequence - o->low <= TN_DEDUP_WINDOW);
    TN_ASSERT(!is_set(o, sequence));
    o->bit[word_of(sequence)] |= mask_of(sequence);
    o->above++;
    o->top = sequence > o->top ? sequence : o->top;
    /* No bit above top is set, so this ends there at the latest. */
    while (o->above > 0 && is_set(o, o->low + 1)) {
        o->low++;
        o->above--;
        o->bit[word_of(o->low)] &= ~mask_of(o->low);
    }
    TN_ASSERT(o->low + o->above <= o->top);
}

void tn_dedup_begin(tn_dedup *o, uint64_t incarnation)
{
    TN_ASSERT(incarnation != 0);
    *o = (tn_dedup){.incarnation = incarnation};
}
