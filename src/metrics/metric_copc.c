/* metric_copc.c - clicks over predicted clicks; above 1: predictions are too low. */
#include "metrics/metrics_state.h"

static double copc(const tn_metrics *m)
{
    return tn_ratio(tn_metrics_sum(m, TN_SUM_WY), tn_metrics_sum(m, TN_SUM_WP));
}

const tn_metric tn_metric_copc = {
    .name = "copc",
    .help = "clicks over predicted clicks",
    .value = copc,
};
