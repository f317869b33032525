/* test_float_codec.c - floats of messages: rounding, faults, rows in the order of keys, error
 * feedback.
 */
#include "cluster/wire/float_codec.h"

#include "base/core/bytes.h"
#include "base/math/key.h"
#include "base/thread/threads.h"
#include "support/test.h"
#include "wire.h"

enum { MOST = 5000 };

static const tn_values kinds[] = {TN_VALUES_F32, TN_VALUES_F16, TN_VALUES_BF16};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static float float_of(uint32_t bits)
{
    return tn_load_f32(&bits);
}

static float read_one(tn_values kind, uint32_t bits)
{
    char bytes[4];
    float x = 0;
    tn_store_u32(bytes, bits);
    assert_true(tn_values_read(kind, bytes, 1, &x) == TN_VALUES_FINITE);
    return x;
}

/* By the definition of IEEE 754: sign, exponent, fraction. */
static double f16_by_definition(uint32_t half)
{
    double fraction = half & 0x3ff;
    int exponent = (int)(half >> 10 & 31);
    double x = exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);
    return half >> 15 ? -x : x;
}

TEST(every_f16_is_read_as_defined_and_written_back)
{
    for (uint32_t half = 0; half < 1 << 16; half++) {
        char bytes[2];
        char again[2];
        float x = 0;
        tn_store_u16(bytes, (uint16_t)half);
        size_t fault = tn_values_read(TN_VALUES_F16, bytes, 1, &x);
        if ((half & 0x7c00) == 0x7c00) {
            assert_true(fault == 0);
            continue;
        }
        assert_true(fault == TN_VALUES_FINITE);
        double want = f16_by_definition(half);
        assert_true((double)x <= want && (double)x >= want && (signbit(x) != 0) == (half >> 15));
        assert_true(tn_values_write(TN_VALUES_F16, &x, 1, again) == TN_VALUES_FINITE);
        assert_memory_equal(again, bytes, sizeof bytes);
    }
}

TEST(every_bf16_is_the_upper_half_of_a_float)
{
    for (uint32_t half = 0; half < 1 << 16; half++) {
        char bytes[2];
        char again[2];
        float x = 0;
        tn_store_u16(bytes, (uint16_t)half);
        size_t fault = tn_values_read(TN_VALUES_BF16, bytes, 1, &x);
        if ((half & 0x7f80) == 0x7f80) {
            assert_true(fault == 0);
            continue;
        }
        assert_true(fault == TN_VALUES_FINITE && tn_load_u32(&x) == half << 16);
        assert_true(tn_values_write(TN_VALUES_BF16, &x, 1, again) == TN_VALUES_FINITE);
        assert_memory_equal(again, bytes, sizeof bytes);
    }
}

/* The bits that x is written as are those of a neighbour of x, and no other is nearer; of two as
 * near, the even one. */
static void is_nearest(tn_values kind, float x)
{
    char bytes[4] = {0};
    assert_true(tn_values_write(kind, &x, 1, bytes) == TN_VALUES_FINITE);
    uint32_t bits = tn_load_u16(bytes);
    double off = fabs((double)read_one(kind, bits) - (double)x);
    for (int step = -1; step <= 1; step += 2) {
        uint32_t next = bits + (uint32_t)step;
        if ((bits & 0x7fff) == 0 && step < 0) {
            next = 0x8001 ^ (bits & 0x8000); /* the smallest of the other sign */
        }
        uint32_t infinite = kind == TN_VALUES_F16 ? 0x7c00 : 0x7f80;
        if ((next & 0x7fff) >= infinite) {
            continue;
        }
        double other = fabs((double)read_one(kind, next) - (double)x);
        fail_if(other < off || (other <= off && (bits & 1) != 0),
                "%a is written as %04x, but %04x is nearer", (double)x, bits, next);
    }
}

TEST(rounding_is_to_the_nearest_and_ties_to_even)
{
    for (uint32_t i = 0; i < 200000; i++) {
        uint32_t draw = (uint32_t)tn_mix(i);
        /* all exponents of f16 and those below, then everything that bf16 holds */
        uint32_t exponent = 90 + draw % 52;
        uint32_t sign = draw & 0x80000000;
        is_nearest(TN_VALUES_F16, float_of(sign | exponent << 23 | (draw >> 6 & 0x7fffff)));
        uint32_t any = (uint32_t)(tn_mix(i) >> 32);
        if ((any & 0x7fffffff) < 0x7f7f8000) {
            is_nearest(TN_VALUES_BF16, float_of(any));
        }
    }
    for (uint32_t half = 0; half < 0x7bff; half++) { /* the middles */
        double middle = (f16_by_definition(half) + f16_by_definition(half + 1)) / 2;
        is_nearest(TN_VALUES_F16, (float)middle);
        is_nearest(TN_VALUES_F16, (float)-middle);
        is_nearest(TN_VALUES_F16, nextafterf((float)middle, 1e9F));
        is_nearest(TN_VALUES_F16, nextafterf((float)middle, 0));
        is_nearest(TN_VALUES_BF16, float_of(half << 16 | 0x8000));
    }
}

