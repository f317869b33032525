/* ranking.c - the walk over the scores, and the metrics of their order.
 *
 * The scores come from the histogram, or from rows that are kept and sorted.
 */
#include "metrics/ranking.h"

#include "base/core/alloc.h"
#include "base/math/fmath.h"
#include "base/math/key.h"
#include "metrics/metrics_state.h"

#include <stdlib.h>
#include <string.h>

#define BIN_LOW (-16.0)
#define BIN_WIDTH 0x1p-15

static bool is_click(float label)
{
    return (double)label > 0.5;
}

/* Walks over rows that ascend by score; for one group. */
static tn_walk walk_rows(const tn_kept_row *rows, size_t n)
{
    tn_walk w = {.row = rows, .n_rows = n, .unit = TN_KEPT_ONE};
    for (size_t i = 0; i < n; i++) {
        uint64_t *total = is_click(rows[i].label) ? &w.total_pos : &w.total_neg;
        *total += tn_kept_weight(rows[i].weight);
    }
    return w;
}

/* Begins a walk without its totals over the histogram, which cost a pass of their own. */
static tn_walk start(const tn_metrics *m)
{
    if (m->opts.exact_auc) {
        tn_walk w = walk_rows(tn_kept_sorted(m->kept, TN_KEPT_BY_SCORE), m->kept->n);
        w.shift = m->scoring.shift;
        return w;
    }
    return (tn_walk){.cell = m->cell, .n_bins = m->n_bins, .unit = TN_CELL_ONE};
}

tn_walk tn_walk_begin(const tn_metrics *m)
{
    tn_walk w = start(m);
    for (uint32_t b = 0; w.cell != NULL && b < m->n_bins; b++) {
        w.total_neg += m->cell[b];
        w.total_pos += m->cell[m->n_bins + b];
    }
    return w;
}

static bool next_bin(tn_walk *w, tn_cell *out)
{
    const uint64_t *neg = w->cell;
    const uint64_t *pos = w->cell + w->n_bins;
    while (w->at < w->n_bins && (neg[w->at] | pos[w->at]) == 0) {
        w->at++;
    }
    if (w->at == w->n_bins) {
        return false;
    }
    double width = BIN_WIDTH * TN_BINS / w->n_bins;
    *out = (tn_cell){
        .z = BIN_LOW + ((double)w->at + 0.5) * width, .neg = neg[w->at], .pos = pos[w->at]};
    w->at++;
    return true;
}

bool tn_walk_next(tn_walk *w, tn_cell *out)
{
    if (w->cell != NULL) {
        return next_bin(w, out);
    }
    if (w->at == w->n_rows) {
        return false;
    }
    const uint32_t key = w->row[w->at].key;
    tn_cell c = {.z = (double)tn_kept_logit(key) + w->shift};
    for (; w->at < w->n_rows && w->row[w->at].key == key; w->at++) {
        uint64_t *side = is_click(w->row[w->at].label) ? &c.pos : &c.neg;
        *side += tn_kept_weight(w->row[w->at].weight);
    }
    *out = c;
    return true;
}

/* Returns the AUC over the walk; *tied, if not NULL, the share of tied pairs, halved. NAN and NAN
 * with one class. */
static double walk_auc(tn_walk w, double *tied)
{
    tn_u128 twice = 0; /* at most 2 * 2^62 * 2^62 */
    tn_u128 equal = 0;
    uint64_t neg = 0; /* below, then all */
    uint64_t pos = 0;
    tn_cell c;
    while (tn_walk_next(&w, &c)) {
        twice += (tn_u128)c.pos * (2 * (tn_u128)neg + c.neg);
        equal += (tn_u128)c.pos * c.neg;
        neg += c.neg;
        pos += c.pos;
    }
    double pairs = 2 * ((double)pos * (double)neg);
    if (tied != NULL) {
        *tied = tn_ratio((double)equal, pairs);
    }
    return tn_ratio((double)twice, pairs);
}

double tn_metric_auc(const tn_metrics *m)
{
    return walk_auc(start(m), NULL);
}

/* Bounds how far the histogram's AUC can be from the exact one: e = sum over bins of P_b N_b / (2 P
 * N), since pairs within a bin count half. 0 when scores are sorted. */
