/* test_metrics_merge.c - what integers promise: any order and any parts, one result. */
#include "base/math/fmath.h"
#include "metrics/metrics_state.h"
#include "metrics/v21.h"
#include "support/mallocs.h"
#include "support/test.h"

CLOSER(tn_metrics_free);

enum { MANY = 5000 };

/* Rows as a model might score them; seeded by `seed`. */
typedef struct random_rows {
    float logit[MANY], label[MANY], weight[MANY];
    uint64_t group[MANY];
    tn_scored rows;
} random_rows;

static void draw_rows(random_rows *r, uint64_t seed)
{
    print_message("seed %llu\n", (unsigned long long)seed);
    uint64_t s = tn_stream2(seed, TN_RNG_GENERATE, 0);
    for (uint32_t i = 0; i < MANY; i++) {
        double z = -2 + 3 * tn_normal(tn_draw(s, 4 * (uint64_t)i));
        r->logit[i] = (float)(rint(z * 64) / 64); /* with ties */
        r->label[i] = tn_unit(tn_draw(s, 4 * (uint64_t)i + 1)) < tn_sigmoid(z) ? 1 : 0;
        r->weight[i] = (float)tn_below(tn_draw(s, 4 * (uint64_t)i + 2), 5) / 2;
        r->group[i] = tn_below(tn_draw(s, 4 * (uint64_t)i + 3), 300);
    }
    r->rows = (tn_scored){
        .n = MANY, .logit = r->logit, .label = r->label, .weight = r->weight, .group = r->group};
}

static tn_scored part_of(const tn_scored *rows, uint32_t from, uint32_t n)
{
    return (tn_scored){.n = n,
                       .logit = rows->logit + from,
                       .label = rows->label + from,
                       .weight = rows->weight + from,
                       .group = rows->group + from};
}

static void assert_same_metrics(const tn_metrics *a, const tn_metrics *b)
{
    for (const tn_metric *const *metric = tn_all_metrics; *metric != NULL; metric++) {
        double x = tn_metrics_get(a, (*metric)->name);
        double y = tn_metrics_get(b, (*metric)->name);
        assert_memory_equal(&x, &y, sizeof x);
    }
}

TEST(m1_parts_in_any_order_equal_the_whole)
{
    random_rows r;
    draw_rows(&r, 11);
    const tn_scored parts[3] = {part_of(&r.rows, 0, 1), part_of(&r.rows, 1, 3000),
                                part_of(&r.rows, 3001, MANY - 3001)};
    tn_metrics *m[3];
    tn_metrics *whole = metrics_of(&(tn_metrics_opts){0}, &r.rows);
    for (uint32_t i = 0; i < 3; i++) {
        m[i] = metrics_of(&(tn_metrics_opts){0}, &parts[i]);
    }
    assert_int_equal(tn_metrics_merge(m[2], m[0], NULL), TN_OK);
    assert_int_equal(tn_metrics_merge(m[2], m[1], NULL), TN_OK);
    assert_same_metrics(whole, m[2]);
    for (uint32_t i = 0; i < 3; i++) {
        tn_metrics_free(m[i]);
    }
    tn_metrics_free(whole);
    for (int exact = 0; exact <= 1; exact++) { /* rows that are kept come into one object */
        const tn_metrics_opts opts = {.grouped = true, .exact_auc = exact != 0};
        whole = metrics_of(&opts, &r.rows);
        m[0] = metrics_of(&opts, &parts[2]);
        assert_int_equal(tn_metrics_add(m[0], &parts[0], NULL), TN_OK);
        assert_int_equal(tn_metrics_add(m[0], &parts[1], NULL), TN_OK);
        assert_same_metrics(whole, m[0]);
        tn_metrics_free(m[0]);
        tn_metrics_free(whole);
    }
}

