/* test_calibrator.c - Platt's sigmoid and isotonic regression against V25. */
#include "metrics/calibrator.h"

#include "base/math/fmath.h"
#include "metrics/v21.h"
#include "support/test.h"

CLOSER(tn_metrics_free);
CLOSER(tn_calibrator_free);

static tn_calibrator *calibrator_of(const tn_scored *rows, double sampling)
{
    tn_calibrator *c = NULL;
    assert_int_equal(tn_calibrator_new(&c, sampling, NULL), TN_OK);
    tn_calibrator_add(c, rows);
    return c;
}

static double logit_of(double p)
{
    return log(p / (1 - p));
}

TEST(v25_platt_weighted_keeps_the_mean)
{
    v21 v;
    v21_init(&v);
    v.rows.weight = v.weight;
    tn_calibrator *c FREED(tn_calibrator_free) = calibrator_of(&v.rows, 1);
    tn_calibration map;
    assert_int_equal(tn_calibrator_platt(c, TN_CALIBRATE_PLATT, &map, NULL), TN_OK);
    assert_close(map.a, .336355536);
    assert_close(map.b, .053336510);
    tn_metrics *m FREED(tn_metrics_free) = NULL;
    assert_int_equal(tn_calibrator_metrics(c, &map, &m, NULL), TN_OK);
    assert_close(tn_metrics_get(m, "copc"), 1);
    assert_close(tn_metrics_get(m, "ctr"), .526315789);
}

TEST(v25_platt_smoothed)
{
    v21 v;
    v21_init(&v);
    tn_calibrator *c FREED(tn_calibrator_free) = calibrator_of(&v.rows, 1);
    tn_calibration map;
    assert_int_equal(tn_calibrator_platt(c, TN_CALIBRATE_PLATT_SMOOTHED, &map, NULL), TN_OK);
    assert_close(map.a, .512765438);
    assert_close(map.b, -.040650348);
}

/* A map with its prior: by another program. */
TEST(auto_is_held_to_what_the_scores_say)
{
    static const float times[] = {1, 10};
    v21 v;
    v21_init(&v);
    tn_calibrator *c = calibrator_of(&v.rows, 1);
    tn_calibration map;
    assert_int_equal(tn_calibrator_platt(c, TN_CALIBRATE_AUTO, &map, NULL), TN_OK);
    assert_close(map.a, .97599742);
    assert_close(map.b, -.00798131);
    tn_calibrator_free(c);
    v.rows.weight = v.weight;
    for (uint32_t i = 0; i < 2;
         i++) { /* weights say what counts for more, not how many there are */
        for (uint32_t k = 0; k < V21_ROWS; k++) {
            v.weight[k] *= times[i];
        }
        c = calibrator_of(&v.rows, 1);
        assert_int_equal(tn_calibrator_platt(c, TN_CALIBRATE_AUTO, &map, NULL), TN_OK);
        assert_close(map.a, .86369284);
        assert_close(map.b, -.00184493);
        tn_calibrator_free(c);
    }
}

/* Scores whose scale is far off need no prior: there are rows enough to say so. */
TEST(auto_is_platt_where_that_is_sure)
{
    static float z[1000];
    static float y[1000];
    for (uint32_t i = 0; i < 1000; i++) { /* nine of ten clicks at .5, one of ten at -.5 */
        z[i] = i % 2 == 0 ? .5F : -.5F;
        y[i] = (i % 20 < 2) == (i % 2 == 0) ? 0 : 1;
    }
    tn_calibrator *c FREED(tn_calibrator_free) =
        calibrator_of(&(tn_scored){.n = 1000, .logit = z, .label = y}, 1);
    tn_calibration sure;
    tn_calibration map;
    assert_int_equal(tn_calibrator_platt(c, TN_CALIBRATE_PLATT, &sure, NULL), TN_OK);
    assert_int_equal(tn_calibrator_platt(c, TN_CALIBRATE_AUTO, &map, NULL), TN_OK);
    assert_true(sure.a > 3 && map.a == sure.a && map.b == sure.b);
}

