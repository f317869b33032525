/* intervals.h - how sure an AUC is: DeLong's variance and the Poisson bootstrap.
 *
 *     tn_interval d = tn_interval_delong(m);
 *     tn_interval b = tn_interval_bootstrap(m, 42);
 *
 * Both need exact_auc. Intervals hold .95; NAN when not defined. They sort the kept rows in place:
 * one thread at a time per tn_metrics.
 */
#ifndef TN_METRICS_INTERVALS_H
#define TN_METRICS_INTERVALS_H

#include "metrics/metrics.h"

typedef struct tn_interval {
    double value, low, high, variance;
} tn_interval;

/* From the variance of the rows' placements (DeLong 1988). Weights do not count. */
tn_interval tn_interval_delong(const tn_metrics *m);

/* Every row counts Poisson(1) times in each of 200 replicates, drawn from its number, so that
 * neither threads nor the order of the scores decide. */
tn_interval tn_interval_bootstrap(const tn_metrics *m, uint64_t seed);

/* Poisson(1) by inverse distribution function; u in [0, 1). */
uint32_t tn_poisson1(double u);

#endif
