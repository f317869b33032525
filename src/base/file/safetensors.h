/* safetensors.h - named arrays in one file.
 *
 *     u64 N | N bytes of JSON, blanks at its end | the arrays, one after the other
 *
 *     {"__metadata__":{"begin":"0"},"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}
 *
 * The writer has one form for one content: metadata first, arrays by name bytewise, N a multiple
 * of 8. The reader takes every valid file and trusts none: sizes are checked before memory is
 * taken, names are unique, the arrays tile the rest of the file without hole or overlap. Arrays
 * need not be aligned in memory: use memcpy or bytes.h.
 */
#pragma once

#include "base/core/arena.h"
#include "base/core/error.h"
#include "base/file/file.h"

#include <stddef.h>
#include <stdint.h>

enum { TN_TENSOR_RANK_MAX = 8, TN_SAFETENSORS_HEADER_MAX = 100000000 };

typedef struct tn_tensor {
    const char *name;
    const char *dtype; /* "F32", "U8", "U64", and the other names of the format */
    uint32_t rank;
    uint64_t shape[TN_TENSOR_RANK_MAX];
    const char *data;
    size_t size; /* bytes */
} tn_tensor;

typedef struct tn_tensor_meta {
    const char *key;
    const char *value;
} tn_tensor_meta;

/* Contents of a file. A reader keeps everything in the arena, but `data`, which points into the
 * bytes that were read; tensors are sorted by name. */
typedef struct tn_safetensors {
    uint32_t n_meta;
    uint32_t n_tensors;
    const tn_tensor_meta *meta;
    const tn_tensor *tensor;
} tn_safetensors;

/* Writes all of it into a file just created. The caller commits. */
tn_status tn_safetensors_write(tn_file *f, const tn_safetensors *doc, tn_error *err) TN_MUST_USE;

/* `what` names the file in messages. TN_E_CKPT when it does not follow the format. */
tn_status tn_safetensors_read(tn_safetensors *out, const tn_map *bytes, tn_arena *arena,
                              const char *what, tn_error *err) TN_MUST_USE;

/* Returns the tensor of this name; NULL when there is none. */
const tn_tensor *tn_tensor_find(const tn_safetensors *doc, const char *name);
const char *tn_tensor_meta_find(const tn_safetensors *doc, const char *key);

/* Describes the tensor that is wanted, by name, type and shape: ("w", "F32", 1, {n}); TN_E_CKPT
 * names what differs. */
typedef struct tn_tensor_want {
    const char *name;
    const char *dtype;
    uint32_t rank;
    uint64_t shape[TN_TENSOR_RANK_MAX];
} tn_tensor_want;
tn_status tn_tensor_get(const tn_safetensors *doc, const tn_tensor_want *want, const char *what,
                        const tn_tensor **out, tn_error *err) TN_MUST_USE;
