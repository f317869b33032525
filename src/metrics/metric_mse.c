/* metric_mse.c - the mean squared error of p. */
#include "metrics/metrics_state.h"

static double mse(const tn_metrics *m)
{
    return tn_metrics_mean(m, TN_SUM_SE);
}

const tn_metric tn_metric_mse = {
    .name = "mse",
    .help = "mean squared error of the prediction",
    .value = mse,
};
