/* score_order.c - distinct scores in ascending order, from the histogram or from sorted rows. */
#include "metrics/metrics_state.h"

#define BIN_LOW (-16.0)
#define BIN_WIDTH 0x1p-15

static bool is_click(float label)
{
    return (double)label > 0.5;
}

/* Over rows that ascend by score; for one group. */
static tn_walk walk_rows(const tn_kept_row *rows, size_t n)
{
    tn_walk w = {.row = rows, .n_rows = n, .unit = TN_KEPT_ONE};
    for (size_t i = 0; i < n; i++) {
        uint64_t *total = is_click(rows[i].label) ? &w.total_pos : &w.total_neg;
        *total += tn_kept_weight(rows[i].weight);
    }
    return w;
}

/* A walk that does not know its totals: they cost a pass of their own over the histogram. */
static tn_walk start(const tn_metrics *m)
{
    if (m->opts.exact_auc) {
        tn_walk w = walk_rows(tn_kept_sorted(m->kept, TN_KEPT_BY_SCORE), tn_kept_count(m->kept));
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

/* AUC of what the walk passes; *tied, if not NULL, the share of tied pairs, halved. NAN and NAN
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

double tn_metrics_auc(const tn_metrics *m, double *tied)
{
    return walk_auc(start(m), tied);
}

/* One group of rows that ascend by score. */
static void add_group(const tn_metrics *m, const tn_kept_row *rows, size_t n, double sums[3])
{
    tn_walk w = walk_rows(rows, n);
    double count = 1;
    if (m->opts.gauc_by == TN_GAUC_CLICKS) {
        count = (double)w.total_pos;
    } else if (m->opts.gauc_by == TN_GAUC_WEIGHT) {
        count = (double)w.total_pos + (double)w.total_neg;
    }
    sums[0] += count;
    if (w.total_pos > 0 && w.total_neg > 0) {
        sums[1] += count;
        sums[2] += count * walk_auc(w, NULL);
    }
}

tn_gauc tn_metrics_gauc(const tn_metrics *m)
{
    const tn_kept_row *rows = tn_kept_sorted(m->kept, TN_KEPT_BY_GROUP);
    const size_t n = tn_kept_count(m->kept);
    double sums[3] = {0}; /* of n_u: all, with both classes, the latter times AUC */
    size_t from = 0;
    for (size_t i = 0; i < n; i++) {
        if (i + 1 == n || rows[i + 1].group != rows[i].group) {
            add_group(m, rows + from, i + 1 - from, sums);
            from = i + 1;
        }
    }
    return (tn_gauc){.value = tn_ratio(sums[2], sums[1]),
                     .skipped = tn_ratio(sums[0] - sums[1], sums[0])};
}
