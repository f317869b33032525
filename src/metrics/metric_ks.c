/* metric_ks.c - Kolmogorov-Smirnov: the largest |TPR - FPR|. */
#include "metrics/metrics_state.h"

static double ks(const tn_metrics *m)
{
    tn_walk w = tn_walk_begin(m);
    if (w.total_neg == 0 || w.total_pos == 0) {
        return (double)NAN;
    }
    uint64_t neg = 0;
    uint64_t pos = 0;
    double largest = 0;
    tn_cell c;
    while (tn_walk_next(&w, &c)) {
        neg += c.neg;
        pos += c.pos;
        largest = fmax(largest,
                       fabs((double)pos / (double)w.total_pos - (double)neg / (double)w.total_neg));
    }
    return largest;
}

const tn_metric tn_metric_ks = {
    .name = "ks",
    .help = "largest distance of the two classes' score distributions",
    .value = ks,
    .larger_is_better = true,
};
