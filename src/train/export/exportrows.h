/* exportrows.h - the rows of the table as a dictionary, of one process or several.
 *
 *     rank 0                                  every other rank
 *     makes the folder, orders    --------->  tn_export_part_write: the rows of its partitions into
 *     writes the graph                        a shard file of that folder (ps/snapshot/snapshot.h)
 *     all have written            <---------
 *     tn_export_dict: own partitions
 *     from its table, others by
 *     tn_export_part_walk
 *     tn_export_parts_remove
 *
 * So every rank loads and holds its share of the rows. Rank 0 reads those of others once per pass,
 * in the order of the dictionary. The files take as much disk as those of a checkpoint.
 */
#pragma once

#include "dict/dictvalue.h"
#include "ps/snapshot/snapshot.h"
#include "ps/table/table.h"
#include "train/config/export_files.h"
#include "train/step/worker.h"

#include <stdatomic.h>

typedef struct tn_arena tn_arena; /* base/core/arena.h */

struct tn_export_rows {
    const tn_model_plan *plan;
    tn_table *table;
    tn_team *team;           /* walks the table; NULL: the calling thread alone */
    uint32_t day;            /* day of the checkpoint, on which rows are judged */
    const char *model_id;    /* 32 hex digits */
    tn_dict_type values;     /* type of a dictionary's values */
    const char *base;        /* folder of an export: only what changed since; NULL: all */
    const atomic_bool *stop; /* true: end with TN_E_STOPPED; NULL: nobody asks */
    const struct tn_export_parts *parts; /* files of other ranks; NULL: the table has all rows */
    struct tn_export_files *files; /* they are read from these, by one thread; NULL: from the table,
                                      which else only says how they are laid out */
};

struct tn_export_done {
    uint64_t bytes, rows;
    uint32_t crc;
};

/* A dictionary, as export.check_groups says, without rows below export.min_score. */
tn_status tn_export_dict(const tn_export_rows *r, const char *path, tn_export_done *out,
                         tn_error *err) TN_MUST_USE;

/* Walks over the rows of a partition that are exported. TN_E_STOPPED. */
tn_status tn_export_walk(const tn_export_rows *r, uint32_t partition, tn_row_visit *visit,
                         void *arg, tn_error *err) TN_MUST_USE;

/* The files of a full checkpoint, of which one is open at a time. */
typedef struct tn_export_files {
    const char *folder;
    const struct tn_manifest *manifest;
    const struct tn_manifest_file *at; /* the one that is open */
    tn_snapshot *open;                 /* owned; NULL: none */
} tn_export_files;
void tn_export_files_done(tn_export_files *f);

/* The files that other ranks have written. */
typedef struct tn_export_parts {
    const char *folder; /* one for all ranks */
    const tn_owners *owners;
    uint32_t rank; /* the rank whose rows are in the table of this process */
    tn_row_schema schema;
    tn_snapshot_head head; /* the head of all files, but for their partitions */
} tn_export_parts;

/* `step`: of the checkpoint. `folder` and `w` must outlive it; lists live in the arena. */
tn_status tn_export_parts_init(tn_export_parts *p, const tn_worker *w, uint64_t step,
                               const char *folder, tn_arena *arena, tn_error *err) TN_MUST_USE;

/* The rows of `r` in this rank's partitions. On failure there is no file. */
tn_status tn_export_part_write(const tn_export_parts *p, const tn_export_rows *r,
                               tn_error *err) TN_MUST_USE;

/* Whether another rank has this partition; and its rows, by keys. Any thread. TN_E_CKPT: the file
 * is damaged, or of another model. */
bool tn_export_part_is_other(const tn_export_parts *p, uint32_t partition);
tn_status tn_export_part_walk(const tn_export_parts *p, uint32_t partition, tn_row_visit *visit,
                              void *arg, tn_error *err) TN_MUST_USE;

/* Removes the files of all other ranks. */
tn_status tn_export_parts_remove(const tn_export_parts *p, tn_error *err) TN_MUST_USE;
