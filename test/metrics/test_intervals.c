/* test_intervals.c - intervals of an AUC, by DeLong and by replicates. */
#include "metrics/intervals.h"

#include "base/math/fmath.h"
#include "metrics/v21.h"
#include "support/test.h"

CLOSER(tn_metrics_free);

enum { MANY = 2000 };

/* Rows of a model that sees the truth through noise. */
typedef struct noisy_rows {
    float logit[MANY], label[MANY];
    uint64_t group[MANY];
} noisy_rows;

static void draw_rows(noisy_rows *p, uint64_t seed)
{
    uint64_t s = tn_stream2(seed, TN_RNG_GENERATE, 1);
    for (uint32_t i = 0; i < MANY; i++) {
        uint64_t at = 4 * (uint64_t)i;
        double z = tn_normal(tn_draw(s, at));
        p->label[i] = tn_unit(tn_draw(s, at + 1)) < tn_sigmoid(2 * z - 1) ? 1 : 0;
        p->logit[i] = (float)(z + .3 * tn_normal(tn_draw(s, at + 2)));
        p->group[i] = i / 4;
    }
}

static tn_metrics *exact(const noisy_rows *p)
{
    return metrics_of(
        &(tn_metrics_opts){.exact_auc = true, .grouped = true},
        &(tn_scored){.n = MANY, .logit = p->logit, .label = p->label, .group = p->group});
}

TEST(v23_delong)
{
    v21 v;
    v21_init(&v);
    v.rows.weight = v.weight; /* rows count once each all the same */
    tn_metrics *m FREED(tn_metrics_free) =
        metrics_of(&(tn_metrics_opts){.exact_auc = true}, &v.rows);
    tn_interval i = tn_interval_delong(m);
    assert_close(i.value, .78125);
    assert_close(i.variance, .030598958);
    assert_close(i.low, .324496422);
    assert_close(i.high, .963705352);
}

TEST(delong_has_no_value_for_one_class)
{
    const float z[2] = {1, 2};
    const float y[2] = {1, 1};
    tn_metrics *m FREED(tn_metrics_free) = metrics_of(&(tn_metrics_opts){.exact_auc = true},
                                                      &(tn_scored){.n = 2, .logit = z, .label = y});
    tn_interval i = tn_interval_delong(m);
    assert_true(isnan(i.value) && isnan(i.low) && isnan(i.high) && isnan(i.variance));
    i = tn_interval_bootstrap(m, NULL, 1);
    assert_true(isnan(i.value) && isnan(i.low) && isnan(i.high) && isnan(i.variance));
}

TEST(poisson_draws_follow_their_distribution)
{
    double p = exp(-1);
    double below = 0;
    for (uint32_t k = 0; k < 12; k++) {
        assert_int_equal(tn_poisson1(below + p * 1e-3), k);
        below += p;
        assert_int_equal(tn_poisson1(below - p * 1e-3), k);
        p /= k + 1;
    }
    assert_int_equal(tn_poisson1(0), 0);
    assert_in_range(tn_poisson1(1 - 0x1p-53), 16, 20);
}

TEST(bootstrap_agrees_with_delong)
{
    noisy_rows p;
    draw_rows(&p, 31);
    tn_metrics *m FREED(tn_metrics_free) = exact(&p);
    tn_interval d = tn_interval_delong(m);
    tn_interval i;
    tn_interval again;
    i = tn_interval_bootstrap(m, NULL, 5);
    assert_close(i.value, d.value);
    assert_true(i.low < i.value && i.value < i.high);
    assert_true(fabs(sqrt(i.variance / d.variance) - 1) < .12);
    assert_true(fabs(i.low - d.low) < .3 * (d.high - d.low));
    assert_true(tn_metrics_get(m, "gauc") > .5); /* sorts the rows otherwise */
    again = tn_interval_bootstrap(m, NULL, 5);
    assert_memory_equal(&i, &again, sizeof i);
}

/* Two models on the same rows: values and intervals by R 4.2, pROC 1.18.0,
 * roc.test(method = "delong", paired = TRUE). */
enum { PAIRED = 20 };
static const float pair_label[PAIRED] = {0, 0, 1, 0, 1, 0, 1, 1, 0, 0,
                                         1, 0, 1, 0, 0, 1, 1, 0, 0, 1};
