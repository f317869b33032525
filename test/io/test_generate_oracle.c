/* test_generate_oracle.c - the figures of a known p. */
#include "base/math/fmath.h"
#include "base/math/rng.h"
#include "io/synth/generate_oracle.h"
#include "support/test.h"

#include <math.h>

static double logit(double p)
{
    return log(p / (1 - p));
}

static void auc_and_logloss_are_those_of_a_small_example(void **state)
{
    (void)state;
    static const double p[] = {.9, .8, .8, .3, .3, .3, .1, .6};
    static const int y[] = {1, 0, 1, 0, 0, 1, 0, 1};
    tn_oracle_row row[8];
    for (int i = 0; i < 8; i++) {
        row[i] = (tn_oracle_row){logit(p[i]), y[i] == 1};
    }
    tn_oracle o = tn_oracle_judge(row, 8);
    assert_int_equal(o.rows, 8);
    assert_int_equal(o.clicks, 4);
    assert_true(fabs(o.auc - .78125) < 1e-12);
    assert_true(fabs(o.logloss - .558931351) < 1e-9);
}

static void the_expected_figures_count_every_outcome(void **state)
{
    (void)state;
    /* two rows: clicks go to 1 or 2 alone with odds p1 q2 and p2 q1 */
    double p1 = .7;
    double p2 = .2;
    tn_oracle_row row[2] = {{logit(p1), true}, {logit(p2), false}};
    tn_oracle o = tn_oracle_judge(row, 2);
    double right = p1 * (1 - p2);
    double wrong = p2 * (1 - p1);
    assert_true(fabs(o.auc_expected - right / (right + wrong)) < 1e-12);
    double h1 = -p1 * log(p1) - (1 - p1) * log(1 - p1);
    double h2 = -p2 * log(p2) - (1 - p2) * log(1 - p2);
    assert_true(fabs(o.logloss_expected - (h1 + h2) / 2) < 1e-12);
    assert_true(o.auc == 1);
}

static void ties_count_half(void **state)
{
    (void)state;
    tn_oracle_row row[4] = {{0, true}, {0, false}, {0, true}, {0, false}};
    tn_oracle o = tn_oracle_judge(row, 4);
    assert_true(o.auc == .5);
    assert_true(fabs(o.auc_expected - .5) < 1e-15);
    assert_true(fabs(o.logloss - 0.69314718055994531) < 1e-15);
}

static void one_class_has_no_auc(void **state)
{
    (void)state;
    tn_oracle_row row[2] = {{1, true}, {2, true}};
    assert_true(isnan(tn_oracle_judge(row, 2).auc));
    assert_true(isnan(tn_oracle_judge(row, 0).auc));
    assert_true(isnan(tn_oracle_judge(row, 0).logloss));
}

static void what_is_thrown_agrees_with_what_is_expected(void **state)
{
    (void)state;
    enum { N = 200000 };
    static tn_oracle_row row[N];
    uint64_t stream = tn_stream2(3, TN_RNG_GENERATE, 77);
    for (uint32_t i = 0; i < N; i++) {
        row[i].logit = 1.5 * tn_normal(tn_draw(stream, i)) - 1;
        row[i].click = tn_unit(tn_draw(stream, N + i)) < tn_sigmoid(row[i].logit);
    }
    tn_oracle o = tn_oracle_judge(row, N);
    assert_true(fabs(o.auc - o.auc_expected) < .004);
    assert_true(fabs(o.logloss - o.logloss_expected) < .004);
    assert_true(o.auc > .7 && o.auc < .9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(auc_and_logloss_are_those_of_a_small_example),
        cmocka_unit_test(the_expected_figures_count_every_outcome),
        cmocka_unit_test(ties_count_half),
        cmocka_unit_test(one_class_has_no_auc),
        cmocka_unit_test(what_is_thrown_agrees_with_what_is_expected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
