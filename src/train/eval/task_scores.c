/* task_scores.c - gathers the scores of several tasks. */
#include "train/eval/task_scores.h"

#include "base/core/alloc.h"
#include "nn/graph/op.h"
#include "train/config/run_tasks.h"
#include "train/step/model_plan.h"
#include "train/step/worker.h"

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
