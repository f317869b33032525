/* test_zipf.c - popularity falls like a power, however many ids there are. */
#include "extra/synth/zipf.h"
#include "support/test.h"

enum { DRAWS = 400000 };

static tn_zipf *law(uint64_t n, double s)
{
    tn_zipf *z = NULL;
    assert_int_equal(tn_zipf_new(&z, n, s, NULL), TN_OK);
    return z;
}

/* id of the i-th draw of a fixed stream */
static uint64_t draw(const tn_zipf *z, uint64_t i)
{
    uint64_t stream = tn_stream2(7, TN_RNG_GENERATE, 99);
    return tn_zipf_id(z, tn_draw(stream, 2 * i), tn_draw(stream, 2 * i + 1));
}

TEST(draws_follow_the_power_law)
{
    tn_zipf *z = law(50, 1.2);
    static uint32_t seen[50];
    double sum = 0;
    for (uint32_t i = 0; i < 50; i++) {
        sum += pow(i + 1, -1.2);
    }
    for (uint32_t i = 0; i < DRAWS; i++) {
        uint64_t id = draw(z, i);
        assert_true(id < 50);
        seen[id]++;
    }
    for (uint32_t i = 0; i < 50; i++) {
        double expected = DRAWS * pow(i + 1, -1.2) / sum;
        assert_true(fabs(seen[i] - expected) < 5 * sqrt(expected)); /* five sigma */
    }
    tn_zipf_free(z);
}

TEST(the_tail_is_reached_and_never_left)
{
    const uint64_t n = UINT64_C(1) << 32;
    tn_zipf *z = law(n, 0.5);
    uint32_t upper = 0;
    for (uint32_t i = 0; i < DRAWS; i++) {
        uint64_t id = draw(z, i);
        assert_true(id < n);
        upper += id >= n / 4;
    }
    /* with s = 1/2 the last three quarters of the ids hold half of the mass */
    assert_true(fabs(upper / (double)DRAWS - 0.5) < 0.005);
    tn_zipf_free(z);
}

TEST(exponent_0_is_uniform_and_1_id_is_always_it)
{
    tn_zipf *z = law(10, 0);
    uint32_t last = 0;
    for (uint32_t i = 0; i < DRAWS; i++) {
        last += draw(z, i) == 9;
    }
    assert_true(fabs(last - DRAWS / 10.0) < 5 * sqrt(DRAWS / 10.0));
    tn_zipf_free(z);
    z = law(1, 1);
    assert_int_equal(tn_zipf_id(z, UINT64_MAX, UINT64_MAX), 0);
    assert_int_equal(tn_zipf_id(z, 0, 0), 0);
    tn_zipf_free(z);
    tn_zipf_free(NULL);
}
