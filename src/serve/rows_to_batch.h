/* rows_to_batch.h - parsed rows, row by row, turned into a batch, slot by slot.
 *
 *     rows    user 7 | item 1 | item 4 || user 9 | item 4         batch   user  7 9
 *                                                                         item  1 4 | 4
 *
 * For programs that score what they parse; training batches come from io/read/reader.h. Keeps its
 * memory for the next block. One thread at a time.
 */
#ifndef TN_SERVE_ROWS_TO_BATCH_H
#define TN_SERVE_ROWS_TO_BATCH_H

#include "io/rows/batch.h"
#include "io/rows/rows.h"

typedef struct tn_row_batch tn_row_batch;

/* `schema` must outlive it. */
tn_status tn_row_batch_new(tn_row_batch **out, const tn_schema *schema, tn_error *err) TN_MUST_USE;
void tn_row_batch_free(tn_row_batch *b); /* NULL is fine */

/* *out is lent until the next call and borrows from `rows`. Labels and weights are not filled. */
tn_status tn_row_batch_fill(tn_row_batch *b, const tn_rows *rows, const tn_batch **out,
                            tn_error *err) TN_MUST_USE;

#endif
