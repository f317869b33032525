/* metric_bias.c - what a contributor adds to mean_metrics.c: the metric of the recipe's test. */

static double bias(const tn_metrics *m)
{
    return mean(m, TN_SUM_WP) - mean(m, TN_SUM_WY);
}

const tn_metric tn_metric_bias = {TN_METRIC_OF(bias, "mean of prediction less label")};
