/* tensornet_map.h - the import map, YAML: which part of a TensorNet checkpoint is which of a model.
 *
 *     sparse:                         layer of sparse_table -> segment of the slots' rows
 *       - {layer: linear_input, segment: wide, optimizer: adagrad}
 *       - {layer: deep_input, segment: deep, optimizer: adagrad, cvm: false, share: all}
 *     dense:                          the variables of dense_table/0 by name, bytewise
 *       - {name: "dnn_0/bias:0", shape: [8], to: dnn_0.b}
 *       - {name: "dnn_0/kernel:0", shape: [16, 8], to: dnn_0.W}
 *     bn:                             tables of bn_table -> running values
 *       - {table: 0, mean: bn.mean, var: bn.var}
 *
 * In TensorNet a sign has no slot, so all slots of a layer are one share group; `share` names it
 * where the model has several. Dense tables have no names: shapes must add up to their length.
 * Everything lives in the arena.
 */
#pragma once

#include "base/keys/record.h"
#include "config/values.h"
#include "extra/tensornet/tensornet.h"

typedef struct tn_param_slice tn_param_slice; /* nn/graph/params.h */
typedef struct tn_worker tn_worker;           /* train/step/worker.h */

enum { TN_TENSORNET_LAYERS_MAX = 64 };

/* A layer's table and the segment it is. */
typedef struct tn_tensornet_layer {
    const char *name;
    uint32_t group, segment;
    tn_tensornet_shape shape;
    bool with_states;  /* the rule of the model has the same states */
    uint32_t state[2]; /* their numbers in it; AdaGrad has the first alone */
} tn_tensornet_layer;

typedef struct tn_tensornet_norms {
    const char *table;
    const tn_param_slice *mean, *var;
} tn_tensornet_norms;

typedef struct tn_tensornet_map {
    uint32_t n_layers, n_dense, n_norms;
    const tn_tensornet_layer *layer;
    const tn_param_slice *const *dense; /* in the order of the table */
    uint64_t dense_size;                /* values of these */
    const tn_tensornet_norms *norm;
} tn_tensornet_map;

/* `map` is the path of a file, or the map itself. TN_E_CONFIG lists what is wrong in it, or does
 * not fit the model. */
tn_status tn_tensornet_map_read(tn_tensornet_map *out, const tn_tree *map, const tn_worker *w,
                                tn_arena *arena, tn_error *err) TN_MUST_USE;
