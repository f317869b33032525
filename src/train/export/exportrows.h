/* exportrows.h - the rows of the table as a dictionary and as text; part of export.c. */
#ifndef TN_TRAIN_EXPORTROWS_H
#define TN_TRAIN_EXPORTROWS_H

#include "train/step/worker.h"

#include <stdatomic.h>

typedef struct tn_export_rows {
    const tn_blueprint *plan;
    tn_table *table;
    tn_team *team;           /* that walks the table; NULL: the calling thread alone */
    const char *model_id;    /* 32 hex digits */
    const char *base;        /* folder of an export: only what changed since; NULL: all */
    const atomic_bool *stop; /* true: end with TN_E_STOPPED; NULL: nobody asks */
    const struct tn_export_parts
        *parts; /* what other ranks have written (train/export/exportparts.h);
                   NULL: the table has all rows */
} tn_export_rows;

/* Whether a row is exported: export.min_score. */
bool tn_export_keeps(const tn_export_rows *r, const tn_row_view *row);

/* The rows of a partition, which may be another rank's, unless a signal asks to stop. */
tn_status tn_export_walk(const tn_export_rows *r, uint32_t partition, tn_row_visit *visit,
                         void *arg, tn_error *err) TN_MUST_USE;

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
