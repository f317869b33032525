/* metric_mae.c - the mean absolute error of p. */
#include "metrics/metrics_state.h"

static double mae(const tn_metrics *m)
{
    return tn_metrics_mean(m, TN_SUM_AE);
}

const tn_metric tn_metric_mae = {
    .name = "mae",
    .help = "mean absolute error of the prediction",
    .value = mae,
};
