/* test_calibrator.c - Platt's sigmoid and isotonic regression against V25. */
#include "metrics/calibrator.h"

#include "metrics/v21.h"
#include "support/test.h"

#include <math.h>
#include <string.h>

/* The distinct scores of V21, ascending: p .1 .3 .6 .8 .9. */
static void points_of(tn_iso_point out[5], bool weighted)
{
    static const double p[5] = {.1, .3, .6, .8, .9};
    static const double plain[5][2] = {{1, 0}, {3, 1}, {1, 1}, {2, 1}, {1, 1}};
    static const double by_weight[5][2] = {{1, 0}, {3.5, 2}, {1, 1}, {3, 1}, {1, 1}};
    for (uint32_t i = 0; i < 5; i++) {
        const double *at = weighted ? by_weight[i] : plain[i];
        out[i] = (tn_iso_point){log(p[i] / (1 - p[i])), at[0], at[1]};
    }
}

static void v25_platt_weighted_keeps_the_mean(void **state)
{
    (void)state;
    v21 v;
    v21_init(&v);
    v.rows.weight = v.weight;
    tn_platt p;
    assert_int_equal(tn_platt_fit(&v.rows, false, &p, NULL), TN_OK);
    assert_close(p.a, .336355536);
    assert_close(p.b, .053336510);
    double predicted = 0;
    double clicks = 0;
    for (uint32_t i = 0; i < V21_ROWS; i++) {
        predicted += (double)v.weight[i] * tn_platt_at(&p, (double)v.logit[i]);
        clicks += (double)(v.weight[i] * v.label[i]);
    }
    assert_close(predicted, clicks);
}

static void v25_platt_smoothed(void **state)
{
    (void)state;
    v21 v;
    v21_init(&v);
    tn_platt p;
    assert_int_equal(tn_platt_fit(&v.rows, true, &p, NULL), TN_OK);
    assert_close(p.a, .512765438);
    assert_close(p.b, -.040650348);
}

static void platt_needs_both_classes(void **state)
{
    (void)state;
    v21 v;
    v21_init(&v);
    memset(v.label, 0, sizeof v.label);
    tn_platt p = {7, 8};
    tn_error err = {0};
    assert_int_equal(tn_platt_fit(&v.rows, false, &p, &err), TN_E_DATA);
    assert_non_null(strstr(err.text, "one class only"));
    assert_true(p.a == 7 && p.b == 8);
}

static void platt_of_separable_rows_ends(void **state)
{
    (void)state;
    const float z[4] = {-2, -1, 1, 2};
    const float y[4] = {0, 0, 1, 1};
    tn_platt p;
    assert_int_equal(tn_platt_fit(&(tn_scored){.n = 4, .logit = z, .label = y}, false, &p, NULL),
                     TN_OK);
    assert_true(isfinite(p.a) && isfinite(p.b));
    assert_true(tn_platt_at(&p, 1) > .999 && tn_platt_at(&p, -1) < .001);
}

static void v25_isotonic(void **state)
{
    (void)state;
    static const double want[2][5] = {
        {0, .333333333, .666666667, .666666667, 1},
        {0, .533333333, .533333333, .533333333, 1},
    };
    for (uint32_t weighted = 0; weighted <= 1; weighted++) {
        tn_iso_point points[5];
        points_of(points, weighted != 0);
        tn_isotonic *iso = NULL;
        assert_int_equal(tn_isotonic_fit(points, 5, &iso, NULL), TN_OK);
        assert_int_equal(tn_isotonic_blocks(iso), weighted != 0 ? 3 : 4);
        for (uint32_t i = 0; i < 5; i++) {
            assert_close(tn_isotonic_level(iso, points[i].z), want[weighted][i]);
        }
        tn_isotonic_free(iso);
    }
}

static void v25_isotonic_of_metrics(void **state)
{
    (void)state;
    v21 v;
    v21_init(&v);
    for (int exact = 0; exact <= 1; exact++) {
        tn_metrics *m = metrics_of(&(tn_metrics_opts){.exact_auc = exact != 0}, &v.rows);
        tn_isotonic *iso = NULL;
        assert_int_equal(tn_isotonic_fit_metrics(m, &iso, NULL), TN_OK);
        assert_close(tn_isotonic_level(iso, (double)v.logit[6]), 0);
        assert_close(tn_isotonic_level(iso, (double)v.logit[3]), .333333333);
        assert_close(tn_isotonic_level(iso, (double)v.logit[7]), .666666667);
        assert_close(tn_isotonic_level(iso, (double)v.logit[1]), .666666667);
        assert_close(tn_isotonic_level(iso, (double)v.logit[0]), 1);
        tn_isotonic_free(iso);
        tn_metrics_free(m);
    }
}

static void isotonic_is_served_as_rising_lines(void **state)
{
    (void)state;
    static const tn_iso_point points[] = {{-1, 2, .5}, {1, 2, 1.5}, {3, 1, 1}};
    tn_isotonic *iso = NULL;
    assert_int_equal(tn_isotonic_fit(points, 3, &iso, NULL), TN_OK);
    assert_close(tn_isotonic_at(iso, -5), .25);
    assert_close(tn_isotonic_at(iso, -1), .25);
    assert_close(tn_isotonic_at(iso, 0), .5);
    assert_close(tn_isotonic_at(iso, 2), .875);
    assert_close(tn_isotonic_at(iso, 9), 1);
    double last = 0;
    for (int i = -400; i < 400; i++) {
        double p = tn_isotonic_at(iso, i * .01);
        assert_true(p >= last);
        last = p;
    }
    tn_isotonic_free(iso);
}

static void an_empty_isotonic_map_has_no_value(void **state)
{
    (void)state;
    tn_isotonic *iso = NULL;
    assert_int_equal(tn_isotonic_fit(NULL, 0, &iso, NULL), TN_OK);
    assert_true(isnan(tn_isotonic_at(iso, 0)) && isnan(tn_isotonic_level(iso, 0)));
    tn_isotonic_free(iso);
    tn_isotonic_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(v25_platt_weighted_keeps_the_mean),
        cmocka_unit_test(v25_platt_smoothed),
        cmocka_unit_test(platt_needs_both_classes),
        cmocka_unit_test(platt_of_separable_rows_ends),
        cmocka_unit_test(v25_isotonic),
        cmocka_unit_test(v25_isotonic_of_metrics),
        cmocka_unit_test(isotonic_is_served_as_rising_lines),
        cmocka_unit_test(an_empty_isotonic_map_has_no_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
