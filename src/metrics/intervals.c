/* intervals.c - the variance of an AUC by placements (DeLong, DeLong and Clarke-Pearson 1988) and
 * by replicates with Poisson weights. A placement is the share of the other class on the right side
 * of a row, ties half; the AUC is its mean over either class. */
#include "metrics/intervals.h"

#include "base/math/fmath.h"
#include "base/math/rng.h"
#include "metrics/metrics_state.h"

#include <stdlib.h>

#define NORMAL_975 1.9599639845400545
#define TAIL 0.025

enum { REPLICATES = 200 };

typedef struct counts {
    double neg, pos;
} counts;

/* Rows of one class or the other, unweighted, from row[i] on: of one score, or of all. *next is
 * behind them. */
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

tn_interval tn_interval_delong(const tn_metrics *m)
{
    TN_ASSERT(m->opts.exact_auc);
    const double nan = (double)NAN;
    tn_interval out = {nan, nan, nan, nan};
    const tn_kept_row *row = tn_kept_sorted(m->kept, TN_KEPT_BY_SCORE);
    const size_t n = m->kept->n;
    size_t next = 0;
    counts all = count(row, n, 0, true, &next);
    if (all.pos < 1 || all.neg < 1) {
        return out;
    }
    /* Twice over the scores instead of an array of placements: A, then the squares around it. */
    double mean = 0;
    double squares[2] = {0};
    for (int pass = 0; pass < 2; pass++) {
        counts below = {0};
        for (size_t i = 0; i < n; i = next) {
            counts here = count(row, n, i, false, &next);
            double of_pos = (below.neg + here.neg / 2) / all.neg;
            double of_neg = (all.pos - below.pos - here.pos / 2) / all.pos;
            mean += pass == 0 ? here.pos * of_pos / all.pos : 0;
            squares[1] += pass == 0 ? 0 : here.pos * (of_pos - mean) * (of_pos - mean);
            squares[0] += pass == 0 ? 0 : here.neg * (of_neg - mean) * (of_neg - mean);
            below.neg += here.neg;
            below.pos += here.pos;
        }
    }
    out.value = mean;
    out.variance = all.pos > 1 && all.neg > 1 ? squares[1] / ((all.pos - 1) * all.pos) +
                                                    squares[0] / ((all.neg - 1) * all.neg)
                                              : nan;
    if (mean > 0 && mean < 1 && !isnan(out.variance)) {
        double logit = tn_ln(mean / (1 - mean));
        double half = NORMAL_975 * sqrt(out.variance) / (mean * (1 - mean));
        out.low = tn_sigmoid(logit - half);
        out.high = tn_sigmoid(logit + half);
    }
    return out;
}

/* ---- bootstrap ---- */

uint32_t tn_poisson1(double u)
{
    static const double below[] = {
        /* P(X <= k) of Poisson(1), k = 0 .. */
        0x1.78b56362cef38p-2, 0x1.78b56362cef38p-1, 0x1.d6e2bc3b82b06p-1, 0x1.f6472f2e6944ap-1,
        0x1.fe204beb22e9cp-1, 0x1.ffb21e77480acp-1, 0x1.fff516e3f8e59p-1, 0x1.fffea81812296p-1,
        0x1.ffffda3e9551ep-1, 0x1.fffffc42dcc83p-1, 0x1.ffffffa9b0ba6p-1, 0x1.fffffff8db44cp-1,
        0x1.ffffffff7425ap-1, 0x1.fffffffff60f9p-1, 0x1.ffffffffff572p-1, 0x1.fffffffffff58p-1,
        0x1.ffffffffffff6p-1, 0x1.fffffffffffffp-1};
    uint32_t k = 0;
    while (k < sizeof below / sizeof below[0] && u >= below[k]) {
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

/* Linear between the two nearest of n sorted values. */
static double quantile(const double *value, uint32_t n, double q)
{
    double at = q * (n - 1);
    uint32_t i = (uint32_t)at;
    return i + 1 < n ? value[i] + (at - i) * (value[i + 1] - value[i]) : value[n - 1];
}

tn_interval tn_interval_bootstrap(const tn_metrics *m, uint64_t seed)
{
    TN_ASSERT(m->opts.exact_auc);
    const double nan = (double)NAN;
    tn_interval out = {tn_metrics_get(m, "auc"), nan, nan, nan};
    double value[REPLICATES];
    uint32_t n = 0;
    double mean = 0;
    double squares = 0;
    for (uint32_t r = 0; r < REPLICATES; r++) {
        value[n] = replicate_auc(m, seed, r);
        n += isnan(value[n]) ? 0 : 1; /* a replicate of one class has no AUC */
    }
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
