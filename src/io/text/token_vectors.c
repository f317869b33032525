/* token_vectors.c - signs and keys of all tokens of a record at once: loops without branches, which
 * the compiler makes vectors of. */
#include "io/text/token_vectors.h"

#include "base/core/alloc.h"
#include "base/core/compiler.h"
#include "base/math/key.h"

#define EACH UINT64_C(0x0101010101010101)

enum { ARRAYS = 8, ROOM_MIN = 64, EACH_LINE = TN_CACHE_LINE / TN_TOKEN_VECTORS_WORD };

const uint64_t tn_token_vectors_mask[TN_TOKEN_VECTORS_WORD + 1] = {
    0,
    UINT64_C(0xff00000000000000),
    UINT64_C(0xffff000000000000),
    UINT64_C(0xffffff0000000000),
    UINT64_C(0xffffffff00000000),
    UINT64_C(0xffffffffff000000),
    UINT64_C(0xffffffffffff0000),
    UINT64_C(0xffffffffffffff00),
    UINT64_C(0xffffffffffffffff),
};

bool tn_token_vectors_reserve(tn_token_vectors *lanes, uint32_t n)
{
    if (n <= lanes->room) {
        return true;
    }
    uint32_t room = n < ROOM_MIN ? ROOM_MIN : n + n / 2;
    room = (room + EACH_LINE - 1) / EACH_LINE * EACH_LINE;
    uint64_t *all = tn_try_alloc((size_t)room * ARRAYS, sizeof *all, "tokens of a record", NULL);
    if (all == NULL) {
        return false;
    }
    tn_token_vectors_done(lanes);
    *lanes = (tn_token_vectors){.low = all,
                                .high = all + room,
                                .highest = all + (size_t)2 * room,
                                .size = all + (size_t)3 * room,
                                .sign = all + (size_t)4 * room,
                                .bad = all + (size_t)5 * room,
                                .salt = all + (size_t)6 * room,
                                .tag = all + (size_t)7 * room,
                                .room = room};
    return true;
}

void tn_token_vectors_done(tn_token_vectors *lanes)
{
    tn_free(lanes->low);
    *lanes = (tn_token_vectors){.room = 0};
}

void tn_token_vectors_begin(tn_token_vectors_text *out, const char *text, size_t size)
{
    out->from[0] = out->front + TN_TOKEN_VECTORS_REACH;
    out->from[1] = text;
    memset(out->front, '0', TN_TOKEN_VECTORS_REACH);
    if (size >= TN_TOKEN_VECTORS_REACH) { /* as most are: no call */
        memcpy(out->front + TN_TOKEN_VECTORS_REACH, text, TN_TOKEN_VECTORS_REACH);
    } else {
        memcpy(out->front + TN_TOKEN_VECTORS_REACH, text, size);
    }
}

/* All ones: a is below b. Both are small. */
static inline uint64_t below(uint64_t a, uint64_t b)
{
    return 0 - ((a - b) >> 63);
}

TN_HOT static uint64_t keep_digits(uint64_t *restrict low, const uint64_t *restrict size,
                                   uint32_t n)
{
    uint64_t beyond = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t in_front = below(size[i], TN_TOKEN_VECTORS_WORD) >> (8 * size[i] & 63);
        low[i] = (low[i] ^ (EACH * '0')) & ~in_front;
        beyond |= TN_TOKEN_VECTORS_WORD - size[i];
    }
    return beyond >> 63;
}

bool tn_token_vectors_digits(const tn_token_vectors *lanes, uint32_t first, uint32_t n)
{
    return keep_digits(lanes->low + first, lanes->size + first, n) != 0;
}

/* Not 0: `size` is not 1 .. max. */
static inline uint64_t not_within(uint64_t size, uint64_t max)
{
    return ((size - 1) | (max - size)) >> 63;
}

