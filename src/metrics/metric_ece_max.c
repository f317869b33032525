/* metric_ece_max.c - the largest calibration gap of an equal-width bin of p. */
#include "metrics/metrics_state.h"

static double ece_max(const tn_metrics *m)
{
    return tn_metrics_gap(m).largest;
}

const tn_metric tn_metric_ece_max = {
    .name = "ece_max",
    .help = "largest calibration gap of a bin of equal width",
    .value = ece_max,
};