double tn_metric_auc_error(const tn_metrics *m)
{
    double tied = 0;
    double value = walk_auc(start(m), &tied);
    return m->opts.exact_auc && !isnan(value) ? 0 : tied;
}

/* Computes average precision: sum over scores of (R_k - R_{k-1}) P_k, ties one step. */
double tn_metric_pr_auc(const tn_metrics *m)
{
    tn_walk w = tn_walk_begin(m);
    double neg = (double)w.total_neg; /* at this score and above */
    double pos = (double)w.total_pos;
    double sum = 0;
    tn_cell c;
    while (tn_walk_next(&w, &c)) {
        if (c.pos > 0) {
            sum += (double)c.pos * (pos / (pos + neg));
        }
        neg -= (double)c.neg;
        pos -= (double)c.pos;
    }
    return w.total_neg > 0 ? tn_ratio(sum, (double)w.total_pos) : (double)NAN;
}

/* Computes Kolmogorov-Smirnov: the largest |TPR - FPR|. */
double tn_metric_ks(const tn_metrics *m)
{
    tn_walk w = tn_walk_begin(m);
    if (w.total_neg == 0 || w.total_pos == 0) {
        return (double)NAN;
    }
    uint64_t neg = 0;
    uint64_t pos = 0;
    double largest = 0;
    tn_cell c;
    while (tn_walk_next(&w, &c)) {
        neg += c.neg;
        pos += c.pos;
        largest = fmax(largest,
                       fabs((double)pos / (double)w.total_pos - (double)neg / (double)w.total_neg));
    }
    return largest;
}

double tn_metric_accuracy(const tn_metrics *m)
{
    tn_walk w = tn_walk_begin(m);
    uint64_t right = 0;
    tn_cell c;
    while (tn_walk_next(&w, &c)) {
        right += c.z >= 0 ? c.pos : c.neg; /* 0 is the edge of a bin */
    }
    return tn_ratio((double)right, (double)w.total_neg + (double)w.total_pos);
}

/* ---- within groups ---- */

/* Adds one group of rows that ascend by score. */
static void add_group(const tn_kept_row *rows, size_t n, double sums[3])
{
    tn_walk w = walk_rows(rows, n);
    const double count = (double)w.total_pos + (double)w.total_neg;
    sums[0] += count;
    if (w.total_pos > 0 && w.total_neg > 0) {
        sums[1] += count;
        sums[2] += count * walk_auc(w, NULL);
    }
}

/* Computes sums of n_u over all groups, over those with both classes, and of n_u AUC_u over the
 * latter. */
static void sum_groups(const tn_metrics *m, double sums[3])
{
    const tn_kept_row *rows = tn_kept_sorted(m->kept, TN_KEPT_BY_GROUP);
    size_t from = 0;
    for (size_t i = 0; i < m->kept->n; i++) {
        if (i + 1 == m->kept->n || rows[i + 1].group != rows[i].group) {
            add_group(rows + from, i + 1 - from, sums);
            from = i + 1;
        }
    }
}

double tn_metric_gauc(const tn_metrics *m)
{
    double sums[3] = {0};
    sum_groups(m, sums);
    return tn_ratio(sums[2], sums[1]);
}

double tn_metric_gauc_skipped(const tn_metrics *m)
{
    double sums[3] = {0};
    sum_groups(m, sums);
    return tn_ratio(sums[0] - sums[1], sums[0]);
}

/* ---- pairs within groups ---- */

/* A counter for one group at a time: its different labels, ascending, and a tree of the weights of
 * rows by their labels (Fenwick 1994): place i, from 1, holds those of the last i & -i labels up to
 * i. */
typedef struct pair_counter {
    float *label;
    uint64_t *tree;
    size_t n;
} pair_counter;

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a;
    const float y = *(const float *)b;
    return (x > y) - (x < y);
}

static void count_labels(pair_counter *c, const tn_kept_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        c->label[i] = rows[i].label;
    }
    qsort(c->label, n, sizeof *c->label, by_value);
    c->n = 0;
    for (size_t i = 0; i < n; i++) {
        if (c->n == 0 || c->label[c->n - 1] < c->label[i]) {
            c->label[c->n++] = c->label[i];
        }
    }
    memset(c->tree, 0, (c->n + 1) * sizeof *c->tree);
}

