/* test_calibration.c - tables of calibration and the bucket error, counted by hand. */
#include "metrics/calibration.h"

#include "base/math/fmath.h"
#include "metrics/v21.h"
#include "support/test.h"

CLOSER(tn_metrics_free);

enum { MANY = 4000 };

TEST(equal_width_bins_have_their_edges)
{
    v21 v;
    v21_init(&v);
    tn_metrics *m FREED(tn_metrics_free) = metrics_of(&(tn_metrics_opts){.ece_bins = 5}, &v.rows);
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
}

TEST(bins_of_equal_mass_never_cut_a_score)
{
    v21 v;
    v21_init(&v);
    for (int exact = 0; exact <= 1; exact++) {
        tn_metrics *m FREED(tn_metrics_free) =
            metrics_of(&(tn_metrics_opts){.exact_auc = exact != 0}, &v.rows);
        tn_reliability bin[2];
        assert_int_equal(tn_reliability_of_mass(m, 2, bin), 2); /* .1 .3 .3 .3 | .6 .8 .8 .9 */
        assert_close(bin[0].weight, 4);
        assert_close(bin[0].ctr, .25);
        assert_true(fabs(bin[0].pctr - .25) < 1e-5); /* p of a bin's middle */
        assert_true(fabs(bin[0].low - .1) < 1e-5 && fabs(bin[0].high - .3) < 1e-5);
        assert_close(bin[1].weight, 4);
        assert_close(bin[1].ctr, .75);
        assert_true(fabs(bin[1].copc - .75 / .775) < 1e-4);
    }
}

TEST(score_deciles_of_a_calibrated_model_are_level)
{
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

TEST(nothing_seen_gives_no_bins)
{
    tn_metrics *m FREED(tn_metrics_free) = NULL;
    assert_int_equal(tn_metrics_new(&m, &(tn_metrics_opts){.coarse = true}, NULL), TN_OK);
    tn_reliability bin[TN_ECE_BINS_MAX];
    assert_int_equal(tn_reliability_of_width(m, bin), 0);
    assert_int_equal(tn_reliability_of_mass(m, 10, bin), 0);
}

TEST(v22_bucket_error)
{
    tn_buckets b = {0};
    tn_buckets_add(&b, .02, 20000, 440);
    tn_buckets_add(&b, .025, 10000, 240);
    tn_buckets_add(&b, .05, 500, 30);
    tn_buckets_add(&b, .2, 4000, 780);
    assert_close(b.error / b.judged, .0875);
    assert_close(b.judged / b.shows, 24000.0 / 34500);
}

TEST(m5_predictions_of_zero_take_part_in_the_bucket_error)
{
    tn_buckets b = {0};
    tn_buckets_add(&b, 0, 1000, 1);
    tn_buckets_add(&b, 1e-7, 1e6, 1000);
    tn_buckets_add(&b, .5, 10000, 5000);
    assert_close(b.shows, 1000 + 1e6 + 10000);
    assert_close(b.judged, 10000); /* a 1e-7 with a million shows cannot be judged */
    tn_buckets_add(&b, .9, 10000, 8100);
    assert_close(b.error / b.judged, .05);
}