TEST(metrics_without_a_map_are_those_of_the_rows)
{
    v21 v;
    v21_init(&v);
    v.rows.weight = v.weight;
    tn_calibrator *c FREED(tn_calibrator_free) = calibrator_of(&v.rows, 1);
    tn_calibration map;
    tn_metrics *m FREED(tn_metrics_free) = NULL;
    assert_int_equal(tn_calibrator_platt(c, TN_CALIBRATE_PLATT, &map, NULL), TN_OK);
    assert_int_equal(tn_calibrator_metrics(c, &(tn_calibration){0}, &m, NULL), TN_OK);
    assert_close(tn_metrics_get(m, "logloss"), .748055164);
    assert_close(tn_metrics_get(m, "copc"), .990099010);
}

TEST(sampled_negatives_are_corrected_first)
{
    v21 v;
    v21_init(&v);
    for (uint32_t i = 0; i < V21_ROWS; i++) {
        v.logit[i] -= (float)log(.1);
    }
    v.rows.weight = v.weight;
    tn_calibrator *c FREED(tn_calibrator_free) = calibrator_of(&v.rows, .1);
    tn_calibration map;
    assert_int_equal(tn_calibrator_platt(c, TN_CALIBRATE_PLATT, &map, NULL), TN_OK);
    assert_close(map.a, .336355536);
    assert_close(map.b, .053336510);
}

TEST(what_cannot_be_fitted_is_told)
{
    v21 v;
    v21_init(&v);
    memset(v.label, 0, sizeof v.label);
    tn_calibration map = {.a = 7, .b = 8};
    tn_error err = {0};
    tn_calibrator *c = calibrator_of(&v.rows, 1);
    assert_int_equal(tn_calibrator_platt(c, TN_CALIBRATE_PLATT, &map, &err), TN_E_DATA);
    assert_string_equal(err.text, "cannot calibrate: the rows hold one class only");
    assert_int_equal(tn_calibrator_isotonic(c, NULL, &map, &err), TN_E_DATA);
    assert_true(map.a == 7 && map.b == 8);
    tn_calibrator_free(c);
    memset(v.weight, 0, sizeof v.weight);
    v.rows.weight = v.weight;
    c = calibrator_of(&v.rows, 1);
    assert_int_equal(tn_calibrator_platt(c, TN_CALIBRATE_PLATT, &map, &err), TN_E_DATA);
    assert_string_equal(err.text, "cannot calibrate: the rows hold no weight");
    tn_calibrator_free(c);
    const float z[4] = {-2, -1, 1, 2};
    const float y[4] = {1, 1, 0, 1};
    c = calibrator_of(&(tn_scored){.n = 4, .logit = z, .label = y}, 1);
    assert_int_equal(tn_calibrator_platt(c, TN_CALIBRATE_PLATT, &map, &err), TN_E_DATA);
    assert_non_null(strstr(err.text, "higher scores have fewer clicks (a = -"));
    tn_calibrator_free(c);
    tn_calibrator_free(NULL);
}

TEST(platt_of_separable_rows_ends)
{
    const float z[4] = {-2, -1, 1, 2};
    const float y[4] = {0, 0, 1, 1};
    tn_calibrator *c FREED(tn_calibrator_free) =
        calibrator_of(&(tn_scored){.n = 4, .logit = z, .label = y}, 1);
    tn_calibration map;
    assert_int_equal(tn_calibrator_platt(c, TN_CALIBRATE_PLATT, &map, NULL), TN_OK);
    assert_true(isfinite(map.a) && isfinite(map.b));
    assert_true(tn_calibration_logit(&map, 1, 0) > 7 && tn_calibration_logit(&map, -1, 0) < -7);
}

