/* task_warnings.c - says once, after the first epoch, what the labels of several tasks have shown:
 * a share without what it is a share of, a task that no row counts for, or none with a click. */
#include "train/run/module.h"

#include "base/core/text.h"
#include "train/config/run_tasks.h"
#include "train/group/ranks.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct task_warner {
    bool said;
} task_warner;

static tn_status warn_of_shares(tn_run_now *now, const tn_tasks *tasks, uint64_t n, tn_error *err)
{
    tn_text line = {0};
    if (n == 0) {
        return TN_OK;
    }
    tn_text_addf(&line, "%" PRIu64 " row%s of data.train %s", n, n == 1 ? "" : "s",
                 n == 1 ? "has" : "have");
    for (uint32_t k = 0, said = 0; k < tasks->n; k++) {
        const uint32_t of = tasks->task[k].of;
        if (of != TN_NO_TASK) {
            tn_text_addf(&line, "%s '%s' without '%s'", said++ > 0 ? " or" : "",
                         tasks->task[k].name, tasks->task[of].name);
        }
    }
    tn_text_adds(&line, ", which is no share: they are learned as they are");
    const tn_status status = tn_run_say(now, "warn", tn_text_str(&line), err);
    tn_text_done(&line);
    return status;
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

/* Counts what the labels of all ranks have shown in this epoch. */
static tn_task_counts count_all(const tn_epoch *e)
{
    tn_held held = {0};
    tn_met all = {0};
    tn_met_add(&all, &e->met);
    e->ranks.ops->counts(e->ranks.self, &held, e->number, &all);
    const tn_task_counts tasks = all.tasks;
    tn_met_done(&all);
    return tasks;
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
    const tn_task_counts counts = count_all(now->epoch);
    TN_TRY(warn_of_shares(now, tasks, counts.contradictions, err));
    for (uint32_t k = 0; k < tasks->n; k++) {
        TN_TRY(warn_of_task(now, &tasks->task[k], &counts.task[k], err));
    }
    return TN_OK;
}

extern const tn_module tn_module_task_warnings;
const tn_module tn_module_task_warnings = {.name = "task_warnings",
                                           .size = sizeof(task_warner),
                                           .at = {[TN_AT_EPOCH] = warn, [TN_AT_END] = warn}};
