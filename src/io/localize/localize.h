/* localize.h - from table keys to positions in the batch's own small table.
 *
 * A batch may hold 40,000 keys out of a hundred billion, but only 9,000
 * different ones. Localizing finds those and rewrites the batch as positions
 * among them, so that the graph only ever sees a table of 9,000 rows.
 *
 *     as read    907  15  907  88
 *     keys.key    15  88  907         each once, by partition and so by peer
 *     index        2   0    2   1     keys.key[index[i]] is the i-th key read
 *
 * Depends on the batch alone: same batch, same keyset, in the same order. A batch of any size
 * works: memory grows when a batch is larger than all before it, so a steady run allocates nothing.
 * One localizer per step in flight; one thread uses it at a time.
 */
#ifndef TN_IO_LOCALIZE_H
#define TN_IO_LOCALIZE_H

#include "base/core/error.h"
#include "base/keys/bag.h"
#include "base/keys/keyset.h"

#include <stdbool.h>

typedef struct tn_batch tn_batch;   /* io/rows/batch.h */
typedef struct tn_layout tn_layout; /* base/keys/record.h */

typedef struct tn_localizer tn_localizer;

typedef struct tn_localizer_opts {
    const tn_owners *owners;    /* must outlive the localizer */
    const tn_layout *layout;    /* likewise */
    const uint16_t *slot_group; /* n_slots: index into layout->group; copied */
    const bool *slot_used; /* n_slots: false: no input of the model takes the slot; its keys are
                            * left out and its bag is empty; copied */
    uint32_t n_slots;
    bool occurrences; /* also the way back, for training */
    bool by_slot; /* .. unless no two slots have a group in common: then bags are way enough for one
                   * thread */
} tn_localizer_opts;

typedef struct tn_local {
    tn_keyset keys;
    const tn_bag *bag; /* n_slots */
    tn_occurrences occurrences;
    bool apart; /* there are none, since slots have no key in common and that was allowed */
} tn_local;

/* On failure *out is NULL. */
tn_status tn_localizer_new(tn_localizer **out, const tn_localizer_opts *opts,
                           tn_error *err) TN_MUST_USE;
void tn_localizer_free(tn_localizer *localizer); /* NULL is fine */

/* *out lasts until the next call, and its bags borrow from `batch`. TN_E_MEMORY, TN_E_LIMIT (2^31
 * keys). */
tn_status tn_localize(tn_localizer *localizer, const tn_batch *batch, const tn_local **out,
                      tn_error *err) TN_MUST_USE;

#endif
