/* warm_start.h - the weights of a checkpoint become those of another model.
 *
 *     checkpoint.from: runs/a                         rows of slots and dense parameters by name
 *     checkpoint.from: {path: runs/a/ckpt-7, rows: [user, item], dense: [deep.*],
 *                       rename: {member: user}}
 *
 * `path` is a checkpoint, or a run directory whose newest good one is taken. A slot of both models
 * keeps its rows, under keys of its own name: key -> sign by the old salt, sign -> key by the new
 * one. Of a segment that both have the width must agree, else TN_E_CONFIG lists the differences;
 * one that the checkpoint lacks begins as in a new row. States come along where the rule has the
 * same. A dense parameter is taken when name and shape agree; the optimizer's state of dense
 * weights when all of them are.
 */
#pragma once

#include "base/core/error.h"

typedef struct tn_arena tn_arena;   /* base/core/arena.h */
typedef struct tn_begun tn_begun;   /* train/begin/begun.h */
typedef struct tn_text tn_text;     /* base/core/text.h */
typedef struct tn_tree tn_tree;     /* config/tree.h */
typedef struct tn_worker tn_worker; /* train/step/worker.h */

/* `from`: a path, or a map with `path`. `begun` (may be NULL) gets what was taken. TN_E_CONFIG: a
 * fault in `from`, or widths that differ; TN_E_CKPT: no checkpoint, or a damaged one. */
tn_status tn_warm_start(const tn_tree *from, tn_worker *w, tn_begun *begun,
                        tn_error *err) TN_MUST_USE;

/* Appends the slots of that checkpoint's configuration, by the names that they have in the new one,
 * as YAML; nothing where there is no such checkpoint, which its loader reports. Bounds of buckets
 * that the data chose then are part of what its rows mean. */
void tn_warm_start_slots(const tn_tree *from, tn_arena *arena, tn_text *out);
