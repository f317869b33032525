/* near.c - see near.h. */
#include "nn/near.h"

#include "nn/passes/finish.h"
#include "support/test.h"

void tn_assert_value(double got, double want)
{
    fail_if(!(fabs(got - want) <= 1e-6 * fmax(1, fabs(want))), "%.9g instead of %.9g", got, want);
}

void tn_assert_near(const char *what, const tn_node *n, const tn_real *matrix, const double *want)
{
    for (size_t r = 0; r < n->shape.rows; r++) {
        for (size_t c = 0; c < n->shape.cols; c++) {
            double got = (double)matrix[r * n->stride + c];
            double w = want[r * n->shape.cols + c];
            fail_if(!(fabs(got - w) <= 1e-6 * fmax(1, fabs(w))),
                    "%s [%zu][%zu]: %.9g instead of %.9g", what, r, c, got, w);
        }
    }
}

void tn_put(tn_node *n, const double *from)
{
    for (size_t r = 0; r < n->shape.rows; r++) {
        for (size_t c = 0; c < n->shape.cols; c++) {
            n->val[r * n->stride + c] = (tn_real)from[r * n->shape.cols + c];
        }
    }
}

tn_graph *tn_trial_graph(uint32_t rows, bool train)
{
    return tn_graph_new(
        &(tn_graph_opts){.max_rows = rows, .train = train, .reduction = TN_REDUCE_SUM});
}

tn_trial tn_trial_open(tn_graph *g, tn_node *y, uint32_t rows, bool training)
{
    tn_trial t = {.g = g, .y = y};
    t.factor = tn_input(g, "factor", y->shape.cols, false);
    tn_node *loss = tn_apply(g, &tn_op_sum_cols, "loss",
                             TN_IN(tn_apply(g, &tn_op_mul, NULL, TN_IN(y, t.factor), NULL)), NULL);
    tn_error err = {0};
    tn_wanted wanted = {.loss = loss, .fetch = (const char *[]){y->name}, .n_fetch = 1};
    assert_ok(tn_graph_finish(g, &wanted, &err), err.text);
    t.feed = (tn_graph_feed){.rows = rows, .info = {.training = training}};
    return t;
}

void tn_trial_run(tn_trial *t, const double *dy)
{
    if (dy != NULL) {
        tn_put(t->factor, dy);
    }
    tn_forward(t->g, &t->feed);
    if (dy != NULL) {
        tn_backward(t->g);
    }
}
