/* lookup.h - tiles of a table's keys: their locks, and their rows; for the files of the table only.
 *
 *     tile     16 partitions, worked by one thread under their locks
 *     run      up to TN_LOOK_KEYS of its keys, whose cache misses overlap
 */
#ifndef TN_PS_LOOKUP_H
#define TN_PS_LOOKUP_H

#include "ps/table/tabledef.h"

/* The keys of a tile, and its locks: of partitions that hold some of them, or of all. */
tn_range tn_tile_keys(const tn_keyset *keys, uint32_t tile);
void tn_tile_lock(const tn_table *t, const tn_keyset *keys, uint32_t tile, bool all);
void tn_tile_unlock(const tn_table *t, const tn_keyset *keys, uint32_t tile, bool all);

/* Asks for what leads to the rows of a locked tile's keys, as look-ups need it. */
void tn_tile_fetch(const tn_table *t, const tn_keyset *keys, uint32_t tile);

/* row[i] := the row of key run.from + i, or NULL; at most TN_LOOK_KEYS. The locks are held. `mark`:
 * marks what it finds, for a sweep. */
void tn_look_up(const tn_table *t, const tn_keyset *keys, tn_range run, bool mark, tn_row **row);

/* The same by hints, without marks. */
void tn_look_up_hinted(const tn_table *t, const tn_keyset *keys, tn_range run, tn_row *const *hint,
                       tn_row **row);

/* The i-th run of keys that are looked up together. */
static inline tn_range tn_look_run(tn_range all, uint32_t i)
{
    tn_range run = tn_tile(all.to - all.from, TN_LOOK_KEYS, i);
    return (tn_range){all.from + run.from, all.from + run.to};
}

#endif
