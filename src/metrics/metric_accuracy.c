/* metric_accuracy.c - the share of rows where p >= .5 says the class. */
#include "metrics/metrics_state.h"

static double accuracy(const tn_metrics *m)
{
    tn_walk w = tn_walk_begin(m);
    uint64_t right = 0;
    tn_cell c;
    while (tn_walk_next(&w, &c)) {
        right += c.z >= 0 ? c.pos : c.neg; /* 0 is the edge of a bin */
    }
    return tn_ratio((double)right, (double)w.total_neg + (double)w.total_pos);
}

const tn_metric tn_metric_accuracy = {
    .name = "accuracy",
    .help = "share of rows that p >= 0.5 classifies rightly",
    .value = accuracy,
    .larger_is_better = true,
};
