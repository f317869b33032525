/* metric_rmse.c - the root of the mean squared error of p. */
#include "metrics/metrics_state.h"

static double rmse(const tn_metrics *m)
{
    return sqrt(tn_metrics_mean(m, TN_SUM_SE));
}

const tn_metric tn_metric_rmse = {
    .name = "rmse",
    .help = "root of mse",
    .value = rmse,
};
