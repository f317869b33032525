/* test_top_metrics.c - the metrics of first rows against every order of equal scores. */
#include "metrics/metrics.h"

#include "io/rows/rows.h"

#include "support/test.h"

#include <math.h>

CLOSER(tn_metrics_free);

enum { ROWS = 6, NAMES = 4 };

static const char *const names[NAMES] = {"ndcg", "mrr", "recall", "hit_rate"};

/* One list of at most ROWS rows. */
typedef struct list {
    uint32_t n, k;
    float score[ROWS], label[ROWS];
    bool graded;
} list;

static double gain(const list *l, uint32_t row)
{
    return l->graded ? exp2((double)l->label[row]) - 1 : l->label[row] > 0.5F;
}

static void judge(const list *l, const uint32_t *order, double out[NAMES])
{
    double clicks = 0;
    double found = 0;
    double first = 0;
    double sum = 0;
    double best = 0;
    double left[ROWS];
    for (uint32_t i = 0; i < l->n; i++) {
        left[i] = gain(l, i);
        clicks += left[i] > 0;
    }
    for (uint32_t i = 0; i < l->n && i < l->k; i++) {
        const double g = gain(l, order[i]);
        uint32_t top = 0;
        for (uint32_t j = 1; j < l->n; j++) {
            top = left[j] > left[top] ? j : top;
        }
        best += left[top] / log2(i + 2.0);
        left[top] = -1;
        sum += g / log2(i + 2.0);
        first = g > 0 && found == 0 ? 1 / (i + 1.0) : first;
        found += g > 0;
    }
    out[0] += sum / best;
    out[1] += first;
    out[2] += found / clicks;
    out[3] += found > 0;
}

/* Adds what every order of falling scores says, and counts them. */
static void walk_orders(const list *l, uint32_t *order, uint32_t at, double out[NAMES],
                        uint32_t *count)
{
    if (at == l->n) {
        judge(l, order, out);
        ++*count;
        return;
    }
    for (uint32_t i = 0; i < l->n; i++) {
        bool next = true;
        for (uint32_t j = 0; j < at; j++) {
            next &= order[j] != i;
        }
        for (uint32_t j = 0; j < l->n && next; j++) {
            bool used = false;
            for (uint32_t m = 0; m < at; m++) {
                used |= order[m] == j;
            }
            next &= used || l->score[j] <= l->score[i];
        }
        if (next) {
            order[at] = i;
            walk_orders(l, order, at + 1, out, count);
        }
    }
}

static uint32_t draw(uint32_t *seed, uint32_t below)
{
    *seed = *seed * 1664525 + 1013904223;
    return (*seed >> 16) % below;
}

static list draw_list(uint32_t *seed, bool graded)
{
    list l = {.n = 1 + draw(seed, ROWS), .k = 1 + draw(seed, ROWS), .graded = graded};
    for (uint32_t i = 0; i < l.n; i++) {
        l.score[i] = (float)draw(seed, 3) - 1;
        l.label[i] = (float)draw(seed, graded ? 4 : 2);
    }
    l.label[draw(seed, l.n)] = 1;
    return l;
}

static tn_metrics *metrics_of(const list *l, uint32_t k, uint64_t group)
{
    tn_metrics *m = NULL;
    uint64_t groups[ROWS];
    for (uint32_t i = 0; i < ROWS; i++) {
        groups[i] = group;
    }
    const tn_metrics_opts opts = {
        .target = l->graded ? TN_TARGET_ORDER : TN_TARGET_CLICK, .grouped = true, .top_k = k};
    const tn_scored rows = {.n = l->n, .logit = l->score, .label = l->label, .group = groups};
    assert_int_equal(tn_metrics_new(&m, &opts, NULL), TN_OK);
    assert_int_equal(tn_metrics_add(m, &rows, NULL), TN_OK);
    return m;
}

