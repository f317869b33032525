/* test_slices.c - metrics per value: each equals those of its rows alone, memory is bounded. */
#include "metrics/slices.h"

#include "metrics/v21.h"
#include "support/test.h"

CLOSER(tn_metrics_free);
CLOSER(tn_slices_free);

enum { MANY = 2000, VALUES = 9 };

typedef struct random_rows {
    float logit[MANY], label[MANY], weight[MANY];
    uint64_t sign[MANY];
    tn_scored rows;
} random_rows;

static void draw_rows(random_rows *r, uint64_t seed)
{
    print_message("seed %llu\n", (unsigned long long)seed);
    uint64_t s = tn_stream2(seed, TN_RNG_GENERATE, 0);
    for (uint32_t i = 0; i < MANY; i++) {
        uint64_t at = 4 * (uint64_t)i;
        r->logit[i] = (float)(-1 + 2 * tn_normal(tn_draw(s, at)));
        r->label[i] = tn_unit(tn_draw(s, at + 1)) < .3 ? 1 : 0;
        r->weight[i] = (float)tn_below(tn_draw(s, at + 2), 4);
        uint64_t u = tn_below(tn_draw(s, at + 3), (uint64_t)VALUES * VALUES);
        r->sign[i] = (uint64_t)sqrt((double)u) * UINT64_C(0x1000000000000001); /* not alike often */
    }
    r->rows = (tn_scored){.n = MANY, .logit = r->logit, .label = r->label, .weight = r->weight};
}

/* Metrics of the rows that have a sign, by another way than slices. */
static tn_metrics *rows_with(const random_rows *r, uint64_t sign)
{
    float weight[MANY];
    for (uint32_t i = 0; i < MANY; i++) {
        weight[i] = r->sign[i] == sign ? r->weight[i] : 0;
    }
    tn_scored rows = r->rows;
    rows.weight = weight;
    return metrics_of(&(tn_metrics_opts){.coarse = true}, &rows);
}

static void assert_same_metrics(const tn_metrics *a, const tn_metrics *b)
{
    assert_int_equal(tn_metrics_rows(a), tn_metrics_rows(b));
    for (const tn_metric *const *metric = tn_all_metrics; *metric != NULL; metric++) {
        double x = tn_metrics_get(a, (*metric)->name);
        double y = tn_metrics_get(b, (*metric)->name);
        assert_memory_equal(&x, &y, sizeof x);
    }
}

static tn_slices *slices_of(const tn_slices_opts *opts, const random_rows *r)
{
    tn_slices *s = NULL;
    assert_int_equal(tn_slices_new(&s, opts, NULL), TN_OK);
    assert_int_equal(tn_slices_add(s, &r->rows, &(tn_slice_keys){.sign = r->sign}, NULL), TN_OK);
    return s;
}

TEST(a_slice_equals_its_rows_alone)
{
    random_rows r;
    draw_rows(&r, 21);
    tn_slices *s FREED(tn_slices_free) = slices_of(&(tn_slices_opts){.slices_max = 16}, &r);
    tn_slice out[17];
    uint32_t n = 0;
    assert_int_equal(tn_slices_count(s), VALUES);
    assert_int_equal(tn_slices_report(s, out, &n, NULL), TN_OK);
    assert_int_equal(n, VALUES);
    for (uint32_t i = 0; i < n; i++) {
        assert_false(out[i].is_other);
        assert_true(i == 0 ||
                    tn_metrics_rows(out[i].metrics) <= tn_metrics_rows(out[i - 1].metrics));
        tn_metrics *want FREED(tn_metrics_free) = rows_with(&r, out[i].sign);
        assert_same_metrics(out[i].metrics, want);
    }
}

TEST(small_slices_join_other)
{
    random_rows r;
    draw_rows(&r, 22);
    tn_slices *s FREED(tn_slices_free) =
        slices_of(&(tn_slices_opts){.slices_max = 16, .rows_min = 150}, &r);
    tn_metrics *all FREED(tn_metrics_free) =
        metrics_of(&(tn_metrics_opts){.coarse = true}, &r.rows);
    tn_slice out[17];
    uint32_t n = 0;
    for (int time = 0; time < 2; time++) { /* a report changes nothing */
        assert_int_equal(tn_slices_report(s, out, &n, NULL), TN_OK);
        assert_in_range(n, 2, VALUES - 1);
        assert_true(out[n - 1].is_other);
        uint64_t rows = 0;
        for (uint32_t i = 0; i < n; i++) {
            assert_true(out[i].is_other || tn_metrics_rows(out[i].metrics) >= 150);
            rows += tn_metrics_rows(out[i].metrics);
        }
        assert_int_equal(rows, tn_metrics_rows(all));
    }
}

