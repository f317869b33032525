/* scoring.c - one vectorised loop from logits to probabilities, losses and fixed-point terms.
 *
 * exp and log1p are those of base/math/fmath.c written without branches and calls: a step may spend
 * one per cent on its metrics, and for logistic regression that is a handful of nanoseconds per
 * row. + - * / only and no contraction, so all clones of the loop give the same bits.
 */
#include "metrics/metrics_state.h"

#include "base/core/bytes.h"
#include "base/math/fmath.h"

#include <float.h>

#define LN2 0.69314718055994530942
#define LN2_HIGH 6.93147180369123816490e-01 /* 33 bits: k * LN2_HIGH is exact */
#define LN2_LOW 1.90821492927058770002e-10
#define LOG2_E 1.44269504088896338700e+00
#define ROUNDER 0x1.8p52 /* adding it leaves a whole number in the low bits, halves to even */
#define ROUNDER_BITS INT64_C(0x4338000000000000)
#define FIXED_MAX 0x1p18 /* times 2^32, times a block's rows: fits int64_t with room to spare */
#define WEIGHT_MAX 0x1p20
#define BIN_LOW 16.0
#define BINS_PER_UNIT 0x1p15
#define ERROR_MAX 0x1p63 /* times 2^32, times 2^32 rows: fits 128 bits with a sign */
#define A_MAX 700.0      /* e^-700 is as good as 0 at 2^-32 */

enum { EXPONENT_BIAS = 1023, MANTISSA_BITS = 52 };

/* Returns rint for |x| < 2^51; of a larger x, any number: its block is wide and does not use it. */
static inline int64_t rounded(double x)
{
    double sum = x + ROUNDER;
    return (int64_t)tn_load_u64(&sum) - ROUNDER_BITS;
}

/* Returns e^-a, 0 <= a <= A_MAX. */
static inline double exp_minus(double a)
{
    double t = a * -LOG2_E + ROUNDER;
    double k = t - ROUNDER;
    double high = -a - k * LN2_HIGH;
    double low = k * LN2_LOW;
    double r = high - low;
    double q = r * r;
    double p = 6.61375632143793436117e-05 +
               q * (-1.65339022054652515390e-06 + q * 4.13813679705723846039e-08);
    p = q * (1.66666666666666019037e-01 + q * (-2.77777777770155933842e-03 + q * p));
    double c = r - p;
    double y = 1 - ((low - (r * c) / (2 - c)) - high);
    uint64_t power = (tn_load_u64(&t) + EXPONENT_BIAS) << MANTISSA_BITS;
    return y * tn_load_f64(&power);
}

/* Returns ln(1 + e), 0 <= e <= 1: the series of artanh, around 1 (far 0, e small) or around 2 (far
 * 1), without rounding 1 + e. */
static inline double log1p_unit(double e, double far)
{
    double s = (e - far) / (2 + far + e);
    double q = s * s;
    double p = 1.0 / 17 + q * (1.0 / 19 + q * (1.0 / 21));
    p = 1.0 / 11 + q * (1.0 / 13 + q * (1.0 / 15 + q * p));
    p = 1.0 / 5 + q * (1.0 / 7 + q * (1.0 / 9 + q * p));
    p = 1 + q * (1.0 / 3 + q * p);
    return 2 * s * p + far * LN2;
}

/* out = clamp(x, 0, top). Choices have loops of their own: gcc makes branches of a choice that
 * arithmetic follows, and does not vectorise them. */
static inline void clamp(double *restrict out, const double *restrict x, uint32_t n, double top)
{
    for (uint32_t i = 0; i < n; i++) {
        double low = x[i] > 0 ? x[i] : 0;
        out[i] = low < top ? low : top;
    }
}

/* Computes e^-|z|, and as 0 or 1 which cases of the formulas each row is in. */
static inline void prepare(tn_score_block *restrict b)
{
    const uint32_t n = b->n;
    for (uint32_t i = 0; i < n; i++) {
        b->work[i] = fabs(b->z[i]);
    }
    clamp(b->e, b->work, n, A_MAX);
    for (uint32_t i = 0; i < n; i++) {
        b->e[i] = exp_minus(b->e[i]);
    }
    for (uint32_t i = 0; i < n; i++) {
        b->is_far[i] = b->e[i] > 0.41421356237309504880 ? 1 : 0;
        b->is_up[i] = b->z[i] >= 0 ? 1 : 0;
        b->is_not_0[i] = b->y[i] > 0 ? 1 : 0;
    }
    clamp(b->work, b->z, n, (double)INFINITY);
}

