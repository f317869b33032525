/* metric_gauc.c - AUC within groups: sum of n_u AUC_u / sum of n_u over groups with both classes.
 */
#include "metrics/metrics_state.h"

static double gauc(const tn_metrics *m)
{
    return tn_metrics_gauc(m).value;
}

const tn_metric tn_metric_gauc = {
    .name = "gauc",
    .help = "AUC within groups, weighted mean",
    .value = gauc,
    .needs_groups = true,
    .larger_is_better = true,
};
