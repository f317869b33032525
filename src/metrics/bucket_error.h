/* bucket_error.h - the bucket error: neighbouring scores are joined until their CTR can be judged.
 *
 *     tn_buckets b = {0};
 *     tn_buckets_add(&b, c, shows, clicks);     upwards by score c, empty ones left out
 *     b.error / b.judged                        the bucket error;  b.judged / b.shows its coverage
 *
 * A group is judged once the relative deviation of its CTR is below .05, and dropped when the next
 * score is more than .01 away from its first. What is dropped vanishes: the coverage says how much.
 */
#ifndef TN_METRICS_BUCKET_ERROR_H
#define TN_METRICS_BUCKET_ERROR_H

#include "metrics/metrics.h"

#include <stdbool.h>

typedef struct tn_buckets {
    double error, judged, shows;
    bool is_open;   /* a group is being gathered: */
    double c_start; /* its first score */
    double n, sum_c, clicks;
} tn_buckets;

void tn_buckets_add(tn_buckets *b, double c, double shows, double clicks);

/* Over everything seen. */
tn_buckets tn_buckets_of(const tn_metrics *m);

#endif