/* Labels between 0 and 1 keep their mean, too. */
TEST(soft_labels_count_in_part)
{
    v21 v;
    v21_init(&v);
    v.label[0] = .75F;
    v.label[6] = .3F;
    tn_calibrator *c FREED(tn_calibrator_free) = calibrator_of(&v.rows, 1);
    tn_calibration map;
    double predicted = 0;
    double clicks = 0;
    assert_int_equal(tn_calibrator_platt(c, TN_CALIBRATE_PLATT, &map, NULL), TN_OK);
    for (uint32_t i = 0; i < V21_ROWS; i++) {
        predicted += tn_sigmoid(tn_calibration_logit(&map, (double)v.logit[i], 0));
        clicks += (double)v.label[i];
    }
    assert_close(predicted, clicks);
}

TEST(v25_isotonic)
{
    static const double at[] = {.1, .3, .6, .8, .9};
    static const double p[2][5] = {{0, .333333333, .666666667, .666666667, 1},
                                   {0, .533333333, .533333333, .533333333, 1}};
    v21 v;
    v21_init(&v);
    for (uint32_t weighted = 0; weighted <= 1; weighted++) {
        tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 12);
        tn_calibration map;
        v.rows.weight = weighted != 0 ? v.weight : NULL;
        tn_calibrator *c FREED(tn_calibrator_free) = calibrator_of(&v.rows, 1);
        assert_int_equal(tn_calibrator_isotonic(c, arena, &map, NULL), TN_OK);
        assert_int_equal(map.n, 5 - weighted);
        for (uint32_t i = 0; i < 5; i++) {
            const double z = tn_calibration_logit(&map, logit_of(at[i]), 0);
            assert_true(fabs(tn_sigmoid(z) - p[weighted][i]) < 2e-7);
        }
    }
}

/* Four scores with 0 of 60, 60 of 120, 15 of 75 and 60 of 60 clicks: the fitted rows have the
 * levels of their blocks, so COPC is 1 and the log loss what their clicks leave open. */
TEST(isotonic_is_the_fit_that_it_names)
{
    static const uint32_t rows[] = {60, 120, 75, 60};
    static const uint32_t clicks[] = {0, 60, 15, 60};
    float z[315];
    float y[315] = {0};
    uint32_t n = 0;
    for (uint32_t k = 0; k < 4; k++) {
        for (uint32_t i = 0; i < rows[k]; i++) {
            z[n] = (float)k;
            y[n++] = i < clicks[k] ? 1 : 0;
        }
    }
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 12);
    tn_calibration map;
    tn_calibrator *c FREED(tn_calibrator_free) =
        calibrator_of(&(tn_scored){.n = n, .logit = z, .label = y}, 1);
    assert_int_equal(tn_calibrator_isotonic(c, arena, &map, NULL), TN_OK);
    double predicted = 0;
    double loss = 0;
    for (uint32_t i = 0; i < n; i++) {
        const double p = tn_sigmoid(tn_calibration_logit(&map, (double)z[i], 0));
        predicted += p;
        loss -= log(y[i] > 0 ? p : 1 - p) / n;
    }
    assert_true(fabs(predicted - 135) < 1e-3);
    assert_true(fabs(loss - .41252) < 1e-4);
    assert_int_equal(map.n, 4);
}

TEST(isotonic_is_served_as_rising_lines)
{
    static const tn_knot knot[] = {{-1, .25}, {1, .75}, {3, 1}};
    const tn_calibration map = {.kind = TN_CALIBRATION_ISOTONIC, .n = 3, .knot = knot};
    static const double want[][2] = {{-5, .25}, {-1, .25}, {0, .5}, {2, .875}};
    for (uint32_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        assert_close(tn_sigmoid(tn_calibration_logit(&map, want[i][0], 0)), want[i][1]);
    }
    assert_close(tn_calibration_logit(&map, 9, 0), 16);
    assert_true(isnan(tn_calibration_logit(&map, (double)NAN, 0)));
    double last = -17;
    for (int i = -400; i < 400; i++) {
        double z = tn_calibration_logit(&map, i * .01, 0);
        assert_true(z >= last);
        last = z;
    }
}

