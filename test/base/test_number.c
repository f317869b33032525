/* test_number.c - the number rules of docs/formats.md, section 1. */
#include "base/core/bytes.h"
#include "base/core/number.h"
#include "base/thread/threads.h"
#include "support/test.h"

#include <float.h>
#include <locale.h>

static tn_status read_slow_text(void *arg, tn_error *err)
{
    (void)err;
    double value = 0;
    for (int i = 0; i < 200; i++) { /* too many digits for the fast way */
        if (tn_read_f64("0.12345678901234567890123", 25, &value) != TN_NUM_OK) {
            return TN_E_DATA;
        }
    }
    *(double *)arg = value;
    return TN_OK;
}

/* The first test: nothing has been read before. */
TEST(any_thread_may_be_the_first_to_read)
{
    double value[4];
    tn_thread *thread[4];
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(tn_thread_start(&thread[i], "read", read_slow_text, &value[i], NULL),
                         TN_OK);
    }
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(tn_thread_join(thread[i], NULL), TN_OK);
        assert_true(value[i] == 0.12345678901234567890123);
    }
}

TEST(unsigned_integers)
{
    const struct {
        const char *text;
        tn_numeral result;
        uint64_t value;
    } vector[] = {
        {"0", TN_NUM_OK, 0},
        {"007", TN_NUM_OK, 7},
        {"18446744073709551615", TN_NUM_OK, UINT64_MAX},
        {"00000000000000000001", TN_NUM_OK, 1},
        {"18446744073709551616", TN_NUM_RANGE, 0},
        {"18446744073709551620", TN_NUM_RANGE, 0},
        {"99999999999999999999", TN_NUM_RANGE, 0},
        {"000000000000000000001", TN_NUM_RANGE, 0},
        {"", TN_NUM_NONE, 0},
        {"-1", TN_NUM_NONE, 0},
        {"+1", TN_NUM_NONE, 0},
        {"12x", TN_NUM_NONE, 0},
        {" 1", TN_NUM_NONE, 0},
        {"1.0", TN_NUM_NONE, 0},
        {"999999999999999999999999x", TN_NUM_NONE, 0},
    };
    for (size_t i = 0; i < sizeof vector / sizeof vector[0]; i++) {
        uint64_t value = 0;
        tn_numeral result = tn_read_u64(vector[i].text, strlen(vector[i].text), &value);
        assert_int_equal(result, vector[i].result);
        assert_int_equal(value, vector[i].value);
    }
}

TEST(signed_integers)
{
    const struct {
        const char *text;
        tn_numeral result;
        int64_t value;
    } vector[] = {
        {"-2", TN_NUM_OK, -2},
        {"+3", TN_NUM_OK, 3},
        {"-0", TN_NUM_OK, 0},
        {"9223372036854775807", TN_NUM_OK, INT64_MAX},
        {"-9223372036854775808", TN_NUM_OK, INT64_MIN},
        {"9223372036854775808", TN_NUM_RANGE, 0},
        {"-9223372036854775809", TN_NUM_RANGE, 0},
        {"", TN_NUM_NONE, 0},
        {"-", TN_NUM_NONE, 0},
        {"--1", TN_NUM_NONE, 0},
        {"- 1", TN_NUM_NONE, 0},
    };
    for (size_t i = 0; i < sizeof vector / sizeof vector[0]; i++) {
        int64_t value = 0;
        tn_numeral result = tn_read_i64(vector[i].text, strlen(vector[i].text), &value);
        assert_int_equal(result, vector[i].result);
        assert_int_equal(value, vector[i].value);
    }
}

TEST(hex_integers)
{
    uint64_t value = 0;
    assert_int_equal(tn_read_hex("68fd1e64", 8, &value), TN_NUM_OK);
    assert_int_equal(value, 0x68fd1e64);
    assert_int_equal(tn_read_hex("FFFFffffFFFFffff", 16, &value), TN_NUM_OK);
    assert_int_equal(value, UINT64_MAX);
    assert_int_equal(tn_read_hex("0123456789abcdef0", 17, &value), TN_NUM_RANGE);
    const char *bad[] = {"", "0x1", "g", "1 ", "-1", "@", "`", "G", "/", ":"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(tn_read_hex(bad[i], strlen(bad[i]), &value), TN_NUM_NONE);
    }
}

