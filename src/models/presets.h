/* presets.h - the parts that presets of several models share, as pieces of YAML.
 *
 *     {"bars", "model: {..}\n" TN_BARS_EMBEDDING TN_BARS_TRAIN
 *              TN_BARS_ROWS("deep", "0.05") TN_BARS_STOP},
 *
 * bars is the recipe of the open CTR benchmark; tensornet has the defaults of TensorNet.
 */
#ifndef TN_MODELS_PRESETS_H
#define TN_MODELS_PRESETS_H

#define TN_BARS_EMBEDDING "embedding: {dim: 10, init: {normal: [0, 1e-4]}}\n"
#define TN_BARS_TRAIN                                                                              \
    "train:\n"                                                                                     \
    "  batch: 4096\n"                                                                              \
    "  optimizer: {type: adam, lr: 1e-3}\n"                                                        \
    "  sparse:\n"
#define TN_BARS_ROWS(segment, l2)                                                                  \
    "    " segment ": {type: adam, lr: 1e-3, bias: global, l2: " l2 ", l2_mode: dense}\n"
#define TN_BARS_STOP                                                                               \
    "  clip: {global: 10}\n"                                                                       \
    "  stop: {monitor: valid.auc, patience: 2, min_delta: 1e-6, restore: best}\n"                  \
    "  reduce_on_plateau: {factor: 0.1, patience: 1, min_lr: 1e-6}\n"

#define TN_TENSORNET_EMBEDDING "embedding: {dim: 8, pool: mean, init: {normal: [0, 0.0353553]}}\n"
#define TN_TENSORNET_TRAIN                                                                         \
    "train:\n"                                                                                     \
    "  batch: 32\n"                                                                                \
    "  optimizer: {type: adam, lr: 1e-3}\n"                                                        \
    "  sparse:\n"
#define TN_TENSORNET_ROWS(segment)                                                                 \
    "    " segment ": {type: adagrad, rowwise: true, lr: 0.01, n0: 0.1}\n"
#define TN_TENSORNET_BOTH                                                                          \
    TN_TENSORNET_EMBEDDING TN_TENSORNET_TRAIN TN_TENSORNET_ROWS("deep") TN_TENSORNET_ROWS("wide")

/* Pairs of vectors and a wide part, nothing else. */
#define TN_BARS_PAIRS(embedding)                                                                   \
    "model: {wide_init: {normal: [0, 1e-4]}, bias_init: 0}\n" embedding TN_BARS_TRAIN              \
        TN_BARS_ROWS("deep", "5e-6") TN_BARS_ROWS("wide", "5e-6") TN_BARS_STOP

#endif
