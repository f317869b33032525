/* metric_bucket_coverage.c - the share of weight that the bucket error judged. */
#include "metrics/bucket_error.h"
#include "metrics/metrics_state.h"

static double bucket_coverage(const tn_metrics *m)
{
    tn_buckets b = tn_buckets_of(m);
    return tn_ratio(b.judged, b.shows);
}

const tn_metric tn_metric_bucket_coverage = {
    .name = "bucket_coverage",
    .help = "share of rows that bucket_error judges",
    .value = bucket_coverage,
    .larger_is_better = true,
};
