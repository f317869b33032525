/* table_admission.h - keys that wait for whole rows (ps/table/lifecycle.h, tn_admission); for the
 * files of the table only.
 *
 *     pull     rows that have waited for long enough become whole, then new ones are created
 *     push     a row that waits is counted in its header, a key without one in the filter
 *     sweep    a filter that holds too many keys ages
 *
 * All work on locked partitions.
 */
#pragma once

#include "ps/table/tabledef.h"

/* The form that the row of a key has when it is created in this step, where its group waits. */
typedef enum tn_row_form { TN_FORM_NONE, TN_FORM_WAITS, TN_FORM_WHOLE } tn_row_form;
tn_row_form tn_form_of_new(const tn_table *t, uint64_t key, uint32_t group);

/* Rows of a run that wait become whole where they may in this step, before new ones are created.
 * All of row[] are where they are then. The locks are held. */
tn_status tn_rows_admit(tn_table *t, const tn_keyset *keys, tn_range run, tn_row **row,
                        tn_error *err) TN_MUST_USE;

/* Whether the segments of a row that wait read as zeros and are not trained, though it has them. */
bool tn_row_is_shrunk(const tn_table *t, const tn_row *row);

/* Counts of keys without a row. reserve: before the first one of a tile's partitions is counted. */
tn_status tn_tile_filter_reserve(tn_table *t, const tn_keyset *keys, uint32_t tile,
                                 tn_error *err) TN_MUST_USE;
void tn_filter_add(tn_table *t, uint64_t key, uint32_t group, uint32_t n);

/* Prefetches what tn_form_of_new and tn_filter_add look at. */
void tn_filter_fetch(const tn_table *t, uint64_t key, uint32_t group);

/* Where the filter of a locked partition holds too many keys, it ages. */
void tn_filter_age(tn_table *t, uint32_t partition);

/* A row is whole now, of a group whose keys may have to wait. */
static inline void tn_note_admitted(tn_table *t, uint32_t group)
{
    atomic_fetch_add_explicit(&t->admitted_of[group], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&t->admitted, 1, memory_order_relaxed);
}
