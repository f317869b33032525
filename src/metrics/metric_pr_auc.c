/* metric_pr_auc.c - average precision: sum over scores of (R_k - R_{k-1}) P_k, ties one step. */
#include "metrics/metrics_state.h"

static double pr_auc(const tn_metrics *m)
{
    tn_walk w = tn_walk_begin(m);
    double neg = (double)w.total_neg; /* at this score and above */
    double pos = (double)w.total_pos;
    double sum = 0;
    tn_cell c;
    while (tn_walk_next(&w, &c)) {
        if (c.pos > 0) {
            sum += (double)c.pos * (pos / (pos + neg));
        }
        neg -= (double)c.neg;
        pos -= (double)c.pos;
    }
    return w.total_neg > 0 ? tn_ratio(sum, (double)w.total_pos) : (double)NAN;
}

const tn_metric tn_metric_pr_auc = {
    .name = "pr_auc",
    .help = "average precision (area under the precision-recall curve)",
    .value = pr_auc,
    .larger_is_better = true,
};
