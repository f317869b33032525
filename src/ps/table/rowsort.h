/* rowsort.h - rows in ascending key order and as others see them, for whatever writes them down. */
#ifndef TN_PS_ROWSORT_H
#define TN_PS_ROWSORT_H

#include "ps/table/tabledef.h"

#include <stddef.h>

/* A row with what it is sorted by. */
typedef struct tn_row_entry {
    uint64_t key;
    const tn_row *row;
} tn_row_entry;

/* `both` has room for 2 n entries, of which the first n are given. Returns the half of it in which
 * they ended sorted; equal keys keep their order. */
const tn_row_entry *tn_rows_sort(tn_row_entry *both, size_t n);

/* Lent as long as the row is left alone. Inline: it is asked for every row of a table. */
static inline tn_row_view tn_view_of(const tn_table *t, uint64_t key, const tn_row *row)
{
    const tn_plan *plan = tn_plan_of(t, tn_row_group(row));
    return (tn_row_view){
        .key = key,
        .group = tn_row_group(row),
        .present = tn_all_present(plan),
        .last_seen = tn_row_day(row),
        .show = tn_row_count(row->show_high, row->show_low),
        .click = tn_row_count(row->click_high, row->click_low),
        .data = row->data,
        .n_floats = plan->n_floats,
    };
}

#endif
