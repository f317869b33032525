/* metric_ece.c - expected calibration error over equal-width bins of p. */
#include "metrics/metrics_state.h"

static double ece(const tn_metrics *m)
{
    return tn_metrics_gap(m).mean;
}

const tn_metric tn_metric_ece = {
    .name = "ece",
    .help = "expected calibration error, bins of equal width",
    .value = ece,
};
