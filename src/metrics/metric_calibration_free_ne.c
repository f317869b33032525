/* metric_calibration_free_ne.c - log loss over the cross entropy of the mean label and the mean
 * prediction. */
#include "metrics/metrics_state.h"

/* -y ln p - (1 - y) ln(1 - p) with the means of both: what a constant with this model's bias loses.
 */
static double calibration_free_ne(const tn_metrics *m)
{
    return tn_metrics_ne(m, tn_metrics_mean(m, TN_SUM_WP));
}

const tn_metric tn_metric_calibration_free_ne = {
    .name = "calibration_free_ne",
    .help = "ne without the part that calibration explains",
    .value = calibration_free_ne,
};
