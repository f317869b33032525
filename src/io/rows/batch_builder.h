/* batch_builder.h - from rows to slots: the transposition that makes a batch.
 *
 * A tn_batch_builder owns the memory of one batch and keeps it from one batch to the next, so
 * that a steady run allocates nothing.
 */
#pragma once

#include "base/core/error.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tn_batch tn_batch;   /* io/rows/batch.h */
typedef struct tn_rows tn_rows;     /* io/rows/rows.h */
typedef struct tn_schema tn_schema; /* io/schema/schema.h */

typedef struct tn_batch_builder tn_batch_builder;

/* Room for `rows_max` rows; `want_ids` as in tn_reader_opts. On failure *out is NULL. */
tn_status tn_batch_builder_new(tn_batch_builder **out, const tn_schema *schema, uint32_t rows_max,
                               bool want_ids, tn_error *err) TN_MUST_USE;
void tn_batch_builder_free(tn_batch_builder *f); /* NULL is fine */

void tn_batch_builder_clear(tn_batch_builder *f);

/* Appends row i of `rows`, of file `source`; rows are lent until tn_batch_builder_settle.
 * TN_E_MEMORY, TN_E_LIMIT (2^32 keys). */
tn_status tn_batch_builder_add(tn_batch_builder *f, const tn_rows *rows, uint32_t i,
                               uint32_t source, tn_error *err) TN_MUST_USE;
/* Copies what it still borrows of the rows that were added: before those go, and before the end.
 * TN_E_MEMORY. */
tn_status tn_batch_builder_settle(tn_batch_builder *f, tn_error *err) TN_MUST_USE;
uint32_t tn_batch_builder_rows(const tn_batch_builder *f);

/* Returns the batch, complete but for its progress. The builder holds it until it is cleared. */
tn_batch *tn_batch_builder_end(tn_batch_builder *f);
tn_batch_builder *tn_batch_builder_of(tn_batch *batch);
