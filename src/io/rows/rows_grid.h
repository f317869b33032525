/* rows_grid.h - how parsers write a grid (io/rows/rows_compact.h).
 *
 *     uint64_t *keys = tn_rows_begin_grid(rows);      NULL: begin a row of entries
 *     keys[slot] = ..
 *     tn_rows_end_grid(rows, keys, 1 << slot | ..);   or tn_rows_rollback
 *
 * A row of entries ends the grid of its block: what there is becomes entries.
 */
#ifndef TN_IO_ROWS_GRID_H
#define TN_IO_ROWS_GRID_H

#include "io/rows/rows_private.h"

/* As tn_rows_begin, for a row of a grid (io/rows/rows_compact.h): where its keys go, behind its
 * mask. NULL: these rows are none, or there is no memory; nothing was begun. */
uint64_t *tn_rows_begin_grid(tn_rows *rows);

/* Keeps the row: `there` has a bit for each slot that has a key. */
static inline void tn_rows_end_grid(tn_rows *rows, uint64_t *keys, uint64_t there)
{
    keys[-1] = there;
    rows->n_entries += (uint32_t)__builtin_popcountll(there);
    rows->n++;
}

/* The keys of lanes to the slots of their specs, of those whose bits are set; bits of the slots. */
uint64_t tn_rows_put_grid(const tn_rows *rows, uint64_t there, uint64_t *keys);

/* Makes entries of a grid. False: no memory. */
bool tn_rows_leave_grid(tn_rows *rows);

/* The keys of a block of a cache as a grid; false: no memory, or they do not fit into one. `end`:
 * u32 of each row, behind its last key. */
bool tn_rows_put_as_grid(tn_rows *rows, const char *key, const char *slot, const char *end,
                         uint32_t n_rows);

#endif
