/* trainer.h - a whole run: epochs, evaluations, checkpoints, early stop, the final test.
 *
 *     resume -> [ epoch: steps .. evaluate .. checkpoint ] .. -> the best again -> test -> summary
 *
 * Prints nothing: what a person sees goes line by line to the watch, what programs read to
 * metrics.jsonl and summary.json in the run directory. Belongs to the thread that calls it.
 */
#ifndef TN_TRAIN_TRAINER_H
#define TN_TRAIN_TRAINER_H

#include "train/checkpoint/epoch_parts.h"
#include "train/eval/evaluate.h"
#include "train/run/early_stopping.h"
#include "train/step/model_plan.h"

/* What a checkpoint says of how it came about: its texts. */
typedef struct tn_past {
    tn_text config;  /* config.yaml; empty: not known */
    tn_text sources; /* sources.jsonl */
} tn_past;

/* Where a run stands: what a checkpoint keeps beside the weights. */
typedef struct tn_run_state {
    tn_progress progress; /* of the epoch that runs */
    uint64_t steps;
    uint64_t samples;    /* records consumed since the start */
    uint64_t epoch_step; /* steps when this epoch began; 0: at the first, or not known */
    bool begun;          /* with weights from elsewhere, as in tn_manifest .. */
    uint32_t begun_crc;
    tn_past *past;       /* a resume fills it in; NULL: nobody asks */
    const char *monitor; /* metric that patience watches; NULL: none */
    tn_patience_state patience;
    const tn_data_map *data; /* of the epoch that runs; NULL: none was begun */
    tn_data_stand stand;     /* after a resume: where in the epoch, until the reader is open */
    const tn_manifest_part
        *part;             /* of the epoch that runs, as a ledger tells them; lent. NULL: .. */
    uint32_t n_parts;      /* .. they follow from `progress` */
    uint64_t best_ordinal; /* checkpoint that holds the best model; 0: none */
    bool eval_owed;        /* an evaluation due at this step was stopped by a signal */
} tn_run_state;

/* What the caller shows and asks for. */
typedef struct tn_watch {
    /* One line for a person. `transient`: it is drawn over the line before (a progress bar). The
     * table of peers is several lines, and comes on another thread. */
    void (*show)(void *arg, const char *text, bool transient);
    void *arg;
    bool peers_table;                   /* show a line per peer every 10 s */
    bool terminal;                      /* somebody looks at it: draw a bar */
    uint32_t width;                     /* of the terminal, in columns */
    int (*exit_code)(tn_status status); /* documented code of an outcome, for summary.json */
    const struct tn_inputs *inputs;     /* what outputs may not replace; NULL: nothing */
    struct tn_profile
        *profile; /* the run's picture (train/report/profile.h); NULL: nobody wants it */
    /* Set by signal handlers; NULL: nobody asks. Stop: end with TN_E_STOPPED, saved, as soon as a
     * step or a batch of an evaluation is done. Save: save between two steps and go on; cleared. */
    const atomic_bool *stop;
    atomic_bool *save;
    /* Set when the run of several processes failed in another one, which tells people; NULL: it
     * does not matter. */
    bool *told_elsewhere;
} tn_watch;

static inline void tn_watch_told_elsewhere(const tn_watch *watch, bool elsewhere)
{
    if (watch->told_elsewhere != NULL) {
        *watch->told_elsewhere = elsewhere;
    }
}

typedef struct tn_outcome {
    uint64_t steps, samples;
    double seconds;
    double loss;               /* of the last epoch */
    tn_evaluation valid, test; /* metrics NULL when there was none */
} tn_outcome;

void tn_outcome_done(tn_outcome *t);

/* `config` is the resolved configuration as text, `hash` its SHA-256 in hex. On failure *out is
 * empty, and summary.json says why. Faults of the model go to b->diag. */
typedef struct tn_run_text {
    const char *config;
    const char *hash;
} tn_run_text;

tn_status tn_train(const tn_blueprint *plan, const tn_run_text *text, const tn_watch *watch,
                   const tn_binder *b, tn_outcome *out, tn_error *err) TN_MUST_USE;

#endif