/* Ten rows without a click, then one of each: the run of zeros needs its two ends. */
TEST(equal_levels_keep_their_ends)
{
    float z[12];
    float y[12] = {0};
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 12);
    tn_calibration map;
    for (uint32_t i = 0; i < 12; i++) {
        z[i] = (float)i;
    }
    y[11] = 1;
    tn_calibrator *c FREED(tn_calibrator_free) =
        calibrator_of(&(tn_scored){.n = 12, .logit = z, .label = y}, 1);
    assert_int_equal(tn_calibrator_isotonic(c, arena, &map, NULL), TN_OK);
    assert_int_equal(map.n, 3);
    assert_true(map.knot[0].z == 0 && map.knot[0].p == 0);
    assert_true(map.knot[1].z == 10 && map.knot[1].p == 0);
    assert_true(map.knot[2].z == 11 && map.knot[2].p == 1);
    assert_close(tn_sigmoid(tn_calibration_logit(&map, 10.5, 0)), .5);
}

/* Rows of one logit and of so many unknown slots. */
typedef struct rows_of {
    float z;
    uint32_t unknown;
    uint32_t clicks; /* of 1000 */
} rows_of;

enum { KINDS = 3, OF_KIND = 1000 };

/* With as many numbers as kinds the fit has the rate of each. Weights say how much a row counts,
 * not how many there are. */
static tn_calibrator *calibrator_of_kinds(const rows_of kinds[KINDS], float weight)
{
    static float z[KINDS * OF_KIND];
    static float y[KINDS * OF_KIND];
    static float w[KINDS * OF_KIND];
    static uint32_t unknown[KINDS * OF_KIND];
    for (uint32_t i = 0; i < KINDS * OF_KIND; i++) {
        z[i] = kinds[i / OF_KIND].z;
        y[i] = i % OF_KIND < kinds[i / OF_KIND].clicks ? 1 : 0;
        w[i] = weight;
        unknown[i] = kinds[i / OF_KIND].unknown;
    }
    return calibrator_of(
        &(tn_scored){.n = KINDS * OF_KIND, .logit = z, .label = y, .weight = w, .unknown = unknown},
        1);
}

TEST(unknown_slots_have_a_number_of_their_own)
{
    const uint32_t unknown[] = {1, 3, TN_UNKNOWN_MAX, 1000, 5};
    const uint32_t least[] = {0, 0, 0, 0, 2}; /* of the other rows */
    const float weight[] = {1, 1000, .125F, 1, 1};
    for (uint32_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        const double m = unknown[i] < TN_UNKNOWN_MAX ? unknown[i] : TN_UNKNOWN_MAX;
        const rows_of kinds[KINDS] = {{0, least[i], 200}, {1, least[i], 500}, {0, unknown[i], 100}};
        tn_calibrator *c FREED(tn_calibrator_free) = calibrator_of_kinds(kinds, weight[i]);
        tn_calibration map;
        tn_metrics *after FREED(tn_metrics_free) = NULL;
        assert_int_equal(tn_calibrator_platt(c, TN_CALIBRATE_PLATT, &map, NULL), TN_OK);
        assert_close(map.a, log(4));
        assert_close(map.b + map.c * least[i], -log(4));
        assert_close(map.c * (m - least[i]), log(4. / 9));
        assert_close(tn_sigmoid(tn_calibration_logit(&map, 0, unknown[i])), .1);
        assert_int_equal(tn_calibrator_metrics(c, &map, &after, NULL), TN_OK);
        assert_close(tn_metrics_get(after, "copc"), 1);
        assert_close(tn_metrics_get(after, "logloss"), .506210862); /* mean entropy of .2 .5 .1 */
    }
}

