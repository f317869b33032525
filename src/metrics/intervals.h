/* intervals.h - how sure an AUC is: DeLong's variance and the Poisson bootstrap.
 *
 *     tn_interval d = tn_interval_delong(m);
 *     tn_interval b;
 *     TN_TRY(tn_interval_bootstrap(m, &(tn_bootstrap_opts){.seed = 42}, &b, err));
 *
 * Both need exact_auc. Intervals hold .95; NAN when not defined. They sort the kept rows in place:
 * one thread at a time per tn_metrics.
 */
#ifndef TN_METRICS_INTERVALS_H
#define TN_METRICS_INTERVALS_H

#include "metrics/metrics.h"

enum { TN_REPLICATES = 200, TN_REPLICATES_MAX = 10000 };

typedef struct tn_interval {
    double value, low, high, variance;
} tn_interval;

/* From the variance of the rows' placements (DeLong 1988). Rows count once each, whatever their
 * weights. */
tn_interval tn_interval_delong(const tn_metrics *m);

typedef struct tn_bootstrap_opts {
    uint64_t seed;
    uint32_t replicates; /* 0: TN_REPLICATES */
    bool by_group;       /* draw whole groups, not rows; needs grouped */
} tn_bootstrap_opts;

/* Every row (or group) counts Poisson(1) times in a replicate, drawn from its number (or key), so
 * that neither threads nor the order of the scores decide. */
tn_status tn_interval_bootstrap(const tn_metrics *m, const tn_bootstrap_opts *opts,
                                tn_interval *out, tn_error *err) TN_MUST_USE;

/* Poisson(1) by inverse distribution function; u in [0, 1). */
uint32_t tn_poisson1(double u);

#endif
