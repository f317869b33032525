/* test_curves.c - tables behind the figures of a report, on rows whose truth is counted by hand. */
#include "metrics/curves.h"

#include "base/math/rng.h"
#include "metrics/v21.h"
#include "support/test.h"

#include <math.h>

enum { MANY = 4000, POINTS = 50 };

static void equal_width_bins_have_their_edges(void **state)
{
    (void)state;
    v21 v;
    v21_init(&v);
    tn_metrics *m = metrics_of(&(tn_metrics_opts){.ece_bins = 5}, &v.rows);
    tn_reliability bin[TN_ECE_BINS_MAX];
    /* p: .1 | .3 .3 .3 | | .6 | .8 .8 .9; nothing in .4 .. .6 */
    assert_int_equal(tn_reliability_of_width(m, bin), 4);
    static const double want[4][5] = {{0, .2, 1, 0, .1},
                                      {.2, .4, 3, 1.0 / 3, .3},
                                      {.6, .8, 1, 1, .6},
                                      {.8, 1, 3, 2.0 / 3, 2.5 / 3}};
    for (uint32_t i = 0; i < 4; i++) {
        assert_close(bin[i].low, want[i][0]);
        assert_close(bin[i].high, want[i][1]);
        assert_close(bin[i].weight, want[i][2]);
        assert_close(bin[i].ctr, want[i][3]);
        assert_close(bin[i].pctr, want[i][4]);
        assert_close(bin[i].copc, want[i][3] / want[i][4]);
    }
    assert_close(tn_metrics_get(m, "ece_max"), .4);
    tn_metrics_free(m);
}

static void bins_of_equal_mass_never_cut_a_score(void **state)
{
    (void)state;
    v21 v;
    v21_init(&v);
    for (int exact = 0; exact <= 1; exact++) {
        tn_metrics *m = metrics_of(&(tn_metrics_opts){.exact_auc = exact != 0}, &v.rows);
        tn_reliability bin[2];
        assert_int_equal(tn_reliability_of_mass(m, 2, bin), 2); /* .1 .3 .3 .3 | .6 .8 .8 .9 */
        assert_close(bin[0].weight, 4);
        assert_close(bin[0].ctr, .25);
        assert_true(fabs(bin[0].pctr - .25) < 1e-5); /* p of a bin's middle */
        assert_true(fabs(bin[0].low - .1) < 1e-5 && fabs(bin[0].high - .3) < 1e-5);
        assert_close(bin[1].weight, 4);
        assert_close(bin[1].ctr, .75);
        assert_true(fabs(bin[1].copc - .75 / .775) < 1e-4);
        tn_metrics_free(m);
    }
}

static void score_deciles_of_a_calibrated_model_are_level(void **state)
{
    (void)state;
    static float z[MANY];
    static float y[MANY];
    uint64_t s = tn_stream2(41, TN_RNG_GENERATE, 0);
    for (uint32_t i = 0; i < MANY; i++) {
        z[i] = (float)tn_normal(tn_draw(s, 2 * (uint64_t)i));
        y[i] = tn_unit(tn_draw(s, 2 * (uint64_t)i + 1)) < tn_sigmoid((double)z[i]) ? 1 : 0;
    }
    tn_metrics *m =
        metrics_of(&(tn_metrics_opts){0}, &(tn_scored){.n = MANY, .logit = z, .label = y});
    tn_reliability bin[10];
    assert_int_equal(tn_reliability_of_mass(m, 10, bin), 10);
    double weight = 0;
    for (uint32_t i = 0; i < 10; i++) {
        assert_true(fabs(bin[i].weight - MANY / 10.0) <= 2);
        assert_true(i == 0 || bin[i].low >= bin[i - 1].high);
        double sigma = sqrt(bin[i].pctr * (1 - bin[i].pctr) / bin[i].weight);
        assert_true(fabs(bin[i].ctr - bin[i].pctr) < 4 * sigma);
        weight += bin[i].weight;
    }
    assert_close(weight, MANY);
    assert_true(tn_metrics_get(m, "ece_mass") < .03);
    tn_metrics_free(m);
}

static void a_curve_runs_from_nothing_to_everything(void **state)
{
    (void)state;
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

static void a_thinned_curve_keeps_both_ends_and_the_area(void **state)
{
    (void)state;
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

static void nothing_and_one_class_give_no_tables(void **state)
{
    (void)state;
    tn_metrics *m = NULL;
    assert_int_equal(tn_metrics_new(&m, &(tn_metrics_opts){.coarse = true}, NULL), TN_OK);
    tn_reliability bin[TN_ECE_BINS_MAX];
    tn_curve_point at[2];
    assert_int_equal(tn_reliability_of_width(m, bin), 0);
    assert_int_equal(tn_reliability_of_mass(m, 10, bin), 0);
    assert_int_equal(tn_curve_of(m, 2, at), 0);
    tn_metrics_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_width_bins_have_their_edges),
        cmocka_unit_test(bins_of_equal_mass_never_cut_a_score),
        cmocka_unit_test(score_deciles_of_a_calibrated_model_are_level),
        cmocka_unit_test(a_curve_runs_from_nothing_to_everything),
        cmocka_unit_test(a_thinned_curve_keeps_both_ends_and_the_area),
        cmocka_unit_test(nothing_and_one_class_give_no_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
