/* run.h - the whole configuration as one struct, bound by one table.
 *
 * docs/config.md is made from the table; the words are fixed there. NAN and TN_UNSET_* mean "not
 * set". Items of `slots` are tn_slot_opts (io/schema/dataopts.h). Everything lives in the arena of
 * the binder.
 */
#pragma once

#include "config/values.h"
#include "io/schema/dataopts.h"
#include "ps/table/row_policy.h"

typedef struct tn_text tn_text; /* base/core/text.h */

typedef struct tn_run_opts {
    const char *name, *dir; /* dir ~: runs/<name> */
    uint64_t seed;
    bool deterministic;
    const char *day; /* tn_day_read (train/config/days.h) */
} tn_run_opts;

/* The rule of rows where nothing else is said; measured: docs/models.md, Defaults. */
#define TN_ROW_RULE TN_ROW_RULE_OF("0.1")
#define TN_ROW_RULE_OF(lr)                                                                         \
    "{type: adagrad, rowwise: true, lr: " lr ", n0: 1, l2: 0.05, grad_scale: sum}"

#define TN_MEMORY_AUTO TN_WORD_U64(0)
#define TN_MEMORY_NONE TN_WORD_U64(1)

enum { TN_FULL_STOP, TN_FULL_EVICT }; /* on_full */

enum { TN_RESET_NEVER, TN_RESET_EPOCH };

typedef struct tn_embedding_opts {
    uint32_t dim;
    const tn_tree *pool; /* sum mean sqrtn max concat(k) */
    const tn_tree *init;
    uint32_t missing;    /* zero init */
    tn_row_options rows; /* the options of row policies that slots begin with */
    double decay;        /* share of show and click that is left after a day */
    bool cvm;
    uint64_t memory;  /* bytes, TN_MEMORY_AUTO or TN_MEMORY_NONE */
    uint32_t on_full; /* stop evict */
    uint32_t reset;   /* never epoch */
} tn_embedding_opts;

typedef struct tn_clip_opts {
    double global, row, value; /* NAN: none */
} tn_clip_opts;

typedef struct tn_stop_opts {
    const char *monitor; /* NULL: no early stop */
    double min_delta;
    uint32_t patience, restore; /* restore: best last */
} tn_stop_opts;

typedef struct tn_plateau_opts {
    double factor; /* NAN: off */
    uint32_t patience;
    double min_lr;
    const char *monitor; /* ~: that of train.stop */
} tn_plateau_opts;

typedef struct tn_train_opts {
    uint32_t epochs, batch;
    bool epochs_chosen, batch_chosen; /* set by the program (train/config/choices.h) */
    uint32_t threads;                 /* TN_WORD_U32(0): all */
    tn_variant optimizer;
    const tn_tree *sparse;
    const tn_tree *value_sizes; /* train/step/value_sizes.h */
    tn_strs freeze;             /* train/step/frozen.h */
    tn_clip_opts clip;
    tn_stop_opts stop;
    tn_plateau_opts reduce_on_plateau;
    uint64_t max_steps; /* TN_UNSET_U64: none */
    double max_time;    /* seconds; NAN: none */
    uint32_t prefetch;
} tn_train_opts;

typedef struct tn_eval_opts {
    const char *every; /* 1epoch 5000steps 10min */
    tn_f64s at;        /* steps; ascending */
    uint32_t batch;
    tn_strs metrics;
    uint32_t auc;   /* histogram exact */
    uint32_t top_k; /* rows of a group */
    tn_strs slices;
    uint64_t slices_min_rows;
    const char *predictions;
    uint32_t calibrate; /* tn_calibrate_method */
} tn_eval_opts;

typedef struct tn_checkpoint_opts {
    const char *every, *delta_every;
    uint32_t keep;
    const char *resume;  /* auto never PATH */
    bool fresh;          /* set by the program: as never, and what is there is set aside */
    const tn_tree *from; /* train/begin/import.h */
    uint32_t on_error;   /* stop warn */
    double grace;
    bool strict;
} tn_checkpoint_opts;

typedef struct tn_cluster_opts {
    const tn_tree *peers, *security; /* cluster/launch/membership.h, cluster/security/security.h */
    double staleness;                /* INFINITY: asynchronous */
    uint32_t values;                 /* f32 fp16 bf16 */
    uint32_t rank, size;             /* this process, set by the program; size 0: alone */
    uint32_t here;                   /* ranks on this machine, as far as it shows; 0: alone */
    const struct tn_membership *membership; /* the same and more; NULL: alone */
    int news; /* likewise: a socket of whoever started it, as in cluster/group/group.h; 0: none */
    double start_timeout;
    const char *restarts; /* tn_restarts_read */
} tn_cluster_opts;