TEST(known_values_have_known_bits)
{
    static const struct {
        float x;
        uint16_t f16, bf16;
    } known[] = {
        {0.F, 0x0000, 0x0000},         {-0.F, 0x8000, 0x8000},         {1.F, 0x3c00, 0x3f80},
        {-2.F, 0xc000, 0xc000},        {65504.F, 0x7bff, 0x4780},      {.1F, 0x2e66, 0x3dcd},
        {0x1p-24F, 0x0001, 0x3380},    {0x1p-25F, 0x0000, 0x3300},     {0x1.8p-25F, 0x0001, 0x3340},
        {0x1p-14F, 0x0400, 0x3880},    {0x1.ff8p-15F, 0x03ff, 0x3880}, {1.F / 3, 0x3555, 0x3eab},
        {1.00390625F, 0x3c04, 0x3f80},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        char bytes[2];
        assert_true(tn_values_write(TN_VALUES_F16, &known[i].x, 1, bytes) == TN_VALUES_FINITE);
        assert_int_equal(tn_load_u16(bytes), known[i].f16);
        assert_true(tn_values_write(TN_VALUES_BF16, &known[i].x, 1, bytes) == TN_VALUES_FINITE);
        assert_int_equal(tn_load_u16(bytes), known[i].bf16);
    }
}

/* What does not fit is found wherever it stands, whatever the length: tails of vectors too. */
TEST(a_value_that_does_not_fit_is_found_by_the_writer)
{
    static const float reject[KINDS][4] = {
        {INFINITY, -INFINITY, NAN, -NAN},
        {65520, -65520, 1e6F, -NAN},
        {0x1.ffp127F, -0x1.ffp127F, INFINITY, NAN},
    };
    static const float largest[KINDS] = {0x1.fffffep127F, 65519.996F, 0x1.fefffep127F};
    float from[68];
    float back[68];
    char to[4 * 68];
    for (uint32_t k = 0; k < KINDS; k++) {
        for (size_t n = 1; n < 68; n++) {
            for (size_t at = 0; at < n; at++) {
                for (size_t i = 0; i < n; i++) {
                    from[i] = i % 2 == 0 ? largest[k] : -largest[k];
                }
                assert_true(tn_values_write(kinds[k], from, n, to) == TN_VALUES_FINITE);
                assert_true(tn_values_read(kinds[k], to, n, back) == TN_VALUES_FINITE);
                from[at] = reject[k][(n + at) % 4];
                from[n - 1] = n % 2 == 0 ? reject[k][0] : from[n - 1];
                assert_true(tn_values_write(kinds[k], from, n, to) == at);
            }
        }
    }
}

TEST(a_value_that_is_not_finite_is_found_by_the_reader)
{
    static const uint32_t infinite[KINDS] = {0x7f800000, 0x7c00, 0x7f80};
    for (uint32_t k = 0; k < KINDS; k++) {
        size_t width = tn_values_bytes(kinds[k]);
        for (size_t n = 1; n < 68; n++) {
            for (size_t at = 0; at < n; at++) {
                char message[1 + 4 * 68] = {0};
                float to[68] = {77};
                uint32_t bits = infinite[k] | (uint32_t)(n % 3 == 0); /* or no number */
                memcpy(message + 1 + at * width, &bits, width);
                memcpy(message + 1 + (n - 1) * width, &bits, width);
                assert_true(tn_values_read(kinds[k], message + 1, n, to) == at);
                assert_true(to[0] >= 77 && to[0] <= 77);
                bits |= kinds[k] == TN_VALUES_F32 ? 0x80000000 : 0x8000;
                memcpy(message + 1 + at * width, &bits, width);
                assert_true(tn_values_read(kinds[k], message + 1, n, to) == at);
            }
        }
    }
}

