/* ckptfiles.h - the files of one checkpoint but the manifest: written from a moment of a run,
 * listed for the manifest, read into a worker.
 *
 *     config.yaml  sources.jsonl  sparse-0000-1023.tns  dense-0000.safetensors  metrics.safetensors
 *
 *     tn_ckpt_files_init(&files, arena, &w->shares->owners);
 *     TN_TRY(tn_ckpt_write_own(&own, &files, err));             what this worker owes
 *     TN_TRY(tn_ckpt_files_add(&files, &wrote, err));           for every other (ckpt_peers.h)
 *     TN_TRY(tn_ckpt_files_check(&files, err));                 nobody is missing
 *
 * A list belongs to one thread. A reader takes a file that the manifest names; what is wrong in a
 * file is TN_E_CKPT.
 */
#pragma once

#include "base/core/arena.h"
#include "base/keys/keyset.h"
#include "ps/snapshot/manifest.h"
#include "ps/snapshot/snapshot.h"

typedef struct tn_metrics tn_metrics;
typedef struct tn_moment tn_moment; /* train/checkpoint/ckpt_moment.h */
typedef struct tn_worker tn_worker;

/* Every file of rows, or of counts of keys, holds a partition, every peer one dense file. */
enum { TN_CKPT_FILES_MAX = 3 * TN_PARTITIONS + 8, TN_CKPT_FILE_NAME_SIZE = 48 };

typedef struct tn_ckpt_files {
    tn_arena *arena; /* holds names and lists; must outlive the list */
    const tn_owners *owners;
    uint32_t n, n_told;     /* files; ranks that have written all of theirs */
    tn_manifest_file *file; /* by name, bytewise */
    bool *told;             /* per rank */
    uint64_t rows;          /* rows of the model, in the partitions of those ranks */
    uint64_t written;       /* rows in files */
    uint64_t bytes;
} tn_ckpt_files;

void tn_ckpt_files_init(tn_ckpt_files *f, tn_arena *arena, const tn_owners *owners);

/* Lists a file that was written; copies `name`. */
void tn_ckpt_files_list(tn_ckpt_files *f, const char *name, const tn_manifest_file *file);

/* `rank` has written all it owes, which holds so many rows of the model. */
void tn_ckpt_files_tell(tn_ckpt_files *f, uint32_t rank, uint64_t rows);

/* The files that one rank wrote. Strings and the list are lent. */
typedef struct tn_ckpt_wrote {
    uint32_t rank;
    uint64_t rows; /* rows of the model, in its partitions; files of a delta hold fewer */
    uint32_t n_files;
    const tn_manifest_file *file; /* by name, bytewise */
} tn_ckpt_wrote;

/* "dense", "admit" or "sparse", by the beginning of a file's name. */
const char *tn_ckpt_type_of(const char *name);

/* Copies the list of a rank. TN_E_PEER: there is no such rank, or it has reported already, or its
 * files are not those that it must write. */
tn_status tn_ckpt_files_add(tn_ckpt_files *f, const tn_ckpt_wrote *wrote,
                            tn_error *err) TN_MUST_USE;

/* All ranks have. TN_E_PEER names the first that has not. */
tn_status tn_ckpt_files_check(const tn_ckpt_files *f, tn_error *err) TN_MUST_USE;

/* The part of a worker: it writes the rows and the dense range of its moment into `folder`, and
 * rank 0 configuration, sources and metrics. */
typedef struct tn_ckpt_own {
    const char *folder;
    tn_moment *moment;     /* its rows are given up when they are written */
    tn_snapshot_head head; /* run, step, base step, delta */
    bool lost_rows;        /* set: the disk refused rows, which are not kept */
} tn_ckpt_own;
tn_status tn_ckpt_write_own(tn_ckpt_own *own, tn_ckpt_files *files, tn_error *err) TN_MUST_USE;

/* A writer makes the file at `path` from a tn_ckpt_part, in which it sets size and crc;
 * tn_ckpt_put calls it. */
typedef struct tn_ckpt_part {
    const tn_moment *moment;
    const tn_snapshot_head *head; /* the partitions of tn_ckpt_write_shard */
    tn_manifest_file file;        /* bytes, rows, crc are set */
} tn_ckpt_part;

/* Not twice: rows that were written once are not kept. */
tn_status tn_ckpt_write_shard(void *part, const char *path, tn_error *err) TN_MUST_USE;
tn_status tn_ckpt_write_metrics(void *part, const char *path, tn_error *err) TN_MUST_USE;

/* The partitions that are this worker's. The table must be empty before the first shard file of a
 * full one; a delta comes on top. */
tn_status tn_ckpt_read_shard(const char *path, const tn_row_schema *schema, tn_worker *w,
                             tn_error *err) TN_MUST_USE;
/* Weights into the worker's copy of the flat vector, states of its range into its store. The file
 * must begin where those before it ended, at *reached, and moves that on. When all are read,
 * tn_worker_keep_own takes the weights of the range. */
tn_status tn_ckpt_read_dense(const char *path, tn_worker *w, size_t *reached,
                             tn_error *err) TN_MUST_USE;
tn_status tn_ckpt_read_metrics(const char *path, tn_metrics *m, tn_error *err) TN_MUST_USE;