typedef struct tn_compute_opts {
    uint32_t gemm; /* auto own openblas: tn_products_choice */
    bool bf16, pin;
    uint32_t huge_pages; /* auto true false */
} tn_compute_opts;

enum { TN_SWITCH_AUTO, TN_SWITCH_TRUE, TN_SWITCH_FALSE }; /* auto true false */

typedef struct tn_log_opts {
    uint32_t progress; /* TN_SWITCH_x */
    double every;
    uint32_t tensorboard; /* TN_SWITCH_x */
    bool jsonl;
    uint32_t level; /* error warn info debug */
} tn_log_opts;

/* Keys of Redis, in the order of the words of export.redis_keys. */
typedef enum tn_resp_keys { TN_RESP_TEXT, TN_RESP_KEY8 } tn_resp_keys;

typedef struct tn_export_opts {
    const char *to;
    const char *every;   /* NULL: nothing is published; "day", or as tn_every_read has it */
    tn_strs dict;        /* tnd tsv resp */
    uint32_t redis_keys; /* a tn_resp_keys */
    uint32_t values;     /* tn_value_words: a tn_dict_type */
    double loss_max;     /* fall of AUC */
    tn_strs graph;       /* native onnx */
    double min_score;
    bool state, check_groups; /* optimizer state in dict.tsv; the group of each row */
} tn_export_opts;

enum { TN_SECTIONS_MAX = 16 };

typedef struct tn_run {
    tn_run_opts run;
    tn_data_opts data;
    tn_tables slots;
    const tn_tree *sequences;           /* train/config/sequences.h */
    const tn_tree *tasks;               /* train/config/run_tasks.h */
    const struct tn_run_tasks *several; /* set from it by the program; NULL: one label */
    tn_embedding_opts embedding;
    tn_variant model; /* shared: tn_model_common */
    tn_variant loss;  /* shared: tn_loss_common */
    tn_train_opts train;
    tn_eval_opts eval;
    tn_checkpoint_opts checkpoint;
    tn_cluster_opts cluster;
    tn_compute_opts compute;
    tn_log_opts log;
    tn_export_opts export;
    void *section[TN_SECTIONS_MAX]; /* structs of tn_run_section, in the order of the list */
} tn_run;

extern const tn_field tn_run_fields[]; /* rows of tn_run */
extern const char *const tn_value_words[];

/* Returns the options of a section that a part outside the core has added: a struct of the table
 * `fields`, which ends in TN_FIELD_END_OF and is called tn_section_NAME; its row in sections.def is
 * TN_SECTION(NAME, "help"). The options change the configuration's hash. */
static inline const void *tn_run_section(const tn_run *run, const tn_field *fields)
{
    const tn_field *row = tn_run_fields;
    while (row->table != fields) {
        row++;
    }
    return run->section[(row->offset - offsetof(tn_run, section)) / sizeof(void *)];
}

/* Reads "3/1h": 3 restarts within an hour; or "0". Returns false where it is neither. */
enum { TN_RESTARTS_MAX = 1000 };
bool tn_restarts_read(const char *text, uint32_t *n, double *within_s);

/* "1epoch", "5000steps", "10min"; "auto" of checkpoint.every, which is epochs and rows. */
typedef struct tn_every {
    uint64_t steps;  /* 0: not by steps */
    uint32_t epochs; /* 0: not by epochs */
    uint64_t rows;   /* with epochs: only after so many rows more; 0: always */
    double seconds;  /* 0: not by time */
} tn_every;
bool tn_every_read(const char *text, tn_every *out);
bool tn_every_read_save(const char *text, tn_every *out); /* for checkpoint.every: also auto */
/* Whether the end of each day is a moment of export.every. */
bool tn_run_exports_days(const tn_run *run);

/* run.dir, or where runs of this name are kept. Appends to `out`. */
void tn_run_dir(const tn_run_opts *run, tn_text *out);

/* Returns whether a task, or the label, is of clicks: its scores are probabilities. */
bool tn_run_has_clicks(const tn_run *run);

/* Returns what shows best whether the model gets better: "valid.logloss"; of several tasks
 * "valid.tasks.ne", the mean of their losses, each over that of the mean label, with which it
 * begins. */
const char *tn_run_watched(const tn_run *run);

/* The metric that train.stop or train.reduce_on_plateau watch, "auc"; NULL: none. */
const char *tn_run_monitor(const tn_run *run);

/* Whether data.train has '-', standard input, which can be read once only. */
bool tn_run_trains_on_stdin(const tn_run *run);

/* Threads that `train.threads` means on this machine. */
uint32_t tn_run_threads(const tn_run *run);

/* Whether the schedule of train.optimizer ends with the run, and nobody has said when that is. */
bool tn_schedule_ends_with_run(const tn_run *run);
