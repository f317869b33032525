/* row_sweep.h - the end of an epoch, or of a day: rows that have expired leave the table, and those
 * that are there are counted.
 *
 *     if (tn_rows_come_and_go(plan))
 *         TN_TRY(tn_table_sweep(table, team, day, groups, err));     groups[n_groups]
 *
 * Every rank does so with the rows that it owns, while all pause; counts of ranks add up.
 */
#pragma once

#include "base/core/text.h"
#include "ps/table/table.h"

typedef struct tn_model_plan tn_model_plan;

/* Whether rows of some slot expire, leave a full table, or wait for admission. Else there is
 * nothing to sweep. */
bool tn_rows_come_and_go(const tn_model_plan *plan);

/* Counts of n groups as bytes, and added to those of another rank. False: not so many. */
void tn_group_rows_pack(const tn_group_rows *groups, uint32_t n, tn_text *out);
bool tn_group_rows_add(tn_group_rows *groups, uint32_t n, const char *bytes, size_t size);
