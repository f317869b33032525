/* top_metrics.c - metrics of the first eval.top_k rows of each group, as recommenders state them.
 *
 * A group is a list that the scores order. Rows of equal scores could have any order: each metric
 * is its mean over all of them (McSherry and Najork, Computing Information Retrieval Performance
 * Measures Efficiently in the Presence of Tied Scores, 2008). Groups count alike. Those without a
 * click say nothing, nor do rows without a group.
 */
#include "base/core/alloc.h"
#include "io/rows/rows.h"
#include "metrics/metrics_state.h"

#include <stdlib.h>

enum { GRADE_MAX = 31 }; /* 2^31 - 1 is the largest gain of a label */

/* The rows of a group, by ascending score, and how far they have been walked down. */
typedef struct top_list {
    const tn_kept_row *row;
    size_t n, k;
    bool graded;   /* labels are grades: above 0 is a click, and gains 2^label - 1 */
    double *ideal; /* room for n gains */
    double clicks; /* all of the group */
    size_t before; /* rows above the present ones */
    size_t equal;  /* the present ones, of one score */
    double some;   /* clicks of them */
    double gain;   /* sum over all of them */
    size_t taken;  /* present ones within the first k */
} top_list;

typedef double top_metric(top_list *list);

static bool is_click(const top_list *t, const tn_kept_row *row)
{
    return t->graded ? row->label > 0 : (double)row->label > 0.5;
}

static double gain_of(const top_list *t, const tn_kept_row *row)
{
    if (!t->graded) {
        return is_click(t, row);
    }
    return row->label >= 0 && row->label <= GRADE_MAX ? exp2((double)row->label) - 1 : (double)NAN;
}

/* Goes on to the next score. Returns false below the first k. */
static bool next_score(top_list *t)
{
    t->before += t->equal;
    t->equal = 0;
    t->some = 0;
    t->gain = 0;
    for (size_t left = t->n - t->before; left > 0; left--, t->equal++) {
        const tn_kept_row *row = &t->row[left - 1];
        if (row->key != t->row[t->n - t->before - 1].key) {
            break;
        }
        t->some += is_click(t, row);
        t->gain += gain_of(t, row);
    }
    t->taken = t->before >= t->k ? 0 : t->k - t->before < t->equal ? t->k - t->before : t->equal;
    return t->taken > 0;
}

static double recall_of(top_list *t)
{
    double found = 0;
    while (next_score(t)) {
        found += t->some * (double)t->taken / (double)t->equal;
    }
    return found / t->clicks;
}

/* Returns the mean of 1 / the place of the first click, 0 below k; *missed: the chance of that. */
static double first_click(top_list *t, double *missed)
{
    double sum = 0;
    double none = 1; /* chance that no click has come yet */
    while (next_score(t)) {
        for (size_t i = 0; i < t->taken; i++) {
            const double chance =
                t->some >= (double)(t->equal - i) ? 1 : t->some / (double)(t->equal - i);
            sum += none * chance / (double)(t->before + i + 1);
            none *= 1 - chance;
        }
    }
    *missed = none;
    return sum;
}

static double hit_rate_of(top_list *t)
{
    double missed = 0;
    (void)first_click(t, &missed);
    return 1 - missed;
}

static double mrr_of(top_list *t)
{
    double missed = 0;
    return first_click(t, &missed);
}

static double discount(size_t place)
{
    return 1 / log2((double)place + 2);
}

static int by_falling_gain(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x < y) - (x > y);
}

static double ndcg_of(top_list *t)
{
    double sum = 0;
    double best = 0;
    for (size_t i = 0; i < t->n; i++) {
        t->ideal[i] = gain_of(t, &t->row[i]);
        sum += t->ideal[i];
    }
    if (isnan(sum)) {
        return sum;
    }
    qsort(t->ideal, t->n, sizeof *t->ideal, by_falling_gain);
    for (size_t i = 0; i < t->n && i < t->k; i++) {
        best += t->ideal[i] * discount(i);
    }
    sum = 0;
    while (next_score(t)) {
        for (size_t i = 0; i < t->taken; i++) {
            sum += t->gain / (double)t->equal * discount(t->before + i);
        }
    }
    return sum / best;
}

static double clicks_of(const top_list *t)
{
    double clicks = 0;
    for (size_t i = 0; i < t->n; i++) {
        clicks += is_click(t, &t->row[i]);
    }
    return clicks;
}

static double mean_of(const tn_metrics *m, top_metric *value)
{
    const tn_kept_row *rows = tn_kept_sorted(m->kept, TN_KEPT_BY_GROUP);
    const size_t n = m->kept->n;
    double *ideal = tn_alloc_or_none(n + 1, sizeof *ideal, "gains of groups");
    double sum = 0;
    double groups = 0;
    for (size_t from = 0, to = 0; ideal != NULL && from < n; from = to) {
        while (to < n && rows[to].group == rows[from].group) {
            to++;
        }
        top_list t = {.row = rows + from,
                      .n = to - from,
                      .k = m->opts.top_k > 0 ? m->opts.top_k : to - from,
                      .graded = m->opts.target == TN_TARGET_ORDER,
                      .ideal = ideal};
        t.clicks = clicks_of(&t);
        if (t.clicks > 0 && rows[from].group != TN_NO_GROUP) {
            sum += value(&t);
            groups++;
        }
    }
    tn_free(ideal);
    return tn_ratio(sum, groups);
}

double tn_metric_ndcg(const tn_metrics *m)
{
    return mean_of(m, ndcg_of);
}

double tn_metric_mrr(const tn_metrics *m)
{
    return mean_of(m, mrr_of);
}

double tn_metric_recall(const tn_metrics *m)
{
    return mean_of(m, recall_of);
}

double tn_metric_hit_rate(const tn_metrics *m)
{
    return mean_of(m, hit_rate_of);
}
