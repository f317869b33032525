/* metric_bucket_error.c - Baidu's bucket error: relative CTR error of groups of bins large enough
 * to judge. */
#include "metrics/bucket_error.h"
#include "metrics/metrics_state.h"

static double bucket_error(const tn_metrics *m)
{
    tn_buckets b = tn_buckets_of(m);
    return tn_ratio(b.error, b.judged);
}

const tn_metric tn_metric_bucket_error = {
    .name = "bucket_error",
    .help = "relative CTR error of groups of neighbouring scores",
    .value = bucket_error,
};
