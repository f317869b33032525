/* metrics_state.h - the inside of tn_metrics, for the files of metrics.def and their kin.
 *
 * A ranking metric walks the distinct scores upwards and does not care where they come from:
 *
 *     tn_walk w = tn_walk_begin(m);
 *     tn_cell c;
 *     while (tn_walk_next(&w, &c))
 *         ...                           c.neg, c.pos: weight of either class at this score
 *                                       w.total_neg, w.total_pos: of all
 *
 * Scores are histogram bins or, with exact_auc, the logits themselves. Weights are integers, 2^16
 * or 2^24 for weight 1; both totals stay below 2^62, so that 2 * pos * neg fits 128 bits.
 */
#ifndef TN_METRICS_METRICS_STATE_H
#define TN_METRICS_METRICS_STATE_H

#include "metrics/metrics.h"
#include "metrics/score_buffer.h"
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

/* A sum as a number. */
double tn_metrics_sum(const tn_metrics *m, tn_sum k);

double tn_metrics_mean(const tn_metrics *m, tn_sum k); /* over the weights */

/* Log loss over the cross entropy of the mean label and q; NAN unless 0 < q < 1. */
double tn_metrics_ne(const tn_metrics *m, double q);

typedef struct tn_cell {
    double z; /* middle of the bin, or the score */
    uint64_t neg, pos;
} tn_cell;

typedef struct tn_walk {
    const uint64_t *cell; /* the histogram, or NULL */
    uint32_t n_bins;
    const tn_kept_row *row;
    size_t n_rows;
    size_t at;
    double shift;
    double unit; /* cell weight of weight 1 */
    uint64_t total_neg, total_pos;
} tn_walk;

/* Over everything seen. */
tn_walk tn_walk_begin(const tn_metrics *m);
bool tn_walk_next(tn_walk *w, tn_cell *out);

/* AUC of everything seen; *tied, if not NULL, the share of tied pairs, halved. NAN and NAN with one
 * class. */
double tn_metrics_auc(const tn_metrics *m, double *tied);

/* GAUC and the share of n_u that was skipped. */
typedef struct tn_gauc {
    double value, skipped;
} tn_gauc;
tn_gauc tn_metrics_gauc(const tn_metrics *m);

/* |mean label - mean p| of equal-width bins: their weighted mean and the largest. */
typedef struct tn_gap {
    double mean, largest;
} tn_gap;
tn_gap tn_metrics_gap(const tn_metrics *m);

#define TN_METRIC(name) extern const tn_metric tn_metric_##name;
#include "metrics/metrics.def"
#undef TN_METRIC

#endif
