/* worker.h - one model in memory: graphs, dense weights, table, and the team that works on them.
 *
 * The training graph and the evaluation graph share the flat vector of dense
 * weights, which in one process is also the dense shard's. Among peers
 * (run->cluster) the shard holds this one's partitions and its range of the
 * vector. A worker belongs to one thread; the team works inside its calls.
 */
#pragma once

#include "base/core/arena.h"
#include "base/keys/tasks.h"
#include "config/values.h"
#include "ps/shard/client.h"
#include "ps/shard/ownership.h"
#include "ps/shard/shard.h"

typedef struct tn_graph tn_graph;           /* nn/graph/graph.h */
typedef struct tn_metrics tn_metrics;       /* metrics/metrics.h */
typedef struct tn_model_plan tn_model_plan; /* train/step/model_plan.h */
typedef struct tn_node tn_node;             /* nn/graph/graph.h */
typedef struct tn_params tn_params;         /* nn/graph/params.h */
typedef struct tn_lane tn_lane;             /* base/trace/trace.h */
typedef struct tn_trace tn_trace;           /* likewise */

/* Reads rows for an evaluation, as tn_shard_peek does: nothing is created, nothing is counted. */
typedef struct tn_peek {
    tn_status (*rows)(void *self, tn_team *team, const tn_keyset *keys, float *rows, bool *missing,
                      tn_error *err);
    void *self;
} tn_peek;

/* The scores of a task of several, which the evaluation graph keeps. */
typedef struct tn_worker_task {
    const tn_node *score;
    const tn_node *given; /* score given a click of the task that it is a share of; NULL: none */
    const char *bias;     /* parameter that shifts the latter, or the former; NULL: none */
} tn_worker_task;

typedef struct tn_worker {
    const tn_model_plan *plan;
    tn_team *team;
    tn_params *params;
    tn_graph *train_graph; /* NULL when the worker only scores */
    tn_graph *eval_graph;
    tn_node *train_logit;
    tn_node *eval_logit;
    const char *output_bias;           /* parameter that shifts the logit; NULL: none */
    tn_worker_task task[TN_TASKS_MAX]; /* one for each of several tasks, else empty */
    uint32_t rank;                     /* among the peers; 0 when alone */
    tn_shares *shares;                 /* parts of the model of each peer */
    tn_shard shard;                    /* the part of this one; owns table and dense */
    float *own;                        /* weights of its range; NULL when alone: those of params */
    tn_client client;       /* its servers: of the whole model when alone; among peers lent, and
                                none before they have begun */
    tn_peek peek;           /* rows of all owners; of the shard until a group has begun */
    tn_metrics *metrics[2]; /* get batches as they are learned; lent; NULL: none */
    uint64_t steps;         /* done */
    uint64_t rows, scored;  /* examples of this process: learned, scored */
    uint64_t keys, floats;  /* with them: different keys of batches, floats of their rows */
    uint32_t day;           /* last_seen of rows that are touched now */
    uint32_t loaded_day;    /* the same of the checkpoint that was read; 0: none was */
    uint32_t data_day;      /* the last argument of tn_worker_set_day: a day, or an hour; 0: none */
    tn_strs train;          /* the data to learn from: data.train, or of the day that is learned */
    tn_arena *days;         /* holds those; NULL: no run over days */
    tn_trace *trace;        /* NULL: not recorded */
    tn_lane *lane;          /* there, of the thread that the worker belongs to */
} tn_worker;

typedef struct tn_worker_opts {
    bool training; /* with the training graph */
    bool compares; /* with a training graph of one row: it knows the structure that checkpoints are
                    * of, for hardly any memory; for loading, not for training */
    bool aside;    /* beside another one: its team is not pinned */
    uint32_t threads;         /* threads of the team; 0: those of the run */
    const char *const *fetch; /* nodes of the evaluation graph to keep */
    uint32_t n_fetch;
    const char *const *feed; /* nodes of the evaluation graph that are set from outside */
    uint32_t n_feed;
} tn_worker_opts;

/* Builds everything, draws first values. Faults of the model's list go to b->diag (TN_E_CONFIG).
 * `plan` and what b->arena holds must outlive the worker. On failure *out is NULL. */
tn_status tn_worker_new(tn_worker **out, const tn_model_plan *plan, const tn_worker_opts *opts,
                        const tn_binder *b, tn_error *err) TN_MUST_USE;
void tn_worker_free(tn_worker *w); /* NULL is fine */

/* The flat vector was written anew: its range of the shard follows. Alone nothing is to be done. */
void tn_worker_keep_own(tn_worker *w);

/* Sets the output bias, if the model has one, to what fits the mean label: of clicks ln(mean / (1 -
 * mean)), the mean kept within [1e-6, 1 - 1e-6]; of numbers the mean; of other targets, whose
 * scores are around 0, nothing is done. */
void tn_worker_set_prior(tn_worker *w, double mean);
/* The same for each task; `mean` of its labels, of a share among the clicks of the task that it is
 * a share of. NAN: not known. */
void tn_worker_set_task_priors(tn_worker *w, const double *mean);

/* The same from text: a number. TN_E_CONFIG when it is none. */
tn_status tn_worker_set_bias(tn_worker *w, const char *number, tn_error *err) TN_MUST_USE;

/* The same as numbers, one for each task; what an output without a bias has is 0. */
void tn_worker_biases(const tn_worker *w, double *out);
void tn_worker_set_biases(tn_worker *w, const double *value);

/* From now on it learns from this day, or hour: `train`, and `day`. Between two epochs. */
void tn_worker_set_day(tn_worker *w, uint32_t day);

/* From now on the worker's steps are recorded: the calling thread joins as "main", the team's with
 * it. At most once, between two steps. `trace` must outlive the worker; NULL: nothing happens. */
void tn_worker_trace(tn_worker *w, tn_trace *trace);

/* The runs of the flat vector that the optimizer trains, or those of running values; run[] has room
 * for all parameters. Returns how many. */
uint32_t tn_worker_runs(const tn_worker *w, bool running, tn_dense_run *run);
