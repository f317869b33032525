/* batch_builder.h - from rows to slots: the transposition that makes a batch.
 *
 * A tn_filling owns the memory of one batch and keeps it from one filling to the next, so that a
 * steady run allocates nothing.
 */
#ifndef TN_IO_BATCH_BUILDER_H
#define TN_IO_BATCH_BUILDER_H

#include "io/rows/batch.h"
#include "io/rows/rows.h"

typedef struct tn_filling tn_filling;

/* Room for `rows_max` rows; `want_ids` as in tn_reader_opts. On failure *out is NULL. */
tn_status tn_filling_new(tn_filling **out, const tn_schema *schema, uint32_t rows_max,
                         bool want_ids, tn_error *err) TN_MUST_USE;
void tn_filling_free(tn_filling *f); /* NULL is fine */

void tn_filling_clear(tn_filling *f);

/* Appends row i of `rows`, of file `source`; rows are lent until tn_filling_settle. TN_E_MEMORY,
 * TN_E_LIMIT (2^32 keys). */
tn_status tn_filling_add(tn_filling *f, const tn_rows *rows, uint32_t i, uint32_t source,
                         tn_error *err) TN_MUST_USE;
/* Copies what it still borrows of the rows that were added: before those go, and before the end.
 * TN_E_MEMORY. */
tn_status tn_filling_settle(tn_filling *f, tn_error *err) TN_MUST_USE;
uint32_t tn_filling_rows(const tn_filling *f);

/* The batch, complete but for its progress; the filling is behind it until it is cleared. */
tn_batch *tn_filling_end(tn_filling *f);
tn_filling *tn_filling_of(tn_batch *batch);

#endif