TEST(m1_an_inverted_model_is_below_one_half)
{
    random_rows r;
    draw_rows(&r, 12);
    tn_metrics *m = metrics_of(&(tn_metrics_opts){0}, &r.rows);
    double auc = tn_metrics_get(m, "auc");
    tn_metrics_free(m);
    for (uint32_t i = 0; i < MANY; i++) {
        r.logit[i] = -r.logit[i] + 0x1p-20F; /* off the edges of bins */
    }
    m = metrics_of(&(tn_metrics_opts){.exact_auc = true}, &r.rows);
    assert_true(auc > .6);
    assert_close(tn_metrics_get(m, "auc"), 1 - auc);
    tn_metrics_free(m);
}

TEST(m3_weight_2_equals_the_row_twice)
{
    random_rows r;
    draw_rows(&r, 13);
    tn_metrics *m FREED(tn_metrics_free) = NULL;
    tn_metrics *twice FREED(tn_metrics_free) = NULL;
    tn_metrics_opts opts = {.exact_auc = true, .grouped = true};
    assert_int_equal(tn_metrics_new(&m, &opts, NULL), TN_OK);
    assert_int_equal(tn_metrics_new(&twice, &opts, NULL), TN_OK);
    r.rows.n = 1000;
    for (uint32_t i = 0; i < r.rows.n; i++) {
        r.weight[i] = 2;
    }
    assert_int_equal(tn_metrics_add(m, &r.rows, NULL), TN_OK);
    r.rows.weight = NULL;
    assert_int_equal(tn_metrics_add(twice, &r.rows, NULL), TN_OK);
    assert_int_equal(tn_metrics_add(twice, &r.rows, NULL), TN_OK);
    for (const tn_metric *const *metric = tn_all_metrics; *metric != NULL; metric++) {
        double x = tn_metrics_get(m, (*metric)->name);
        double y = tn_metrics_get(twice, (*metric)->name);
        /* 2^-32 per row; the best rows of a group are rows, whatever they weigh */
        const bool places = strstr("ndcg mrr recall hit_rate", (*metric)->name) != NULL;
        assert_true((isnan(x) && isnan(y)) || fabs(x - y) < 1e-9 || places);
    }
    assert_true(tn_metrics_get(m, "auc") == tn_metrics_get(twice, "auc"));
}

TEST(m3_a_hundred_million_rows_lose_nothing)
{
    const float z = -3.25F;
    const float y = 0;
    tn_scored row = {.n = 1, .logit = &z, .label = &y};
    tn_metrics_opts opts = {.coarse = true};
    tn_metrics *a FREED(tn_metrics_free) = metrics_of(&opts, &row);
    uint64_t one[TN_SAVED_SUMS][2];
    uint64_t sums[TN_SAVED_SUMS][2];
    tn_metrics_sums(a, one);
    tn_metrics *b FREED(tn_metrics_free) = metrics_of(&opts, &row);
    while (tn_metrics_rows(a) < 100000000) { /* Fibonacci */
        assert_int_equal(tn_metrics_merge(a, b, NULL), TN_OK);
        assert_int_equal(tn_metrics_merge(b, a, NULL), TN_OK);
    }
    tn_metrics_sums(a, sums);
    for (uint32_t k = 0; k < TN_SAVED_SUMS; k++) {
        tn_u128 want = (tn_u128)one[k][0] * tn_metrics_rows(a);
        assert_int_equal(sums[k][0], (uint64_t)want);
        assert_int_equal(sums[k][1], (uint64_t)(want >> 64));
    }
    assert_close(tn_metrics_get(a, "pctr"), 1 / (1 + exp(3.25)));
}

TEST(weights_beyond_the_limit_are_refused)
{
    const float z = 0;
    const float y = 0;
    const float w = 0x1p20F;
    tn_scored row = {.n = 1, .logit = &z, .label = &y, .weight = &w};
    tn_metrics_opts opts = {.coarse = true};
    tn_metrics *a FREED(tn_metrics_free) = metrics_of(&opts, &row);
    tn_metrics *b FREED(tn_metrics_free) = metrics_of(&opts, &row);
    tn_error err = {0};
    tn_status status = TN_OK;
    uint32_t rounds = 0;
    for (; status == TN_OK && rounds < 64; rounds++) {
        status = tn_metrics_merge(a, b, &err);
        if (status == TN_OK) {
            status = tn_metrics_merge(b, a, &err);
        }
    }
    assert_int_equal(status, TN_E_LIMIT);
    assert_in_range(rounds, 15, 25); /* 2^26 rows */
}