TEST(each_is_the_mean_over_the_orders_of_equal_scores)
{
    uint32_t seed = 7;
    for (uint32_t round = 0; round < 300; round++) {
        const list l = draw_list(&seed, round % 2 == 1);
        double mean[NAMES] = {0};
        uint32_t order[ROWS];
        uint32_t count = 0;
        walk_orders(&l, order, 0, mean, &count);
        tn_metrics *m = metrics_of(&l, l.k, 5);
        for (uint32_t i = 0; i < NAMES; i++) {
            const double got = tn_metrics_get(m, names[i]);
            fail_if(!(fabs(got - mean[i] / count) < 1e-12), "round %u: %s is %.15g, not %.15g",
                    round, names[i], got, mean[i] / count);
        }
        tn_metrics_free(m);
    }
}

/* scikit-learn's ndcg_score([[1, 0, 1, 0]], [[.1, .9, .8, .4]], k=2) is .3868528. */
TEST(a_known_list)
{
    const list l = {.n = 4, .score = {.1F, .9F, .8F, .4F}, .label = {1, 0, 1, 0}};
    tn_metrics *m = metrics_of(&l, 2, 5);
    assert_float_equal(tn_metrics_get(m, "ndcg"), .3868528, 1e-6);
    assert_float_equal(tn_metrics_get(m, "mrr"), .5, 1e-12);
    assert_float_equal(tn_metrics_get(m, "recall"), .5, 1e-12);
    assert_float_equal(tn_metrics_get(m, "hit_rate"), 1, 1e-12);
    tn_metrics_free(m);
    m = metrics_of(&l, 1, 5);
    for (uint32_t i = 0; i < NAMES; i++) {
        assert_float_equal(tn_metrics_get(m, names[i]), 0, 0);
    }
    tn_metrics_free(m);
    m = metrics_of(&l, 0, 5); /* the whole list */
    assert_float_equal(tn_metrics_get(m, "recall"), 1, 0);
    tn_metrics_free(m);
}

/* Groups count alike, however many rows they have; those without a click do not count. */
TEST(groups_count_alike)
{
    static const float score[] = {3, 2, 1, 2, 1, 9, 8};
    static const float label[] = {1, 0, 0, 0, 1, 0, 0};
    static const uint64_t group[] = {1, 1, 1, 2, 2, 3, 3};
    static const float weight[] = {1, 1, 1, 9, 9, 1, 1};
    tn_metrics *m FREED(tn_metrics_free) = NULL;
    const tn_metrics_opts opts = {.grouped = true, .top_k = 10};
    const tn_scored rows = {
        .n = 7, .logit = score, .label = label, .group = group, .weight = weight};
    assert_int_equal(tn_metrics_new(&m, &opts, NULL), TN_OK);
    assert_int_equal(tn_metrics_add(m, &rows, NULL), TN_OK);
    assert_float_equal(tn_metrics_get(m, "mrr"), .75, 1e-12);
    assert_float_equal(tn_metrics_get(m, "ndcg"), (1 + 1 / log2(3)) / 2, 1e-12);
}

TEST(undefined_without_clicks_groups_or_grades)
{
    list l = {.n = 2, .score = {1, 2}, .label = {0, 0}};
    tn_metrics *m = metrics_of(&l, 10, 5);
    for (uint32_t i = 0; i < NAMES; i++) {
        assert_true(isnan(tn_metrics_get(m, names[i])));
    }
    tn_metrics_free(m);
    l.label[0] = 1;
    m = metrics_of(&l, 10, TN_NO_GROUP);
    assert_true(isnan(tn_metrics_get(m, "ndcg")));
    tn_metrics_free(m);
    l.graded = true;
    l.label[1] = 32; /* 2^32 - 1 would drown all else */
    m = metrics_of(&l, 10, 5);
    assert_true(isnan(tn_metrics_get(m, "ndcg")));
    assert_float_equal(tn_metrics_get(m, "mrr"), 1, 0);
    tn_metrics_free(m);
}