/* Returns the number of labels below this one. */
static size_t place_of(const pair_counter *c, float label)
{
    size_t from = 0;
    size_t to = c->n;
    while (from < to) {
        const size_t middle = (from + to) / 2;
        if (c->label[middle] < label) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return from;
}

static void add_weight(pair_counter *c, size_t place, uint64_t weight)
{
    for (size_t i = place + 1; i <= c->n; i += i & -i) {
        c->tree[i] += weight;
    }
}

static uint64_t weight_below(const pair_counter *c, size_t place)
{
    uint64_t sum = 0;
    for (size_t i = place; i > 0; i -= i & -i) {
        sum += c->tree[i];
    }
    return sum;
}

/* Returns the weights of pairs of the rows added, or of rows[from..to) with those added. */
static tn_u128 pairs_with(const pair_counter *c, const tn_kept_row *rows, size_t from, size_t to)
{
    tn_u128 sum = 0;
    for (size_t i = from; i < to; i++) {
        const uint64_t below = weight_below(c, place_of(c, rows[i].label));
        sum += (tn_u128)tn_kept_weight(rows[i].weight) * below;
    }
    return sum;
}

/* Returns the share of pairs y_i > y_j whose scores have that order, equal scores half; NAN: there
 * is none. The rows ascend by score. */
static double ordered_pairs(pair_counter *c, const tn_kept_row *rows, size_t n)
{
    tn_u128 twice = 0;
    count_labels(c, rows, n);
    for (size_t from = 0, to = 0; from < n; from = to) {
        while (to < n && rows[to].key == rows[from].key) {
            to++;
        }
        twice += pairs_with(c, rows, from, to); /* rows below, and once more with their equals */
        for (size_t i = from; i < to; i++) {
            add_weight(c, place_of(c, rows[i].label), tn_kept_weight(rows[i].weight));
        }
        twice += pairs_with(c, rows, from, to);
    }
    return tn_ratio((double)twice, 2 * (double)pairs_with(c, rows, 0, n));
}

/* Weighs a group as in gauc, but for clicks, which there are none of. */
double tn_metric_pairwise_accuracy(const tn_metrics *m)
{
    const tn_kept_row *rows = tn_kept_sorted(m->kept, TN_KEPT_BY_GROUP);
    const size_t n = m->kept->n;
    pair_counter c = {.label = tn_alloc_or_none(n + 1, sizeof *c.label, "labels of groups"),
                      .tree = tn_alloc_or_none(n + 1, sizeof *c.tree, "labels of groups")};
    const bool has_room = c.label != NULL && c.tree != NULL;
    double weights = 0;
    double sum = 0;
    for (size_t from = 0, to = 0; has_room && from < n; from = to) {
        uint64_t weight = 0;
        for (; to < n && rows[to].group == rows[from].group; to++) {
            weight += tn_kept_weight(rows[to].weight);
        }
        const double share = rows[from].group == TN_NO_GROUP
                                 ? (double)NAN
                                 : ordered_pairs(&c, rows + from, to - from);
        weights += isnan(share) ? 0 : (double)weight;
        sum += isnan(share) ? 0 : (double)weight * share;
    }
    tn_free(c.label);
    tn_free(c.tree);
    return tn_ratio(sum, weights);
}

/* ---- curves ---- */

/* Returns the point whose threshold leaves neg and pos below it. */
static tn_curve_point point(const tn_walk *w, double threshold, uint64_t neg, uint64_t pos)
{
    double fp = (double)(w->total_neg - neg);
    double tp = (double)(w->total_pos - pos);
    return (tn_curve_point){.threshold = threshold,
                            .tpr = tp / (double)w->total_pos,
                            .fpr = fp / (double)w->total_neg,
                            .precision = tn_ratio(tp, tp + fp)};
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
            out[n - ++used] = p; /* the walk goes upwards */
        }
        neg += c.neg;
        pos += c.pos;
    }
    out[n - ++used] = point(&w, 1, neg, pos);
    memmove(out, out + n - used, used * sizeof *out);
    return used;
}
