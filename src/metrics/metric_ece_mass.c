/* metric_ece_mass.c - expected calibration error over bins of equal weight. */
#include "metrics/curves.h"
#include "metrics/metrics_state.h"

static double ece_mass(const tn_metrics *m)
{
    tn_reliability bin[TN_ECE_BINS_MAX];
    uint32_t n = m->opts.ece_bins > 0 ? m->opts.ece_bins : TN_ECE_BINS;
    n = tn_reliability_of_mass(m, n, bin);
    double sum = 0;
    double weight = 0;
    for (uint32_t i = 0; i < n; i++) {
        sum += bin[i].weight * fabs(bin[i].ctr - bin[i].pctr);
        weight += bin[i].weight;
    }
    return tn_ratio(sum, weight);
}

const tn_metric tn_metric_ece_mass = {
    .name = "ece_mass",
    .help = "expected calibration error, bins of equal weight",
    .value = ece_mass,
};
