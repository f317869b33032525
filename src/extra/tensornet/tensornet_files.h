/* tensornet_files.h - the files of a TensorNet checkpoint: its day, its ranks, their bytes.
 *
 *     <model dir>/_checkpoint                 {"dt": "2020-05-10"}, the day to load
 *     <model dir>/2020-05-10/sparse_table/<layer>/rank_<r>/block_<i>.gz
 *
 * Names seen: block_3.gz, sparse_block_3.gz, sparse_block_3_bin.gz. What the names say of the bytes
 * is not believed. All failures are TN_E_CKPT with the path, but TN_E_IO where the disk is at
 * fault, and TN_E_MEMORY.
 */
#pragma once

#include "base/core/text.h"
#include "base/file/file.h"
#include "extra/tensornet/tensornet.h"

typedef struct tn_tensornet_dir {
    char path[TN_PATH_SIZE]; /* folder of the day */
    char dt[64];             /* "2020-05-10"; empty: not known */
    bool is_dated;           /* dt is a date */
    uint32_t day;            /* the date in days since 1970-01-01 */
} tn_tensornet_dir;

/* `dir` is a model directory with `_checkpoint`, or the folder of a day. */
tn_status tn_tensornet_dir_open(tn_tensornet_dir *out, const char *dir, tn_error *err) TN_MUST_USE;

/* The ranks of a layer: folders rank_0 .. rank_<n-1> and no others. */
tn_status tn_tensornet_ranks(const tn_tensornet_dir *d, const char *layer, uint32_t *n,
                             tn_error *err) TN_MUST_USE;

typedef struct tn_tensornet_place {
    const char *layer;
    uint32_t rank, block;
} tn_tensornet_place;

/* Replaces `out` by what a block holds, inflated; `path` by the file's. */
tn_status tn_tensornet_block(const tn_tensornet_dir *d, const tn_tensornet_place *at,
                             char path[TN_PATH_SIZE], tn_text *out, tn_error *err) TN_MUST_USE;

/* Replaces `out` by the bytes of a file below the day, inflated where it must be gzip. */
tn_status tn_tensornet_file(const tn_tensornet_dir *d, const char *name, bool gzip,
                            char path[TN_PATH_SIZE], tn_text *out, tn_error *err) TN_MUST_USE;
