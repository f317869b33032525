/* test_ranking.c - the curves over the scores, on rows whose truth is counted by hand. */
#include "metrics/ranking.h"

#include "base/math/fmath.h"
#include "metrics/v21.h"
#include "support/test.h"

enum { MANY = 4000, POINTS = 50 };

TEST(a_curve_runs_from_nothing_to_everything)
{
    v21 v;
    v21_init(&v);
    tn_metrics *m = metrics_of(&(tn_metrics_opts){.exact_auc = true}, &v.rows);
    tn_curve_point at[POINTS];
    uint32_t n = tn_curve_of(m, POINTS, at);
    assert_int_equal(n, 6); /* five scores and the end */
    static const double want[6][3] = {{0, 0, (double)NAN}, {.25, 0, 1},       {.5, .25, 2.0 / 3},
                                      {.75, .25, .75},     {1, .75, 4.0 / 7}, {1, 1, .5}};
    for (uint32_t i = 0; i < n; i++) {
        assert_close(at[i].tpr, want[i][0]);
        assert_close(at[i].fpr, want[i][1]);
        assert_true(i == 0 ? isnan(at[i].precision) : fabs(at[i].precision - want[i][2]) < 1e-12);
        assert_true(i == 0 || at[i].threshold < at[i - 1].threshold);
    }
    tn_metrics_free(m);
}

TEST(a_thinned_curve_keeps_both_ends_and_the_area)
{
    static float z[MANY];
    static float y[MANY];
    uint64_t s = tn_stream2(42, TN_RNG_GENERATE, 0);
    for (uint32_t i = 0; i < MANY; i++) {
        z[i] = (float)tn_normal(tn_draw(s, 2 * (uint64_t)i));
        y[i] = tn_unit(tn_draw(s, 2 * (uint64_t)i + 1)) < tn_sigmoid(2 * (double)z[i]) ? 1 : 0;
    }
    tn_metrics *m =
        metrics_of(&(tn_metrics_opts){0}, &(tn_scored){.n = MANY, .logit = z, .label = y});
    tn_curve_point at[POINTS];
    uint32_t n = tn_curve_of(m, POINTS, at);
    assert_in_range(n, POINTS / 2, POINTS);
    assert_true(at[0].tpr == 0 && at[0].fpr == 0 && at[n - 1].tpr == 1 && at[n - 1].fpr == 1);
    double area = 0;
    for (uint32_t i = 1; i < n; i++) {
        area += (at[i].fpr - at[i - 1].fpr) * (at[i].tpr + at[i - 1].tpr) / 2;
    }
    assert_true(fabs(area - tn_metrics_get(m, "auc")) < 2e-3);
    tn_metrics_free(m);
}

TEST(nothing_seen_gives_no_curve)
{
    tn_metrics *m = NULL;
    assert_int_equal(tn_metrics_new(&m, &(tn_metrics_opts){.coarse = true}, NULL), TN_OK);
    tn_curve_point at[2];
    assert_int_equal(tn_curve_of(m, 2, at), 0);
    tn_metrics_free(m);
}
