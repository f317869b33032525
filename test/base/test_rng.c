/* test_rng.c - V17 of docs/numerics.md: every bit of it. */
#include "base/core/bytes.h"
#include "base/keys/init.h"
#include "support/test.h"

#define ROW_KEY UINT64_C(0x0123456789abcdef)

static uint32_t bits_of(tn_init init, uint64_t stream, uint64_t index)
{
    float value = tn_init_value(&init, stream, index, 429, 400);
    return tn_load_u32(&value);
}

static uint64_t row_stream(void)
{
    return tn_stream3(42, TN_RNG_ROW, tn_name64("deep"), ROW_KEY);
}

TEST(v17_raw_draws)
{
    assert_int_equal(tn_draw(0, 0), UINT64_C(0xe220a8397b1dcdaf));
    assert_int_equal(tn_draw(0, 1), UINT64_C(0x6e789e6aa1b965f4));
    assert_int_equal(tn_draw(0, 2), UINT64_C(0x06c45d188009454f));
    assert_int_equal(tn_draw(1234567, 0), UINT64_C(6457827717110365317));
    assert_int_equal(tn_draw(1234567, 1), UINT64_C(3203168211198807973));
}

TEST(v17_names_and_streams)
{
    assert_int_equal(tn_name64("deep"), UINT64_C(0xa5c90667425fe82f));
    assert_int_equal(tn_stream0(42), UINT64_C(0xbdd732262feb6e95));
    uint64_t s = row_stream();
    assert_int_equal(s, UINT64_C(0x5e1d826427e5c1d0));
    const uint64_t draws[] = {UINT64_C(0x4e7d9ee2be17c4c4), UINT64_C(0xc5462fb101f24ff5),
                              UINT64_C(0xeb641c458871b6e3), UINT64_C(0xc93a123b08274789)};
    for (uint64_t i = 0; i < 4; i++) {
        assert_int_equal(tn_draw(s, i), draws[i]);
    }
}

TEST(v17_uniform_normal_and_truncated_rows)
{
    const uint32_t uniform[] = {0xbd1e6e04, 0x3d5dad65, 0x3dabd360, 0x3d6a536e};
    const uint32_t normal[] = {0xbba5a44d, 0x3bf2c174, 0x3c65a735, 0x3c01e2ef};
    const uint32_t truncated[] = {0xbb9d7ad5, 0x3be5a459, 0x3c525a18, 0x3bf5626a};
    uint64_t s = row_stream();
    for (uint64_t i = 0; i < 4; i++) {
        assert_int_equal(bits_of((tn_init){TN_INIT_UNIFORM, -.1, .1}, s, i), uniform[i]);
        assert_int_equal(bits_of((tn_init){TN_INIT_NORMAL, 0, .01}, s, i), normal[i]);
        assert_int_equal(bits_of((tn_init){TN_INIT_TRUNCATED, 0, .01}, s, i), truncated[i]);
    }
}

TEST(v17_glorot_uniform_of_a_dense_layer)
{
    uint64_t s = tn_stream2(42, TN_RNG_DENSE, tn_name64("deep.1.W"));
    assert_int_equal(s, UINT64_C(0x77d8922e2bcf4551));
    const uint32_t expected[] = {0x3d916fdf, 0xbd45be83, 0x3d7bf7d6};
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(bits_of((tn_init){.kind = TN_INIT_GLOROT_UNIFORM}, s, i), expected[i]);
    }
}

TEST(v17_shuffle)
{
    const uint32_t expected[] = {1, 3, 7, 0, 2, 6, 4, 5};
    uint32_t a[] = {0, 1, 2, 3, 4, 5, 6, 7};
    tn_shuffle(tn_stream3(42, TN_RNG_SHUFFLE, 0, 3), a, 8);
    assert_memory_equal(a, expected, sizeof a);
    tn_shuffle(1, a, 1);
    tn_shuffle(1, a, 0);
    assert_memory_equal(a, expected, sizeof a);
}

TEST(d5_another_epoch_is_another_order)
{
    uint32_t a[2][32];
    for (uint32_t i = 0; i < 32; i++) {
        a[0][i] = a[1][i] = i;
    }
    tn_shuffle(tn_stream3(42, TN_RNG_SHUFFLE, 0, 3), a[0], 32);
    tn_shuffle(tn_stream3(42, TN_RNG_SHUFFLE, 1, 3), a[1], 32);
    assert_memory_not_equal(a[0], a[1], sizeof a[0]);
}

TEST(v17_quantile)
{
    assert_true(tn_normal_quantile(.025) == -0x1.f5c0331eeff83p+0);
    assert_true(tn_normal_quantile(.5) == 0);
}

TEST(the_quantile_inverts_the_distribution_in_all_three_regions)
{
    const double p[] = {1e-300, 1e-20, 1e-12, 1e-6, .01, .07, .075, .3, .6, .93, .999};
    for (size_t i = 0; i < sizeof p / sizeof p[0]; i++) {
        double back = .5 * erfc(-tn_normal_quantile(p[i]) / sqrt(2));
        assert_true(fabs(back / p[i] - 1) < 2e-13 * (1 - log(p[i])));
    }
}

TEST(below_is_a_fair_share_of_64_bits)
{
    assert_int_equal(tn_below(UINT64_MAX, 10), 9);
    assert_int_equal(tn_below(0, 10), 0);
    assert_int_equal(tn_below(UINT64_C(1) << 63, 10), 5);
    assert_int_equal(tn_below(UINT64_MAX, UINT64_MAX), UINT64_MAX - 1);
    assert_true(tn_unit(UINT64_MAX) < 1 && tn_unit(0) == 0);
    assert_true(tn_open(UINT64_MAX) < 1 && tn_open(0) > 0);
}