static TN_HOT void score(tn_score_block *restrict b, double n_bands)
{
    const uint32_t n = b->n;
    prepare(b);
    for (uint32_t i = 0; i < n; i++) {
        double y = b->y[i];
        double w = b->w[i];
        double e = b->e[i];
        double p = (b->is_up[i] + (1 - b->is_up[i]) * e) / (1 + e);
        double gap = fabs(p - y);
        double not_0 = b->is_not_0[i];
        b->x[TN_SUM_W][i] = w;
        b->x[TN_SUM_WY][i] = w * y;
        b->x[TN_SUM_WP][i] = w * p;
        b->x[TN_SUM_WL][i] = w * (b->work[i] - b->z[i] * y + log1p_unit(e, b->is_far[i]));
        b->x[TN_SUM_SE][i] = w * (gap * gap);
        b->x[TN_SUM_AE][i] = w * gap;
        b->x[TN_SUM_APE][i] = w * not_0 * gap; /* over y: see relate */
        b->x[TN_SUM_WNZ][i] = w * not_0;
        b->work[i] = p * n_bands;
    }
    clamp(b->e, b->work, n, n_bands - 1);
    for (uint32_t i = 0; i < n; i++) {
        b->band[i] = (int32_t)b->e[i];
    }
}

/* Scores rows of other targets: of numbers z is the prediction; else no row alone is right or
 * wrong. */
static int64_t score_as_is(tn_score_block *b, bool is_number)
{
    int64_t over = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        const double w = b->w[i];
        const double gap = is_number ? fabs(b->z[i] - b->y[i]) : 0;
        const double not_0 = b->y[i] != 0 ? 1 : 0;
        b->x[TN_SUM_W][i] = w;
        b->x[TN_SUM_WY][i] = w * b->y[i];
        b->x[TN_SUM_WP][i] = is_number ? w * b->z[i] : 0;
        b->x[TN_SUM_WL][i] = 0;
        b->x[TN_SUM_SE][i] = w * (gap * gap);
        b->x[TN_SUM_AE][i] = w * gap;
        b->x[TN_SUM_APE][i] = w * not_0 * gap;
        b->x[TN_SUM_WNZ][i] = w * not_0;
        b->band[i] = 0;
        over |= b->x[TN_SUM_WY][i] <= -FIXED_MAX || b->x[TN_SUM_WP][i] <= -FIXED_MAX;
    }
    return over;
}

/* Divides the errors by their labels, which only those need that are neither 0 nor 1. */
static void relate(tn_score_block *b)
{
    for (uint32_t i = 0; i < b->n; i++) {
        b->x[TN_SUM_APE][i] /= b->y[i] != 0 ? fabs(b->y[i]) : 1;
    }
}

/* Sets bin = clamp(floor((z + 16) * 2^15)), cell = rint(w * 2^16). */
static TN_HOT void place(tn_score_block *restrict b)
{
    const uint32_t n = b->n;
    for (uint32_t i = 0; i < n; i++) {
        b->work[i] = (b->z[i] + BIN_LOW) * BINS_PER_UNIT;
    }
    clamp(b->e, b->work, n, TN_BINS - 1);
    for (uint32_t i = 0; i < n; i++) {
        b->bin[i] = (int32_t)b->e[i];
        b->cell[i] = rounded(b->w[i] * TN_CELL_ONE);
    }
}

/* Fills fixed[][]; returns 1 when a term is too large for it. */
static TN_HOT int64_t to_fixed(tn_score_block *restrict b)
{
    const uint32_t n = b->n;
    int64_t over = 0;
    for (uint32_t k = 0; k < TN_SUMS; k++) {
        const double *restrict x = b->x[k];
        int64_t *restrict fixed = b->fixed[k];
        for (uint32_t i = 0; i < n; i++) {
            over |= x[i] < FIXED_MAX ? 0 : 1;
            fixed[i] = rounded(x[i] * 0x1p32);
        }
    }
    return over;
}

/* Loads the rows as doubles. Returns how many logits are not finite. */
static inline int64_t load_as(tn_score_block *restrict b, const tn_scored *rows, uint32_t from,
                              double shift, bool classes)
{
    const uint32_t n = b->n;
    const float *restrict z = rows->logit + from;
    const float *restrict y = rows->label + from;
    int64_t bad = 0;
    int64_t soft = 0;
    int64_t outside = 0;
    for (uint32_t i = 0; i < n; i++) {
        bad += fabsf(z[i]) <= FLT_MAX ? 0 : 1;
        b->z[i] = (double)z[i] + shift;
        double label = (double)y[i];
        soft |= classes ? (label > 0) & (label < 1) : (label != 0) & (label != 1);
        outside |= classes ? !((label >= 0) & (label <= 1)) : !(fabs(label) <= TN_LABEL_MAX);
        b->y[i] = label;
    }
    TN_ASSERT(outside == 0);
    b->soft = soft != 0;
    return bad;
}

