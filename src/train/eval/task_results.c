/* task_results.c - gathers the scores of several tasks, and judges each. */
#include "train/eval/task_results.h"

#include "base/core/alloc.h"
#include "base/core/bytes.h"
#include "base/core/text.h"
#include "io/rows/batch.h"
#include "metrics/metrics_pack.h"
#include "nn/graph/op.h"
#include "train/config/run.h"
#include "train/config/run_tasks.h"
#include "train/step/model_plan.h"
#include "train/step/worker.h"

#include <math.h>

/* ---- scores ---- */

struct tn_task_gather {
    const tn_worker *w;
    uint32_t n, rows_max;
    tn_task_scores scores;
    float *value; /* [task][score, given][rows_max] */
};

tn_status tn_task_gather_new(tn_task_gather **out, const tn_worker *w, uint32_t rows_max,
                             tn_error *err)
{
    *out = NULL;
    const uint32_t n = tn_tasks_count(tn_run_tasks_of(w->plan->run));
    if (n == 1) {
        return TN_OK;
    }
    tn_task_gather *g = NULL;
    TN_TRY(TN_ALLOC(g, 1, "scores of tasks", err));
    if (TN_ALLOC(g->value, (size_t)2 * n * rows_max, "scores of tasks", err) != TN_OK) {
        tn_free(g);
        return TN_E_MEMORY;
    }
    g->w = w;
    g->n = n;
    g->rows_max = rows_max;
    *out = g;
    return TN_OK;
}

void tn_task_gather_free(tn_task_gather *g)
{
    if (g != NULL) {
        tn_free(g->value);
        tn_free(g);
    }
}

static const float *copy_column(float *to, const tn_node *from, uint32_t rows)
{
    for (uint32_t r = 0; from != NULL && r < rows; r++) {
        to[r] = *tn_val_row(from, r);
    }
    return from != NULL ? to : NULL;
}

const tn_task_scores *tn_task_gather_scores(tn_task_gather *g, uint32_t rows)
{
    for (uint32_t k = 0; g != NULL && k < g->n; k++) {
        TN_ASSERT(rows <= g->rows_max);
        float *to = g->value + (size_t)2 * k * g->rows_max;
        g->scores.score[k] = copy_column(to, g->w->task[k].score, rows);
        g->scores.given[k] = copy_column(to + g->rows_max, g->w->task[k].given, rows);
    }
    return g != NULL ? &g->scores : NULL;
}

/* ---- metrics ---- */

tn_status tn_task_results_begin(tn_task_results *t, const tn_run *run, tn_metrics_opts opts,
                                tn_error *err)
{
    const tn_tasks *tasks = tn_run_tasks_of(run);
    for (uint32_t k = 1; k < tasks->n; k++) {
        opts.target = tasks->task[k].target;
        TN_TRY(tn_metrics_new(&t->of[k], &opts, err));
    }
    return TN_OK;
}

void tn_task_results_done(tn_task_results *t)
{
    for (uint32_t k = 0; k < TN_TASKS_MAX; k++) {
        tn_metrics_free(t->of[k]);
        t->of[k] = NULL;
    }
}

tn_status tn_task_results_add(tn_task_results *t, const tn_run *run, const tn_batch *batch,
                              const tn_task_scores *scores, tn_error *err)
{
    const tn_tasks *tasks = tn_run_tasks_of(run);
    for (uint32_t k = 1; k < tasks->n && scores != NULL; k++) {
        const tn_scored rows = {.n = batch->rows,
                                .logit = scores->score[k],
                                .label = batch->task[k].label,
                                .weight = batch->task[k].weight,
                                .group = batch->group};
        TN_ASSERT(t->of[k] != NULL);
        TN_TRY(tn_metrics_add(t->of[k], &rows, err));
    }
    return TN_OK;
}

/* ---- metrics of many ranks ---- */

static const tn_metrics *metrics_of(const tn_metrics *first, const tn_task_results *t, uint32_t k)
{
    return k == 0 ? first : t != NULL ? t->of[k] : NULL;
}

void tn_task_results_pack(const tn_metrics *first, const tn_task_results *t, tn_text *out)
{
    for (uint32_t k = 0; k < TN_TASKS_MAX; k++) {
        const tn_metrics *m = metrics_of(first, t, k);
        const size_t begin = out->size;
        if (m == NULL) {
            continue;
        }
        tn_text_add_u32le(out, 0);
        tn_metrics_pack(m, out);
        if (!out->failed) {
            tn_store_u32(out->data + begin, (uint32_t)(out->size - begin - sizeof(uint32_t)));
        }
    }
}

tn_status tn_task_results_merge(const tn_task_merge *to, const char *bytes, size_t size,
                                tn_error *err)
{
    tn_bytes in = {bytes, size, false};
    for (uint32_t k = 0; k < TN_TASKS_MAX; k++) {
        tn_metrics *sum = k == 0 ? to->first : to->tasks != NULL ? to->tasks->of[k] : NULL;
        tn_metrics *part = k == 0 ? to->room : to->rooms->of[k];
        if (sum == NULL) {
            continue;
        }
        const uint32_t n = tn_get_u32(&in);
        const char *at = tn_get(&in, n);
        TN_ASSERT(part != NULL);
        TN_TRY(tn_metrics_unpack(part, at != NULL ? at : "", at != NULL ? n : 0, err));
        TN_TRY(tn_metrics_merge(sum, part, err));
    }
    return in.size == 0 ? TN_OK : tn_fail(err, TN_E_PEER, "a rank has metrics of other tasks");
}

/* ---- names ---- */

tn_strs tn_task_metric_names(const tn_run *run, uint32_t k)
{
    static const char *const usual[TN_TARGETS][6] = {
        [TN_TARGET_CLICK] = {"auc", "logloss", "ne", "ctr", "copc"},
        [TN_TARGET_SIDE] = {"auc", "accuracy", "ctr"},
        [TN_TARGET_NUMBER] = {"rmse", "mae", "label_mean", "prediction_mean"},
        [TN_TARGET_ORDER] = {"auc"},
    };
    const tn_tasks *tasks = tn_run_tasks_of(run);
    TN_ASSERT(k < tn_tasks_count(tasks));
    const tn_target target = tasks->n > 0 ? tasks->task[k].target : run->data.target;
    const tn_strs *all = &run->eval.metrics;
    bool fits = tasks->n == 0;
    for (uint32_t i = 0; i < all->n; i++) {
        fits = fits || tn_metric_fits(all->item[i], target);
    }
    uint32_t n = 0;
    while (usual[target][n] != NULL) {
        n++;
    }
    return fits ? *all : (tn_strs){n, usual[target]};
}

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

double tn_task_results_get(const tn_task_results *t, const tn_run *run, const tn_metrics *first,
                           const char *monitor)
{
    const tn_tasks *tasks = tn_run_tasks_of(run);
    const char *metric = NULL;
    const uint32_t task = tn_monitor_task(tasks, monitor, &metric);
    if (task != TN_ALL_TASKS) {
        return task == TN_NO_TASK ? (double)NAN : value_of(task == 0 ? first : t->of[task], metric);
    }
    double sum = 0;
    uint32_t n = 0;
    for (uint32_t k = 0; k < tasks->n; k++) {
        if (tn_metric_fits(metric, tasks->task[k].target)) {
            sum += value_of(k == 0 ? first : t->of[k], metric); /* not defined: nor is the mean */
            n++;
        }
    }
    return n > 0 ? sum / n : (double)NAN;
}