TEST(floats_of_the_grammar_are_read)
{
    const struct {
        const char *text;
        double value;
    } vector[] = {
        {"1", 1},
        {"1.", 1},
        {".5", .5},
        {"+0.25e+1", 2.5},
        {"-1E-3", -1e-3},
        {"1e22", 1e22},
        {"1e23", 1e23},
        {"9007199254740993", 9007199254740992.0},
        {"123456789012345678901234567890", 1.2345678901234568e29},
        {"0.000000000000000000000000000001", 1e-30},
        {"00000000000000000000000000000001.5", 1.5},
        {"0e999999999999", 0},
        {"1e-999999999999", 0},
        {"2.2250738585072014e-308", DBL_MIN},
        {"1.7976931348623157e308", DBL_MAX},
        {"0.1", .1},
    };
    for (size_t i = 0; i < sizeof vector / sizeof vector[0]; i++) {
        double value = -1;
        assert_int_equal(tn_read_f64(vector[i].text, strlen(vector[i].text), &value), TN_NUM_OK);
        assert_memory_equal(&value, &vector[i].value, sizeof value);
    }
    double zero = 1;
    assert_int_equal(tn_read_f64("-0.0", 4, &zero), TN_NUM_OK);
    assert_true(zero == 0 && signbit(zero));
}

TEST(anything_else_is_no_float)
{
    const char *bad[] = {"",    ".",     "e5",        "1e",    "1e+",  "+",     "-.",   "1_000",
                         "1,5", "0x1p3", " 1",        "1 ",    "1..2", "1.2.3", "--1",  "1e5.0",
                         "1f",  "nano",  "infi",      "1ee5",  "na",   "in",    "1e 5", "\0",
                         "1.e", "++1",   "infinityx", "+-inf", ".e1"};
    double value = 77;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(tn_read_f64(bad[i], strlen(bad[i]), &value), TN_NUM_NONE);
    }
    assert_int_equal(tn_read_f64("1\0", 2, &value), TN_NUM_NONE);
    assert_true(value == 77);
}

TEST(only_the_given_bytes_are_looked_at)
{
    double value = 0;
    assert_int_equal(tn_read_f64("1.5e3", 3, &value), TN_NUM_OK);
    assert_true(value == 1.5);
    assert_int_equal(tn_read_f64("123456789012345678901234567890", 25, &value), TN_NUM_OK);
    assert_true(value == 1234567890123456789012345.0);
    assert_int_equal(tn_read_f64("1e5", 2, &value), TN_NUM_NONE);
}

TEST(not_finite_words_are_told_apart)
{
    const char *words[] = {"inf", "+Inf", "-INF", "infinity", "-Infinity", "nan", "-NaN", "+nan"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        double value = 0;
        float single = 0;
        assert_int_equal(tn_read_f64(words[i], strlen(words[i]), &value), TN_NUM_NOT_FINITE);
        assert_int_equal(tn_read_f32(words[i], strlen(words[i]), &single), TN_NUM_NOT_FINITE);
        assert_int_equal(isnan(value) != 0, i >= 5);
        assert_int_equal(isnan(single) != 0, i >= 5);
        assert_int_equal(value < 0, i < 5 && words[i][0] == '-');
    }
}

