/* tensornet_export.h - a model as a checkpoint of TensorNet.
 *
 *     <dir>/_checkpoint     <dir>/<dt>/sparse_table ..  dense_table/0 ..  bn_table ..
 *
 * By the same map as an import (extra/tensornet/tensornet_map.h), and exported rows and weights
 * come back as they were. The day appears under its name when it is whole; then `_checkpoint` names
 * it. Text is `%.9g`, which brings back every bit. tf_checkpoint is not written: TensorNet takes
 * dense weights from there when it loads, so its side must read dense_table.
 */
#pragma once

#include "base/core/error.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tn_tree tn_tree;     /* config/tree.h */
typedef struct tn_worker tn_worker; /* train/step/worker.h */

/* Running values of batch norms become sums of so many rows, TensorNet's usual max_count. */
#define TN_TENSORNET_NORM_COUNT 1e6

typedef struct tn_tensornet_export_opts {
    const tn_tree *map; /* a path, or the map itself */
    const char *dir;
    const char *dt; /* NULL: the date of the model's day */
    uint32_t ranks; /* ranks of TensorNet, 1 .. TN_TENSORNET_RANKS_MAX */
    bool text;      /* else binary */
} tn_tensornet_export_opts;

typedef struct tn_tensornet_exported {
    char path[4096]; /* folder of the day */
    uint64_t rows;   /* rows of all layers */
} tn_tensornet_exported;

/* `w` holds the model, alone. TN_E_CONFIG: the map does not fit, or a rule keeps other states than
 * TensorNet's; TN_E_USAGE: no day is known, or it is there already. */
tn_status tn_tensornet_export(const tn_worker *w, const tn_tensornet_export_opts *opts,
                              tn_tensornet_exported *out, tn_error *err) TN_MUST_USE;
