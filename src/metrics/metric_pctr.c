/* metric_pctr.c - the mean prediction. */
#include "metrics/metrics_state.h"

static double pctr(const tn_metrics *m)
{
    return tn_metrics_mean(m, TN_SUM_WP);
}

const tn_metric tn_metric_pctr = {
    .name = "pctr",
    .help = "mean prediction",
    .value = pctr,
};
