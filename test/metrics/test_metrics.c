/* test_metrics.c - every metric against its vector, and what integers promise: any order, one
 * result. */

#include "metrics/metrics_state.h"
#include "metrics/v21.h"
#include "support/test.h"

CLOSER(tn_metrics_free);

typedef struct wanted {
    const char *name;
    double plain, weighted;
} wanted;

static const wanted v21_values[] = {
    {"auc", .781250000, .622222222},
    {"pr_auc", .747023810, .655294118},
    {"logloss", .558931351, .748055164},
    {"ne", .806367489, 1.081377274},
    {"rig", 1 - .806367489, 1 - 1.081377274},
    {"ctr", .5, .526315789},
    {"pctr", .5125, .531578947},
    {"copc", .975609756, .990099010},
    {"brier", .191250000, .275263158},
    {"mse", .191250000, .275263158},
    {"ece", .1375, .289473684},
};

static void assert_v21(const tn_metrics *m, const tn_metrics *weighted)
{
    for (size_t i = 0; i < sizeof v21_values / sizeof v21_values[0]; i++) {
        assert_close(tn_metrics_get(m, v21_values[i].name), v21_values[i].plain);
        assert_close(tn_metrics_get(weighted, v21_values[i].name), v21_values[i].weighted);
    }
    assert_close(tn_metrics_get(m, "mae"), .3625);
    assert_close(tn_metrics_get(m, "rmse"), .437321392);
    assert_close(tn_metrics_get(m, "accuracy"), .75);
    assert_close(tn_metrics_get(m, "ks"), .5);
    assert_close(tn_metrics_get(m, "calibration_free_ne"), .806003995);
    assert_true(isnan(tn_metrics_get(m, "mape")));
    assert_int_equal(tn_metrics_rows(m), V21_ROWS);
}

TEST(v21_by_histogram_and_by_sorting)
{
    v21 v;
    v21_init(&v);
    tn_scored weighted = v.rows;
    weighted.weight = v.weight;
    for (int exact = 0; exact <= 1; exact++) {
        tn_metrics_opts opts = {.exact_auc = exact != 0, .ece_bins = 5};
        tn_metrics *m FREED(tn_metrics_free) = metrics_of(&opts, &v.rows);
        tn_metrics *w FREED(tn_metrics_free) = metrics_of(&opts, &weighted);
        assert_v21(m, w);
    }
}

TEST(v21_bins_of_one_logit_state_their_error)
{
    v21 v;
    v21_init(&v);
    for (uint32_t i = 0; i < V21_ROWS; i++) {
        v.logit[i] = floorf(v.logit[i]);
    }
    tn_metrics_opts opts = {.coarse = true};
    tn_metrics *m = metrics_of(&opts, &v.rows);
    assert_close(tn_metrics_get(m, "auc"), .78125);
    assert_close(tn_metrics_get(m, "auc_error"), .09375);
    tn_metrics_free(m);
    v.rows.weight = v.weight;
    m = metrics_of(&opts, &v.rows);
    assert_close(tn_metrics_get(m, "auc"), .622222222);
    assert_close(tn_metrics_get(m, "auc_error"), .111111111);
    tn_metrics_free(m);
}

TEST(v21_gauc)
{
    v21 v;
    v21_init(&v);
    tn_metrics_opts opts = {.grouped = true};
    v.rows.group = v.group;
    tn_metrics *m = metrics_of(&opts, &v.rows);
    assert_close(tn_metrics_get(m, "gauc"), .71875);
    assert_close(tn_metrics_get(m, "gauc_skipped"), 0);
    tn_metrics_free(m);
    v.rows.group = v.group_last;
    m = metrics_of(&opts, &v.rows);
    assert_close(tn_metrics_get(m, "gauc"), .625);
    assert_close(tn_metrics_get(m, "gauc_skipped"), .25);
    tn_metrics_free(m);
    v.rows.weight = v.weight;
    m = metrics_of(&opts, &v.rows);
    assert_close(tn_metrics_get(m, "gauc"), .633333333);
    tn_metrics_free(m);
}

