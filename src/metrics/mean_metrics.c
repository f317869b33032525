/* mean_metrics.c - the metrics that are means of the sums, or quotients of such means. */
#include "metrics/metrics_state.h"

#include "base/math/fmath.h"

static double sum_of(const tn_metrics *m, tn_sum k)
{
    return (double)m->sum[k] * 0x1p-32;
}

/* Over the weights. */
static double mean(const tn_metrics *m, tn_sum k)
{
    return tn_ratio(sum_of(m, k), sum_of(m, TN_SUM_W));
}

/* Log loss over the cross entropy of the mean label and q; NAN unless 0 < q < 1. */
static double entropy_ratio(const tn_metrics *m, double q)
{
    double y = mean(m, TN_SUM_WY);
    double loss = mean(m, TN_SUM_WL);
    if (!(q > 0 && q < 1)) {
        return (double)NAN;
    }
    return tn_ratio(loss, -y * tn_ln(q) - (1 - y) * tn_ln(1 - q));
}

static double logloss(const tn_metrics *m)
{
    return mean(m, TN_SUM_WL);
}

const tn_metric tn_metric_logloss = {TN_METRIC_OF(logloss, "mean log loss, in nats")};

/* Normalized entropy: the constant that knows the CTR loses the entropy of the CTR. */
static double ne(const tn_metrics *m)
{
    return entropy_ratio(m, mean(m, TN_SUM_WY));
}

const tn_metric tn_metric_ne = {TN_METRIC_OF(ne, "log loss relative to predicting the CTR")};

static double rig(const tn_metrics *m)
{
    return 1 - entropy_ratio(m, mean(m, TN_SUM_WY));
}

const tn_metric tn_metric_rig = {TN_METRIC_OF(rig, "relative information gain, 1 - ne"),
                                 .larger_is_better = true};

/* A constant with this model's bias loses -y ln p - (1 - y) ln(1 - p) with the means of both.
 */
static double calibration_free_ne(const tn_metrics *m)
{
    return entropy_ratio(m, mean(m, TN_SUM_WP));
}

const tn_metric tn_metric_calibration_free_ne = {
    TN_METRIC_OF(calibration_free_ne, "ne without the part that calibration explains")};

static double ctr(const tn_metrics *m)
{
    return mean(m, TN_SUM_WY);
}

const tn_metric tn_metric_ctr = {TN_METRIC_OF(ctr, "mean label")};

static double pctr(const tn_metrics *m)
{
    return mean(m, TN_SUM_WP);
}

const tn_metric tn_metric_pctr = {TN_METRIC_OF(pctr, "mean prediction")};

/* Above 1: predictions are too low. */
static double copc(const tn_metrics *m)
{
    return tn_ratio(sum_of(m, TN_SUM_WY), sum_of(m, TN_SUM_WP));
}

const tn_metric tn_metric_copc = {TN_METRIC_OF(copc, "clicks over predicted clicks")};

static double mse(const tn_metrics *m)
{
    return mean(m, TN_SUM_SE);
}

const tn_metric tn_metric_mse = {TN_METRIC_OF(mse, "mean squared error of the prediction")};

static double brier(const tn_metrics *m)
{
    return mean(m, TN_SUM_SE);
}

const tn_metric tn_metric_brier = {TN_METRIC_OF(brier, "Brier score, the same as mse")};

static double rmse(const tn_metrics *m)
{
    return sqrt(mean(m, TN_SUM_SE));
}

const tn_metric tn_metric_rmse = {TN_METRIC_OF(rmse, "root of mse")};

static double mae(const tn_metrics *m)
{
    return mean(m, TN_SUM_AE);
}

const tn_metric tn_metric_mae = {TN_METRIC_OF(mae, "mean absolute error of the prediction")};

/* Over y > 0. Of binary labels it would be mae of the clicks. */
static double mape(const tn_metrics *m)
{
    if (!m->soft || m->restored) {
        return (double)NAN;
    }
    return tn_ratio(sum_of(m, TN_SUM_APE), sum_of(m, TN_SUM_WNZ));
}

const tn_metric tn_metric_mape = {
    TN_METRIC_OF(mape, "mean absolute error relative to the label; soft labels only")};
