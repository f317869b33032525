/* metric_ne.c - normalized entropy: log loss over that of the constant that knows the CTR. */
#include "metrics/metrics_state.h"

static double ne(const tn_metrics *m)
{
    return tn_metrics_ne(m, tn_metrics_mean(m, TN_SUM_WY));
}

const tn_metric tn_metric_ne = {
    .name = "ne",
    .help = "log loss relative to predicting the CTR",
    .value = ne,
};
