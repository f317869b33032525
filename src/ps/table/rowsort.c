/* rowsort.c - rows of one partition in key order. Keys are mixed, so the uppermost bits in which
 * they differ, about as many as it takes to tell the rows apart, leave almost all in order; the
 * others move by a place or two. Keys that are not mixed cause long moves: only then rows
 * are sorted by all digits, from the lowest up. */
#include "ps/table/tabledef.h"

enum {
    DIGIT_BITS = 8,
    DIGITS = 1 << DIGIT_BITS,
    KEY_BITS = 64,
    FEW = 32,
    COARSE_BITS = 12, /* at once: counts of 16 KB */
    MOVES_MAX = 8,    /* per row */
};

/* One pass, from -> to. False: all keys share this digit, nothing was moved. */
static bool sort_digit(const tn_row_entry *from, tn_row_entry *to, size_t n, uint32_t shift)
{
    size_t end[DIGITS] = {0};
    for (size_t i = 0; i < n; i++) {
        end[from[i].key >> shift & (DIGITS - 1)]++;
    }
    if (end[from[0].key >> shift & (DIGITS - 1)] == n) {
        return false;
    }
    size_t sum = 0;
    for (uint32_t d = 0; d < DIGITS; d++) {
        size_t count = end[d];
        end[d] = sum;
        sum += count;
    }
    for (size_t i = 0; i < n; i++) {
        to[end[from[i].key >> shift & (DIGITS - 1)]++] = from[i];
    }
    return true;
}

/* Sorts by all digits. */
static tn_row_entry *sort_fully(tn_row_entry *from, tn_row_entry *to, size_t n)
{
    for (uint32_t shift = 0; shift < KEY_BITS; shift += DIGIT_BITS) {
        if (sort_digit(from, to, n, shift)) {
            tn_row_entry *swap = from;
            from = to;
            to = swap;
        }
    }
    return from;
}

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

/* Sorts as sort_digit does, by any number of bits up to COARSE_BITS. */
static void sort_bits(const tn_row_entry *from, tn_row_entry *to, size_t n, tn_range bits)
{
    TN_ASSERT(bits.from < bits.to && bits.to - bits.from <= COARSE_BITS);
    uint32_t end[1 << COARSE_BITS];
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

/* Sorts by the uppermost bits in which keys differ, twice as many values as there are rows. Returns
 * where the rows are; *other is the other half. */
static tn_row_entry *sort_coarsely(tn_row_entry *from, size_t n, tn_row_entry **other)
{
    tn_row_entry *to = from + n;
    uint64_t differ = 0;
    for (size_t i = 1; i < n; i++) {
        differ |= from[i].key ^ from[0].key;
    }
    uint32_t top = differ != 0 ? highest_bit(differ) + 1 : 0;
    uint32_t wanted = highest_bit(n) + 1;
    uint32_t at = top > wanted ? top - wanted : 0;
    uint32_t passes = (top - at + COARSE_BITS - 1) / COARSE_BITS;
    for (; passes > 0; passes--) {
        uint32_t bits = (top - at + passes - 1) / passes;
        sort_bits(from, to, n, (tn_range){at, at + bits});
        at += bits;
        tn_row_entry *swap = from;
        from = to;
        to = swap;
    }
    *other = to;
    return from;
}

const tn_row_entry *tn_rows_sort(tn_row_entry *both, size_t n)
{
    TN_ASSERT(n <= UINT32_MAX);
    if (n <= FEW) {
        bool sorted = sort_nearly(both, n, (size_t)FEW * FEW);
        TN_ASSERT(sorted);
        return both;
    }
    tn_row_entry *other = NULL;
    tn_row_entry *list = sort_coarsely(both, n, &other);
    return sort_nearly(list, n, n * MOVES_MAX) ? list : sort_fully(list, other, n);
}
