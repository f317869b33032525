/* table_snapshot.h - the rows of a table as they were at one moment, read while training goes on.
 *
 *     TN_TRY(tn_cut_open(&cut, table, false, err));      between two pushes
 *     for each partition:                                on any one other thread
 *         TN_TRY(tn_cut_walk(cut, p, visit, arg, err));
 *     tn_cut_close(cut);
 *
 * Rows that change before their partition was walked are copied aside first, so that walks see the
 * same bits as if no row had changed. Copies take at most a quarter of the
 * table (but always 64 MB, and not more than what its limit leaves); beyond, pushes wait for the
 * walks; from half of that on, each push waits for the walk of one partition, at most some 20 ms.
 * Rules with l2_mode: dense touch every row in every push: these wait until the cut is closed.
 *
 * A delta holds the rows that were touched or created since the cut before. For that the table must
 * be tracked, which costs eight bytes per row that is touched between two cuts.
 */
#pragma once

#include "ps/table/table.h"

typedef struct tn_cut tn_cut;

/* From now on the table knows which rows are touched; rows put back by tn_table_restore are not.
 * No other thread inside. */
tn_status tn_table_track(tn_table *t, tn_error *err) TN_MUST_USE;

/* Whether it knows all that were touched since the last cut, or since tracking began. */
bool tn_table_knows_changes(const tn_table *t);

/* No other thread inside; one cut at a time. A delta needs tn_table_knows_changes. */
tn_status tn_cut_open(tn_cut **out, tn_table *t, bool delta, tn_error *err) TN_MUST_USE;
void tn_cut_close(tn_cut *c); /* NULL is fine */

/* Lets no push wait for the walks, however late these come: copies may be as large as the table.
 * False where that would be too much, or a rule has l2_mode: dense: then all is as before. To be
 * called before any push. */
bool tn_cut_set_patient(tn_cut *c);

uint64_t tn_cut_rows(const tn_cut *c);  /* rows of the whole table */
uint64_t tn_cut_bytes(const tn_cut *c); /* about what the cut's rows take in memory */

/* As tn_table_walk, but nothing is locked while visit runs. Each partition once. TN_E_MEMORY also
 * when there was no room to copy a row aside. */
tn_status tn_cut_walk(tn_cut *c, uint32_t partition, tn_row_visit *visit, void *arg,
                      tn_error *err) TN_MUST_USE;

/* Copies the key filter of a partition (ps/table/key_filter.h) as it was at the cut: so many bytes
 * of each; 0: there is no filter. *any: something was counted, else out is not written. Each
 * partition once, before or after its walk, on the same thread. TN_E_MEMORY likewise. */
size_t tn_cut_filter_bytes(const tn_cut *c);
tn_status tn_cut_filter(tn_cut *c, uint32_t partition, uint8_t *out, bool *any,
                        tn_error *err) TN_MUST_USE;
