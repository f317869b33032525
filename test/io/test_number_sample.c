/* test_number_sample.c - moments, quantiles and bounds of a stream of numbers. */
#include "io/schema/number_sample.h"
#include "support/test.h"

TEST(numbers_have_moments_and_quantiles)
{
    tn_numbers *x FREED(tn_free) = tn_alloc(1, sizeof *x, "numbers");
    assert_true(isnan(tn_numbers_quantile(x, .5)));
    enum { N = 1000000 };
    for (uint32_t i = 0; i < N; i++) {
        tn_numbers_add(x, (double)((i * UINT64_C(7919)) % N), 1);
    }
    assert_true(x->least == 0 && x->largest == N - 1);
    assert_true(fabs(x->mean - (N - 1) / 2.0) < 1e-6 * N);
    assert_true(fabs(tn_numbers_deviation(x) / (N / sqrt(12)) - 1) < 1e-5);
    for (uint32_t i = 0; i < 20; i++) {
        double share = i / 20.0;
        assert_true(fabs(tn_numbers_quantile(x, share) / N - share) < 0.005);
    }
    tn_numbers_done(x);
}

TEST(bounds_go_by_weight_and_numbers_without_weight_leave_no_trace)
{
    enum { N = 300000, PARTS = 8 };
    tn_numbers plain = {.n = 0};
    tn_numbers zeros = {.n = 0};
    tn_numbers twice = {.n = 0};
    tn_numbers weighed = {.n = 0};
    double bound[4][PARTS];
    for (uint32_t i = 0; i < N; i++) { /* more than a sample holds */
        const double v = (double)((i * UINT64_C(7919)) % N);
        tn_numbers_add(&plain, v, 1);
        tn_numbers_add(&zeros, v, 1);
        tn_numbers_add(&zeros, -v, 0);
    }
    for (uint32_t i = 0; i < 1000; i++) { /* the upper half counts three times */
        const double v = (double)((i * UINT64_C(7919)) % 1000);
        const uint32_t times = v >= 500 ? 3 : 1;
        tn_numbers_add(&weighed, v, (float)times);
        for (uint32_t k = 0; k < times; k++) {
            tn_numbers_add(&twice, v, 1);
        }
    }
    tn_numbers *const all[] = {&plain, &zeros, &twice, &weighed};
    uint32_t n[4];
    for (uint32_t k = 0; k < 4; k++) {
        n[k] = tn_numbers_bounds(all[k], PARTS, bound[k]);
        assert_int_equal(n[k], PARTS - 1);
        tn_numbers_done(all[k]);
    }
    assert_memory_equal(bound[0], bound[1], (PARTS - 1) * sizeof(double));
    assert_memory_equal(bound[2], bound[3], (PARTS - 1) * sizeof(double));
    assert_true(bound[3][0] == 250 && bound[3][1] == 500); /* each 250 of 2000 */
}

TEST(a_short_stream_takes_little_memory)
{
    tn_numbers x = {.n = 0};
    for (uint32_t i = 0; i < 500; i++) {
        tn_numbers_add(&x, i, 1);
    }
    assert_in_range(x.room, 500, 1000);
    assert_null(x.weight);
    tn_numbers_done(&x);
}

TEST(many_samples_hold_fewer_numbers_each)
{
    assert_int_equal(tn_numbers_max(1), TN_NUMBERS_MAX);
    assert_int_equal(tn_numbers_max(127), TN_NUMBERS_MAX);
    assert_int_equal(tn_numbers_max(255), TN_NUMBERS_MAX / 2);
    tn_numbers x = {.sample_max = 3};
    for (uint32_t i = 0; i < 500; i++) {
        tn_numbers_add(&x, i, 1);
    }
    assert_int_equal(x.room, 3);
    tn_numbers_done(&x);
}
