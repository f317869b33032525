/* metric_brier.c - the mean squared error of p, by its other name. */
#include "metrics/metrics_state.h"

static double brier(const tn_metrics *m)
{
    return tn_metrics_mean(m, TN_SUM_SE);
}

const tn_metric tn_metric_brier = {
    .name = "brier",
    .help = "Brier score, the same as mse",
    .value = brier,
};
