/* batch_gather.h - copies rows of a batch, in which one slot may hold the values of other rows.
 *
 *     rows 4 .. 7 of a batch, slot 1 dealt by `deal`, with the others of its sequence
 *
 *     slot 0    row 4  row 5  row 6  row 7
 *     slot 1    row 9  row 2  row 4  row 0         deal[4] .. deal[7]
 *     label     row 4  row 5  row 6  row 7
 *
 * The model loses by it as much as it has from that slot (train/eval/importance.h). One thread.
 */
#pragma once

#include "base/core/error.h"

#include <stdint.h>

typedef struct tn_batch tn_batch;   /* io/rows/batch.h */
typedef struct tn_schema tn_schema; /* io/schema/schema.h */

typedef struct tn_batch_gather tn_batch_gather;

/* `schema` must outlive it. On failure *out is NULL. */
tn_status tn_batch_gather_new(tn_batch_gather **out, const tn_schema *schema,
                              tn_error *err) TN_MUST_USE;
void tn_batch_gather_free(tn_batch_gather *g); /* NULL is fine */

typedef struct tn_gathered {
    uint32_t first, n;    /* rows of the batch */
    uint32_t spec;        /* index into schema->spec of the slot that is dealt; TN_NOWHERE: none */
    const uint32_t *deal; /* rows of the batch: whose values each one gets; not read without spec */
} tn_gathered;

/* *out is the gatherer's until the next call, and borrows label, weight and group of `from`. It has
 * no ids and no sources. TN_E_MEMORY. */
tn_status tn_batch_gather_rows(tn_batch_gather *g, const tn_batch *from, const tn_gathered *what,
                               tn_batch **out, tn_error *err) TN_MUST_USE;
