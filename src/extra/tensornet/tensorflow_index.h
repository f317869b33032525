/* tensorflow_index.h - names and shapes of the variables in a TensorFlow checkpoint.
 *
 *     tf_checkpoint.index                   sorted table: key -> shape, offset and size of a tensor
 *     tf_checkpoint.data-00000-of-00001     tensors; one of them is a message that names variables
 *
 * TensorNet writes one beside its tables, whose dense values have no names. Values are not read.
 * Whatever the bytes are, it ends with variables or TN_E_CKPT. Pure, any thread.
 */
#pragma once

#include "base/core/bytes.h"
#include "base/core/error.h"

#include <stdint.h>

typedef struct tn_arena tn_arena; /* base/core/arena.h */

enum { TN_TENSORFLOW_RANK_MAX = 4, TN_TENSORFLOW_VARIABLES_MAX = 4096 };

typedef struct tn_tensorflow_variable {
    const char *name; /* "dnn_0/kernel:0" */
    uint32_t rank;
    uint64_t shape[TN_TENSORFLOW_RANK_MAX];
} tn_tensorflow_variable;

typedef struct tn_tensorflow_variables {
    uint32_t n;
    tn_tensorflow_variable *variable; /* by name, bytewise */
} tn_tensorflow_variables;

/* Both files in memory; `path` is that of the index. Names live in the arena. */
tn_status tn_tensorflow_variables_read(tn_tensorflow_variables *out, tn_bytes index, tn_bytes data,
                                       tn_arena *arena, const char *path,
                                       tn_error *err) TN_MUST_USE;
