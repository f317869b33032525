/* run.h - the whole configuration as one struct, bound by one table.
 *
 * docs/config.md is made from the table; the words are fixed there. `slots` items are
 * tn_slot_opts (io/dataopts.h). Everything lives in the binder's arena.
 */
#ifndef TN_TRAIN_RUN_H
#define TN_TRAIN_RUN_H

#include "io/dataopts.h"

typedef struct tn_run_opts {
    const char *name;
    const char *dir; /* ~: runs/<name> */
    uint64_t seed;
    bool deterministic;
} tn_run_opts;

typedef struct tn_admission_opts {
    uint32_t threshold;
    double probability;
} tn_admission_opts;

typedef struct tn_embedding_opts {
    uint32_t dim;
    const tn_tree *pool; /* sum mean sqrtn max concat(k) */
    const tn_tree *init;
    uint32_t missing; /* zero init */
    tn_admission_opts admission;
    const tn_tree *expiry;
    bool cvm;
    uint64_t memory; /* bytes; TN_UNSET_U64: no cap */
} tn_embedding_opts;

typedef struct tn_bce_opts {
    double pos_weight, label_smoothing;
    uint32_t reduction; /* mean sum rows */
} tn_bce_opts;

typedef struct tn_clip_opts {
    double global, row, value; /* NAN: none */
} tn_clip_opts;

typedef struct tn_stop_opts {
    const char *monitor; /* NULL: no early stop */
    uint32_t patience;
    double min_delta;
    uint32_t restore; /* best last */
} tn_stop_opts;

typedef struct tn_plateau_opts {
    double factor; /* NAN: off */
    uint32_t patience;
    double min_lr;
    const char *monitor; /* ~: that of train.stop */
} tn_plateau_opts;

typedef struct tn_train_opts {
    uint32_t epochs;
    uint32_t batch;
    uint32_t threads; /* TN_WORD_U32(0): all */
    uint32_t workers;
    tn_variant optimizer;
    const tn_tree *sparse;
    tn_clip_opts clip;
    tn_stop_opts stop;
    tn_plateau_opts reduce_on_plateau;
    uint64_t max_steps; /* TN_UNSET_U64: none */
    double max_time;    /* seconds; NAN: none */
    uint32_t prefetch;
} tn_train_opts;

typedef struct tn_eval_opts {
    const char *every; /* 1epoch 5000steps 10min */
    uint32_t batch;
    tn_strs metrics;
    uint32_t auc; /* histogram exact */
    tn_strs slices;
    uint64_t slices_min_rows;
    const char *predictions;
} tn_eval_opts;

typedef struct tn_checkpoint_opts {
    const char *every;
    uint32_t keep;
    const char *delta_every;
    const char *resume;  /* auto never PATH */
    const tn_tree *from; /* {rows: dict.tsv, dense: x.safetensors} */
    uint32_t on_error;   /* stop warn */
    double grace;
    bool strict;
} tn_checkpoint_opts;

typedef struct tn_cluster_opts {
    const tn_tree *peers; /* 1, a list of addresses, auto */
    double staleness;     /* INFINITY: asynchronous */
    uint32_t recovery, on_loss;
    double wait, start_timeout;
    const tn_tree *security;
} tn_cluster_opts;

typedef struct tn_compute_opts {
    uint32_t gemm; /* auto openblas onednn */
    bool bf16;
    uint32_t huge_pages; /* auto true false */
} tn_compute_opts;

typedef struct tn_log_opts {
    uint32_t progress; /* auto true false */
    double every;
    bool tensorboard;
    bool jsonl;
    uint32_t level; /* error warn info debug */
} tn_log_opts;

typedef struct tn_export_opts {
    const char *to;
    tn_strs dict;    /* tnd tsv */
    uint32_t values; /* f32 bf16 fp16 int8 */
    tn_strs graph;   /* native onnx */
    double min_score;
    bool state; /* dict.tsv with optimizer state */
    bool check_groups;
} tn_export_opts;

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

/* "1epoch", "5000steps", "10min". */
typedef struct tn_every {
    uint64_t steps;  /* 0: not by steps */
    uint32_t epochs; /* 0: not by epochs */
    double seconds;  /* 0: not by time */
} tn_every;
bool tn_every_read(const char *text, tn_every *out);

#endif
