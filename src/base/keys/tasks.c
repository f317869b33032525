/* tasks.c - what a row is to each task. */
#include "base/keys/tasks.h"

#include "base/core/error.h"

#include <string.h>

uint32_t tn_tasks_find(const tn_tasks *tasks, const char *name, size_t size)
{
    for (uint32_t k = 0; tasks != NULL && k < tasks->n; k++) {
        if (strlen(tasks->task[k].name) == size && memcmp(tasks->task[k].name, name, size) == 0) {
            return k;
        }
    }
    return TN_NO_TASK;
}

/* NAN: the record has none. */
static float label_of(const tn_tasks *tasks, uint32_t k, float label, const float *aside)
{
    const uint32_t at = tasks->task[k].label;
    TN_ASSERT(k < tasks->n && (at == TN_NO_ASIDE || at < tasks->n_aside));
    return at != TN_NO_ASIDE ? aside[at] : label;
}

tn_task_row tn_task_row_of(const tn_tasks *tasks, uint32_t k, float label, const float *aside)
{
    const tn_task *t = &tasks->task[k];
    const float y = label_of(tasks, k, label, aside);
    const bool counts =
        !isnan(y) && (t->where == TN_NO_TASK || label_of(tasks, t->where, label, aside) > 0.5F);
    if (!counts) {
        return (tn_task_row){0, 0};
    }
    return (tn_task_row){y, t->weight_column != TN_NO_ASIDE ? aside[t->weight_column] : 1};
}

bool tn_task_contradicts(const tn_tasks *tasks, uint32_t k, float label, const float *aside)
{
    const uint32_t of = tasks->task[k].of;
    return of != TN_NO_TASK && label_of(tasks, k, label, aside) > 0.5F &&
           label_of(tasks, of, label, aside) <= 0.5F;
}
