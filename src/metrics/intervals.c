/* intervals.c - the variance of an AUC by placements (DeLong, DeLong and Clarke-Pearson 1988) and
 * by replicates with Poisson weights (Chamandy et al. 2012). A placement is the share of the other
 * class on the right side of a row, ties half; the AUC is its mean over either class.
 *
 * Placements come from one walk over the sorted scores, which is what the midranks of Sun and Xu
 * (2014) are: n log n. Of two models those of a row are subtracted, and the variance of the
 * differences is DeLong's L S L' for L = (1, -1), without any covariance.
 */
#include "metrics/intervals.h"

#include "base/core/alloc.h"
#include "base/math/fmath.h"
#include "base/math/rng.h"
#include "metrics/metrics_state.h"

#include <stdlib.h>

#define NORMAL_975 1.9599639845400545
#define TAIL 0.025

typedef struct counts {
    double neg, pos;
} counts;

/* Counts rows of one class or the other, unweighted, from row[i] on: of one score, or of all. *next
 * is the first row after them. */
static counts count(const tn_kept_row *row, size_t n, size_t from, bool all, size_t *next)
{
    counts c = {0};
    size_t i = from;
    for (; i < n && (all || row[i].key == row[from].key); i++) {
        bool click = (double)row[i].label > 0.5;
        c.pos += click ? 1 : 0;
        c.neg += click ? 0 : 1;
    }
    *next = i;
    return c;
}

/* Adds `sign` times the placement of every row at place[its number]; returns the counts of each
 * class. */
static counts add_placements(const tn_metrics *m, double sign, double *place)
{
    const tn_kept_row *row = tn_kept_sorted(m->kept, TN_KEPT_BY_SCORE);
    const size_t n = m->kept->n;
    size_t next = 0;
    const counts all = count(row, n, 0, true, &next);
    counts below = {0};
    for (size_t i = 0; i < n; i = next) {
        const counts here = count(row, n, i, false, &next);
        const double of_pos = (below.neg + here.neg / 2) / all.neg;
        const double of_neg = (all.pos - below.pos - here.pos / 2) / all.pos;
        for (size_t k = i; k < next; k++) {
            TN_ASSERT(row[k].row < n);
            place[row[k].row] += sign * ((double)row[k].label > 0.5 ? of_pos : of_neg);
        }
        below.neg += here.neg;
        below.pos += here.pos;
    }
    return all;
}

tn_interval tn_interval_normal(double value, double variance)
{
    const double half = NORMAL_975 * sqrt(variance);
    return (tn_interval){value, value - half, value + half, variance};
}

/* Returns value and variance of the AUC of `m`, or of the difference to `other`. */
static tn_interval delong(const tn_metrics *m, const tn_metrics *other)
{
    TN_ASSERT(m->opts.exact_auc && (other == NULL || other->opts.exact_auc));
    TN_ASSERT(other == NULL || other->kept->n == m->kept->n);
    const double nan = (double)NAN;
    tn_interval out = {nan, nan, nan, nan};
    double *place = tn_alloc_or_none(m->kept->n + 1, sizeof *place, "placements of rows");
    if (place == NULL) {
        return out;
    }
    const counts all = add_placements(m, 1, place);
    if (other != NULL) {
        (void)add_placements(other, -1, place);
    }
    const tn_kept_row *row = m->kept->row;
    double mean = 0; /* the same over either class */
    double squares[2] = {0};
    for (size_t i = 0; i < m->kept->n; i++) {
        mean += (double)row[i].label > 0.5 ? place[row[i].row] / all.pos : 0;
    }
    for (size_t i = 0; i < m->kept->n; i++) {
        const double off = place[row[i].row] - mean;
        squares[(double)row[i].label > 0.5] += off * off;
    }
    tn_free(place);
    if (all.pos > 0 && all.neg > 0) {
        out.value = mean;
    }
    if (all.pos > 1 && all.neg > 1) {
        out.variance =
            squares[1] / ((all.pos - 1) * all.pos) + squares[0] / ((all.neg - 1) * all.neg);
    }
    return out;
}

tn_interval tn_interval_delong(const tn_metrics *m)
{
    tn_interval out = delong(m, NULL);
    const double mean = out.value;
    if (mean > 0 && mean < 1 && !isnan(out.variance)) {
        double logit = tn_ln(mean / (1 - mean));
        double half = NORMAL_975 * sqrt(out.variance) / (mean * (1 - mean));
        out.low = tn_sigmoid(logit - half);
        out.high = tn_sigmoid(logit + half);
    }
    return out;
}

tn_interval tn_interval_delong_change(const tn_metrics *m, const tn_metrics *other, double *p)
{
    const tn_interval d = delong(m, other);
    *p = d.value == 0 && d.variance == 0 ? 1 : erfc(fabs(d.value) / sqrt(2 * d.variance));
    return tn_interval_normal(d.value, d.variance);
}

/* ---- bootstrap ---- */

