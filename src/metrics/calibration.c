/* calibration.c - one walk over the scores per table, and the metrics of calibration.
 *
 * The bucket error compares scores with < only, so predictions of exactly 0 take part (Paddle
 * leaves them out by |x| > 1e-6).
 */
#include "metrics/calibration.h"

#include "base/math/fmath.h"
#include "metrics/metrics_state.h"
#include "metrics/ranking.h"

#define SPAN_MAX .01
#define DEVIATION_MAX .05

uint32_t tn_reliability_of_width(const tn_metrics *m, tn_reliability *out)
{
    uint32_t n = 0;
    const uint32_t n_bands = (uint32_t)m->scoring.n_bands;
    for (uint32_t i = 0; i < n_bands && (m->flags & TN_RESTORED) == 0; i++) {
        const tn_u128 *sum = m->sum + TN_SUMS + (size_t)TN_BAND_SUMS * i;
        if (sum[TN_SUM_W] == 0) {
            continue;
        }
        double weight = (double)sum[TN_SUM_W];
        out[n++] = (tn_reliability){
            .low = i / m->scoring.n_bands,
            .high = (i + 1) / m->scoring.n_bands,
            .weight = weight * 0x1p-32,
            .ctr = (double)sum[TN_SUM_WY] / weight,
            .pctr = (double)sum[TN_SUM_WP] / weight,
            .copc = tn_ratio((double)sum[TN_SUM_WY], (double)sum[TN_SUM_WP]),
        };
    }
    return n;
}

/* Turns sums into means. */
static void finish(tn_reliability *bin)
{
    bin->copc = tn_ratio(bin->ctr, bin->pctr);
    bin->ctr /= bin->weight;
    bin->pctr /= bin->weight;
}

uint32_t tn_reliability_of_mass(const tn_metrics *m, uint32_t n, tn_reliability *out)
{
    TN_ASSERT(n > 0);
    tn_walk w = tn_walk_begin(m);
    const double total = ((double)w.total_neg + (double)w.total_pos) / w.unit;
    double below = 0; /* weight of the scores before */
    uint32_t used = 0;
    uint32_t last = 0;
    tn_cell c;
    while (tn_walk_next(&w, &c)) {
        double weight = ((double)c.neg + (double)c.pos) / w.unit;
        if (weight == 0) {
            continue;
        }
        /* The bin that the middle of this score's weight falls into. */
        double at = (below + weight / 2) / total * n;
        uint32_t bin = at < n ? (uint32_t)at : n - 1;
        double p = tn_sigmoid(c.z);
        if (used == 0 || bin != last) {
            out[used++] = (tn_reliability){.low = p};
            last = bin;
        }
        tn_reliability *b = &out[used - 1];
        b->high = p;
        b->weight += weight;
        b->ctr += (double)c.pos / w.unit;
        b->pctr += p * weight;
        below += weight;
    }
    for (uint32_t i = 0; i < used; i++) {
        finish(&out[i]);
    }
    return used;
}

/* Gaps |mean label - mean p| of bins: their weighted mean and the largest. */
typedef struct gap {
    double mean, largest;
} gap;

static gap gap_of(const tn_reliability *bin, uint32_t n)
{
    gap g = {(double)NAN, (double)NAN};
    double sum = 0;
    double weight = 0;
    for (uint32_t i = 0; i < n; i++) {
        double off = fabs(bin[i].ctr - bin[i].pctr);
        sum += bin[i].weight * off;
        weight += bin[i].weight;
        g.largest = i == 0 || off > g.largest ? off : g.largest;
    }
    g.mean = tn_ratio(sum, weight);
    return g;
}

static gap gap_of_width(const tn_metrics *m)
{
    tn_reliability bin[TN_ECE_BINS_MAX] = {{0}};
    return gap_of(bin, tn_reliability_of_width(m, bin));
}

double tn_metric_ece(const tn_metrics *m)
{
    return gap_of_width(m).mean;
}

double tn_metric_ece_max(const tn_metrics *m)
{
    return gap_of_width(m).largest;
}

double tn_metric_ece_mass(const tn_metrics *m)
{
    tn_reliability bin[TN_ECE_BINS_MAX] = {{0}};
    uint32_t n = m->opts.ece_bins > 0 ? m->opts.ece_bins : TN_ECE_BINS;
    return gap_of(bin, tn_reliability_of_mass(m, n, bin)).mean;
}

/* ---- bucket error ---- */

void tn_buckets_add(tn_buckets *b, double c, double shows, double clicks)
{
    TN_ASSERT(shows > 0 && clicks >= 0 && clicks <= shows);
    b->shows += shows;
    if (!b->is_open || fabs(c - b->c_start) > SPAN_MAX) {
        b->is_open = true;
        b->c_start = c;
        b->n = 0;
        b->sum_c = 0;
        b->clicks = 0;
    }
    b->n += shows;
    b->sum_c += c * shows;
    b->clicks += clicks;
    double a = b->sum_c / b->n;
    if (a > 0 && sqrt((1 - a) / (a * b->n)) < DEVIATION_MAX) {
        b->error += fabs(b->clicks / b->n / a - 1) * b->n;
        b->judged += b->n;
        b->is_open = false;
    }
}

static tn_buckets buckets_of(const tn_metrics *m)
{
    tn_buckets b = {0};
    tn_walk w = tn_walk_begin(m);
    tn_cell c;
    while (tn_walk_next(&w, &c)) {
        if ((c.neg | c.pos) > 0) {
            tn_buckets_add(&b, tn_sigmoid(c.z), ((double)c.neg + (double)c.pos) / w.unit,
                           (double)c.pos / w.unit);
        }
    }
    return b;
}

double tn_metric_bucket_error(const tn_metrics *m)
{
    tn_buckets b = buckets_of(m);
    return tn_ratio(b.error, b.judged);
}

double tn_metric_bucket_coverage(const tn_metrics *m)
{
    tn_buckets b = buckets_of(m);
    return tn_ratio(b.judged, b.shows);
}
