/* task_results.c - adds up and finds the metrics of several tasks. */
#include "train/eval/task_results.h"

#include "base/core/bytes.h"
#include "base/core/text.h"
#include "metrics/metrics_pack.h"
#include "train/config/run.h"
#include "train/config/run_tasks.h"

#include <math.h>

/* ---- metrics of many ranks ---- */

void tn_task_results_pack(const tn_evaluation *e, tn_text *out)
{
    for (uint32_t k = 0; e != NULL && k <= e->n_more; k++) {
        const size_t begin = out->size;
        tn_text_add_u32le(out, 0);
        tn_metrics_pack(tn_evaluation_task(e, k), out);
        if (!out->failed) {
            tn_store_u32(out->data + begin, (uint32_t)(out->size - begin - sizeof(uint32_t)));
        }
    }
}

tn_status tn_task_results_merge(const tn_evaluation *to, tn_metrics *const *room, const char *bytes,
                                size_t size, tn_error *err)
{
    tn_bytes in = {bytes, size, false};
    TN_ASSERT(to->metrics != NULL && room[0] != NULL);
    for (uint32_t k = 0; k <= to->n_more; k++) {
        const uint32_t n = tn_get_u32(&in);
        const char *at = tn_get(&in, n);
        TN_TRY(tn_metrics_unpack(room[k], at != NULL ? at : "", at != NULL ? n : 0, err));
        TN_TRY(tn_metrics_merge(k == 0 ? to->metrics : to->more[k - 1].metrics, room[k], err));
    }
    return in.size == 0 ? TN_OK : tn_fail(err, TN_E_PEER, "a rank has metrics of other tasks");
}

/* ---- names ---- */

tn_strs tn_all_metric_names(const tn_run *run, const char **room)
{
    tn_strs all = {0, room};
    for (uint32_t k = 0; k < tn_tasks_count(tn_run_tasks_of(run)); k++) {
        const tn_strs own = tn_task_metric_names(run, k);
        for (uint32_t i = 0; i < own.n && all.n < TN_METRIC_NAMES_MAX; i++) {
            if (!tn_strs_has(&all, own.item[i])) {
                room[all.n++] = own.item[i];
            }
        }
    }
    return all;
}

/* ---- values ---- */

static double value_of(const tn_metrics *m, const char *metric)
{
    const bool judged = m != NULL && tn_metric_fits(metric, tn_metrics_target(m)) &&
                        tn_metrics_one_class(m) == NULL;
    return judged ? tn_metrics_get(m, metric) : (double)NAN;
}

double tn_evaluation_get(const tn_evaluation *e, const tn_run *run, const char *monitor)
{
    const tn_tasks *tasks = tn_run_tasks_of(run);
    const char *metric = NULL;
    const uint32_t task = tn_monitor_task(tasks, monitor, &metric);
    if (task != TN_ALL_TASKS) {
        return task == TN_NO_TASK ? (double)NAN : value_of(tn_evaluation_task(e, task), metric);
    }
    double sum = 0;
    uint32_t n = 0;
    for (uint32_t k = 0; k < tasks->n; k++) {
        if (tn_metric_fits(metric, tasks->task[k].target)) {
            sum += value_of(tn_evaluation_task(e, k), metric); /* not defined: nor is the mean */
            n++;
        }
    }
    return n > 0 ? sum / n : (double)NAN;
}
