/* bootstrap.h - how sure an AUC is, and whether two models differ: DeLong's variance and the
 * Poisson bootstrap.
 *
 *     tn_interval i;
 *     TN_TRY(tn_bootstrap_auc(m, &(tn_bootstrap_opts){.seed = 42}, &i, err));
 *     TN_TRY(tn_delong_difference(a, b, &i, err));      AUC of a less that of b, on the same rows
 *
 * All need exact_auc. For differences both metrics got the same rows in the same order: rows are
 * paired by their number, labels are checked. Intervals hold .95; NAN when not defined.
 * Sorts the kept rows in place: one thread at a time per tn_metrics.
 */
#ifndef TN_METRICS_BOOTSTRAP_H
#define TN_METRICS_BOOTSTRAP_H

#include "metrics/metrics.h"

enum { TN_REPLICATES = 200, TN_REPLICATES_MAX = 10000 };

typedef struct tn_bootstrap_opts {
    uint64_t seed;
    uint32_t replicates; /* 0: TN_REPLICATES */
    bool by_group;       /* draw whole groups, not rows; needs grouped */
} tn_bootstrap_opts;

/* Every row (or group) counts Poisson(1) times in a replicate, drawn from its number (or key), so
 * that neither threads nor the order of the scores decide. */
tn_status tn_bootstrap_auc(const tn_metrics *m, const tn_bootstrap_opts *opts, tn_interval *out,
                           tn_error *err) TN_MUST_USE;

/* AUC of a less AUC of b, both by the same replicates. */
tn_status tn_bootstrap_difference(const tn_metrics *a, const tn_metrics *b,
                                  const tn_bootstrap_opts *opts, tn_interval *out,
                                  tn_error *err) TN_MUST_USE;

/* The same from the covariance of the rows' placements (DeLong 1988); rows count once each. */
tn_status tn_delong_difference(const tn_metrics *a, const tn_metrics *b, tn_interval *out,
                               tn_error *err) TN_MUST_USE;

/* Poisson(1) by inverse distribution function; u in [0, 1). */
uint32_t tn_poisson1(double u);

#endif