/* .. which is 0 where it may be chance, or is told from nothing: then the fit is that of before, to
 * the bit. */
TEST(unknown_slots_that_tell_nothing_change_nothing)
{
    static const rows_of none[][KINDS] = {
        {{0, 0, 200}, {1, 0, 500}, {0, 2, 190}}, /* half a nat */
        {{0, 2, 200}, {1, 2, 500}, {0, 2, 100}}, /* all alike */
        {{0, 0, 200}, {1, 0, 500}, {0, 1, 49}},  /* few clicks above the mean .. */
        {{0, 1, 200}, {1, 1, 500}, {0, 0, 49}},  /* .. and below */
    };
    for (uint32_t i = 0; i < 2 * sizeof none / sizeof none[0]; i++) {
        const float weight = i % 2 == 0 ? 1 : 1000;
        rows_of plain[KINDS];
        memcpy(plain, none[i / 2], sizeof plain);
        for (uint32_t k = 0; k < KINDS; k++) {
            plain[k].unknown = 0;
        }
        tn_calibrator *with FREED(tn_calibrator_free) = calibrator_of_kinds(none[i / 2], weight);
        tn_calibrator *without FREED(tn_calibrator_free) = calibrator_of_kinds(plain, weight);
        tn_calibration map;
        tn_calibration want;
        assert_int_equal(tn_calibrator_platt(with, TN_CALIBRATE_PLATT, &map, NULL), TN_OK);
        assert_int_equal(tn_calibrator_platt(without, TN_CALIBRATE_PLATT, &want, NULL), TN_OK);
        assert_true(map.c == 0 && map.a == want.a && map.b == want.b);
    }
}

TEST(a_cleared_calibrator_is_a_new_one)
{
    v21 v;
    v21_init(&v);
    tn_calibrator *fresh FREED(tn_calibrator_free) = calibrator_of(&v.rows, .5);
    tn_calibrator *used FREED(tn_calibrator_free) = calibrator_of(
        &(tn_scored){.n = 2, .logit = (float[]){-3, 7}, .label = (float[]){1, 0}}, .5);
    tn_calibration want;
    tn_calibration map;
    assert_int_equal(tn_calibrator_platt(fresh, TN_CALIBRATE_PLATT, &want, NULL), TN_OK);
    assert_int_equal(tn_calibrator_platt(used, TN_CALIBRATE_PLATT, &map, NULL), TN_E_DATA);
    tn_calibrator_clear(used);
    tn_calibrator_add(used, &v.rows);
    assert_int_equal(tn_calibrator_platt(used, TN_CALIBRATE_PLATT, &map, NULL), TN_OK);
    assert_true(map.a == want.a && map.b == want.b);
}

TEST(a_method_knows_its_maps)
{
    static const bool want[][3] = {
        [TN_CALIBRATE_NONE] = {true, false, false},
        [TN_CALIBRATE_PLATT] = {false, true, false},
        [TN_CALIBRATE_PLATT_SMOOTHED] = {false, true, false},
        [TN_CALIBRATE_ISOTONIC] = {false, false, true},
        [TN_CALIBRATE_AUTO] = {false, true, true},
    };
    for (uint32_t method = 0; method <= TN_CALIBRATE_AUTO; method++) {
        for (uint32_t kind = 0; kind <= TN_CALIBRATION_ISOTONIC; kind++) {
            const tn_calibration map = {.kind = (tn_calibration_kind)kind};
            assert_int_equal(tn_calibration_is_of(&map, (tn_calibrate_method)method),
                             want[method][kind]);
        }
    }
    for (uint32_t i = 0; tn_calibrate_words[i] != NULL; i++) {
        assert_string_equal(tn_calibrate_words[i], tn_calibrate_choices[i]);
    }
    assert_string_equal(tn_calibrate_choices[TN_CALIBRATE_AUTO], "auto");
}
