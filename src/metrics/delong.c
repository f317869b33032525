/* delong.c - the variance of an AUC by placements (DeLong, DeLong and Clarke-Pearson 1988). A
 * placement is the share of the other class on the right side of a row, ties half; the AUC is its
 * mean over either class. */
#include "base/core/alloc.h"
#include "base/math/fmath.h"
#include "metrics/bootstrap.h"
#include "metrics/metrics_state.h"

#define NORMAL_975 1.9599639845400545

typedef struct counts {
    double neg, pos;
} counts;

static bool is_click(const tn_kept_row *r)
{
    return (double)r->label > 0.5;
}

/* Rows of one class or the other, unweighted, in row[from] .. of one score; *next is behind them.
 */
static counts tie(const tn_kept_row *row, size_t n, size_t from, size_t *next)
{
    counts c = {0};
    size_t i = from;
    for (; i < n && row[i].key == row[from].key; i++) {
        c.pos += is_click(&row[i]) ? 1 : 0;
        c.neg += is_click(&row[i]) ? 0 : 1;
    }
    *next = i;
    return c;
}

static counts count_all(const tn_kept_row *row, size_t n)
{
    counts all = {0};
    for (size_t i = 0; i < n; i++) {
        all.pos += is_click(&row[i]) ? 1 : 0;
        all.neg += is_click(&row[i]) ? 0 : 1;
    }
    return all;
}

/* placement[number of a row] of every row; returns the AUC of the rows counted once each. */
static double place(const tn_kept_row *row, size_t n, counts all, double *placement)
{
    counts below = {0};
    double sum = 0;
    size_t next = 0;
    for (size_t i = 0; i < n; i = next) {
        counts here = tie(row, n, i, &next);
        double above = all.pos - below.pos - here.pos;
        double of_pos = (below.neg + here.neg / 2) / all.neg;
        double of_neg = (above + here.pos / 2) / all.pos;
        for (size_t k = i; k < next; k++) {
            placement[row[k].row] = is_click(&row[k]) ? of_pos : of_neg;
        }
        sum += here.pos * of_pos;
        below.neg += here.neg;
        below.pos += here.pos;
    }
    return sum / all.pos;
}

/* Sum over classes of sum (a - b - (mean a - mean b))^2 / ((n - 1) n), n the rows of the class;
 * b NULL: of a alone. `row` in any order. */
static double variance(const tn_kept_row *row, size_t n, const double *a, const double *b,
                       double mean)
{
    counts squares = {0};
    for (size_t i = 0; i < n; i++) {
        uint32_t at = row[i].row;
        double off = a[at] - (b != NULL ? b[at] : 0) - mean;
        squares.pos += is_click(&row[i]) ? off * off : 0;
        squares.neg += is_click(&row[i]) ? 0 : off * off;
    }
    counts all = count_all(row, n);
    return squares.pos / ((all.pos - 1) * all.pos) + squares.neg / ((all.neg - 1) * all.neg);
}

tn_interval tn_metrics_delong(const tn_metrics *m)
{
    TN_ASSERT(m->opts.exact_auc);
    const double nan = (double)NAN;
    tn_interval out = {nan, nan, nan, nan};
    const tn_kept_row *row = tn_kept_sorted(m->kept, TN_KEPT_BY_SCORE);
    const size_t n = tn_kept_count(m->kept);
    counts all = count_all(row, n);
    if (all.pos < 1 || all.neg < 1) {
        return out;
    }
    /* Twice over the scores instead of an array of placements: A, then the squares around it. */
    double mean = 0;
    double squares[2] = {0};
    for (int pass = 0; pass < 2; pass++) {
        counts below = {0};
        size_t next = 0;
        for (size_t i = 0; i < n; i = next) {
            counts here = tie(row, n, i, &next);
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

/* Both metrics saw the same rows. */
static void check_pairs(const tn_kept_row *a, const tn_kept_row *b, size_t n, double *label)
{
    for (size_t i = 0; i < n; i++) {
        label[a[i].row] = (double)a[i].label;
    }
    for (size_t i = 0; i < n; i++) {
        TN_ASSERT(label[b[i].row] == (double)b[i].label);
    }
}

tn_status tn_delong_difference(const tn_metrics *a, const tn_metrics *b, tn_interval *out,
                               tn_error *err)
{
    TN_ASSERT(a->opts.exact_auc && b->opts.exact_auc);
    const size_t n = tn_kept_count(a->kept);
    TN_ASSERT(n == tn_kept_count(b->kept));
    const tn_kept_row *row_a = tn_kept_sorted(a->kept, TN_KEPT_BY_SCORE);
    const tn_kept_row *row_b = tn_kept_sorted(b->kept, TN_KEPT_BY_SCORE);
    counts all = count_all(row_a, n);
    const double nan = (double)NAN;
    *out = (tn_interval){nan, nan, nan, nan};
    if (all.pos < 2 || all.neg < 2) {
        return TN_OK;
    }
    double *placement = tn_try_alloc(2 * n, sizeof *placement, "placements of rows", err);
    if (placement == NULL) {
        return TN_E_MEMORY;
    }
    check_pairs(row_a, row_b, n, placement);
    double auc_a = place(row_a, n, all, placement);
    double auc_b = place(row_b, n, all, placement + n);
    out->value = auc_a - auc_b;
    out->variance = variance(row_a, n, placement, placement + n, out->value);
    double half = NORMAL_975 * sqrt(out->variance);
    out->low = out->value - half;
    out->high = out->value + half;
    tn_free(placement);
    return TN_OK;
}