/* Two digits, four, eight: first byte lowest, as in memory. */
static inline uint64_t value_of_digits(uint64_t x)
{
    x = (x * 10 + (x >> 8)) & UINT64_C(0x00ff00ff00ff00ff);
    x = (x * 100 + (x >> 16)) & UINT64_C(0x0000ffff0000ffff);
    return (x * 10000 + (x >> 32)) & UINT64_C(0xffffffff);
}

/* Not 0: some byte is above 9. */
static inline uint64_t not_digits(uint64_t x)
{
    return ((x + EACH * 0x76) | x) & (EACH * 0x80);
}

/* A letter has bit 6 and its low four bits are 1 .. 6; a digit has not, and its are 0 .. 9. */
TN_HOT static void hex_signs(const uint64_t *restrict low, const uint64_t *restrict size,
                             uint64_t *restrict sign, uint64_t *restrict bad, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint64_t word = low[i];
        uint64_t letter = (word >> 6) & EACH;
        uint64_t nibble = word & (EACH * 0x0f);
        uint64_t nine = (letter << 3) + letter;
        uint64_t x = nibble + nine;
        uint64_t wrong_high =
            (word & (EACH * 0xf0) & ~(letter << 5)) ^ (EACH * 0x30 + (letter << 4));
        uint64_t digit = EACH - letter;
        uint64_t too_large = (x + (digit << 2) + (digit << 1)) & (EACH * 0x10);
        uint64_t no_letter = letter & ~((nibble + EACH * 0x0f) >> 4);
        x = ((x << 4) | (x >> 8)) & UINT64_C(0x00ff00ff00ff00ff);
        x = ((x << 8) | (x >> 16)) & UINT64_C(0x0000ffff0000ffff);
        sign[i] = ((x << 16) | (x >> 32)) & UINT64_C(0xffffffff);
        bad[i] = wrong_high | too_large | no_letter | (size[i] ^ TN_TOKEN_VECTORS_WORD);
    }
}

void tn_token_vectors_hex(const tn_token_vectors *lanes, uint32_t first, uint32_t n)
{
    hex_signs(lanes->low + first, lanes->size + first, lanes->sign + first, lanes->bad + first, n);
}

TN_HOT static void short_signs(const uint64_t *restrict low, const uint64_t *restrict size,
                               uint64_t *restrict sign, uint64_t *restrict bad, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        sign[i] = value_of_digits(low[i]);
        bad[i] = not_digits(low[i]) | not_within(size[i], TN_TOKEN_VECTORS_WORD);
    }
}

void tn_token_vectors_short(const tn_token_vectors *lanes, uint32_t first, uint32_t n)
{
    short_signs(lanes->low + first, lanes->size + first, lanes->sign + first, lanes->bad + first,
                n);
}

TN_HOT static void long_signs(const uint64_t *restrict low, const uint64_t *restrict high,
                              const uint64_t *restrict highest, uint64_t *restrict sign,
                              uint64_t *restrict bad, uint32_t n)
{
    enum { LONGEST = 19 };
    const uint64_t power = 100000000;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t upper = value_of_digits(highest[i]) * power + value_of_digits(high[i]);
        sign[i] = upper * power + value_of_digits(low[i]);
        bad[i] = not_digits(low[i]) | not_digits(high[i]) | not_digits(highest[i]) |
                 not_within(bad[i], LONGEST);
    }
}

void tn_token_vectors_long(const tn_token_vectors *lanes, uint32_t first, uint32_t n)
{
    memcpy(lanes->bad + first, lanes->size + first, n * sizeof *lanes->bad);
    long_signs(lanes->low + first, lanes->high + first, lanes->highest + first, lanes->sign + first,
               lanes->bad + first, n);
}

/* Eight groups of 7 bits move together: 7 + 7, 14 + 14, 28 + 28. */
TN_HOT static void join_groups(const uint64_t *restrict low, const uint64_t *restrict high,
                               uint64_t *restrict sign, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint64_t x = low[i] & (EACH * 0x7f);
        x = (x & UINT64_C(0x7f007f007f007f00)) >> 1 | (x & UINT64_C(0x007f007f007f007f));
        x = (x & UINT64_C(0x3fff00003fff0000)) >> 2 | (x & UINT64_C(0x00003fff00003fff));
        x = (x & UINT64_C(0x0fffffff00000000)) >> 4 | (x & UINT64_C(0x000000000fffffff));
        sign[i] = x | high[i];
    }
}

