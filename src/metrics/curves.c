/* curves.c - one walk over the scores per table. */
#include "metrics/curves.h"

#include "base/math/fmath.h"
#include "metrics/metrics_state.h"

double tn_metrics_mean(const tn_metrics *m, tn_sum k)
{
    return tn_ratio(tn_metrics_sum(m, k), tn_metrics_sum(m, TN_SUM_W));
}

double tn_metrics_ne(const tn_metrics *m, double q)
{
    double y = tn_metrics_mean(m, TN_SUM_WY);
    double loss = tn_metrics_mean(m, TN_SUM_WL);
    if (!(q > 0 && q < 1)) {
        return (double)NAN;
    }
    return tn_ratio(loss, -y * tn_ln(q) - (1 - y) * tn_ln(1 - q));
}

tn_gap tn_metrics_gap(const tn_metrics *m)
{
    tn_gap gap = {(double)NAN, (double)NAN};
    tn_reliability bin[TN_ECE_BINS_MAX];
    uint32_t n = tn_reliability_of_width(m, bin);
    double sum = 0;
    double weight = 0;
    for (uint32_t i = 0; i < n; i++) {
        double off = fabs(bin[i].ctr - bin[i].pctr);
        sum += bin[i].weight * off;
        weight += bin[i].weight;
        gap.largest = i == 0 || off > gap.largest ? off : gap.largest;
    }
    gap.mean = tn_ratio(sum, weight);
    return gap;
}

uint32_t tn_reliability_of_width(const tn_metrics *m, tn_reliability *out)
{
    uint32_t n = 0;
    const uint32_t n_bands = (uint32_t)m->scoring.n_bands;
    for (uint32_t i = 0; i < n_bands && !m->restored; i++) {
        const tn_u128 *sum = m->band[i].sum;
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

/* The point whose threshold leaves neg and pos below it. */
static tn_curve_point point(const tn_walk *w, double threshold, uint64_t neg, uint64_t pos)
{
    double fp = (double)(w->total_neg - neg);
    double tp = (double)(w->total_pos - pos);
    return (tn_curve_point){.threshold = threshold,
                            .tpr = tp / (double)w->total_pos,
                            .fpr = fp / (double)w->total_neg,
                            .precision = tn_ratio(tp, tp + fp)};
}

/* The walk goes upwards: the points come out in reverse. */
static void reverse(tn_curve_point *at, uint32_t n)
{
    for (uint32_t i = 0; i < n / 2; i++) {
        tn_curve_point swap = at[i];
        at[i] = at[n - 1 - i];
        at[n - 1 - i] = swap;
    }
}

uint32_t tn_curve_of(const tn_metrics *m, uint32_t n, tn_curve_point *out)
{
    TN_ASSERT(n >= 2);
    tn_walk w = tn_walk_begin(m);
    if (w.total_neg == 0 || w.total_pos == 0) {
        return 0;
    }
    uint32_t used = 0;
    uint64_t neg = 0;
    uint64_t pos = 0;
    tn_cell c;
    while (tn_walk_next(&w, &c)) {
        tn_curve_point p = point(&w, tn_sigmoid(c.z), neg, pos);
        /* tpr + fpr falls from 2 to 0; the last place is for the end. */
        double due = 2 - 2 * (double)used / (n - 1);
        if (used + 1 < n && p.tpr + p.fpr <= due) {
            out[used++] = p;
        }
        neg += c.neg;
        pos += c.pos;
    }
    out[used++] = point(&w, 1, neg, pos);
    reverse(out, used);
    return used;
}
