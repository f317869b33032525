/* metric_auc.c - the share of (click, no click) pairs in the right order, ties half. */
#include "metrics/metrics_state.h"

static double auc(const tn_metrics *m)
{
    return tn_metrics_auc(m, NULL);
}

const tn_metric tn_metric_auc = {
    .name = "auc",
    .help = "area under the ROC curve",
    .value = auc,
    .larger_is_better = true,
};
