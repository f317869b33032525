/* batch_column.h - one slot of a batch while it grows.
 *
 *     rows     a b - d    a b c -        a row and its keys by slot
 *     slot 2   key  c     end  0 1       `end` of each row: behind its keys
 *
 * Keys come as entries, or without them, from many rows at once (io/rows/rows_compact.h). For
 * batch_builder.c.
 */
#ifndef TN_IO_BATCH_COLUMN_H
#define TN_IO_BATCH_COLUMN_H

#include "io/rows/rows.h"

#include <stdbool.h>

typedef struct tn_column {
    uint64_t *key;
    float *value;
    uint32_t *offset; /* rows + 1 */
    uint32_t n;
    uint32_t capacity;
    bool odd; /* some value is not 1; else `value` is not written */
} tn_column;

void tn_column_done(tn_column *c); /* frees what it owns */

/* Keys of a row without entries. In a grid its mask is in front of them. */
typedef struct tn_bare_row {
    const uint64_t *key;
    const uint16_t *slot; /* of each; NULL in a grid */
    uint32_t n;
} tn_bare_row;

/* All of these: false, if there is no memory. Entries, each to the column of its slot. */
bool tn_columns_add(tn_column *column, const tn_entry *entry, uint32_t n) TN_MUST_USE;

/* All slots of n rows of a grid, of which the first is row `r` of the batch. */
bool tn_columns_add_grid(tn_column *column, uint32_t n_slots, const tn_bare_row *row, uint32_t n,
                         uint32_t r) TN_MUST_USE;

/* Slot `s` of n rows: that have one key of each slot; of any, whose slots ascend (what is taken
 * leaves them); of any, where there is one slot only. */
bool tn_column_add_even(tn_column *c, uint32_t s, const tn_bare_row *row, uint32_t n,
                        uint32_t *end) TN_MUST_USE;
bool tn_column_add_any(tn_column *c, uint32_t s, tn_bare_row *row, uint32_t n,
                       uint32_t *end) TN_MUST_USE;
bool tn_column_add_all(tn_column *c, const tn_bare_row *row, uint32_t n, uint32_t *end) TN_MUST_USE;

#endif