TEST(ln_2_is_2977044472_and_bins_are_exact)
{
    static const float z[] = {-3.5F, -1e-6F, 0, 2.5F, 16, 1e30F};
    static const uint32_t bin[] = {409600, 524287, 524288, 606208, 1048575, 1048575};
    const float y = 1;
    tn_metrics *m FREED(tn_metrics_free) = NULL;
    assert_int_equal(tn_metrics_new(&m, &(tn_metrics_opts){0}, NULL), TN_OK);
    for (size_t i = 0; i < sizeof z / sizeof z[0]; i++) {
        tn_metrics_clear(m);
        tn_scored row = {.n = 1, .logit = &z[i], .label = &y};
        assert_int_equal(tn_metrics_add(m, &row, NULL), TN_OK);
        assert_int_equal(tn_metrics_histogram(m)[TN_BINS + bin[i]], 1 << 16);
        uint64_t sums[TN_SAVED_SUMS][2];
        tn_metrics_sums(m, sums);
        if (z[i] == 0) {
            assert_int_equal(sums[TN_SUM_WL][0], 2977044472);
            assert_int_equal(sums[TN_SUM_W][0], UINT64_C(1) << 32);
        }
    }
}

TEST(rows_without_groups_are_one_group)
{
    const float z[4] = {-1, 0, 1, 2};
    const float y[4] = {0, 1, 0, 1};
    const tn_scored rows = {.n = 4, .logit = z, .label = y};
    tn_metrics *m FREED(tn_metrics_free) = metrics_of(&(tn_metrics_opts){.grouped = true}, &rows);
    assert_true(tn_metrics_get(m, "gauc") == 0.75);
    assert_true(tn_metrics_get(m, "gauc_skipped") == 0);
}

TEST(m1_one_class_has_no_auc)
{
    static const char *const names[] = {"auc", "auc_error", "pr_auc", "ks", "gauc", "ne"};
    const float z[3] = {-1, 0, 1};
    const uint64_t group[3] = {1, 1, 2};
    for (int click = 0; click <= 1; click++) {
        const float y[3] = {(float)click, (float)click, (float)click};
        tn_scored rows = {.n = 3, .logit = z, .label = y, .group = group};
        for (int exact = 0; exact <= 1; exact++) {
            tn_metrics *m =
                metrics_of(&(tn_metrics_opts){.exact_auc = exact != 0, .grouped = true}, &rows);
            for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
                assert_true(isnan(tn_metrics_get(m, names[i])));
            }
            tn_metrics_free(m);
        }
    }
}

TEST(nothing_seen_has_no_value)
{
    tn_metrics *m FREED(tn_metrics_free) = NULL;
    assert_int_equal(
        tn_metrics_new(&m, &(tn_metrics_opts){.grouped = true, .exact_auc = true}, NULL), TN_OK);
    const float z = 1;
    const float y = 1;
    const float w = 0;
    const uint64_t group = 7;
    tn_scored row = {.n = 1, .logit = &z, .label = &y, .weight = &w, .group = &group};
    assert_int_equal(tn_metrics_add(m, &row, NULL), TN_OK);
    assert_int_equal(tn_metrics_rows(m), 0);
    for (const tn_metric *const *metric = tn_all_metrics; *metric != NULL; metric++) {
        assert_true(isnan(tn_metrics_get(m, (*metric)->name)));
        assert_non_null((*metric)->help);
    }
}

TEST(m2_p_of_exactly_0_and_1_and_all_ties)
{
    const float z[4] = {-1e30F, 1e30F, -3e38F, 3e38F};
    const float y[4] = {0, 1, 0, 1};
    tn_scored rows = {.n = 4, .logit = z, .label = y};
    for (int exact = 0; exact <= 1; exact++) {
        tn_metrics_opts opts = {.exact_auc = exact != 0};
        tn_metrics *m = metrics_of(&opts, &rows);
        assert_true(tn_metrics_get(m, "auc") == 1);
        assert_true(tn_metrics_get(m, "logloss") == 0);
        assert_true(tn_metrics_get(m, "pctr") == .5);
        tn_metrics_free(m);
        const float tied[4] = {2, 2, 2, 2};
        tn_scored ties = {.n = 4, .logit = tied, .label = y};
        m = metrics_of(&opts, &ties);
        assert_true(tn_metrics_get(m, "auc") == .5);
        tn_metrics_free(m);
    }
}