TEST(floats_beyond_flt_max_are_refused_and_small_ones_are_not)
{
    float value = 77;
    double wide = 77;
    assert_int_equal(tn_read_f32("3.4028236e38", 12, &value), TN_NUM_RANGE);
    assert_int_equal(tn_read_f32("-1e39", 5, &value), TN_NUM_RANGE);
    assert_int_equal(tn_read_f32("1e400", 5, &value), TN_NUM_RANGE);
    assert_int_equal(tn_read_f64("-1e309", 6, &wide), TN_NUM_RANGE);
    assert_true(value == 77 && wide == 77);
    assert_int_equal(tn_read_f32("3.4028235e38", 12, &value), TN_NUM_OK);
    assert_true(value == FLT_MAX);
    assert_int_equal(tn_read_f32("1e-45", 5, &value), TN_NUM_OK);
    assert_int_equal(tn_load_u32(&value), 1);
    assert_int_equal(tn_read_f32("-5e-46", 6, &value), TN_NUM_OK);
    assert_int_equal(tn_load_u32(&value), 0x80000000);
    assert_int_equal(tn_read_f32("1.17549421e-38", 14, &value), TN_NUM_OK);
    assert_int_equal(tn_load_u32(&value), 0x007fffff);
    assert_int_equal(tn_read_f32("1e-400", 6, &value), TN_NUM_OK);
    assert_int_equal(tn_load_u32(&value), 0);
}

TEST(a_very_long_decimal_is_decided_by_its_last_digit)
{
    /* 1 + 2^-53, a tie that goes down, and just above, up. */
    char text[2000] = "1.00000000000000011102230246251565404236316680908203125";
    size_t n = strlen(text);
    double value = 0;
    assert_int_equal(tn_read_f64(text, n, &value), TN_NUM_OK);
    assert_true(value == 1);
    memset(text + n, '0', 1800 - n);
    assert_int_equal(tn_read_f64(text, 1800, &value), TN_NUM_OK);
    assert_true(value == 1);
    text[1799] = '1';
    assert_int_equal(tn_read_f64(text, 1800, &value), TN_NUM_OK);
    assert_true(value == 1 + DBL_EPSILON);
    memset(text, '7', 1999);
    assert_int_equal(tn_read_f64(text, 300, &value), TN_NUM_OK);
    assert_true(value > 7.7e299 && value < 7.8e299);
    assert_int_equal(tn_read_f64(text, 1999, &value), TN_NUM_RANGE);
    (void)snprintf(text + 1993, 7, "e-1993");
    assert_int_equal(tn_read_f64(text, 1999, &value), TN_NUM_OK);
    assert_true(value == 0.7777777777777777777);
}

TEST(every_random_text_reads_as_strtod_does)
{
    const uint64_t seed = 20240611;
    print_message("seed %llu\n", (unsigned long long)seed);
    for (uint64_t i = 0; i < 200000; i++) {
        uint64_t x = tn_draw(seed, i);
        char text[64];
        int digits = 1 + (int)(x % 21);
        int power = (int)((x >> 8) % 660) - 340;
        power = (x >> 20) % 2 == 0 ? power % 30 : power;
        int n = snprintf(text, sizeof text, "%.*fe%d", digits, (double)(int64_t)tn_mix(x) * 0x1p-60,
                         power);
        double expected = strtod(text, NULL);
        double value = 0;
        tn_numeral result = tn_read_f64(text, (size_t)n, &value);
        if (isinf(expected)) {
            assert_int_equal(result, TN_NUM_RANGE);
        } else {
            assert_int_equal(result, TN_NUM_OK);
            assert_memory_equal(&value, &expected, sizeof value);
        }
    }
}