/* Vector body and tail give the same: peers.md A11. */
TEST(a11_every_length_rounds_alike)
{
    float from[67];
    char whole[67 * 4];
    char single[4];
    float back[67];
    for (uint32_t k = 0; k < KINDS; k++) {
        size_t width = tn_values_bytes(kinds[k]);
        for (size_t n = 1; n <= 67; n++) {
            for (size_t i = 0; i < n; i++) {
                from[i] = (float)((double)(int64_t)tn_mix(n * 100 + i) * 0x1p-60);
            }
            assert_true(tn_values_write(kinds[k], from, n, whole) == TN_VALUES_FINITE);
            assert_true(tn_values_read(kinds[k], whole, n, back) == TN_VALUES_FINITE);
            for (size_t i = 0; i < n; i++) {
                float one = 0;
                assert_true(tn_values_write(kinds[k], from + i, 1, single) == TN_VALUES_FINITE);
                assert_memory_equal(single, whole + i * width, width);
                assert_true(tn_values_read(kinds[k], single, 1, &one) == TN_VALUES_FINITE);
                assert_memory_equal(&one, &back[i], sizeof one);
            }
        }
    }
}

TEST(nothing_is_written_and_read)
{
    for (uint32_t k = 0; k < KINDS; k++) {
        assert_true(tn_values_write(kinds[k], NULL, 0, NULL) == TN_VALUES_FINITE);
        assert_true(tn_values_read(kinds[k], NULL, 0, NULL) == TN_VALUES_FINITE);
        assert_true(tn_values_write_fed(kinds[k], NULL, 0, NULL, NULL) == TN_VALUES_FINITE);
    }
}

/* Rows of 1, 2 and 2500 floats: blocks end within rows. */
TEST(rows_travel_in_the_order_of_keys)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    const kit_keys *k = wire_keys(arena, &(wire_opts){5, 3000, WIRE_GROUPS, 1});
    float *rows = TN_NEW_ARRAY(arena, float, k->n_floats);
    float *back = TN_NEW_ARRAY(arena, float, k->n_floats);
    char *message = TN_NEW_ARRAY(arena, char, (size_t)k->n_floats * 4);
    for (uint32_t i = 0; i < k->n_floats; i++) {
        rows[i] = (float)(i % 2048); /* exact in f16; in bf16 up to 256 */
    }
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        const size_t width = tn_values_bytes(kinds[kind]);
        for (uint32_t i = 0; i < k->n_floats; i++) {
            rows[i] = kinds[kind] == TN_VALUES_BF16 ? (float)(i % 256) : (float)(i % 2048);
            back[i] = -1;
        }
        for (uint32_t peer = 0; peer < WIRE_PEERS; peer++) {
            tn_key_order order = wire_order(arena, &k->set, peer);
            assert_true(tn_values_gather(kinds[kind], &k->set, order, rows, message) ==
                        TN_VALUES_FINITE);
            size_t at = 0;
            for (uint32_t i = 0; i < order.n; i++) {
                const uint32_t key = order.index[i];
                const uint32_t from = k->set.at[key];
                for (uint32_t f = from; f < from + tn_row_width(&k->set, key); f++) {
                    float x = 0;
                    const char *here = message + at++ * width;
                    assert_true(tn_values_read(kinds[kind], here, 1, &x) == TN_VALUES_FINITE);
                    assert_memory_equal(&x, &rows[f], sizeof x);
                }
            }
            assert_true(tn_values_scatter(kinds[kind], message, &k->set, order, back) ==
                        TN_VALUES_FINITE);
        }
        assert_memory_equal(back, rows, k->n_floats * sizeof *rows);
    }
}

TEST(a_fault_in_a_row_is_told_by_its_place_in_the_message)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    const kit_keys *k = wire_keys(arena, &(wire_opts){5, 3000, WIRE_GROUPS, 1});
    float *rows = TN_NEW_ARRAY(arena, float, k->n_floats);
    char *message = TN_NEW_ARRAY(arena, char, (size_t)k->n_floats * 4);
    tn_key_order order = wire_order(arena, &k->set, 3);
    for (uint32_t step = 0; step < order.n; step += 97) {
        uint32_t key = order.index[step];
        size_t place = 0;
        for (uint32_t i = 0; i < step; i++) {
            place += tn_row_width(&k->set, order.index[i]);
        }
        rows[k->set.at[key]] = NAN;
        assert_true(tn_values_gather(TN_VALUES_F16, &k->set, order, rows, message) == place);
        rows[k->set.at[key]] = 3;
        assert_true(tn_values_gather(TN_VALUES_F32, &k->set, order, rows, message) ==
                    TN_VALUES_FINITE);
        tn_store_u32(message + 4 * place, 0xff800000);
        assert_true(tn_values_scatter(TN_VALUES_F32, message, &k->set, order, rows) == place);
        assert_true(rows[k->set.at[key]] >= 3 && rows[k->set.at[key]] <= 3);
    }
}

