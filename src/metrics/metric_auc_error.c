/* metric_auc_error.c - how far the histogram's AUC can be from the exact one. */
#include "metrics/metrics_state.h"

/* e = sum over bins of P_b N_b / (2 P N): pairs within a bin count half. 0 when scores are sorted.
 */
static double auc_error(const tn_metrics *m)
{
    double tied = 0;
    double auc = tn_metrics_auc(m, &tied);
    return m->opts.exact_auc && !isnan(auc) ? 0 : tied;
}

const tn_metric tn_metric_auc_error = {
    .name = "auc_error",
    .help = "bound of the error of auc by its histogram",
    .value = auc_error,
};