static const float pair_logit[2][PAIRED] = {
    {1, 2, 2, 1, 4, 3, 5, 3, 2, 4, 5, 1, 2, 0, 3, 4, 1, 2, 0, 5},
    {2, 1, 3, 1, 2, 4, 3, 3, 3, 1, 2, 2, 4, 1, 3, 2, 3, 2, 2, 1}};

static tn_metrics *exact_of(uint32_t n, const float *logit, const float *label, const float *weight)
{
    return metrics_of(&(tn_metrics_opts){.exact_auc = true},
                      &(tn_scored){.n = n, .logit = logit, .label = label, .weight = weight});
}

TEST(the_difference_of_two_models_is_that_of_proc)
{
    tn_metrics *a FREED(tn_metrics_free) = exact_of(PAIRED, pair_logit[0], pair_label, NULL);
    tn_metrics *b FREED(tn_metrics_free) = exact_of(PAIRED, pair_logit[1], pair_label, NULL);
    double p = 0;
    const tn_interval i = tn_interval_delong_change(a, b, &p);
    assert_close(i.value, .131313131313);
    assert_close(i.variance, .028905213753);
    assert_close(i.low, -.201910799908);
    assert_close(i.high, .464537062533);
    assert_close(p, .439900931331);
}

/* How two rows compare: 1, ties half, 0. */
static double order(float pos, float neg)
{
    return pos > neg ? 1 : pos == neg ? 0.5 : 0;
}

/* The share of the rows of the other class that stand on the right side of row i. */
static double placement(const float *z, const float *y, uint32_t n, uint32_t i)
{
    double sum = 0;
    uint32_t others = 0;
    for (uint32_t k = 0; k < n; k++) {
        if ((y[k] > .5F) != (y[i] > .5F)) {
            sum += y[i] > .5F ? order(z[i], z[k]) : order(z[k], z[i]);
            others++;
        }
    }
    return sum / others;
}

/* The covariance of two rows of placements. */
static double covariance(const double *a, const double *b, uint32_t n)
{
    double mean[2] = {0};
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        mean[0] += a[i] / n;
        mean[1] += b[i] / n;
    }
    for (uint32_t i = 0; i < n; i++) {
        sum += (a[i] - mean[0]) * (b[i] - mean[1]) / (n - 1);
    }
    return sum;
}

/* DeLong's paper to the letter: the placements of each row of either class by pairs, both models'
 * covariances, and the contrast of (1, -1). */
static double variance_by_pairs(const float *const z[2], const float *y, uint32_t n, double auc[2])
{
    double total = 0;
    for (int side = 0; side < 2; side++) {
        double place[2][MANY];
        uint32_t rows = 0;
        auc[0] = 0;
        auc[1] = 0;
        for (uint32_t i = 0; i < n; i++) {
            if ((y[i] > .5F) == (side == 1)) {
                for (int m = 0; m < 2; m++) {
                    place[m][rows] = placement(z[m], y, n, i);
                    auc[m] += place[m][rows];
                }
                rows++;
            }
        }
        auc[0] /= rows;
        auc[1] /= rows;
        total += (covariance(place[0], place[0], rows) - 2 * covariance(place[0], place[1], rows) +
                  covariance(place[1], place[1], rows)) /
                 rows;
    }
    return total;
}

TEST(the_difference_is_that_of_all_pairs)
{
    enum { ROWS = 60 };
    for (uint64_t seed = 1; seed <= 20; seed++) {
        float z[2][ROWS];
        float y[ROWS];
        float w[ROWS];
        const uint64_t s = tn_stream2(seed, TN_RNG_GENERATE, 2);
        for (uint32_t i = 0; i < ROWS; i++) {
            const uint64_t at = 4 * (uint64_t)i;
            z[0][i] = (float)(tn_draw(s, at) % 6); /* ties */
            z[1][i] = seed % 2 == 0 ? z[0][i] : (float)tn_unit(tn_draw(s, at + 1));
            y[i] = (float)(tn_draw(s, at + 2) % 2);
            w[i] = (float)(1 + tn_draw(s, at + 3) % 3); /* do not count */
        }
        z[1][0] += 1;
        tn_metrics *a FREED(tn_metrics_free) = exact_of(ROWS, z[0], y, w);
        tn_metrics *b FREED(tn_metrics_free) = exact_of(ROWS, z[1], y, w);
        const float *const both[2] = {z[0], z[1]};
        double auc[2];
        double p = 0;
        const tn_interval i = tn_interval_delong_change(a, b, &p);
        const double variance = variance_by_pairs(both, y, ROWS, auc);
        assert_true(fabs(i.value - (auc[0] - auc[1])) < 1e-12);
        assert_true(fabs(i.variance - variance) < 1e-12);
        assert_true(fabs(p - erfc(fabs(i.value) / sqrt(2 * variance))) < 1e-9);
    }
}