TEST(the_text_written_is_the_shortest)
{
    const struct {
        double value;
        const char *text;
    } vector[] = {
        {0, "0"},
        {.5, "0.5"},
        {-.25, "-0.25"},
        {1e-7, "1e-07"},
        {1e-4, "0.0001"},
        {.00012345, "0.00012345"},
        {1e-5, "1e-05"},
        {16777217, "16777217"},
        {60500, "60500"},
        {812.4, "812.4"},
        {1738317600.5, "1738317600.5"},
        {1e15, "1000000000000000"},
        {1e16, "1e+16"},
        {.1 + .2, "0.30000000000000004"},
        {DBL_MAX, "1.7976931348623157e+308"},
        {-2.2250738585072014e-308, "-2.2250738585072014e-308"},
        {-1.2345678901234568e-300, "-1.2345678901234568e-300"},
        {(double)NAN, "nan"},
        {(double)INFINITY, "inf"},
        {-(double)INFINITY, "-inf"},
    };
    char text[TN_NUMBER_TEXT_MAX];
    for (size_t i = 0; i < sizeof vector / sizeof vector[0]; i++) {
        assert_int_equal(tn_write_f64(text, vector[i].value), strlen(vector[i].text));
        assert_string_equal(text, vector[i].text);
    }
    assert_int_equal(tn_write_f64(text, -0.0), 2);
    assert_string_equal(text, "-0");
    assert_int_equal(tn_write_f32(text, .1F), 3);
    assert_string_equal(text, "0.1");
    assert_int_equal(tn_write_f32(text, FLT_MAX), 13);
    assert_string_equal(text, "3.4028235e+38");
    uint32_t denormal = 0x80000001;
    (void)tn_write_f32(text, tn_load_f32(&denormal));
    assert_string_equal(text, "-1e-45");
}

TEST(what_is_written_reads_back_bit_for_bit)
{
    const uint64_t seed = 77;
    print_message("seed %llu\n", (unsigned long long)seed);
    char text[TN_NUMBER_TEXT_MAX];
    for (uint64_t i = 0; i < 20000; i++) {
        uint64_t bits = tn_draw(seed, i);
        double value = tn_load_f64(&bits);
        if (isfinite(value)) {
            double back = 0;
            size_t size = tn_write_f64(text, value);
            assert_true(size < sizeof text && strlen(text) == size);
            assert_int_equal(tn_read_f64(text, size, &back), TN_NUM_OK);
            assert_memory_equal(&back, &value, sizeof value);
        }
        uint32_t half = (uint32_t)(bits >> 16);
        float single = tn_load_f32(&half);
        if (isfinite(single)) {
            float back = 0;
            size_t size = tn_write_f32(text, single);
            assert_int_equal(tn_read_f32(text, size, &back), TN_NUM_OK);
            assert_memory_equal(&back, &single, sizeof single);
        }
    }
}

TEST(a_locale_with_decimal_commas_changes_nothing)
{
    const char *names[] = {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8", "fr_FR"};
    locale_t comma = (locale_t)0;
    for (size_t i = 0; i < 4 && comma == (locale_t)0; i++) {
        comma = newlocale(LC_ALL_MASK, names[i], (locale_t)0);
    }
    if (comma == (locale_t)0) {
        skip(); /* none is installed */
    }
    locale_t before = uselocale(comma);
    char text[TN_NUMBER_TEXT_MAX];
    (void)tn_write_f64(text, 1.5);
    double back = 0;
    tn_numeral result = tn_read_f64("0.30000000000000004", 19, &back);
    (void)uselocale(before);
    freelocale(comma);
    assert_string_equal(text, "1.5");
    assert_int_equal(result, TN_NUM_OK);
    assert_true(back == .1 + .2);
}

/* The last test: the CPU keeps flushing. */
TEST(denormals_survive_a_cpu_that_flushes_them)
{
    (void)tn_flush_denormals();
    char text[TN_NUMBER_TEXT_MAX];
    for (uint32_t bits = 1; bits < 0x00900000; bits += 0x3fff1) {
        float back = 0;
        size_t size = tn_write_f32(text, tn_load_f32(&bits));
        assert_int_equal(tn_read_f32(text, size, &back), TN_NUM_OK);
        assert_int_equal(tn_load_u32(&back), bits);
    }
    for (uint64_t bits = 1; bits < UINT64_C(1) << 54; bits = bits * 5 + 1) {
        double back = 0;
        size_t size = tn_write_f64(text, tn_load_f64(&bits));
        assert_int_equal(tn_read_f64(text, size, &back), TN_NUM_OK);
        assert_int_equal(tn_load_u64(&back), bits);
    }
}
