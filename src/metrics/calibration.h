/* calibration.h - tables of predicted against observed click rates: bins of equal width or weight,
 * and Baidu's bucket error.
 *
 *     tn_reliability bin[10];                            score deciles
 *     n = tn_reliability_of_mass(m, 10, bin);            n <= 10: bins that hold something
 *
 * Plain arrays of the caller; nothing is allocated. Exact with exact_auc; else a bin of the
 * histogram represents its rows (metrics/ranking.h).
 */
#pragma once

#include "metrics/metrics.h"

typedef struct tn_reliability {
    double low, high; /* p of its first and last score; of equal width: the edges */
    double weight;
    double ctr, pctr;
    double copc; /* NAN over 0 */
} tn_reliability;

/* Fills equal-width bins of p as metrics.ece sees them; `out` holds TN_ECE_BINS_MAX. Returns how
 * many are not empty. 0 for metrics that were restored. */
uint32_t tn_reliability_of_width(const tn_metrics *m, tn_reliability *out);

/* Fills at most `n` bins of about equal weight, upwards; a score is never cut in two. Labels count
 * as clicks or not. */
uint32_t tn_reliability_of_mass(const tn_metrics *m, uint32_t n, tn_reliability *out);

/* The bucket error: neighbouring scores are joined until their CTR can be judged.
 *
 *     tn_buckets b = {0};
 *     tn_buckets_add(&b, c, shows, clicks);     upwards by score c, empty ones left out
 *     b.error / b.judged                        the bucket error;  b.judged / b.shows its coverage
 *
 * A group is judged once the relative deviation of its CTR is below .05, and dropped when the next
 * score is more than .01 away from its first. A dropped group adds to the shows only: the coverage
 * says how much was judged. */
typedef struct tn_buckets {
    double error, judged, shows;
    bool is_open;   /* a group is being gathered: */
    double c_start; /* its first score */
    double n, sum_c, clicks;
} tn_buckets;

void tn_buckets_add(tn_buckets *b, double c, double shows, double clicks);