TEST(a_model_does_not_differ_from_itself)
{
    tn_metrics *a FREED(tn_metrics_free) = exact_of(PAIRED, pair_logit[0], pair_label, NULL);
    tn_metrics *b FREED(tn_metrics_free) = exact_of(PAIRED, pair_logit[0], pair_label, NULL);
    double p = 0;
    tn_interval i = tn_interval_delong_change(a, b, &p);
    assert_true(p == 1 && i.value == 0 && i.low == 0 && i.high == 0 && i.variance == 0);
    i = tn_interval_bootstrap(a, b, 7);
    assert_true(i.value == 0 && i.low == 0 && i.high == 0 && i.variance == 0);
}

/* Both see the same truth with little noise of their own, so what a difference varies by is far
 * less than what either AUC does: replicates that were not paired would show. */
TEST(paired_replicates_agree_with_delong)
{
    noisy_rows p;
    draw_rows(&p, 32);
    float z[MANY];
    for (uint32_t i = 0; i < MANY; i++) {
        z[i] = p.logit[i] + (float)(.3 * tn_normal(tn_draw(tn_stream0(9), i)));
    }
    tn_metrics *a FREED(tn_metrics_free) = exact(&p);
    tn_metrics *b FREED(tn_metrics_free) = exact_of(MANY, z, p.label, NULL);
    double value = 0;
    const tn_interval d = tn_interval_delong_change(a, b, &value);
    const tn_interval r = tn_interval_bootstrap(a, b, 5);
    assert_close(r.value, d.value);
    assert_true(fabs(sqrt(r.variance / d.variance) - 1) < .15);
    assert_true(fabs(r.low - d.low) < .3 * (d.high - d.low));
    assert_true(r.variance < .3 * tn_interval_bootstrap(a, NULL, 5).variance);
}

TEST(a_mean_is_drawn_as_its_standard_error_says)
{
    static tn_mean_draws d;
    double sum = 0;
    double squares = 0;
    for (uint32_t i = 0; i < MANY; i++) {
        const double x = 2 + tn_normal(tn_draw(tn_stream0(3), i));
        sum += x;
        squares += x * x;
        tn_mean_draws_add(&d, 11, 1, x);
    }
    const double mean = sum / MANY;
    const double sigma = sqrt((squares / MANY - mean * mean) / MANY);
    const tn_interval i = tn_mean_draws_end(&d);
    const tn_interval n = tn_interval_normal(mean, sigma * sigma);
    assert_close(i.value, mean);
    assert_true(fabs(sqrt(i.variance) / sigma - 1) < .15);
    assert_true(fabs(i.low - n.low) < sigma && fabs(i.high - n.high) < sigma);
    assert_close(n.high - n.low, 2 * 1.959963985 * sigma);
}

TEST(weights_count_in_a_drawn_mean)
{
    static tn_mean_draws d;
    for (uint32_t i = 0; i < 100; i++) {
        tn_mean_draws_add(&d, 11, i % 2 == 0 ? 3 : 1, i % 2 == 0 ? 1 : 5);
    }
    const tn_interval i = tn_mean_draws_end(&d);
    assert_close(i.value, 2);
    assert_true(i.low > 1 && i.low < 2 && i.high > 2 && i.high < 3);
}

/* Newcombe 1998, table I: 81 of 263, 15 of 148, 0 of 20 and 1 of 29, method 3. */
TEST(wilson_intervals_are_those_of_newcombe)
{
    static const double of[][4] = {
        {81, 263, .2553, .3662}, {15, 148, .0624, .1605}, {0, 20, 0, .1611}, {1, 29, .0061, .1718}};
    for (size_t k = 0; k < sizeof of / sizeof of[0]; k++) {
        const tn_interval i = tn_interval_wilson(of[k][0] / of[k][1], of[k][1]);
        assert_true(fabs(i.low - of[k][2]) < 5.1e-5 && fabs(i.high - of[k][3]) < 5.1e-5);
    }
    assert_close(tn_interval_wilson(1, 20).high, 1);
}
