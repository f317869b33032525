/* inspect_stat.h - what a data set holds, slot by slot.
 *
 *     tn_stat *stat = NULL;
 *     TN_TRY(tn_stat_new(&stat, schema, err));
 *     tn_stat_add(stat, rows, team);               block after block, in order
 *     tn_stat_text(stat, 5, &text);
 *
 * Slots are counted in parallel, each by one thread, so the figures do not depend on the number of
 * threads. Numbers are those of the record, before transforms; rows were made with TN_ROWS_SIGNS.
 * Bounds are by weight, so that a row of weight 0 has no part in them.
 */
#pragma once

#include "base/core/error.h"

#include <stdint.h>

typedef struct tn_rows tn_rows;     /* io/rows/rows.h */
typedef struct tn_schema tn_schema; /* io/schema/schema.h */
typedef struct tn_team tn_team;     /* base/thread/team.h */
typedef struct tn_text tn_text;     /* base/core/text.h */

typedef struct tn_stat tn_stat;

enum { TN_STAT_TOP_MAX = 100 };

/* `schema` must outlive it. On failure *out is NULL. */
tn_status tn_stat_new(tn_stat **out, const tn_schema *schema, tn_error *err) TN_MUST_USE;
void tn_stat_free(tn_stat *s); /* NULL is fine */

/* The rows need not outlive the call. */
tn_status tn_stat_add(tn_stat *s, const tn_rows *rows, tn_team *team, tn_error *err) TN_MUST_USE;

/* The report, with the `top` most frequent values of each slot; nothing is added afterwards. */
void tn_stat_text(tn_stat *s, uint32_t top, tn_text *out);
void tn_stat_json(tn_stat *s, uint32_t top, tn_text *out);

/* Bounds between `n` parts of equal share for `transform: {quantiles: file}`: ascending, one on a
 * line. TN_E_USAGE: no such slot, or it holds no numbers. */
tn_status tn_stat_bounds(tn_stat *s, const char *slot, uint32_t n, tn_text *out,
                         tn_error *err) TN_MUST_USE;
