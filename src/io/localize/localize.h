/* localize.h - from table keys to places in the batch's own small table.
 *
 * A batch may hold 40,000 keys out of a hundred billion, but only 9,000
 * different ones. Localizing finds those and rewrites the batch as places of
 * their rows, so that the graph only ever sees a table of 9,000 rows.
 *
 *     as read    907  15  907  88     rows of 9 floats, in the order in which keys are first seen
 *     index        0   9    0  18     begins of their rows
 *     keys.key    15  88  907         each once, by partition and so by peer
 *     keys.at      9  18    0         rows of keys.key
 *
 * Depends on the batch alone: same batch, same keyset, in the same order. A batch of any size
 * works: memory grows when a batch is larger than all before it, so a steady run allocates nothing.
 * One localizer per step that runs; one thread uses it at a time.
 */
#pragma once

#include "base/core/error.h"
#include "base/keys/bag.h"
#include "base/keys/keyset.h"

#include <stdbool.h>

typedef struct tn_batch tn_batch; /* io/rows/batch.h */

typedef struct tn_localizer tn_localizer;

typedef struct tn_localizer_opts {
    const tn_owners *owners;    /* must outlive the localizer */
    const tn_layout *layout;    /* likewise */
    const uint16_t *slot_group; /* n_slots: index into layout->group; copied */
    const bool *slot_used; /* n_slots: false: no input of the model takes the slot; its keys are
                            * left out and its bag is empty; copied */
    uint32_t n_slots;
    uint32_t n_blocks; /* rows are cut into about so many blocks at least, so that as many threads
                        * find work on the way back; 0 where there is none */
} tn_localizer_opts;

typedef struct tn_local {
    tn_keyset keys;
    const tn_bag *bag;         /* n_slots */
    const tn_row_block *block; /* n_blocks; all rows of the batch */
    uint32_t n_blocks;
} tn_local;

/* Floats from one row of a share group to the next. Rows that fit a cache line do not straddle two:
 * the table is read and written in the order of partitions, where a line serves one row alone. Rows
 * that nearly fill lines are padded to them, and their widest segment begins on one. */
uint32_t tn_localized_stride(uint32_t width);

/* On failure *out is NULL. */
tn_status tn_localizer_new(tn_localizer **out, const tn_localizer_opts *opts,
                           tn_error *err) TN_MUST_USE;
void tn_localizer_free(tn_localizer *localizer); /* NULL is fine */

/* *out lasts until the next call, and its bags borrow from `batch`. TN_E_MEMORY, TN_E_LIMIT (2^31
 * keys). */
tn_status tn_localize(tn_localizer *localizer, const tn_batch *batch, const tn_local **out,
                      tn_error *err) TN_MUST_USE;
