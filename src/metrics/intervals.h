/* intervals.h - how sure an AUC is, a difference of two models, a mean, and a rate.
 *
 *     tn_interval d = tn_interval_delong(m);
 *     tn_interval b = tn_interval_bootstrap(m, NULL, 42);
 *     tn_interval c = tn_interval_delong_change(m, other, &p);    m less other
 *
 * Those of AUC need exact_auc; of two metrics, both have seen the same rows in the same order.
 * Intervals hold .95; NAN when not defined. They sort the kept rows in place: one thread at a time
 * per tn_metrics. DeLong takes 8 bytes a row while it runs, the bootstrap time for 200 passes.
 */
#pragma once

#include "metrics/metrics.h"

typedef struct tn_interval {
    double value, low, high, variance;
} tn_interval;

enum { TN_REPLICATES = 200 };

/* Computes the interval from the variance of the rows' placements (DeLong 1988). Weights do not
 * count. */
tn_interval tn_interval_delong(const tn_metrics *m);

/* Does the same for the difference of two models' AUC; *p of DeLong's test that there is none, on
 * both sides: 1 where all placements are the same. */
tn_interval tn_interval_delong_change(const tn_metrics *m, const tn_metrics *other, double *p);

/* Resamples: every row counts Poisson(1) times in each replicate, drawn from its number, so that
 * neither threads nor the order of the scores decide. `other` not NULL: for the difference m less
 * other, in which a row counts as often for both (paired). */
tn_interval tn_interval_bootstrap(const tn_metrics *m, const tn_metrics *other, uint64_t seed);

/* The bootstrap of a weighted mean, row by row as they come: nothing is kept of a row, and row i
 * counts as often as in tn_interval_bootstrap. Begins as {0}. */
typedef struct tn_mean_draws {
    uint64_t rows;
    double all_weight, all_sum;
    double weight[TN_REPLICATES], sum[TN_REPLICATES];
} tn_mean_draws;

void tn_mean_draws_add(tn_mean_draws *d, uint64_t seed, double weight, double value);
tn_interval tn_mean_draws_end(const tn_mean_draws *d);

tn_interval tn_interval_normal(double value, double variance);

/* Returns the interval of a share of n > 0 rows (Wilson 1927), which need not be whole: it stays
 * within 0 .. 1 and is wide where all rows agree. */
tn_interval tn_interval_wilson(double share, double n);

/* Draws from Poisson(1) by the inverse distribution function; u in [0, 1). */
uint32_t tn_poisson1(double u);
