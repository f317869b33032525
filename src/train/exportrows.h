/* exportrows.h - the rows of the table as a dictionary and as text; part of export.c. */
#ifndef TN_TRAIN_EXPORTROWS_H
#define TN_TRAIN_EXPORTROWS_H

#include "train/worker.h"

#include <stdatomic.h>

typedef struct tn_export_rows {
    const tn_blueprint *plan;
    tn_table *table;
    tn_team *team;           /* that walks the table; NULL: the calling thread alone */
    const char *model_id;    /* 32 hex digits */
    const char *base;        /* folder of an export: only what changed since; NULL: all */
    const atomic_bool *stop; /* true: end with TN_E_STOPPED; NULL: nobody asks */
} tn_export_rows;

typedef struct tn_export_done {
    uint64_t bytes, rows;
    uint32_t crc;
} tn_export_done;

/* dict.tnd, as export.values and export.check_groups say; rows below export.min_score are left out.
 */
tn_status tn_export_dict(const tn_export_rows *r, const char *path, tn_export_done *out,
                         tn_error *err) TN_MUST_USE;

/* dict.tsv; with optimizer state when export.state is true. Memory: the lines of a partition for
 * each thread. */
tn_status tn_export_dump(const tn_export_rows *r, const char *path, tn_export_done *out,
                         tn_error *err) TN_MUST_USE;

#endif
