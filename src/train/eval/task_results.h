/* task_results.h - the scores of several tasks, and what an evaluation found of each.
 *
 *     TN_TRY(tn_task_gather_new(&g, w, rows_max, err));      from a worker's graph, batch by batch
 *     scores.task = tn_task_gather_scores(g, rows);          NULL: there is one label
 *
 * The first task is what a run of one label has: its metrics are those of the evaluation, and those
 * of the others are here.
 */
#pragma once

#include "base/keys/tasks.h"
#include "config/values.h"
#include "metrics/metrics.h"

typedef struct tn_batch tn_batch;   /* io/rows/batch.h */
typedef struct tn_run tn_run;       /* train/config/run.h */
typedef struct tn_text tn_text;     /* base/core/text.h */
typedef struct tn_worker tn_worker; /* train/step/worker.h */

/* The scores of a batch by task; lent. */
typedef struct tn_task_scores {
    const float *score[TN_TASKS_MAX];
    const float *given[TN_TASKS_MAX]; /* given a click of the task that it is a share of; NULL */
} tn_task_scores;

typedef struct tn_task_gather tn_task_gather;

tn_status tn_task_gather_new(tn_task_gather **out, const tn_worker *w, uint32_t rows_max,
                             tn_error *err) TN_MUST_USE;
void tn_task_gather_free(tn_task_gather *g); /* NULL is fine */

/* Copies what the evaluation graph has of the batch; NULL: there is one label. */
const tn_task_scores *tn_task_gather_scores(tn_task_gather *g, uint32_t rows);

/* The metrics of tasks after the first, owned; [0] NULL. */
typedef struct tn_task_results {
    tn_metrics *of[TN_TASKS_MAX];
} tn_task_results;

/* Makes the metrics, with these options but the target. */
tn_status tn_task_results_begin(tn_task_results *t, const tn_run *run, tn_metrics_opts opts,
                                tn_error *err) TN_MUST_USE;
void tn_task_results_done(tn_task_results *t);
tn_status tn_task_results_add(tn_task_results *t, const tn_run *run, const tn_batch *batch,
                              const tn_task_scores *scores, tn_error *err) TN_MUST_USE;

/* Appends the metrics of all tasks for another rank; `first`: metrics of the first, NULL: there are
 * none; `t` NULL: there is no other task. */
void tn_task_results_pack(const tn_metrics *first, const tn_task_results *t, tn_text *out);

/* Metrics that such bytes are added to, and room for those that they hold. */
typedef struct tn_task_merge {
    tn_metrics *first;
    tn_task_results *tasks; /* NULL: there is no other */
    tn_metrics *room;       /* with the same options */
    const tn_task_results *rooms;
} tn_task_merge;

/* TN_E_PEER: the bytes are no such metrics. */
tn_status tn_task_results_merge(const tn_task_merge *to, const char *bytes, size_t size,
                                tn_error *err) TN_MUST_USE;

/* Returns eval.metrics if one of them judges the task, else those usual for its target. */
tn_strs tn_task_metric_names(const tn_run *run, uint32_t k);

/* All of these, each once: rows of a table of all tasks. `room` holds TN_METRIC_NAMES_MAX. */
enum { TN_METRIC_NAMES_MAX = 128 };
tn_strs tn_all_metric_names(const tn_run *run, const char **room);

/* Returns the value that a monitor without its `valid.` names: "auc" that of the first task, whose
 * metrics are `first`, "buy.auc" that of buy, "tasks.ne" the mean over all tasks that it judges.
 * NAN: not defined, also if the rows of a task that it needs have one class. */
double tn_task_results_get(const tn_task_results *t, const tn_run *run, const tn_metrics *first,
                           const char *monitor);
