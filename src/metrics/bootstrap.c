/* bootstrap.c - replicates by Poisson weights. */
#include "metrics/bootstrap.h"

#include "base/core/alloc.h"
#include "base/math/rng.h"
#include "metrics/metrics_state.h"

#include <stdlib.h>

#define TAIL 0.025

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

static double replicate_auc(const tn_metrics *m, const tn_bootstrap_opts *opts, uint32_t replicate)
{
    const tn_kept_row *row = tn_kept_sorted(m->kept, TN_KEPT_BY_SCORE);
    const size_t n = tn_kept_count(m->kept);
    const uint64_t stream = tn_stream2(opts->seed, TN_RNG_BOOTSTRAP, replicate);
    double below = 0; /* weight of the negatives before this score */
    double pos_all = 0;
    double sum = 0;
    for (size_t i = 0; i < n;) {
        const uint32_t key = row[i].key;
        double side[2] = {0};
        for (; i < n && row[i].key == key; i++) {
            uint64_t at = opts->by_group ? row[i].group : row[i].row;
            uint32_t times = tn_poisson1(tn_unit(tn_draw(stream, at)));
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

/* Quantiles and variance of what the replicates gave; sorts them. */
static void summarize(double *value, uint32_t n, tn_interval *out)
{
    out->low = out->high = out->variance = (double)NAN;
    if (n < 2) {
        return;
    }
    qsort(value, n, sizeof *value, ascending);
    double mean = 0;
    for (uint32_t i = 0; i < n; i++) {
        mean += value[i] / n;
    }
    double squares = 0;
    for (uint32_t i = 0; i < n; i++) {
        squares += (value[i] - mean) * (value[i] - mean);
    }
    out->low = quantile(value, n, TAIL);
    out->high = quantile(value, n, 1 - TAIL);
    out->variance = squares / (n - 1);
}

/* b NULL: the AUC of a alone. */
static tn_status run(const tn_metrics *a, const tn_metrics *b, const tn_bootstrap_opts *opts,
                     tn_interval *out, tn_error *err)
{
    uint32_t replicates = opts->replicates > 0 ? opts->replicates : TN_REPLICATES;
    TN_ASSERT(replicates <= TN_REPLICATES_MAX);
    TN_ASSERT(a->opts.exact_auc && (!opts->by_group || a->opts.grouped));
    double *value = tn_try_alloc(replicates, sizeof *value, "bootstrap replicates", err);
    if (value == NULL) {
        return TN_E_MEMORY;
    }
    uint32_t n = 0;
    for (uint32_t r = 0; r < replicates; r++) {
        value[n] = replicate_auc(a, opts, r) - (b != NULL ? replicate_auc(b, opts, r) : 0);
        n += isnan(value[n]) ? 0 : 1; /* a replicate of one class has no AUC */
    }
    tn_interval interval = {0};
    summarize(value, n, &interval);
    interval.value = tn_metrics_get(a, "auc") - (b != NULL ? tn_metrics_get(b, "auc") : 0);
    tn_free(value);
    *out = interval;
    return TN_OK;
}

tn_status tn_bootstrap_auc(const tn_metrics *m, const tn_bootstrap_opts *opts, tn_interval *out,
                           tn_error *err)
{
    return run(m, NULL, opts, out, err);
}

tn_status tn_bootstrap_difference(const tn_metrics *a, const tn_metrics *b,
                                  const tn_bootstrap_opts *opts, tn_interval *out, tn_error *err)
{
    TN_ASSERT(b->opts.exact_auc && (!opts->by_group || b->opts.grouped));
    TN_ASSERT(tn_kept_count(a->kept) == tn_kept_count(b->kept));
    return run(a, b, opts, out, err);
}
