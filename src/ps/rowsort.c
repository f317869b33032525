/* rowsort.c - a radix sort from the lowest digit up. The rows of a partition are some ten thousand,
 * and the uppermost bits of their keys are the same: digits that all keys share cost one look. */
#include "ps/rowsort.h"

#include "ps/tabledef.h"

enum { DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS, KEY_BITS = 64, FEW = 32 };

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

static void sort_few(tn_row_entry *list, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        tn_row_entry x = list[i];
        size_t k = i;
        for (; k > 0 && list[k - 1].key > x.key; k--) {
            list[k] = list[k - 1];
        }
        list[k] = x;
    }
}

const tn_row_entry *tn_rows_sort(tn_row_entry *both, size_t n)
{
    if (n <= FEW) {
        sort_few(both, n);
        return both;
    }
    tn_row_entry *from = both;
    tn_row_entry *to = both + n;
    for (uint32_t shift = 0; shift < KEY_BITS; shift += DIGIT_BITS) {
        if (sort_digit(from, to, n, shift)) {
            tn_row_entry *swap = from;
            from = to;
            to = swap;
        }
    }
    return from;
}

tn_row_view tn_view_of(const tn_table *t, const tn_row *row)
{
    return (tn_row_view){
        .key = tn_row_key(row),
        .group = row->group,
        .present = row->present,
        .last_seen = tn_row_day(row),
        .show = tn_row_count(row->show_high, row->show_low),
        .click = tn_row_count(row->click_high, row->click_low),
        .data = row->data,
        .n_floats = tn_plan_of(t, row->group)->n_floats,
    };
}