/* All that was sent in 1000 messages is what was given, but for what one message rounds. */
TEST(error_feedback_loses_one_rounding_in_all)
{
    enum { STEPS = 1000 };
    static const double relative[KINDS] = {0, 0x1p-11, 0x1p-8}; /* of a value, at most */
    static const double absolute[KINDS] = {0, 0x1p-25, 0};
    static float grad[MOST];
    static float residual[MOST];
    static float sent[MOST];
    static double given_sum[MOST];
    static double sent_sum[MOST];
    static double largest[MOST];
    static char message[4 * MOST];
    for (uint32_t k = 0; k < KINDS; k++) {
        memset(residual, 0, sizeof residual);
        memset(given_sum, 0, sizeof given_sum);
        memset(sent_sum, 0, sizeof sent_sum);
        memset(largest, 0, sizeof largest);
        for (uint32_t step = 0; step < STEPS; step++) {
            for (uint32_t i = 0; i < MOST; i++) {
                double u = (double)(int64_t)tn_mix((uint64_t)step * MOST + i) * 0x1p-63;
                grad[i] = (float)((u + .3) * pow(10, -(double)(i % 6)));
                given_sum[i] += (double)grad[i];
            }
            assert_true(tn_values_write_fed(kinds[k], grad, MOST, residual, message) ==
                        TN_VALUES_FINITE);
            assert_true(tn_values_read(kinds[k], message, MOST, sent) == TN_VALUES_FINITE);
            for (uint32_t i = 0; i < MOST; i++) {
                sent_sum[i] += (double)sent[i];
                largest[i] = fmax(largest[i], fabs((double)sent[i]));
            }
        }
        for (uint32_t i = 0; i < MOST; i++) {
            double step = relative[k] * largest[i] * 1.01 + absolute[k];
            double noise = STEPS * 0x1p-24 * largest[i]; /* of the sums in float */
            assert_true(fabs(sent_sum[i] - given_sum[i]) <= step + noise);
            assert_true(fabs((double)residual[i]) <= step);
        }
    }
}

/* Without feedback .1 is always rounded the same way: peers.md A10. */
TEST(a10_rounding_with_feedback_has_no_bias)
{
    const float given = .1F;
    double plain = 0;
    double fed = 0;
    float residual = 0;
    for (uint32_t i = 0; i < 1000000; i++) {
        char bytes[2];
        float x = 0;
        assert_true(tn_values_write(TN_VALUES_BF16, &given, 1, bytes) == TN_VALUES_FINITE);
        assert_true(tn_values_read(TN_VALUES_BF16, bytes, 1, &x) == TN_VALUES_FINITE);
        plain += (double)x;
        assert_true(tn_values_write_fed(TN_VALUES_BF16, &given, 1, &residual, bytes) ==
                    TN_VALUES_FINITE);
        assert_true(tn_values_read(TN_VALUES_BF16, bytes, 1, &x) == TN_VALUES_FINITE);
        fed += (double)x;
    }
    assert_true(fabs(fed / 1e6 - (double)given) < 1e-8);
    assert_true(fabs(plain / 1e6 - (double)given) > 1e-5);
}

/* In the second block, after the first one was written. */
TEST(after_a_fault_residuals_are_as_before)
{
    static float grad[MOST];
    static float residual[MOST];
    static float before[MOST];
    static char message[4 * MOST];
    for (uint32_t i = 0; i < MOST; i++) {
        grad[i] = 1.F / (float)(i + 3);
        residual[i] = before[i] = 1e-4F;
    }
    for (uint32_t k = 0; k < KINDS; k++) {
        grad[3000] = INFINITY;
        assert_true(tn_values_write_fed(kinds[k], grad, MOST, residual, message) == 3000);
        assert_memory_equal(residual, before, sizeof before);
    }
    grad[3000] = 65519;
    residual[3000] = before[3000] = 2;
    assert_true(tn_values_write_fed(TN_VALUES_F16, grad, MOST, residual, message) == 3000);
    assert_memory_equal(residual, before, sizeof before);
}

/* As in TNet's own threads. The last test: the CPU keeps flushing. */
TEST(flushing_denormals_changes_no_f16)
{
    (void)tn_flush_denormals();
    every_f16_is_read_as_defined_and_written_back(state);
}
