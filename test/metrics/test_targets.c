/* test_targets.c - metrics of numbers, of sides and of orders: sums made by hand, pairs counted one
 * by one, and what does not fit a target. */
#include "base/math/key.h"
#include "metrics/metrics_pack.h"
#include "metrics/slices.h"
#include "metrics/v21.h"
#include "support/test.h"

CLOSER(tn_metrics_free);

static const tn_metrics_opts numbers = {.target = TN_TARGET_NUMBER};

TEST(errors_of_numbers_are_those_of_the_scores)
{
    const float z[] = {1.5F, -3, 250, 0};
    const float y[] = {1, -4, 200, 0};
    const float w[] = {1, 2, .5F, 4};
    tn_metrics *m FREED(tn_metrics_free) =
        metrics_of(&numbers, &(tn_scored){4, z, y, w, NULL, NULL});
    const double sum = .25 + 2 * 1 + .5 * 2500;
    assert_close(tn_metrics_get(m, "mse"), sum / 7.5);
    assert_close(tn_metrics_get(m, "rmse"), sqrt(sum / 7.5));
    assert_close(tn_metrics_get(m, "mae"), (.5 + 2 * 1 + .5 * 50) / 7.5);
    assert_close(tn_metrics_get(m, "label_mean"), (1 - 2 * 4 + .5 * 200) / 7.5);
    assert_close(tn_metrics_get(m, "prediction_mean"), (1.5 - 2 * 3 + .5 * 250) / 7.5);
    assert_close(tn_metrics_get(m, "mape"), (.5 + 2 * .25 + .5 * .25) / 3.5); /* not of label 0 */
}

TEST(what_does_not_fit_a_target_is_not_defined)
{
    const float z[] = {.5F, -1};
    const float y[] = {1, 0};
    static const char *const fits[TN_TARGETS][2] = {
        [TN_TARGET_CLICK] = {"logloss", "label_mean"},
        [TN_TARGET_SIDE] = {"accuracy", "logloss"},
        [TN_TARGET_NUMBER] = {"rmse", "auc"},
        [TN_TARGET_ORDER] = {"auc", "accuracy"},
    };
    for (uint32_t t = 0; t < TN_TARGETS; t++) {
        const tn_metrics_opts opts = {.target = (tn_target)t};
        tn_metrics *m FREED(tn_metrics_free) =
            metrics_of(&opts, &(tn_scored){2, z, y, NULL, NULL, NULL});
        assert_true(tn_metric_fits(fits[t][0], (tn_target)t));
        assert_true(!isnan(tn_metrics_get(m, fits[t][0])));
        assert_false(tn_metric_fits(fits[t][1], (tn_target)t));
        assert_true(isnan(tn_metrics_get(m, fits[t][1])));
    }
}

/* A hinge's margin decides by its sign. */
TEST(sides_are_told_by_the_sign)
{
    const float z[] = {3, .01F, -.01F, -50};
    const float y[] = {1, 1, 1, 0};
    const tn_metrics_opts sides = {.target = TN_TARGET_SIDE};
    tn_metrics *m FREED(tn_metrics_free) =
        metrics_of(&sides, &(tn_scored){4, z, y, NULL, NULL, NULL});
    assert_close(tn_metrics_get(m, "accuracy"), .75);
    assert_close(tn_metrics_get(m, "auc"), 1);
    assert_close(tn_metrics_get(m, "ctr"), .75);
}

/* Sums of numbers may be negative: they merge, travel and are subtracted as others. */
TEST(negative_sums_merge_and_travel)
{
    const float z[] = {-10, 4, -7};
    const float y[] = {-11, 3, -6};
    tn_metrics *one FREED(tn_metrics_free) =
        metrics_of(&numbers, &(tn_scored){2, z, y, NULL, NULL, NULL});
    tn_metrics *two FREED(tn_metrics_free) =
        metrics_of(&numbers, &(tn_scored){1, z + 2, y + 2, NULL, NULL, NULL});
    tn_metrics *sum FREED(tn_metrics_free) =
        metrics_of(&numbers, &(tn_scored){0, z, y, NULL, NULL, NULL});
    tn_text bytes CLEANUP(tn_text_done) = {0};
    tn_metrics_pack(one, &bytes);
    assert_int_equal(tn_metrics_unpack(sum, bytes.data, bytes.size, NULL), TN_OK);
    assert_int_equal(tn_metrics_merge(sum, two, NULL), TN_OK);
    assert_close(tn_metrics_get(sum, "label_mean"), -14.0 / 3);
    assert_close(tn_metrics_get(sum, "prediction_mean"), -13.0 / 3);
    tn_metrics_subtract(sum, one);
    assert_close(tn_metrics_get(sum, "label_mean"), -6);
    assert_close(tn_metrics_get(sum, "prediction_mean"), -7);
    assert_close(tn_metrics_get(sum, "rmse"), 1);
}

TEST(errors_beyond_the_room_of_a_sum_are_told)
{
    const float y[] = {(float)TN_LABEL_MAX};
    const float near[] = {(float)-TN_LABEL_MAX};
    const float far[] = {-4e9F};
    tn_error err = {0};
    tn_metrics *m FREED(tn_metrics_free) = NULL;
    assert_int_equal(tn_metrics_new(&m, &numbers, &err), TN_OK);
    assert_int_equal(tn_metrics_add(m, &(tn_scored){1, near, y, NULL, NULL, NULL}, &err), TN_OK);
    assert_close(tn_metrics_get(m, "rmse") / 2e9, 1);
    assert_int_equal(tn_metrics_add(m, &(tn_scored){1, far, y, NULL, NULL, NULL}, &err),
                     TN_E_DIVERGED);
    assert_non_null(strstr(err.text, "prediction -4e+09, label 1e+09, weight 1: too far apart"));
    const float weight[] = {16};
    assert_int_equal(tn_metrics_add(m, &(tn_scored){1, near, y, weight, NULL, NULL}, &err),
                     TN_E_LIMIT);
}

