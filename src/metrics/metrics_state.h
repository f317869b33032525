/* metrics_state.h - the inside of tn_metrics, for the files of this room only.
 *
 * Rows are turned into the integers that metrics add up: a block of them is scored by one
 * vectorised loop, then summed.
 *
 *     tn_scoring s = tn_scoring_of(&opts);
 *     TN_TRY(tn_score_block_fill(&block, &s, rows, from, err));       rows from .. from + block.n
 *     tn_score_block_total(&block, TN_SUM_WL);                        of rint(x * 2^32), 128 bits
 *
 * A block takes about 25 KB of its owner: no allocation, any thread.
 */
#pragma once

#include "metrics/kept_rows.h"
#include "metrics/metrics.h"

#include <math.h>

enum {
    TN_SCORE_BLOCK = 128,
    TN_BINS = 1 << 20,     /* bins of the logit, each 2^-15 wide, from -16 */
    TN_COARSE_SHIFT = 8,   /* coarse bin = bin >> 8 */
    TN_CELL_ONE = 1 << 16, /* weight 1 in a histogram cell */
};

/* Up to TN_SUM_AE in the order of docs/numerics.md section 7, as checkpoints keep them. Two's
 * complement: of numbers, wy and wp may be negative. */
typedef enum tn_sum {
    TN_SUM_W,
    TN_SUM_WY,
    TN_SUM_WP,
    TN_SUM_WL,
    TN_SUM_SE, /* w (p - y)^2 */
    TN_SUM_AE, /* w |p - y| */
    TN_SAVED_SUMS,
    TN_SUM_APE = TN_SAVED_SUMS, /* w |p - y| / |y| over y != 0 */
    TN_SUM_WNZ,                 /* w over y != 0 */
    TN_SUMS,
    TN_BAND_SUMS = TN_SUM_WP + 1, /* w, wy, wp of an equal-width bin of p */
    TN_ALL_SUMS = TN_SUMS + TN_BAND_SUMS * TN_ECE_BINS_MAX,
} tn_sum;

/* Bits of tn_metrics.flags, as packed metrics have them. */
enum {
    TN_HAS_WEIGHTS = 1, /* some weight is not 1 */
    TN_HAS_SOFT = 2,    /* some label is neither 0 nor 1 */
    TN_RESTORED = 4,    /* rows, bands and the sums that checkpoints do not keep are missing */
    TN_METRIC_FLAGS = 7,
};

__extension__ typedef unsigned __int128 tn_u128;
__extension__ typedef __int128 tn_i128;

/* The parameters of scoring, the same for all rows of a metrics object. */
typedef struct tn_scoring {
    double shift;      /* ln q of the down-sampling correction */
    double logit_clip; /* the loss sees the logit within +-this */
    double n_bands;    /* equal-width bins of p */
    tn_target target;
} tn_scoring;

typedef struct tn_score_block {
    uint32_t n;
    bool soft;                              /* some label is neither 0 nor 1 */
    bool weighted;                          /* some weight is not 1 */
    bool wide;                              /* some x[][] is too large for fixed[][] */
    double x[TN_SUMS][TN_SCORE_BLOCK];      /* terms of the sums */
    int64_t fixed[TN_SUMS][TN_SCORE_BLOCK]; /* rint(x * 2^32), unless wide */
    double z[TN_SCORE_BLOCK];               /* corrected */
    double y[TN_SCORE_BLOCK];
    double w[TN_SCORE_BLOCK];
    double e[TN_SCORE_BLOCK]; /* for the loops, up to is_not_0 */
    double work[TN_SCORE_BLOCK];
    double is_far[TN_SCORE_BLOCK];
    double is_up[TN_SCORE_BLOCK];
    double is_not_0[TN_SCORE_BLOCK]; /* the label */
    int32_t bin[TN_SCORE_BLOCK];     /* 0 .. TN_BINS - 1 */
    int32_t band[TN_SCORE_BLOCK];    /* 0 .. n_bands - 1 */
    int64_t cell[TN_SCORE_BLOCK];    /* rint(w * 2^16) */
} tn_score_block;

tn_scoring tn_scoring_of(const tn_metrics_opts *opts);

/* Fills a block. TN_E_DIVERGED when a logit is not finite. */
tn_status tn_score_block_fill(tn_score_block *b, const tn_scoring *s, const tn_scored *rows,
                              uint32_t from, tn_error *err) TN_MUST_USE;

tn_u128 tn_score_block_total(const tn_score_block *b, tn_sum k);

/* Returns one row's term. Beyond 2^63 it counts as 2^63, so that no 2^32 rows overflow a sum. */
static inline tn_u128 tn_score_term(const tn_score_block *b, tn_sum k, uint32_t row)
{
    if (!b->wide) {
        return (tn_u128)b->fixed[k][row];
    }
    double scaled = rint(b->x[k][row] * 0x1p32); /* halves to even, as everywhere here */
    return (tn_u128)(tn_i128)(scaled < 0x1p95 ? scaled : 0x1p95);
}

struct tn_metrics {
    tn_metrics_opts opts;
    tn_scoring scoring;
    uint64_t rows;            /* rows of weight > 0 */
    uint8_t flags;            /* TN_HAS_.. and TN_RESTORED */
    tn_u128 sum[TN_ALL_SUMS]; /* sums of rint(x * 2^32); from TN_SUMS on, band after band */
    uint32_t n_bins;
    tn_kept_rows *kept;    /* owned; NULL unless exact_auc or grouped */
    tn_score_block *block; /* owned; filled by the call of add that runs; NULL before the first */
    uint64_t cell[];       /* [2][n_bins]: negatives, positives */
};

/* Adds one row of a block that was scored elsewhere; for coarse metrics that keep no rows. */
void tn_metrics_add_scored(tn_metrics *m, const tn_score_block *b, uint32_t row);

double tn_ratio(double a, double b); /* a / b; NAN over 0 */

#define TN_METRIC(name, flags, help) double tn_metric_##name(const tn_metrics *m);
#include "metrics/metrics.def"
#undef TN_METRIC
