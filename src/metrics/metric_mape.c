/* metric_mape.c - the mean of |y - p| / y over y > 0; of binary labels it would be mae of the
 * clicks. */
#include "metrics/metrics_state.h"

static double mape(const tn_metrics *m)
{
    if (!m->soft || m->restored) {
        return (double)NAN;
    }
    return tn_ratio(tn_metrics_sum(m, TN_SUM_APE), tn_metrics_sum(m, TN_SUM_WNZ));
}

const tn_metric tn_metric_mape = {
    .name = "mape",
    .help = "mean absolute error relative to the label; soft labels only",
    .value = mape,
};
