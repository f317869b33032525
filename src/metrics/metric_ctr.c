/* metric_ctr.c - the mean label. */
#include "metrics/metrics_state.h"

static double ctr(const tn_metrics *m)
{
    return tn_metrics_mean(m, TN_SUM_WY);
}

const tn_metric tn_metric_ctr = {
    .name = "ctr",
    .help = "mean label",
    .value = ctr,
};
