/* task_results.h - the metrics of several tasks: by name, in tables, and of many ranks. */
#pragma once

#include "train/eval/evaluate.h"

typedef struct tn_text tn_text; /* base/core/text.h */

/* Returns the value that a monitor without its `valid.` names: "auc" that of the first task,
 * "buy.auc" that of buy, "tasks.ne" the mean over all tasks that it judges. NAN: not defined, also
 * if the rows of a task that it needs have one class. */
double tn_evaluation_get(const tn_evaluation *e, const tn_run *run, const char *monitor);

/* Appends the metrics of all tasks, for another rank. NULL: there are none. */
void tn_task_results_pack(const tn_evaluation *e, tn_text *out);
/* Adds such bytes. room[k]: metrics of the same options. TN_E_PEER: the bytes are none such. */
tn_status tn_task_results_merge(const tn_evaluation *to, tn_metrics *const *room, const char *bytes,
                                size_t size, tn_error *err) TN_MUST_USE;

/* The metrics of the tables of all tasks, each once. `room` holds TN_METRIC_NAMES_MAX. */
enum { TN_METRIC_NAMES_MAX = 128 };
tn_strs tn_all_metric_names(const tn_run *run, const char **room);