TEST(values_beyond_the_last_place_join_other)
{
    random_rows r;
    draw_rows(&r, 23);
    tn_slices *s FREED(tn_slices_free) = slices_of(&(tn_slices_opts){.slices_max = 4}, &r);
    tn_slice out[5];
    uint32_t n = 0;
    assert_int_equal(tn_slices_report(s, out, &n, NULL), TN_OK);
    assert_int_equal(n, 5);
    uint64_t rows = 0;
    for (uint32_t i = 0; i < n; i++) {
        rows += tn_metrics_rows(out[i].metrics);
    }
    tn_metrics *all FREED(tn_metrics_free) = metrics_of(&(tn_metrics_opts){0}, &r.rows);
    assert_int_equal(rows, tn_metrics_rows(all));
}

TEST(parts_in_any_order_equal_the_whole)
{
    random_rows r;
    draw_rows(&r, 24);
    tn_slices_opts opts = {.slices_max = 16, .rows_min = 100};
    tn_slices *whole FREED(tn_slices_free) = slices_of(&opts, &r);
    tn_slices *a FREED(tn_slices_free) = NULL;
    assert_int_equal(tn_slices_new(&a, &opts, NULL), TN_OK);
    tn_scored first = r.rows;
    first.n = 777;
    tn_scored second = {
        .n = MANY - 777, .logit = r.logit + 777, .label = r.label + 777, .weight = r.weight + 777};
    assert_int_equal(tn_slices_add(a, &second, &(tn_slice_keys){.sign = r.sign + 777}, NULL),
                     TN_OK);
    assert_int_equal(tn_slices_add(a, &first, &(tn_slice_keys){.sign = r.sign}, NULL), TN_OK);
    tn_slice want[17];
    tn_slice got[17];
    uint32_t n_want = 0;
    uint32_t n_got = 0;
    assert_int_equal(tn_slices_report(whole, want, &n_want, NULL), TN_OK);
    assert_int_equal(tn_slices_report(a, got, &n_got, NULL), TN_OK);
    assert_int_equal(n_got, n_want);
    for (uint32_t i = 0; i < n_want; i++) {
        assert_int_equal(got[i].sign, want[i].sign);
        assert_int_equal(got[i].is_other, want[i].is_other);
        assert_same_metrics(got[i].metrics, want[i].metrics);
    }
}

TEST(a_row_counts_in_each_of_its_values)
{
    v21 v;
    v21_init(&v);
    /* row 0 has 5, 6, 5 and 5, row 1 nothing, row 2 has 6, the others nothing */
    static const uint64_t sign[] = {5, 6, 5, 5, 6};
    static const uint32_t start[V21_ROWS + 1] = {0, 4, 4, 5, 5, 5, 5, 5, 5};
    tn_slices *s FREED(tn_slices_free) = NULL;
    assert_int_equal(tn_slices_new(&s, &(tn_slices_opts){.slices_max = 8}, NULL), TN_OK);
    assert_int_equal(tn_slices_add(s, &v.rows, &(tn_slice_keys){sign, start}, NULL), TN_OK);
    tn_slice out[9];
    uint32_t n = 0;
    assert_int_equal(tn_slices_report(s, out, &n, NULL), TN_OK);
    assert_int_equal(n, 2);
    assert_int_equal(out[0].sign, 6);
    assert_int_equal(tn_metrics_rows(out[0].metrics), 2);
    assert_close(tn_metrics_get(out[0].metrics, "pctr"), .85);
    assert_int_equal(out[1].sign, 5);
    assert_int_equal(tn_metrics_rows(out[1].metrics), 1);
    assert_close(tn_metrics_get(out[1].metrics, "pctr"), .9);
}

TEST(every_allocation_that_fails_is_reported)
{
    v21 v;
    v21_init(&v);
    tn_status status = TN_E_MEMORY;
    for (uint64_t nth = 1; status != TN_OK; nth++) {
        tn_slices *s FREED(tn_slices_free) = NULL;
        tn_error err = {0};
        tn_alloc_fail_at(nth);
        status = tn_slices_new(&s, &(tn_slices_opts){.slices_max = 8}, &err);
        if (status == TN_OK) {
            status = tn_slices_add(s, &v.rows, &(tn_slice_keys){.sign = v.group}, &err);
        }
        tn_alloc_fail_at(0);
        assert_true(status == TN_OK || status == TN_E_MEMORY);
        assert_in_range(nth, 1, 30);
    }
}
