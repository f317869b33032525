/* run.h - the whole configuration as one struct, bound by one table.
 *
 * docs/config.md is made from the table; the words are fixed there. `slots` items are
 * tn_slot_opts (io/schema/dataopts.h). Everything lives in the binder's arena.
 */
#ifndef TN_TRAIN_RUN_H
#define TN_TRAIN_RUN_H

#include "io/schema/dataopts.h"
#include "train/config/runopts.h"

typedef struct tn_run {
    tn_run_opts run;
    tn_data_opts data;
    tn_tables slots;
    tn_embedding_opts embedding;
    tn_variant model; /* shared: tn_model_common */
    tn_variant loss;
    tn_train_opts train;
    tn_eval_opts eval;
    tn_checkpoint_opts checkpoint;
    tn_cluster_opts cluster;
    tn_compute_opts compute;
    tn_log_opts log;
    tn_export_opts export;
} tn_run;

extern const tn_field tn_run_fields[]; /* of tn_run */

/* Binds `tree` (the merged configuration) and checks what no single row can: contradictions, and
 * options that this build cannot honour. Faults go to b->diag. */
void tn_run_bind(const tn_binder *b, const tn_tree *tree, tn_run *out);

/* The same for a run of several processes. */
void tn_run_check_group(const tn_binder *b, const tn_tree *tree, const tn_run *run);

/* The first metric that is shown or watched and looks at groups of rows; NULL: none. */
const char *tn_run_grouped_metric(const tn_run *run);

/* "1epoch", "5000steps", "10min". */
typedef struct tn_every {
    uint64_t steps;  /* 0: not by steps */
    uint32_t epochs; /* 0: not by epochs */
    double seconds;  /* 0: not by time */
} tn_every;
bool tn_every_read(const char *text, tn_every *out);

/* The day that rows are stamped with, in days since 1970-01-01: "2026-11-07", "today" (UTC), NULL:
 * 0. False: none of these. */
enum { TN_DAY_MAX = 2932896 }; /* 9999-12-31 */
bool tn_day_read(const char *text, uint32_t *out);

/* run.dir, or where runs of this name are kept. Appends to `out`. */
void tn_run_dir(const tn_run_opts *run, tn_text *out);

/* Threads that `train.threads` means on this machine. */
uint32_t tn_run_threads(const tn_run *run);

/* Whether the schedule of train.optimizer ends with the run, and nobody has said when that is. */
bool tn_schedule_ends_with_run(const tn_run *run);

#endif
