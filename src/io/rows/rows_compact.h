/* rows_compact.h - keys side by side, without entries: half as large, and a batch is made of many
 * rows at once (tn_filling_add).
 *
 *     as a cache holds them, in a row by ascending slots; width 0: rows differ, else `slot` is that
 *     of every row
 *         key   a b c d e f g        slot   0 1 1 3 0 1 3       row 0  a b c d      row 1  e f g
 *
 *     a grid, where a slot has one key or none: for each row a mask of those that have one, and
 *     room for all; stride is 1 + n_slots
 *         key   1011 a b - d   0101 e - g -
 *
 * Rows that were made with TN_ROWS_BARE may come so, when all x_j are 1: n_entries and the `first`
 * of each row count as ever, but tn_rows.entry is not filled.
 */
#ifndef TN_IO_ROWS_COMPACT_H
#define TN_IO_ROWS_COMPACT_H

#include "io/rows/rows.h"

enum { TN_ROWS_BARE = 4 }; /* for tn_rows_new, with TN_ROWS_x */

enum { TN_GRID_SLOTS = 64 }; /* at most */

typedef struct tn_bare {
    const uint64_t *key;  /* one more than there are may be read */
    const uint16_t *slot; /* likewise; a grid has none */
    uint32_t width;
    uint32_t stride; /* 0: no grid */
    bool even;       /* every row has one key of each slot */
} tn_bare;

/* NULL: the rows stand in tn_rows.entry. */
const tn_bare *tn_rows_bare(const tn_rows *rows);

/* Copies `n` keys and the slots of all of them, or of the `width` of every row; the rows are bare
 * until they are cleared. False: no memory. */
bool tn_rows_put_bare(tn_rows *rows, const char *key, uint32_t n, const char *slot, uint32_t width);

void tn_rows_free_bare(tn_rows *rows);

#endif
