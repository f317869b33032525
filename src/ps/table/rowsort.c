/* rowsort.c - rows of one partition in key order. Keys are mixed, so the uppermost bits in which
 * they differ, about as many as distinguish the rows, leave almost all in order; the others move by
 * a place or two. Only keys that are not mixed cause long moves: then rows are sorted by all bits,
 * from the lowest up. */
#include "ps/table/tabledef.h"

enum {
    KEY_BITS = 64,
    FEW = 32,
    PASS_BITS = 12, /* at once: counts of 16 KB */
    MOVES_MAX = 8,  /* per row */
};

/* Sorts a list that is nearly sorted. False: sorting it would take more than `moves`. */
static bool sort_nearly(tn_row_entry *list, size_t n, size_t moves)
{
    for (size_t i = 1; i < n; i++) {
        if (list[i - 1].key <= list[i].key) {
            continue;
        }
        tn_row_entry x = list[i];
        size_t k = i;
        for (; k > 0 && list[k - 1].key > x.key; k--) {
            list[k] = list[k - 1];
        }
        list[k] = x;
        if (i - k > moves) {
            return false;
        }
        moves -= i - k;
    }
    return true;
}

static uint32_t highest_bit(uint64_t x)
{
    return KEY_BITS - 1 - (uint32_t)__builtin_clzll(x);
}

/* One pass, from -> to; rows with the same bits keep their order. */
static void sort_bits(const tn_row_entry *from, tn_row_entry *to, size_t n, tn_range bits)
{
    TN_ASSERT(bits.from < bits.to && bits.to - bits.from <= PASS_BITS);
    uint32_t end[1 << PASS_BITS];
    uint32_t count = UINT32_C(1) << (bits.to - bits.from);
    memset(end, 0, count * sizeof *end);
    for (size_t i = 0; i < n; i++) {
        end[from[i].key >> bits.from & (count - 1)]++;
    }
    uint32_t sum = 0;
    for (uint32_t d = 0; d < count; d++) {
        uint32_t here = end[d];
        end[d] = sum;
        sum += here;
    }
    for (size_t i = 0; i < n; i++) {
        to[end[from[i].key >> bits.from & (count - 1)]++] = from[i];
    }
}

/* Sorts by some bits of the keys, from the lowest up. Afterwards the rows are at *list, and *other
 * is the other half. */
static void sort_by(tn_row_entry **list, tn_row_entry **other, size_t n, tn_range bits)
{
    uint32_t passes = (bits.to - bits.from + PASS_BITS - 1) / PASS_BITS;
    for (; passes > 0; passes--) {
        const uint32_t at = bits.from + (bits.to - bits.from + passes - 1) / passes;
        sort_bits(*list, *other, n, (tn_range){bits.from, at});
        bits.from = at;
        tn_row_entry *swap = *list;
        *list = *other;
        *other = swap;
    }
}

/* The uppermost bits in which keys differ, twice as many values as there are rows. */
static tn_range upper_bits(const tn_row_entry *list, size_t n)
{
    uint64_t differ = 0;
    for (size_t i = 1; i < n; i++) {
        differ |= list[i].key ^ list[0].key;
    }
    const uint32_t top = differ != 0 ? highest_bit(differ) + 1 : 0;
    const uint32_t wanted = highest_bit(n) + 1;
    return (tn_range){top > wanted ? top - wanted : 0, top};
}

const tn_row_entry *tn_rows_sort(tn_row_entry *both, size_t n)
{
    TN_ASSERT(n <= UINT32_MAX);
    if (n <= FEW) {
        bool sorted = sort_nearly(both, n, (size_t)FEW * FEW);
        TN_ASSERT(sorted);
        return both;
    }
    tn_row_entry *list = both;
    tn_row_entry *other = both + n;
    sort_by(&list, &other, n, upper_bits(list, n));
    if (!sort_nearly(list, n, n * MOVES_MAX)) {
        sort_by(&list, &other, n, (tn_range){0, KEY_BITS});
    }
    return list;
}
