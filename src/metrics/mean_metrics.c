/* mean_metrics.c - the metrics that are means of the sums, or quotients of such means. */
#include "metrics/metrics_state.h"

#include "base/math/fmath.h"

static double sum_of(const tn_metrics *m, tn_sum k)
{
    return (double)(tn_i128)m->sum[k] * 0x1p-32;
}

/* Returns a sum's mean over the weights. */
static double mean(const tn_metrics *m, tn_sum k)
{
    return tn_ratio(sum_of(m, k), sum_of(m, TN_SUM_W));
}

/* Returns log loss over the cross entropy of the mean label and q; NAN unless 0 < q < 1. */
static double entropy_ratio(const tn_metrics *m, double q)
{
    double y = mean(m, TN_SUM_WY);
    double loss = mean(m, TN_SUM_WL);
    if (!(q > 0 && q < 1)) {
        return (double)NAN;
    }
    return tn_ratio(loss, -y * tn_ln(q) - (1 - y) * tn_ln(1 - q));
}

double tn_metric_logloss(const tn_metrics *m)
{
    return mean(m, TN_SUM_WL);
}

/* Computes normalized entropy: the constant that knows the CTR loses the entropy of the CTR. */
double tn_metric_ne(const tn_metrics *m)
{
    return entropy_ratio(m, mean(m, TN_SUM_WY));
}

double tn_metric_rig(const tn_metrics *m)
{
    return 1 - entropy_ratio(m, mean(m, TN_SUM_WY));
}

/* Compares with a constant of this model's bias, which loses -y ln p - (1 - y) ln(1 - p), means of
 * both. */
double tn_metric_calibration_free_ne(const tn_metrics *m)
{
    return entropy_ratio(m, mean(m, TN_SUM_WP));
}

double tn_metric_ctr(const tn_metrics *m)
{
    return mean(m, TN_SUM_WY);
}

double tn_metric_pctr(const tn_metrics *m)
{
    return mean(m, TN_SUM_WP);
}

/* Is above 1 where predictions are too low. */
double tn_metric_copc(const tn_metrics *m)
{
    return tn_ratio(sum_of(m, TN_SUM_WY), sum_of(m, TN_SUM_WP));
}

double tn_metric_mse(const tn_metrics *m)
{
    return mean(m, TN_SUM_SE);
}

double tn_metric_brier(const tn_metrics *m)
{
    return mean(m, TN_SUM_SE);
}

double tn_metric_rmse(const tn_metrics *m)
{
    return sqrt(mean(m, TN_SUM_SE));
}

double tn_metric_mae(const tn_metrics *m)
{
    return mean(m, TN_SUM_AE);
}

double tn_metric_label_mean(const tn_metrics *m)
{
    return mean(m, TN_SUM_WY);
}

double tn_metric_prediction_mean(const tn_metrics *m)
{
    return mean(m, TN_SUM_WP);
}

/* Takes the mean over y != 0. Of binary labels it would be mae of the clicks. */
double tn_metric_mape(const tn_metrics *m)
{
    if ((m->flags & (TN_HAS_SOFT | TN_RESTORED)) != TN_HAS_SOFT) {
        return (double)NAN;
    }
    return tn_ratio(sum_of(m, TN_SUM_APE), sum_of(m, TN_SUM_WNZ));
}
