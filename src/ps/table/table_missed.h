/* table_missed.h - steps that rows have missed, where a rule says l2_mode: exact; for the files of
 * the table only.
 *
 *     steps of the table   0  1  2  3  4          n_steps 5
 *     row, last 2          x  x  .  .  .          2, 3 and 4 are made up for when it is next needed
 *
 * With l2_mode: exact a push lists its step and rate, and changes the rows of its batch alone. A
 * row remembers how much of the list it has made; pulls, pushes, peeks and walks make up for the
 * rest. All rows do it, and the list begins anew, when it is full, before a cut and before rows
 * expire: so files never hold the list, and no row is behind in them.
 */
#pragma once

#include "ps/table/tabledef.h"

/* Where t->exact, rows of a locked tile make up for what they have missed. `more`: 1 where they
 * make the step that comes next as well, in their batch, else 0. */
void tn_rows_catch_up(tn_table *t, const tn_keyset *keys, tn_range run, tn_row *const *row,
                      uint32_t more);

/* At most TN_LOOK_KEYS rows with the same rules make the step of job->push without gradients, where
 * the rule has this l2_mode; norm2[i], unless NULL, grows by their squared norms (table_push.c). */
void tn_rows_miss(const tn_table_job *job, uint32_t l2_mode, uint32_t n, tn_row *const *row,
                  double *norm2);

/* How many of n rows, from the first on, have its rules and its segments. */
static inline uint32_t tn_rows_alike(const tn_table *t, uint32_t n, tn_row *const *row)
{
    const uint32_t kind = tn_kind_of(t, tn_row_group(*row));
    uint32_t alike = 1;
    while (alike < n && tn_kind_of(t, tn_row_group(row[alike])) == kind &&
           tn_row_waits(row[alike]) == tn_row_waits(*row)) {
        alike++;
    }
    return alike;
}

/* Behind a push. */
void tn_table_add_step(tn_table *t, tn_team *team, const tn_push *push);

/* A row that is about to be updated, while changes are watched. */
static inline void tn_row_note_change(tn_table *t, uint64_t key, tn_row *row)
{
    if (tn_row_stamp(row) != t->changes.stamp) {
        tn_changed_rows_note(&t->changes, key, row, tn_plan_of_row(t, row)->stride, false);
    }
}
