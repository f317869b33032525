/* tensornet_guess.h - an import map for a TensorNet checkpoint, made of its files.
 *
 *     sparse:
 *       - {layer: wide, segment: wide, optimizer: adagrad}  # dim 1, 56 rows of rank 0 of 2
 *     dense:
 *       - {name: "dnn_0/bias:0", shape: [8], to: dnn_0.b}
 *
 * For a model whose inputs and layers are called like TensorNet's (configs/tensornet.yaml); other
 * names are to be changed by hand. Names and shapes of variables are those of tf_checkpoint.
 */
#pragma once

#include "base/core/error.h"

typedef struct tn_text tn_text; /* base/core/text.h */

/* Appends the map, YAML. TN_E_CKPT: no checkpoint, or a damaged one. */
tn_status tn_tensornet_guess(const char *dir, tn_text *out, tn_error *err) TN_MUST_USE;
