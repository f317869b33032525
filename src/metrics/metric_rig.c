/* metric_rig.c - relative information gain: 1 - NE. */
#include "metrics/metrics_state.h"

static double rig(const tn_metrics *m)
{
    return 1 - tn_metrics_ne(m, tn_metrics_mean(m, TN_SUM_WY));
}

const tn_metric tn_metric_rig = {
    .name = "rig",
    .help = "relative information gain, 1 - ne",
    .value = rig,
    .larger_is_better = true,
};
