/* evaluate.h - the chain cut after forward: scores of a data set, and what they are worth.
 *
 * Pulls are read-only: no row is created, nothing is counted, the model is the same
 * afterwards, bit for bit. Rows come in the order of the files; those of weight 0 are scored too
 * but weigh nothing in the metrics.
 */
#pragma once

#include "io/read/reader.h"
#include "metrics/metrics.h"
#include "train/eval/task_scores.h"

#include <stdatomic.h>

typedef struct tn_calibration tn_calibration; /* metrics/calibrator.h */
typedef struct tn_exported_model tn_exported_model;
typedef struct tn_graph tn_graph;
typedef struct tn_run tn_run;
typedef struct tn_slices tn_slices;
typedef struct tn_worker tn_worker;

/* Values of the nodes that a request fetches, of rows that another rank has scored. */
typedef struct tn_fetched {
    const uint32_t *cols; /* columns of each node */
    uint32_t width;       /* sum of these */
    const float *value;   /* row after row, and in a row node after node */
} tn_fetched;

/* One batch and its scores; everything is lent for the call. */
typedef struct tn_scores {
    const tn_batch *batch;
    const float *logit;
    const uint32_t
        *unknown;          /* slots of a row that hold keys, but none with a row; NULL: 0 of all */
    const tn_graph *graph; /* to fetch other nodes by name; NULL: there is none */
    uint32_t first;        /* row of the graph that is the batch's first */
    const tn_fetched *fetched;  /* NULL: in the graph */
    const tn_task_scores *task; /* scores of each task; NULL: there is one label */
} tn_scores;

/* The scores of task k with its labels and weights, as those of a run that has it alone
 * (tn_run_of_task); of one label a copy. `batch` is room, and must live as long as *out. */
void tn_scores_of_task(const tn_scores *scores, uint32_t k, tn_batch *batch, tn_scores *out);

/* Receives every score: predictions, fetched nodes. A status other than TN_OK ends the pass. */
typedef tn_status tn_score_sink(void *arg, const tn_scores *scores, tn_error *err);

/* Values whose key has no row in the model: it knows nothing of them. Of what this process scored
 * by a checkpoint; keys of `missing: init` count as known. */
typedef struct tn_unknown_keys {
    uint64_t values, unknown;
    const char *slot; /* the one with the largest share; lives as long as the schema */
    double share;     /* there, of its values */
} tn_unknown_keys;

typedef struct tn_evaluation {
    tn_metrics *metrics;        /* owned; NULL: only scores were wanted */
    struct tn_evaluation *more; /* the same of further tasks; owned */
    uint32_t n_more;
    tn_metrics *raw; /* owned; coarse ones of the scores before the request's calibration; NULL:
                            it has none */
    const char *calibrated_by; /* platt, isotonic: that, or the one of an export; NULL: none */
    tn_slices **slices;        /* owned; one per eval.slices */
    uint32_t n_slices;
    tn_unknown_keys keys;
    tn_read_counts counts;
    double seconds;
} tn_evaluation;

typedef struct tn_eval_request {
    const tn_strs *paths;
    uint64_t rows_max; /* whole batches until as many are scored, of each rank its share; 0: all */
    uint32_t day;      /* with rows_max: that `paths` are of (train/config/days.h) */
    bool held;         /* only the rows of these files that data.valid holds back */
    bool want_ids;
    bool only_scores;    /* neither metrics nor slices: they are made elsewhere */
    tn_score_sink *sink; /* NULL: none */
    void *sink_arg;
    /* Metrics, slices and the sink get scores that went through this map, which corrects them for
     * sampled negatives, too; NULL: scores of the model. Nodes stay as they are. Of several tasks
     * one for each, whose kind may be none. */
    const tn_calibration *calibration;
    const tn_strs *fetch; /* nodes that the sink looks at, among tn_worker_opts.fetch; NULL: none */
    struct tn_feed *feed; /* sets nodes before each batch (node_files.h); NULL: none */
    const atomic_bool *stop; /* true: end with TN_E_STOPPED; NULL: never */
} tn_eval_request;

/* On failure *out is empty. */
tn_status tn_evaluate(tn_worker *w, const tn_eval_request *request, tn_evaluation *out,
                      tn_error *err) TN_MUST_USE;

/* Evaluates an export as a service would use it: rows are read by the schema that the export
 * carries and scored by serve/score.h. Its scores are corrected for sampled negatives already, so
 * the metrics of `run` are taken as they are. tn_scores.graph is NULL: there is no node to fetch.
 * On failure *out is empty. */
tn_status tn_evaluate_export(const tn_exported_model *b, const tn_run *run,
                             const tn_eval_request *request, tn_evaluation *out,
                             tn_error *err) TN_MUST_USE;
void tn_evaluation_done(tn_evaluation *e);

/* The evaluation of a task, and its metrics, of one label k = 0; NULL: there are none. */
const tn_evaluation *tn_evaluation_of_task(const tn_evaluation *e, uint32_t k);
const tn_metrics *tn_evaluation_task(const tn_evaluation *e, uint32_t k);

/* Metrics as this run wants them. */
tn_metrics_opts tn_metrics_opts_of(const tn_run *run);

/* ---- for callers that score by themselves ---- */

/* Turns scores into metrics and slices, and hands them to the sink of the request. The first five
 * members are set by the caller, the others belong to the collector. Then call add for each batch,
 * and end in any case. */
typedef struct tn_score_collector {
    const tn_run *run;
    const tn_schema *schema; /* schema of the batches */
    const tn_eval_request *request;
    double sampling;    /* share of negatives kept, where scores are not corrected for it */
    tn_evaluation *out; /* the caller's */
    struct slicer *slicer;
    struct task_collector *task; /* one for each of several tasks after the first; owned */
    bool grouped;                /* a metric of some task needs groups */
    uint32_t n_tasks;            /* all share the memory of slices */
    const tn_calibration *map;   /* part of the request for this task; NULL: none */
    double shift;                /* before that map */
    float *calibrated;           /* logits of a batch, owned */
    uint32_t capacity;           /* room in `calibrated` */
    double began;
} tn_score_collector;

tn_status tn_score_collector_begin(tn_score_collector *j, tn_error *err) TN_MUST_USE;
tn_status tn_score_collector_add(tn_score_collector *j, const tn_scores *scores,
                                 tn_error *err) TN_MUST_USE;
/* After a failure *j->out is empty. */
void tn_score_collector_end(tn_score_collector *j, tn_status status);

/* Whether data.valid and data.test are there, so that a path that is wrong costs no epoch. Those of
 * days are not looked for: they come with them. TN_E_DATA. */
tn_status tn_evaluate_look(const tn_run *run, tn_error *err) TN_MUST_USE;
