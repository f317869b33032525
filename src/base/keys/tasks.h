/* tasks.h - the tasks of a model that learns several labels at once. Whoever needs to know what a
 * task is asks this header; a run of one label has none (n 0, or NULL).
 *
 *     tasks:                                        columns beside a row
 *       click: {label: click}                         - (the label of the row itself)
 *       buy:   {label: buy, of: click}                0   buy
 *       watch: {label: seconds, where: click,         1   seconds
 *               weight: {column: w}}                  2   w
 *
 * The first task has the label of the row, so it is read, sampled and shown as that of a run of one
 * label. Labels of further tasks are numbers beside the row, NAN where the record has none: then
 * the row says nothing of that task. What a row is to a task is its label and its factor, the share
 * of the row's own weight that counts:
 *
 *     label missing                     factor 0
 *     `where: t`, and t is not a click  factor 0
 *     else                              the number in the task's column of weights, or 1
 *
 * A factor of 0 comes with the label 0, so that no loss meets a NAN.
 */
#pragma once

#include "base/keys/target.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TN_TASKS_MAX = 16 };

#define TN_NO_TASK UINT32_MAX         /* the value of `of` and `where` that name no task */
#define TN_ALL_TASKS (UINT32_MAX - 1) /* all of them, for functions that take one or all */
#define TN_NO_ASIDE UINT32_MAX

typedef struct tn_task {
    const char *name;
    tn_target target;
    uint32_t of;            /* its probability is a share of that task's; TN_NO_TASK: of all rows */
    uint32_t where;         /* only rows where that task has a click count; TN_NO_TASK: all */
    double weight;          /* factor of its loss in the joint one; 1 where it is learned */
    bool learned;           /* the factor is trained with the model (nn/loss/joint_loss.h) */
    uint32_t label;         /* its column beside the row; TN_NO_ASIDE: the label of the row */
    uint32_t weight_column; /* likewise of its factors; TN_NO_ASIDE: none */
} tn_task;

typedef struct tn_tasks {
    uint32_t n; /* 0, or 2 and more */
    tn_task task[TN_TASKS_MAX];
    uint32_t n_aside; /* numbers beside a row: io/schema/dataopts.h has their columns */
} tn_tasks;

/* Returns the number of tasks; 1 where there is no list of them. */
static inline uint32_t tn_tasks_count(const tn_tasks *tasks)
{
    return tasks != NULL && tasks->n > 0 ? tasks->n : 1;
}

/* Returns the place of a task by its name; TN_NO_TASK: none is called so. */
uint32_t tn_tasks_find(const tn_tasks *tasks, const char *name, size_t size);

/* The label and factor of a row in a task. */
typedef struct tn_task_row {
    float label;
    float factor;
} tn_task_row;

/* `label` is that of the row, `aside` the numbers beside it. */
tn_task_row tn_task_row_of(const tn_tasks *tasks, uint32_t k, float label, const float *aside);

/* Returns whether a row has a click in a task without one in the task that it is a share of. */
bool tn_task_contradicts(const tn_tasks *tasks, uint32_t k, float label, const float *aside);

/* The labels and weights of a batch for one task, by row. */
typedef struct tn_task_rows {
    float *label;
    float *factor;    /* share of the row's weight */
    float *weight;    /* the row's weight times the factor */
    uint32_t counted; /* rows whose factor is not 0 */
    uint32_t clicks;  /* counted rows with a label above .5 */
} tn_task_rows;

/* The same of many batches. */
typedef struct tn_task_count {
    uint64_t rows, clicks;
} tn_task_count;

typedef struct tn_task_counts {
    uint64_t contradictions;
    tn_task_count task[TN_TASKS_MAX];
} tn_task_counts;
