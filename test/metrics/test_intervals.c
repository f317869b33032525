/* test_intervals.c - intervals of an AUC, by DeLong and by replicates. */
#include "metrics/intervals.h"

#include "base/math/fmath.h"
#include "base/math/rng.h"
#include "metrics/v21.h"
#include "support/test.h"

#include <math.h>

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

static void v23_delong(void **state)
{
    (void)state;
    v21 v;
    v21_init(&v);
    v.rows.weight = v.weight; /* rows count once each all the same */
    tn_metrics *m = metrics_of(&(tn_metrics_opts){.exact_auc = true}, &v.rows);
    tn_interval i = tn_interval_delong(m);
    assert_close(i.value, .78125);
    assert_close(i.variance, .030598958);
    assert_close(i.low, .324496422);
    assert_close(i.high, .963705352);
    tn_metrics_free(m);
}

static void delong_has_no_value_for_one_class(void **state)
{
    (void)state;
    const float z[2] = {1, 2};
    const float y[2] = {1, 1};
    tn_metrics *m = metrics_of(&(tn_metrics_opts){.exact_auc = true},
                               &(tn_scored){.n = 2, .logit = z, .label = y});
    tn_interval i = tn_interval_delong(m);
    assert_true(isnan(i.value) && isnan(i.low) && isnan(i.high) && isnan(i.variance));
    i = tn_interval_bootstrap(m, 1);
    assert_true(isnan(i.value) && isnan(i.low) && isnan(i.high) && isnan(i.variance));
    tn_metrics_free(m);
}

static void poisson_draws_follow_their_distribution(void **state)
{
    (void)state;
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

static void bootstrap_agrees_with_delong(void **state)
{
    (void)state;
    noisy_rows p;
    draw_rows(&p, 31);
    tn_metrics *m = exact(&p);
    tn_interval d = tn_interval_delong(m);
    tn_interval i;
    tn_interval again;
    i = tn_interval_bootstrap(m, 5);
    assert_close(i.value, d.value);
    assert_true(i.low < i.value && i.value < i.high);
    assert_true(fabs(sqrt(i.variance / d.variance) - 1) < .12);
    assert_true(fabs(i.low - d.low) < .3 * (d.high - d.low));
    assert_true(tn_metrics_get(m, "gauc") > .5); /* sorts the rows otherwise */
    again = tn_interval_bootstrap(m, 5);
    assert_memory_equal(&i, &again, sizeof i);
    tn_metrics_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(v23_delong),
        cmocka_unit_test(delong_has_no_value_for_one_class),
        cmocka_unit_test(poisson_draws_follow_their_distribution),
        cmocka_unit_test(bootstrap_agrees_with_delong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
