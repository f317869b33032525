/* metrics_state.h - the inside of tn_metrics, for the files of this room only. */
#ifndef TN_METRICS_METRICS_STATE_H
#define TN_METRICS_METRICS_STATE_H

#include "metrics/kept_rows.h"
#include "metrics/metrics.h"
#include "metrics/scoring.h"

/* An equal-width bin of p. */
typedef struct tn_band {
    tn_u128 sum[TN_SUM_WP + 1]; /* w, wy, wp */
} tn_band;

struct tn_metrics {
    tn_metrics_opts opts;
    tn_scoring scoring;
    uint64_t rows;        /* of weight > 0 */
    bool weighted;        /* some weight is not 1 */
    bool soft;            /* some label is neither 0 nor 1 */
    bool restored;        /* rows, bands and the sums that checkpoints do not keep are missing */
    tn_u128 sum[TN_SUMS]; /* of rint(x * 2^32) */
    tn_band band[TN_ECE_BINS_MAX];
    uint32_t n_bins;
    uint64_t *cell;        /* owned; [2][n_bins]: negatives, positives */
    tn_kept_rows *kept;    /* owned; NULL unless exact_auc or grouped */
    tn_score_block *block; /* owned; of the call of add that runs; NULL before the first */
};

/* Adds one row of a block that was scored elsewhere; for coarse metrics that keep no rows. */
void tn_metrics_add_scored(tn_metrics *m, const tn_score_block *b, uint32_t row);

double tn_ratio(double a, double b); /* a / b; NAN over 0 */

#define TN_METRIC(name) extern const tn_metric tn_metric_##name;
#include "metrics/metrics.def"
#undef TN_METRIC

#endif
