/* test_kept_rows.c - rows kept one by one: order, numbers, limits. */
#include "metrics/kept_rows.h"

#include "support/test.h"

#include <float.h>

enum { MANY = 20000 };

static tn_kept_rows *draw(uint64_t seed, size_t n, uint64_t groups, double spread)
{
    print_message("seed %llu\n", (unsigned long long)seed);
    tn_kept_rows *k = tn_kept_new();
    uint64_t s = tn_stream2(seed, TN_RNG_GENERATE, 0);
    assert_int_equal(tn_kept_reserve(k, n, NULL), TN_OK);
    for (size_t i = 0; i < n; i++) {
        double z = spread * tn_normal(tn_draw(s, 2 * i));
        uint64_t group = tn_below(tn_draw(s, 2 * i + 1), groups) * UINT64_C(0x0123456789abcdef);
        tn_kept_add(k, (tn_kept_row){.key = tn_kept_key((float)z), .group = group, .weight = 1});
    }
    return k;
}

static void assert_sorted(tn_kept_rows *k, tn_kept_order order)
{
    const tn_kept_row *row = tn_kept_sorted(k, order);
    uint64_t numbers = 0;
    for (size_t i = 0; i < k->n; i++) {
        numbers += row[i].row;
        if (i == 0) {
            continue;
        }
        const tn_kept_row *a = &row[i - 1];
        const tn_kept_row *b = &row[i];
        if (order == TN_KEPT_BY_GROUP) {
            assert_true(a->group < b->group || (a->group == b->group && a->key <= b->key));
        } else {
            assert_true(a->key <= b->key);
        }
    }
    assert_int_equal(numbers, (uint64_t)k->n * (k->n - 1) / 2);
}

TEST(rows_sort_by_score_and_by_group)
{
    static const struct {
        size_t n;
        uint64_t groups;
        double spread;
    } shapes[] = {{0, 1, 1},      {1, 1, 1},       {24, 3, 1},        {25, 3, 1},
                  {MANY, 500, 3}, {MANY, 1, 1e-3}, {MANY, 1 << 30, 0}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        tn_kept_rows *k = draw(60 + i, shapes[i].n, shapes[i].groups, shapes[i].spread);
        assert_sorted(k, TN_KEPT_BY_SCORE);
        assert_sorted(k, TN_KEPT_BY_GROUP);
        assert_sorted(k, TN_KEPT_BY_SCORE);
        tn_kept_free(k);
    }
}

TEST(keys_ascend_with_logits_and_give_them_back)
{
    static const float z[] = {-FLT_MAX, -1e10F, -1.5F, -1, -1e-40F, 0, 1e-40F, 1, 1.5F, FLT_MAX};
    for (size_t i = 0; i < sizeof z / sizeof z[0]; i++) {
        assert_true(tn_kept_logit(tn_kept_key(z[i])) == z[i]);
        assert_true(i == 0 || tn_kept_key(z[i - 1]) < tn_kept_key(z[i]));
    }
    assert_int_equal(tn_kept_key(-0.0F), tn_kept_key(0.0F));
}

TEST(more_rows_than_numbers_are_refused)
{
    tn_kept_rows *k = draw(73, 1, 1, 1);
    tn_error err = {0};
    assert_int_equal(tn_kept_reserve(k, UINT32_MAX, &err), TN_E_LIMIT);
    assert_string_equal(err.text, "more than 4294967295 rows for exact metrics");
    tn_kept_free(k);
}