uint32_t tn_poisson1(double u)
{
    static const double below[] = {
        /* P(X <= k) of Poisson(1), k = 0, 1, and so on */
        0x1.78b56362cef38p-2, 0x1.78b56362cef38p-1, 0x1.d6e2bc3b82b06p-1, 0x1.f6472f2e6944ap-1,
        0x1.fe204beb22e9cp-1, 0x1.ffb21e77480acp-1, 0x1.fff516e3f8e59p-1, 0x1.fffea81812296p-1,
        0x1.ffffda3e9551ep-1, 0x1.fffffc42dcc83p-1, 0x1.ffffffa9b0ba6p-1, 0x1.fffffff8db44cp-1,
        0x1.ffffffff7425ap-1, 0x1.fffffffff60f9p-1, 0x1.ffffffffff572p-1, 0x1.fffffffffff58p-1,
        0x1.ffffffffffff6p-1, 0x1.fffffffffffffp-1};
    /* No branch for 98 draws of 100, which a processor could not predict. */
    uint32_t k = (uint32_t)(u >= below[0]) + (uint32_t)(u >= below[1]) + (uint32_t)(u >= below[2]);
    while (k > 2 && k < sizeof below / sizeof below[0] && u >= below[k]) {
        k++;
    }
    return k;
}

static double replicate_auc(const tn_metrics *m, uint64_t seed, uint32_t replicate)
{
    const tn_kept_row *row = tn_kept_sorted(m->kept, TN_KEPT_BY_SCORE);
    const size_t n = m->kept->n;
    const uint64_t stream = tn_stream2(seed, TN_RNG_BOOTSTRAP, replicate);
    double below = 0; /* weight of the negatives before this score */
    double pos_all = 0;
    double sum = 0;
    for (size_t i = 0; i < n;) {
        const uint32_t key = row[i].key;
        double side[2] = {0};
        for (; i < n && row[i].key == key; i++) {
            uint32_t times = tn_poisson1(tn_unit(tn_draw(stream, row[i].row)));
            side[(double)row[i].label > 0.5] += times * (double)row[i].weight;
        }
        sum += side[1] * (below + side[0] / 2);
        below += side[0];
        pos_all += side[1];
    }
    return tn_ratio(sum, pos_all * below);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Interpolates between the two nearest of n sorted values. */
static double quantile(const double *value, uint32_t n, double q)
{
    double at = q * (n - 1);
    uint32_t i = (uint32_t)at;
    return i + 1 < n ? value[i] + (at - i) * (value[i + 1] - value[i]) : value[n - 1];
}

/* Sorts the replicates and returns their interval. */
static tn_interval interval_of(double estimate, double *value, uint32_t n)
{
    const double nan = (double)NAN;
    tn_interval out = {estimate, nan, nan, nan};
    double mean = 0;
    double squares = 0;
    if (n < 2) {
        return out;
    }
    qsort(value, n, sizeof *value, ascending);
    for (uint32_t i = 0; i < n; i++) {
        mean += value[i] / n;
    }
    for (uint32_t i = 0; i < n; i++) {
        squares += (value[i] - mean) * (value[i] - mean);
    }
    out.low = quantile(value, n, TAIL);
    out.high = quantile(value, n, 1 - TAIL);
    out.variance = squares / (n - 1);
    return out;
}

tn_interval tn_interval_bootstrap(const tn_metrics *m, const tn_metrics *other, uint64_t seed)
{
    TN_ASSERT(m->opts.exact_auc && (other == NULL || other->kept->n == m->kept->n));
    double value[TN_REPLICATES];
    uint32_t n = 0;
    for (uint32_t r = 0; r < TN_REPLICATES; r++) {
        value[n] = replicate_auc(m, seed, r) - (other != NULL ? replicate_auc(other, seed, r) : 0);
        n += isnan(value[n]) ? 0 : 1; /* a replicate of one class has no AUC */
    }
    const double less = other != NULL ? tn_metrics_get(other, "auc") : 0;
    return interval_of(tn_metrics_get(m, "auc") - less, value, n);
}

void tn_mean_draws_add(tn_mean_draws *d, uint64_t seed, double weight, double value)
{
    for (uint32_t r = 0; r < TN_REPLICATES; r++) {
        const uint64_t stream = tn_stream2(seed, TN_RNG_BOOTSTRAP, r);
        const double w = weight * tn_poisson1(tn_unit(tn_draw(stream, d->rows)));
        d->weight[r] += w;
        d->sum[r] += w * value;
    }
    d->all_weight += weight;
    d->all_sum += weight * value;
    d->rows++;
}

tn_interval tn_mean_draws_end(const tn_mean_draws *d)
{
    double value[TN_REPLICATES];
    uint32_t n = 0;
    for (uint32_t r = 0; r < TN_REPLICATES; r++) {
        value[n] = tn_ratio(d->sum[r], d->weight[r]);
        n += isnan(value[n]) ? 0 : 1;
    }
    return interval_of(tn_ratio(d->all_sum, d->all_weight), value, n);
}

tn_interval tn_interval_wilson(double share, double n)
{
    TN_ASSERT(share >= 0 && share <= 1 && n > 0);
    const double z2 = NORMAL_975 * NORMAL_975;
    const double middle = (share + z2 / (2 * n)) / (1 + z2 / n);
    const double variance = share * (1 - share) / n;
    const double half = NORMAL_975 / (1 + z2 / n) * sqrt(variance + z2 / (4 * n * n));
    return (tn_interval){share, fmax(middle - half, 0), fmin(middle + half, 1), variance};
}
