/* test_token_vectors.c - signs of many tokens at once are those of one token at a time. */
#include "base/core/number.h"
#include "base/math/key.h"
#include "io/text/token_vectors.h"
#include "support/test.h"

enum { TOKENS = 37, TOKEN_MAX = 24 };

typedef void (*signs)(const tn_token_vectors *lanes, uint32_t first, uint32_t n);

typedef struct words {
    char text[TOKENS * (TOKEN_MAX + 1)];
    size_t end[TOKENS];
    size_t size[TOKENS];
} words;

/* Tokens one behind the other. `strange`: one byte in so many is any. */
static void make(words *w, uint64_t seed, const char *digits, size_t n_digits, size_t size_max,
                 uint64_t strange)
{
    size_t at = 0;
    for (uint32_t i = 0; i < TOKENS; i++) {
        w->size[i] = tn_draw(seed, 1000 + i) % (size_max + 1);
        for (size_t k = 0; k < w->size[i]; k++) {
            uint64_t x = tn_draw(seed, at);
            bool any = strange > 0 && x % strange == 0;
            w->text[at++] = (char)(any ? x >> 40 : (uint64_t)digits[(x >> 32) % n_digits]);
        }
        w->end[i] = at;
        w->text[at++] = '\t';
    }
}

static void fill(const words *w, bool hex, tn_token_vectors *lanes)
{
    tn_token_vectors_text text;
    assert_true(tn_token_vectors_reserve(lanes, TOKENS));
    tn_token_vectors_begin(&text, w->text, w->end[TOKENS - 1]);
    for (uint32_t i = 0; i < TOKENS; i++) {
        const char *end = tn_token_vectors_end(&text, w->end[i]);
        lanes->low[i] = hex ? tn_load_u64(end - 8) : tn_token_vectors_digits_at(end, w->size[i]);
        lanes->size[i] = w->size[i];
        tn_token_vectors_set_high(lanes, i, end);
    }
}

/* What it should give; false: a bad token. */
static bool plainly(const words *w, uint32_t i, bool hex, size_t longest, uint64_t *out)
{
    const char *from = w->text + w->end[i] - w->size[i];
    if (hex) {
        return w->size[i] == 8 && tn_read_hex(from, 8, out) == TN_NUM_OK;
    }
    return w->size[i] <= longest && tn_read_u64(from, w->size[i], out) == TN_NUM_OK;
}

static void compare(signs run, bool hex, size_t longest, const char *digits, size_t n_digits)
{
    tn_token_vectors lanes CLEANUP(tn_token_vectors_done) = {.room = 0};
    uint64_t good_ones = 0;
    for (uint64_t round = 0; round < 3000; round++) {
        words w;
        make(&w, round, digits, n_digits, round % 3 == 0 ? 8 : TOKEN_MAX, round % 2 == 0 ? 0 : 30);
        fill(&w, hex, &lanes);
        run(&lanes, 0, TOKENS);
        for (uint32_t i = 0; i < TOKENS; i++) {
            uint64_t want = 0;
            bool good = plainly(&w, i, hex, longest, &want);
            good_ones += good;
            fail_if(good != (lanes.bad[i] == 0) || (good && lanes.sign[i] != want),
                    "round %llu, token '%.*s'", (unsigned long long)round, (int)w.size[i],
                    w.text + w.end[i] - w.size[i]);
        }
    }
    assert_true(good_ones > 1000);
}

TEST(hex_digits_by_eight)
{
    compare(tn_token_vectors_hex, true, 8, "0123456789abcdefABCDEF", 22);
}

TEST(short_numbers)
{
    compare(tn_token_vectors_short, false, 8, "0123456789", 10);
}

TEST(long_numbers)
{
    compare(tn_token_vectors_long, false, 19, "0123456789", 10);
}

TEST(digits_are_kept_and_what_is_in_front_is_not)
{
    tn_token_vectors lanes CLEANUP(tn_token_vectors_done) = {.room = 0};
    for (uint64_t round = 0; round < 300; round++) {
        words w;
        size_t longest = round % 2 == 0 ? 8 : TOKEN_MAX;
        bool beyond = false;
        make(&w, round, "0123456789", 10, longest, 9);
        fill(&w, true, &lanes); /* words of text */
        bool said = tn_token_vectors_digits(&lanes, 0, TOKENS);
        for (uint32_t i = 0; i < TOKENS; i++) {
            tn_token_vectors_text text;
            tn_token_vectors_begin(&text, w.text, w.end[TOKENS - 1]);
            const char *end = tn_token_vectors_end(&text, w.end[i]);
            assert_int_equal(lanes.low[i], tn_token_vectors_digits_at(end, w.size[i]));
            beyond = beyond || w.size[i] > 8;
        }
        assert_int_equal(said, beyond);
    }
}

