/* curves.h - tables behind the figures of a report: calibration, ROC and precision-recall.
 *
 *     tn_reliability bin[10];                            score deciles
 *     n = tn_reliability_of_mass(m, 10, bin);            n <= 10: bins that hold something
 *     tn_curve_point at[200];
 *     n = tn_curve_of(m, 200, at);
 *
 * Plain arrays of the caller; nothing is allocated. Exact with exact_auc; else a bin of the
 * histogram stands for its rows (2^-15 of a logit, or 2^-7 when coarse).
 */
#ifndef TN_METRICS_CURVES_H
#define TN_METRICS_CURVES_H

#include "metrics/metrics.h"

typedef struct tn_reliability {
    double low, high; /* p of its first and last score; of equal width: the edges */
    double weight;
    double ctr, pctr;
    double copc; /* NAN over 0 */
} tn_reliability;

/* Equal-width bins of p as metrics.ece sees them; `out` holds TN_ECE_BINS_MAX. Returns how many are
 * not empty. 0 for metrics that were restored. */
uint32_t tn_reliability_of_width(const tn_metrics *m, tn_reliability *out);

/* At most `n` bins of about equal weight, upwards; a score is never cut in two. Labels count as
 * clicks or not. */
uint32_t tn_reliability_of_mass(const tn_metrics *m, uint32_t n, tn_reliability *out);

typedef struct tn_curve_point {
    double threshold; /* p: rows at or above it are called clicks */
    double tpr, fpr;  /* recall is tpr */
    double precision; /* NAN where nothing is called a click */
} tn_curve_point;

/* Thresholds downwards from above all scores to the lowest, at most `n` >= 2, about evenly spread
 * over tpr + fpr. 0 with one class. */
uint32_t tn_curve_of(const tn_metrics *m, uint32_t n, tn_curve_point *out);

#endif
