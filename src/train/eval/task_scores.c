/* task_scores.c - gathers the scores of several tasks. */
#include "train/eval/task_scores.h"

#include "base/core/alloc.h"
#include "base/math/fmath.h"
#include "nn/graph/op.h"
#include "train/config/run.h"
#include "train/config/run_tasks.h"
#include "train/step/model_plan.h"
#include "train/step/worker.h"

#include <math.h>

struct tn_task_gather {
    const tn_worker *w;
    uint32_t n, rows_max;
    double shift; /* added to the first logit, for sampled negatives */
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
    g->shift = tn_ln(w->plan->run->data.negative_sampling);
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

/* ln p - ln(1 - p) of the product p of two probabilities, of which a and b are that: as
 * nn/op/op_tasks.c, the largest of the powers is taken out. */
static double logit_of_both(double a, double b)
{
    const double most = fmax(fmax(-a, -b), -a - b);
    return -most - tn_ln(tn_exp(-a - most) + tn_exp(-b - most) + tn_exp(-a - b - most));
}

/* The logit of a row corrected for sampled negatives, which are rows without a click of the first
 * task: they change the odds of that click, and nothing of a share given a click. */
static double correct(const tn_task_gather *g, const tn_tasks *tasks, uint32_t k, uint32_t row)
{
    const uint32_t of = tasks->task[k].of;
    if (k == 0 || of == TN_NO_TASK) {
        return (double)g->scores.score[k][row] + (k == 0 ? g->shift : 0);
    }
    return logit_of_both(correct(g, tasks, of, row), (double)g->scores.given[k][row]);
}

/* Corrects shares; the first task is corrected by whoever takes its scores, as that of a run of one
 * label. */
static void correct_shares(tn_task_gather *g, uint32_t rows)
{
    const tn_tasks *tasks = tn_run_tasks_of(g->w->plan->run);
    for (uint32_t k = 1; k < g->n && g->shift < 0; k++) {
        float *to = g->value + (size_t)2 * k * g->rows_max;
        for (uint32_t r = 0; r < rows && tasks->task[k].of != TN_NO_TASK; r++) {
            to[r] = (float)correct(g, tasks, k, r);
        }
    }
}

const tn_task_scores *tn_task_gather_scores(tn_task_gather *g, uint32_t rows)
{
    for (uint32_t k = 0; g != NULL && k < g->n; k++) {
        TN_ASSERT(rows <= g->rows_max);
        float *to = g->value + (size_t)2 * k * g->rows_max;
        g->scores.score[k] = copy_column(to, g->w->task[k].score, rows);
        g->scores.given[k] = copy_column(to + g->rows_max, g->w->task[k].given, rows);
    }
    if (g != NULL) {
        correct_shares(g, rows);
    }
    return g != NULL ? &g->scores : NULL;
}