static TN_HOT int64_t load(tn_score_block *restrict b, const tn_scored *rows, uint32_t from,
                           double shift)
{
    return load_as(b, rows, from, shift, true);
}

/* Loads the weights as doubles. */
static TN_HOT void weigh(tn_score_block *restrict b, const float *restrict w)
{
    const uint32_t n = b->n;
    int64_t other = 0;
    int64_t outside = 0;
    for (uint32_t i = 0; i < n; i++) {
        double weight = w != NULL ? (double)w[i] : 1;
        other |= weight != 1;
        outside |= !((weight >= 0) & (weight <= WEIGHT_MAX));
        b->w[i] = weight;
    }
    TN_ASSERT(outside == 0);
    b->weighted = other != 0;
}

static void clip_loss(tn_score_block *b, double limit)
{
    for (uint32_t i = 0; i < b->n; i++) {
        double z = fmin(fmax(b->z[i], -limit), limit);
        double loss = tn_log1p_exp(z) - z * b->y[i];
        b->x[TN_SUM_WL][i] = b->w[i] * (loss > 0 ? loss : 0);
    }
}

/* Refuses a squared error that its sum has no room for: of a prediction that is far off, or of a
 * label and weight that are too large whatever is predicted. */
static tn_status check_errors(const tn_score_block *b, uint32_t from, tn_error *err)
{
    for (uint32_t i = 0; i < b->n; i++) {
        if (!(b->x[TN_SUM_SE][i] < ERROR_MAX)) {
            const double own = 4 * b->w[i] * b->y[i] * b->y[i];
            return tn_fail(err, own < ERROR_MAX ? TN_E_DIVERGED : TN_E_LIMIT,
                           "row %u: prediction %g, label %g, weight %g: too far apart for metrics, "
                           "which hold less than %g of weight (prediction - label)^2",
                           from + i, b->z[i], b->y[i], b->w[i], ERROR_MAX);
        }
    }
    return TN_OK;
}

tn_status tn_score_block_fill(tn_score_block *b, const tn_scoring *s, const tn_scored *rows,
                              uint32_t from, tn_error *err)
{
    TN_ASSERT(from < rows->n);
    b->n = rows->n - from < TN_SCORE_BLOCK ? rows->n - from : TN_SCORE_BLOCK;
    const bool classes = s->target <= TN_TARGET_SIDE;
    if ((classes ? load(b, rows, from, s->shift) : load_as(b, rows, from, s->shift, false)) > 0) {
        uint32_t i = from;
        while (isfinite(rows->logit[i])) {
            i++;
        }
        return tn_fail(err, TN_E_DIVERGED, "logit of row %u is %s", i,
                       isnan(rows->logit[i]) ? "nan" : "infinite");
    }
    weigh(b, rows->weight != NULL ? rows->weight + from : NULL);
    int64_t over = 0;
    if (s->target == TN_TARGET_CLICK) {
        score(b, s->n_bands);
    } else {
        over = score_as_is(b, s->target == TN_TARGET_NUMBER);
    }
    if (b->soft) {
        relate(b);
    }
    place(b);
    if (s->logit_clip < (double)INFINITY) {
        clip_loss(b, s->logit_clip);
    }
    b->wide = (to_fixed(b) | over) != 0;
    return b->wide && s->target == TN_TARGET_NUMBER ? check_errors(b, from, err) : TN_OK;
}

tn_u128 tn_score_block_total(const tn_score_block *b, tn_sum k)
{
    tn_u128 total = 0;
    if (b->wide) {
        for (uint32_t i = 0; i < b->n; i++) {
            total += tn_score_term(b, k, i);
        }
        return total;
    }
    int64_t sum = 0; /* below 128 * 2^50 */
    for (uint32_t i = 0; i < b->n; i++) {
        sum += b->fixed[k][i];
    }
    return (tn_u128)sum;
}

tn_scoring tn_scoring_of(const tn_metrics_opts *opts)
{
    double q = opts->sampling > 0 ? opts->sampling : 1;
    double c = opts->clip;
    return (tn_scoring){
        .target = opts->target,
        .shift = q < 1 ? tn_ln(q) : 0,
        .logit_clip = c > 0 ? tn_ln((1 - c) / c) : (double)INFINITY,
        .n_bands = opts->ece_bins > 0 ? opts->ece_bins : TN_ECE_BINS,
    };
}