TEST(bits_say_what_is_there_and_what_is_bad)
{
    enum { MOST = 64 };
    tn_token_vectors lanes CLEANUP(tn_token_vectors_done) = {.room = 0};
    assert_true(tn_token_vectors_reserve(&lanes, MOST));
    for (uint64_t round = 0; round < 200; round++) {
        uint32_t n = (uint32_t)(round % (MOST + 1));
        uint64_t there = 0;
        uint64_t wrong = 0;
        for (uint32_t i = 0; i < n; i++) {
            uint64_t x = tn_draw(round, i);
            lanes.size[i] = x % 3 == 0 ? 0 : x % 60000;
            lanes.bad[i] = x % 7 == 0 ? x << (x % 64) : 0;
            there |= (uint64_t)(lanes.size[i] != 0) << i;
            wrong |= (uint64_t)(lanes.size[i] != 0 && lanes.bad[i] != 0) << i;
        }
        uint64_t bad = ~UINT64_C(0);
        assert_int_equal(tn_token_vectors_there(&lanes, n, &bad), there);
        assert_int_equal(bad, wrong);
    }
}

TEST(keys_go_where_they_are_wanted)
{
    tn_token_vectors lanes CLEANUP(tn_token_vectors_done) = {.room = 0};
    uint64_t salt[TOKENS];
    uint64_t out[TOKENS];
    assert_true(tn_token_vectors_reserve(&lanes, TOKENS));
    for (uint32_t i = 0; i < TOKENS; i++) {
        salt[i] = tn_draw(3, i);
        lanes.sign[i] = tn_draw(4, i);
    }
    tn_token_vectors_keys_to(&lanes, TOKENS, salt, out);
    for (uint32_t i = 0; i < TOKENS; i++) {
        assert_int_equal(out[i], tn_key_of(tn_draw(4, i), salt[i]));
        assert_int_equal(lanes.sign[i], tn_draw(4, i));
    }
}

TEST(every_byte_that_is_no_hex_digit_is_bad)
{
    tn_token_vectors lanes CLEANUP(tn_token_vectors_done) = {.room = 0};
    assert_true(tn_token_vectors_reserve(&lanes, 256));
    for (uint32_t place = 0; place < 8; place++) {
        for (uint32_t byte = 0; byte < 256; byte++) {
            char text[8] = {'0', '9', 'a', 'f', 'A', 'F', '5', 'c'};
            text[place] = (char)byte;
            lanes.low[byte] = tn_load_u64(text);
            lanes.size[byte] = 8;
        }
        tn_token_vectors_hex(&lanes, 0, 256);
        for (uint32_t byte = 0; byte < 256; byte++) {
            bool digit = (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f') ||
                         (byte >= 'A' && byte <= 'F');
            assert_int_equal(lanes.bad[byte] == 0, digit);
        }
    }
}

TEST(keys_are_those_of_tn_key_of)
{
    tn_token_vectors lanes CLEANUP(tn_token_vectors_done) = {.room = 0};
    uint64_t salt[TOKENS];
    assert_true(tn_token_vectors_reserve(&lanes, TOKENS));
    for (uint32_t n = 0; n <= TOKENS; n++) {
        for (uint32_t i = 0; i < TOKENS; i++) {
            lanes.sign[i] = tn_draw(5, i);
            salt[i] = tn_draw(6, i);
        }
        tn_token_vectors_keys_each(&lanes, n, salt);
        for (uint32_t i = 0; i < TOKENS; i++) {
            uint64_t sign = tn_draw(5, i);
            assert_int_equal(lanes.sign[i], i < n ? tn_key_of(sign, salt[i]) : sign);
            lanes.sign[i] = sign;
        }
        tn_token_vectors_keys(&lanes, n, 77);
        for (uint32_t i = 0; i < n; i++) {
            assert_int_equal(lanes.sign[i], tn_key_of(tn_draw(5, i), 77));
        }
    }
}

TEST(one_bad_token_is_seen)
{
    tn_token_vectors lanes CLEANUP(tn_token_vectors_done) = {.room = 0};
    assert_true(tn_token_vectors_reserve(&lanes, TOKENS));
    assert_false(tn_token_vectors_some_bad(&lanes, TOKENS));
    lanes.bad[TOKENS - 1] = UINT64_C(1) << 63;
    assert_false(tn_token_vectors_some_bad(&lanes, TOKENS)); /* nothing stands there */
    lanes.size[TOKENS - 1] = 1;
    assert_true(tn_token_vectors_some_bad(&lanes, TOKENS));
    assert_false(tn_token_vectors_some_bad(&lanes, TOKENS - 1));
}
