/* digits.h - numerals eight bytes at a time, for the innermost loops of text parsers.
 *
 *     "1234 56.."   as a word, first byte lowest:  4 digits, then something else
 *
 * Inline and without state.
 */
#pragma once

#include "base/core/bytes.h"

#define TN_EACH_BYTE UINT64_C(0x0101010101010101)

/* How many of eight bytes are digits before the first that is none; their value in *out. */
static inline uint32_t tn_digits8(uint64_t word, uint64_t *out)
{
    uint64_t x = word ^ (TN_EACH_BYTE * '0');
    uint64_t bad = ((x + TN_EACH_BYTE * 0x76) | x) & (TN_EACH_BYTE * 0x80);
    uint32_t n = bad != 0 ? (uint32_t)__builtin_ctzll(bad) / 8 : 8;
    x = n > 0 ? x << (8 * (8 - n)) : 0; /* zeros in front of the first digit */
    x = x * 10 + (x >> 8);              /* pairs, fours, eight */
    *out = ((x & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x000f424000000064) +
            ((x >> 16) & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x0000271000000001)) >>
           32;
    return n;
}

/* Takes the digits at `p`; returns the end of them. Right up to 19 digits. */
static inline const char *tn_take_digits(const char *p, const char *end, uint64_t *out)
{
    static const uint64_t power[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
    uint64_t value = 0;
    while (end - p >= 8) {
        uint64_t part;
        uint32_t n = tn_digits8(tn_load_u64(p), &part);
        value = value * power[n] + part;
        p += n;
        if (n < 8) {
            *out = value;
            return p;
        }
    }
    unsigned digit;
    while (p < end && (digit = (unsigned)(unsigned char)*p - '0') <= 9) {
        value = value * 10 + digit;
        p++;
    }
    *out = value;
    return p;
}

/* Eight hex digits at once; false: some of them are none.
 *
 * A letter has bit 6 and its low four bits are 1 .. 6; a digit has not, and its are 0 .. 9. */
static inline bool tn_read_hex8(const char *text, uint64_t *out)
{
    uint64_t word = __builtin_bswap64(tn_load_u64(text));
    uint64_t letter = (word >> 6) & TN_EACH_BYTE;
    uint64_t nibble = word & (TN_EACH_BYTE * 0x0f);
    uint64_t value = nibble + letter * 9;
    /* a digit's high half is 3 and nibble + 6 < 16; a letter's is 4 or 6 and nibble + 9 < 16 */
    uint64_t wrong_high =
        (word & (TN_EACH_BYTE * 0xf0) & ~(letter * 0x20)) ^ (TN_EACH_BYTE * 0x30 + letter * 0x10);
    uint64_t too_large = (value + (TN_EACH_BYTE - letter) * 6) & (TN_EACH_BYTE * 0x10);
    uint64_t no_letter = letter & ~((nibble + TN_EACH_BYTE * 0x0f) >> 4);
    value = (value | value >> 4) & UINT64_C(0x00ff00ff00ff00ff);
    value = (value | value >> 8) & UINT64_C(0x0000ffff0000ffff);
    *out = (value | value >> 16) & UINT64_C(0xffffffff);
    return (wrong_high | too_large | no_letter) == 0;
}
