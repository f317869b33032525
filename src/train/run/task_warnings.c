/* task_warnings.c - says once, after the first epoch, what the labels of several tasks have shown:
 * a share without what it is a share of, a task that no row counts for, or none with a click. */
#include "train/run/module.h"

#include "train/config/run_tasks.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct task_warner {
    bool said;
} task_warner;

static tn_status warn_of_shares(tn_run_now *now, tn_error *err)
{
    const uint64_t n = now->epoch->tasks.contradictions;
    char line[400];
    if (n == 0) {
        return TN_OK;
    }
    (void)snprintf(line, sizeof line,
                   "%" PRIu64 " row%s of data.train %s a click of a task without one of the task "
                   "that it is a share of ('of'): they are learned as they are, and say that the "
                   "share is larger than it can be",
                   n, n == 1 ? "" : "s", n == 1 ? "has" : "have");
    return tn_run_say(now, "warn", line, err);
}

static tn_status warn_of_task(tn_run_now *now, const tn_task *task, const tn_task_count *count,
                              tn_error *err)
{
    char line[400];
    const bool clicks = task->target == TN_TARGET_CLICK || task->target == TN_TARGET_SIDE;
    if (count->rows > 0 && (!clicks || count->clicks > 0)) {
        return TN_OK;
    }
    (void)snprintf(line, sizeof line, "task '%s' learns nothing: no row of data.train %s",
                   task->name, count->rows == 0 ? "counts for it" : "has a click of it");
    return tn_run_say(now, "warn", line, err);
}

static tn_status warn(void *self, tn_run_now *now, tn_error *err)
{
    task_warner *w = self;
    const tn_tasks *tasks = tn_run_tasks_of(now->run);
    if (w->said || tasks->n == 0 || !now->epoch->is_begun) {
        return TN_OK;
    }
    TN_ASSERT(tasks->n <= TN_TASKS_MAX && now->report != NULL);
    w->said = true;
    TN_TRY(warn_of_shares(now, err));
    for (uint32_t k = 0; k < tasks->n; k++) {
        TN_TRY(warn_of_task(now, &tasks->task[k], &now->epoch->tasks.task[k], err));
    }
    return TN_OK;
}

extern const tn_module tn_module_task_warnings;
const tn_module tn_module_task_warnings = {.name = "task_warnings",
                                           .size = sizeof(task_warner),
                                           .at = {[TN_AT_EPOCH] = warn, [TN_AT_END] = warn}};