void tn_token_vectors_varints(const tn_token_vectors *lanes, uint32_t n)
{
    join_groups(lanes->low, lanes->high, lanes->sign, n);
}

TN_HOT static void mix(uint64_t *restrict sign, uint32_t n, uint64_t salt)
{
    for (uint32_t i = 0; i < n; i++) {
        sign[i] = tn_key_of(sign[i], salt);
    }
}

void tn_token_vectors_keys(const tn_token_vectors *lanes, uint32_t n, uint64_t salt)
{
    mix(lanes->sign, n, salt);
}

TN_HOT static void mix_each(uint64_t *restrict sign, uint32_t n, const uint64_t *restrict salt)
{
    for (uint32_t i = 0; i < n; i++) {
        sign[i] = tn_key_of(sign[i], salt[i]);
    }
}

void tn_token_vectors_keys_each(const tn_token_vectors *lanes, uint32_t n, const uint64_t *salt)
{
    mix_each(lanes->sign, n, salt);
}

TN_HOT static void mix_to(uint64_t *restrict out, const uint64_t *restrict sign, uint32_t n,
                          const uint64_t *restrict salt)
{
    for (uint32_t i = 0; i < n; i++) {
        out[i] = tn_key_of(sign[i], salt[i]);
    }
}

void tn_token_vectors_keys_to(const tn_token_vectors *lanes, uint32_t n, const uint64_t *salt,
                              uint64_t *out)
{
    mix_to(out, lanes->sign, n, salt);
}

#define BITS4(n) UINT64_C(1) << (n), UINT64_C(2) << (n), UINT64_C(4) << (n), UINT64_C(8) << (n)
#define BITS16(n) BITS4(n), BITS4((n) + 4), BITS4((n) + 8), BITS4((n) + 12)
static const uint64_t bit_of[64] = {BITS16(0), BITS16(16), BITS16(32), BITS16(48)};

TN_HOT static uint64_t there_of(const uint64_t *restrict bad, const uint64_t *restrict size,
                                uint32_t n, uint64_t *restrict wrong)
{
    uint64_t all = 0;
    uint64_t some = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t bit = bit_of[i] & ~below(size[i], 1);
        all |= bit;
        some |= bit & (0 - ((bad[i] | (0 - bad[i])) >> 63));
    }
    *wrong = some;
    return all;
}

TN_HOT static uint64_t halve(uint32_t *restrict low, const uint64_t *restrict sign, uint32_t n,
                             uint64_t there, uint64_t *restrict high)
{
    uint64_t all = 0;
    uint64_t some = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t here = bit_of[i] & there;
        uint64_t value = sign[i] & (0 - ((here | (0 - here)) >> 63));
        low[i] = (uint32_t)value;
        all |= value;
        some |= here & (0 - (value >> 32 & 1));
    }
    *high = some;
    return all;
}

bool tn_token_vectors_narrow(const tn_token_vectors *lanes, uint32_t n, uint64_t there,
                             uint64_t *out)
{
    return halve((uint32_t *)(out + 1), lanes->sign, n, there, out) >> 33 == 0;
}

uint64_t tn_token_vectors_there(const tn_token_vectors *lanes, uint32_t n, uint64_t *bad)
{
    return there_of(lanes->bad, lanes->size, n, bad);
}

TN_HOT static uint64_t bad_of(const uint64_t *restrict bad, const uint64_t *restrict size,
                              uint32_t n)
{
    uint64_t some = 0;
    for (uint32_t i = 0; i < n; i++) {
        some |= size[i] != 0 ? bad[i] : 0;
    }
    return some;
}

bool tn_token_vectors_some_bad(const tn_token_vectors *lanes, uint32_t n)
{
    return bad_of(lanes->bad, lanes->size, n) != 0;
}