TEST(a_loss_beyond_64_bits_is_added_whole)
{
    const float z[3] = {1e6F, -2e6F, 0};
    const float y[3] = {0, 1, .5F};
    const float w[3] = {0x1p20F, 0x1p20F, 1};
    tn_metrics *m FREED(tn_metrics_free) = metrics_of(
        &(tn_metrics_opts){0}, &(tn_scored){.n = 3, .logit = z, .label = y, .weight = w});
    double weight = 2 * 0x1p20 + 1;
    double want = (0x1p20 * 3e6 + log(2)) / weight;
    assert_true(fabs(tn_metrics_get(m, "logloss") / want - 1) < 1e-14);
}

TEST(mape_needs_soft_labels)
{
    const float z[3] = {0, 0, 0};
    const float y[3] = {.25F, 1, 0};
    tn_metrics *m FREED(tn_metrics_free) =
        metrics_of(&(tn_metrics_opts){0}, &(tn_scored){.n = 3, .logit = z, .label = y});
    assert_close(tn_metrics_get(m, "mape"), (1 + .5) / 2);
}

TEST(d1_v24_sampled_negatives_are_corrected)
{
    const float z = .7F;
    const float y = 1;
    tn_metrics *m FREED(tn_metrics_free) = metrics_of(
        &(tn_metrics_opts){.sampling = .1}, &(tn_scored){.n = 1, .logit = &z, .label = &y});
    assert_close(tn_metrics_get(m, "pctr"), .167620623);
    uint32_t bin = (uint32_t)floor((-1.602585093 + 16) * 0x1p15);
    assert_int_equal(tn_metrics_histogram(m)[TN_BINS + bin], 1 << 16);
}

TEST(clipping_bounds_the_loss)
{
    const float z[2] = {100, -100};
    const float y[2] = {0, 0};
    tn_metrics *m =
        metrics_of(&(tn_metrics_opts){.clip = 1e-7}, &(tn_scored){.n = 2, .logit = z, .label = y});
    assert_close(tn_metrics_get(m, "logloss"), -(log(1e-7) + log(1 - 1e-7)) / 2);
    tn_metrics_free(m);
}

TEST(a_logit_that_is_not_finite_is_an_error)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    float z[200] = {0};
    const float y[200] = {0};
    tn_metrics *m FREED(tn_metrics_free) = NULL;
    assert_int_equal(tn_metrics_new(&m, &(tn_metrics_opts){0}, NULL), TN_OK);
    for (uint32_t i = 0; i < 3; i++) {
        z[150] = bad[i];
        tn_error err = {0};
        tn_scored rows = {.n = 200, .logit = z, .label = y};
        assert_int_equal(tn_metrics_add(m, &rows, &err), TN_E_DIVERGED);
        assert_non_null(strstr(err.text, "logit of row 150"));
    }
}

TEST(metrics_are_found_by_name)
{
    assert_non_null(tn_metric_find("auc"));
    assert_int_equal(tn_metric_find("auc")->best, TN_BEST_LARGEST);
    assert_int_equal(tn_metric_find("logloss")->best, TN_BEST_SMALLEST);
    assert_int_equal(tn_metric_find("copc")->best, TN_BEST_NEAREST_ONE);
    static const char *const means[] = {"auc_error", "gauc_skipped", "ctr",
                                        "pctr",      "label_mean",   "prediction_mean"};
    for (size_t i = 0; i < sizeof means / sizeof means[0]; i++) {
        assert_int_equal(tn_metric_find(means[i])->best, TN_BEST_NONE);
    }
    assert_null(tn_metric_find("acu"));
}
