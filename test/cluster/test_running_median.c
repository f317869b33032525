/* test_running_median.c - the median of the last values against sorting them. */
#include "cluster/ledger/running_median.h"

#include "support/test.h"

TEST(of_none_it_is_zero_and_of_one_the_value)
{
    tn_running_median r = {0};
    assert_int_equal(tn_running_median_value(&r), 0);
    tn_running_median_add(&r, 9);
    assert_int_equal(tn_running_median_value(&r), 9);
    tn_running_median_add(&r, 3);
    assert_int_equal(tn_running_median_value(&r), 9);
    tn_running_median_add(&r, 5);
    assert_int_equal(tn_running_median_value(&r), 5);
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

TEST(it_is_the_median_of_the_last_255)
{
    enum { N = 2000 };
    static uint64_t all[N];
    tn_running_median r = {0};
    const uint64_t stream = tn_stream2(5, TN_RNG_GENERATE, 0);
    for (uint32_t i = 0; i < N; i++) {
        /* Slower and slower, with equal ones among them. */
        all[i] = i / 7 + tn_below(tn_draw(stream, i), 100);
        tn_running_median_add(&r, all[i]);
        uint32_t n = i + 1 < TN_RUNNING_MEDIAN_MAX ? i + 1 : TN_RUNNING_MEDIAN_MAX;
        uint64_t last[TN_RUNNING_MEDIAN_MAX];
        memcpy(last, &all[i + 1 - n], n * sizeof last[0]);
        qsort(last, n, sizeof last[0], ascending);
        assert_int_equal(tn_running_median_value(&r), last[n / 2]);
    }
}
