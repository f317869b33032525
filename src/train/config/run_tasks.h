/* run_tasks.h - the section `tasks`: several labels in one run.
 *
 *     tasks:
 *       click: {label: click}
 *       buy:   {label: buy, of: click}                          P(buy) = P(click) P(buy | click)
 *       like:  {label: like, where: click, weight: 0.5, loss: focal}
 *       watch: {label: seconds, loss: huber, where: click}
 *
 * Rows know a task as base/keys/tasks.h says, its loss is here. The first task is that of the
 * run: its label is data.label, its loss the section `loss`, which tn_tasks_spread writes there, so
 * that whoever knows one label knows it, too. A section of one task is a run of one label. With
 * `data.label: none` no label of any task is read.
 */
#pragma once

#include "base/core/error.h"
#include "base/keys/tasks.h"
#include "config/values.h"
#include "io/schema/dataopts.h"

typedef struct tn_run tn_run;   /* train/config/run.h */
typedef struct tn_text tn_text; /* base/core/text.h */

typedef struct tn_run_tasks {
    tn_tasks tasks; /* n 0: one label */
    tn_aside aside[2 * TN_TASKS_MAX];
    tn_variant loss[TN_TASKS_MAX];
} tn_run_tasks;

/* Returns the tree with the label and loss of the first task in `data` and `loss`; the tree itself
 * where there are no tasks. Faults go to b->diag. */
const tn_tree *tn_tasks_spread(const tn_binder *b, const tn_tree *tree);

/* Reads run->tasks into run->several and run->data, after the other sections. Faults go to
 * b->diag. */
void tn_tasks_bind(const tn_binder *b, const tn_tree *tree, tn_run *run);

/* Appends what decides the meaning of the scores of tasks, "click: label: c; buy: label: b, of:
 * click", of the section as it is written; nothing where there are none, or one. */
void tn_tasks_put_meaning(tn_arena *arena, const tn_tree *tasks, tn_text *out);

/* The tasks of a run; n 0: one label. */
const tn_tasks *tn_run_tasks_of(const tn_run *run);

/* TN_E_CONFIG where the run has several tasks: `what` has one score. */
tn_status tn_tasks_refuse(const tn_run *run, const char *what, tn_error *err) TN_MUST_USE;

/* Makes the run that has task k alone: its label and loss, and those of eval.metrics that fit, else
 * the usual ones. Of one label a copy. Lives as long as `run`. */
void tn_run_of_task(const tn_run *run, uint32_t k, tn_run *out);

/* Returns eval.metrics if one of them judges the task, else those usual for its target. */
tn_strs tn_task_metric_names(const tn_run *run, uint32_t k);

/* Returns the loss of task k, that of the run for 0. */
const tn_variant *tn_run_task_loss(const tn_run *run, uint32_t k);

/* Cuts "buy.auc" of a monitor into the task and the metric, "auc" into the first task and itself,
 * "tasks.auc", the mean, into TN_ALL_TASKS. TN_NO_TASK: no task is called so. */
uint32_t tn_monitor_task(const tn_tasks *tasks, const char *monitor, const char **metric);
