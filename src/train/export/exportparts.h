/* exportparts.h - an export by several processes: the rows that other ranks hold.
 *
 *     rank 0                                      every other rank
 *     makes the folder, orders        --------->  tn_export_part_write: rows of its partitions into
 *     writes the graph                            a shard file (ps/snapshot/snapshot.h) of that
 * folder all have written                <--------- tn_export_dict, _dump: own partitions from its
 * table, all others by tn_export_part_walk tn_export_parts_remove
 *
 * So every rank loads and holds its share of the rows, and rank 0 reads those of others once per
 * pass, in the order of the dictionary. The files take as much disk as a checkpoint's do.
 */
#ifndef TN_TRAIN_EXPORTPARTS_H
#define TN_TRAIN_EXPORTPARTS_H

#include "ps/snapshot/snapshot.h"
#include "train/export/exportrows.h"

typedef struct tn_export_parts {
    const char *folder; /* one for all ranks */
    const tn_owners *owners;
    uint32_t rank; /* whose rows are in the table of this process */
    const tn_snapshot_layout *layout;
    tn_snapshot_head head; /* of all files, but for their partitions */
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

/* Those of all ranks. */
tn_status tn_export_parts_remove(const tn_export_parts *p, tn_error *err) TN_MUST_USE;

#endif
