/* metric_gauc_skipped.c - the share that GAUC leaves out: groups of one class. */
#include "metrics/metrics_state.h"

static double gauc_skipped(const tn_metrics *m)
{
    return tn_metrics_gauc(m).skipped;
}

const tn_metric tn_metric_gauc_skipped = {
    .name = "gauc_skipped",
    .help = "share of gauc that lies in groups of one class",
    .value = gauc_skipped,
    .needs_groups = true,
};
