/* tensornet_import.h - a model begins with a checkpoint of TensorNet.
 *
 *     checkpoint.from: {tensornet: {dir: models/ctr, map: map.yaml}}
 *
 * Rows of several layers join by sign, in the layers' share group. Weights always come, states
 * where the model's rule keeps the same: `adagrad` with `rowwise: true`, `adam` with `bias: none`,
 * `ftrl` (whose alpha is 1 / TensorNet's learning rate); else they begin anew, and the table of
 * what was taken says so. last_seen is the checkpoint's day less the days a row was not shown, and
 * unless run.day says otherwise the run's day becomes that day. Dense weights are those of
 * dense_table: tf_checkpoint is rank 0's copy, which may lack the last updates of others.
 */
#pragma once

#include "base/core/error.h"

typedef struct tn_begun tn_begun;   /* train/begin/begun.h */
typedef struct tn_tree tn_tree;     /* config/tree.h */
typedef struct tn_worker tn_worker; /* train/step/worker.h */

/* `from`: {tensornet: {dir, map}}. `begun` may be NULL. TN_E_CONFIG: a fault in it, or in the map;
 * TN_E_CKPT: in a file. */
tn_status tn_tensornet_import(const tn_tree *from, tn_worker *w, tn_begun *begun,
                              tn_error *err) TN_MUST_USE;
