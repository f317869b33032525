/* v21.c - the eight rows of test vector V21. */
#include "metrics/v21.h"

#include "support/test.h"

void v21_init(v21 *v)
{
    static const double p[V21_ROWS] = {.9, .8, .8, .3, .3, .3, .1, .6};
    static const float y[V21_ROWS] = {1, 0, 1, 0, 0, 1, 0, 1};
    static const float w[V21_ROWS] = {1, 2, 1, .5F, 1, 2, 1, 1};
    static const uint64_t group[V21_ROWS] = {1, 1, 1, 2, 2, 2, 3, 3};
    for (uint32_t i = 0; i < V21_ROWS; i++) {
        float z = (float)log(p[i] / (1 - p[i]));
        while (1 / (1 + exp(-(double)z)) < p[i]) {
            z = nextafterf(z, INFINITY);
        }
        v->logit[i] = z;
        v->label[i] = y[i];
        v->weight[i] = w[i];
        v->group[i] = group[i];
        v->group_last[i] = i == V21_ROWS - 1 ? 4 : group[i];
    }
    v->rows = (tn_scored){.n = V21_ROWS, .logit = v->logit, .label = v->label};
}

void assert_close(double got, double want)
{
    fail_if(!(fabs(got - want) <= 1e-6 * fmax(1, fabs(want))), "got %.12g, want %.12g", got, want);
}

tn_metrics *metrics_of(const tn_metrics_opts *opts, const tn_scored *rows)
{
    tn_metrics *m = NULL;
    assert_int_equal(tn_metrics_new(&m, opts, NULL), TN_OK);
    assert_int_equal(tn_metrics_add(m, rows, NULL), TN_OK);
    return m;
}
