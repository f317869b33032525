/* task_scores.h - the scores of several tasks.
 *
 *     TN_TRY(tn_task_gather_new(&g, w, rows_max, err));      from a worker's graph, batch by batch
 *     scores.task = tn_task_gather_scores(g, rows);          NULL: there is one label
 */
#pragma once

#include "base/core/error.h"
#include "base/keys/tasks.h"

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

/* Copies what the evaluation graph has of the batch; NULL: there is one label. Scores of shares are
 * corrected for sampled negatives, that of the first task is not. */
const tn_task_scores *tn_task_gather_scores(tn_task_gather *g, uint32_t rows);
