/* ckptparts.h - the files of one checkpoint but the manifest: written from a moment of a run, read
 * into a worker.
 *
 *     config.yaml  sources.jsonl  sparse-0000-1023.tns  dense-0000.safetensors  metrics.safetensors
 *
 * A writer is what tn_ckptdir_add calls: it makes the file at `path` from a tn_ckpt_part and notes
 * size and crc in it. A reader takes a file that the manifest named. What is wrong in a file is
 * TN_E_CKPT.
 */
#ifndef TN_TRAIN_CKPTPARTS_H
#define TN_TRAIN_CKPTPARTS_H

#include "ps/snapshot/snapshot.h"
#include "train/checkpoint/ckpt_state.h"

/* What a writer reads, and what it found out. */
typedef struct tn_ckpt_part {
    const tn_moment *moment;
    const tn_text *text;          /* of tn_ckpt_write_text */
    const tn_snapshot_head *head; /* of tn_ckpt_write_shard: which partitions */
    tn_manifest_file file;        /* bytes, rows, crc are set */
} tn_ckpt_part;

tn_status tn_ckpt_write_text(void *part, const char *path, tn_error *err) TN_MUST_USE;
/* Not twice: rows that were written once are not kept. */
tn_status tn_ckpt_write_shard(void *part, const char *path, tn_error *err) TN_MUST_USE;
tn_status tn_ckpt_write_dense(void *part, const char *path, tn_error *err) TN_MUST_USE;
tn_status tn_ckpt_write_metrics(void *part, const char *path, tn_error *err) TN_MUST_USE;

/* What the floats of this worker's rows mean. Lives in the arena. */
tn_row_schema tn_ckpt_row_schema(const tn_worker *w, tn_arena *arena);

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

#endif