TEST(a_restored_state_goes_on_as_if_never_stopped)
{
    random_rows r;
    draw_rows(&r, 14);
    tn_metrics_opts opts = {0};
    tn_metrics *whole FREED(tn_metrics_free) = metrics_of(&opts, &r.rows);
    tn_scored first = part_of(&r.rows, 0, 2000);
    tn_scored second = part_of(&r.rows, 2000, MANY - 2000);
    tn_metrics *before FREED(tn_metrics_free) = metrics_of(&opts, &first);
    uint64_t sums[6][2];
    tn_metrics_sums(before, sums);
    tn_metrics *after FREED(tn_metrics_free) =
        metrics_of(&opts, &second); /* forgotten by restore */
    tn_metrics_restore(after, tn_metrics_histogram(before), &sums[0][0]);
    assert_int_equal(tn_metrics_add(after, &second, NULL), TN_OK);
    static const char *const names[] = {"auc",  "auc_error", "logloss", "copc", "ctr",
                                        "pctr", "mse",       "mae",     "ne"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        double x = tn_metrics_get(whole, names[i]);
        double y = tn_metrics_get(after, names[i]);
        assert_memory_equal(&x, &y, sizeof x);
    }
    assert_true(
        isnan(tn_metrics_get(after, "ece"))); /* not kept: no value rather than a wrong one */
}

TEST(the_histogram_is_within_its_error_of_the_exact_auc)
{
    random_rows r;
    draw_rows(&r, 15);
    tn_metrics *exact FREED(tn_metrics_free) =
        metrics_of(&(tn_metrics_opts){.exact_auc = true}, &r.rows);
    for (int coarse = 0; coarse <= 1; coarse++) {
        tn_metrics *m FREED(tn_metrics_free) =
            metrics_of(&(tn_metrics_opts){.coarse = coarse != 0}, &r.rows);
        double off = fabs(tn_metrics_get(m, "auc") - tn_metrics_get(exact, "auc"));
        assert_true(off <= tn_metrics_get(m, "auc_error") + 1e-12);
        assert_true(tn_metrics_get(m, "auc_error") < .01);
    }
    assert_true(tn_metrics_get(exact, "auc_error") == 0);
}

TEST(a_warm_step_allocates_nothing)
{
    random_rows r;
    draw_rows(&r, 17);
    tn_metrics *m FREED(tn_metrics_free) = metrics_of(&(tn_metrics_opts){0}, &r.rows);
    uint64_t before = tn_mallocs();
    for (uint32_t i = 0; i < 20; i++) {
        assert_int_equal(tn_metrics_add(m, &r.rows, NULL), TN_OK);
        assert_true(tn_metrics_get(m, "auc") > .5);
        tn_metrics_clear(m);
    }
    assert_int_equal(tn_mallocs() - before, 0);
}

TEST(every_allocation_that_fails_is_reported)
{
    random_rows r;
    draw_rows(&r, 16);
    tn_metrics_opts opts = {.exact_auc = true, .grouped = true};
    tn_status status = TN_E_MEMORY;
    for (uint64_t nth = 1; status != TN_OK; nth++) {
        tn_metrics *m FREED(tn_metrics_free) = NULL;
        tn_error err = {0};
        tn_alloc_fail_at(nth);
        status = tn_metrics_new(&m, &opts, &err);
        if (status == TN_OK) {
            status = tn_metrics_add(m, &r.rows, &err);
        }
        tn_alloc_fail_at(0);
        assert_true(status == TN_OK || status == TN_E_MEMORY);
        assert_in_range(nth, 1, 10);
    }
}