/* Without an error that is large, too. */
TEST(large_negative_numbers_have_room)
{
    const float y[] = {(float)-TN_LABEL_MAX};
    tn_metrics *m FREED(tn_metrics_free) =
        metrics_of(&numbers, &(tn_scored){1, y, y, NULL, NULL, NULL});
    assert_close(tn_metrics_get(m, "rmse"), 0);
    assert_close(tn_metrics_get(m, "label_mean") / -1e9, 1);
    assert_close(tn_metrics_get(m, "prediction_mean") / -1e9, 1);
}

TEST(slices_of_numbers_are_numbers)
{
    const float z[] = {-10, 4, -7};
    const float y[] = {-11, 3, -5};
    const uint64_t sign[] = {5, 5, 6};
    tn_error err = {0};
    tn_slices *s = NULL;
    tn_slice out[3];
    uint32_t n = 0;
    const tn_slices_opts opts = {.slices_max = 8, .target = TN_TARGET_NUMBER};
    assert_int_equal(tn_slices_new(&s, &opts, &err), TN_OK);
    assert_ok(tn_slices_add(s, &(tn_scored){3, z, y, NULL, NULL, NULL},
                            &(tn_slice_keys){.sign = sign}, &err),
              err.text);
    assert_int_equal(tn_slices_report(s, out, &n, &err), TN_OK);
    assert_int_equal(n, 2);
    assert_close(tn_metrics_get(out[0].metrics, "mae"), 1);
    assert_close(tn_metrics_get(out[0].metrics, "label_mean"), -4);
    assert_close(tn_metrics_get(out[1].metrics, "mae"), 2);
    tn_slices_free(s);
}

/* ---- pairs ---- */

static double pair_accuracy(const tn_scored *rows)
{
    const tn_metrics_opts opts = {.target = TN_TARGET_ORDER, .grouped = true};
    tn_metrics *m FREED(tn_metrics_free) = metrics_of(&opts, rows);
    const double value = tn_metrics_get(m, "pairwise_accuracy");
    return value;
}

TEST(binary_labels_make_pairs_of_gauc)
{
    v21 v;
    v21_init(&v);
    v.rows.group = v.group;
    assert_close(pair_accuracy(&v.rows), .71875); /* numerics.md, V21 */
    v.rows.group = v.group_last;
    assert_close(pair_accuracy(&v.rows), .625);
    v.rows.weight = v.weight;
    assert_close(pair_accuracy(&v.rows), .633333333);
}

enum { MANY = 500, GROUPS = 7 };

typedef struct tally {
    double pairs, right;
} tally;

/* Row i with all lower ones of its group, one by one: right pairs count their weights, ties half.
 */
static void count_row(const tn_scored *r, uint32_t i, tally *t)
{
    for (uint32_t j = 0; j < r->n; j++) {
        if (r->group[j] == r->group[i] && r->label[i] > r->label[j]) {
            const double w = (double)r->weight[i] * (double)r->weight[j];
            t->pairs += w;
            t->right += r->logit[i] > r->logit[j] ? w : r->logit[i] == r->logit[j] ? w / 2 : 0;
        }
    }
}

/* A group counts as its rows. */
static double counted(const tn_scored *r)
{
    double all = 0;
    double sum = 0;
    for (uint64_t g = 0; g < GROUPS; g++) {
        tally t = {0};
        double weight = 0;
        for (uint32_t i = 0; i < r->n; i++) {
            if (r->group[i] == g) {
                weight += (double)r->weight[i];
                count_row(r, i, &t);
            }
        }
        all += t.pairs > 0 ? weight : 0;
        sum += t.pairs > 0 ? weight * t.right / t.pairs : 0;
    }
    return sum / all;
}

TEST(pairs_of_any_labels_are_counted)
{
    static float z[MANY];
    static float y[MANY];
    static float w[MANY];
    static uint64_t group[MANY];
    const uint64_t s = tn_stream2(42, TN_RNG_GENERATE, 0);
    for (uint32_t i = 0; i < MANY; i++) {
        const double noise = tn_unit(tn_draw(s, 4 * (uint64_t)i));
        y[i] = (float)floor(9 * tn_unit(tn_draw(s, 4 * (uint64_t)i + 1))) / 2 - 3;
        z[i] = (float)(floor(20 * (noise + (double)y[i] / 6)) / 8);
        w[i] = 1 + (float)(i % 3) / 4;
        group[i] = tn_below(tn_draw(s, 4 * (uint64_t)i + 2), GROUPS);
    }
    const tn_scored rows = {MANY, z, y, w, group, NULL};
    const double want = counted(&rows);
    assert_in_range((int)(100 * want), 55, 95); /* a test of something */
    assert_close(pair_accuracy(&rows), want);
}

TEST(groups_without_pairs_say_nothing)
{
    const float z[] = {1, 2, 3};
    const float y[] = {2, 2, 5};
    const tn_scored equal = {2, z, y, NULL, (const uint64_t[]){1, 1}, NULL};
    const tn_scored apart = {3, z, y, NULL, (const uint64_t[]){1, 1, 2}, NULL};
    const tn_scored none = {
        3, z, y, NULL, (const uint64_t[]){TN_NO_GROUP, TN_NO_GROUP, TN_NO_GROUP}, NULL};
    assert_true(isnan(pair_accuracy(&equal)));
    assert_true(isnan(pair_accuracy(&apart)));
    assert_true(isnan(pair_accuracy(&none)));
}
