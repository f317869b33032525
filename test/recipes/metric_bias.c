/* metric_bias.c - what a contributor adds to mean_metrics.c: the metric of the recipe's test. */

double tn_metric_bias(const tn_metrics *m)
{
    return mean(m, TN_SUM_WP) - mean(m, TN_SUM_WY);
}
