/* warm_match.h - which slot and which parameter of a checkpoint is which of a model: the first half
 * of warm_start.h.
 *
 *     TN_TRY(tn_warm_read_words(&m, from, err));            checkpoint.from as it is written
 *     TN_TRY(tn_warm_check_names(&m, &manifest, err));      names that mean nothing are faults
 *     TN_TRY(tn_warm_match_slots(&m, &manifest.sparse, err));      m.moves
 *     .. tn_warm_source_of(&m, &manifest.dense, slice) ..   per parameter of the model
 *
 * One thread; lists live in m->arena, names are lent by the tree and the manifest.
 */
#pragma once

#include "ps/snapshot/manifest.h"
#include "train/begin/incoming_row.h"

typedef struct tn_arena tn_arena;             /* base/core/arena.h */
typedef struct tn_begun tn_begun;             /* train/begin/begun.h */
typedef struct tn_param_slice tn_param_slice; /* nn/graph/params.h */
typedef struct tn_tree tn_tree;               /* config/tree.h */

#define TN_NOWHERE UINT32_MAX

/* Fate of the rows of one slot (share group) of the checkpoint. */
typedef struct tn_move {
    uint32_t to;                       /* group of the model, or TN_NOWHERE */
    uint32_t segment[TN_SEGMENTS_MAX]; /* per segment of ours: the checkpoint's, or TN_NOWHERE */
    bool with_states[TN_SEGMENTS_MAX]; /* likewise: its states are those of our rule */
    uint32_t words[TN_SEGMENTS_MAX];   /* per segment of the checkpoint: its words in a row */
} tn_move;

typedef struct tn_warm {
    const char *path;
    const tn_tree *rows, *dense, *rename; /* null: all, all, none */
    tn_worker *w;
    tn_begun *begun; /* NULL: nobody wants to know */
    tn_arena *arena;
    tn_incoming row;
    tn_row_schema now; /* groups of the model */
    /* rows of the link of the chain that is read */
    const tn_row_schema *was;
    tn_move *moves; /* per group of it */
    uint64_t step;
} tn_warm;

/* TN_E_CONFIG. */
tn_status tn_warm_read_words(tn_warm *m, const tn_tree *from, tn_error *err) TN_MUST_USE;
tn_status tn_warm_check_names(const tn_warm *m, const tn_manifest *was, tn_error *err) TN_MUST_USE;
tn_status tn_warm_match_slots(tn_warm *m, const tn_row_schema *was, tn_error *err) TN_MUST_USE;

/* The name that `name` of the checkpoint has in the model. */
const char *tn_warm_renamed(const tn_warm *m, const char *name);

/* The group of the model that is called so, or that a slot called so is in; TN_NOWHERE: none. */
uint32_t tn_warm_group_called(const tn_worker *w, const char *name);
bool tn_warm_wants_group(const tn_warm *m, uint32_t group);

/* The checkpoint's parameter of that name; NULL: it has none. */
const tn_manifest_param *tn_warm_param_called(const tn_warm *m, const tn_manifest_dense *d,
                                              const char *name);
bool tn_warm_wants_param(const tn_warm *m, const char *name);

/* The parameter of the checkpoint that becomes `s`; NULL: it is made new. */
const tn_manifest_param *tn_warm_source_of(const tn_warm *m, const tn_manifest_dense *d,
                                           const tn_param_slice *s);
