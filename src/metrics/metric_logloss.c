/* metric_logloss.c - sum wl / sum w. */
#include "metrics/metrics_state.h"

static double logloss(const tn_metrics *m)
{
    return tn_ratio(tn_metrics_sum(m, TN_SUM_WL), tn_metrics_sum(m, TN_SUM_W));
}

const tn_metric tn_metric_logloss = {
    .name = "logloss",
    .help = "mean log loss, in nats",
    .value = logloss,
};
