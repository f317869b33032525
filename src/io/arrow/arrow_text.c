/* arrow_text.c - decimals, dates and times as text.
 *
 * A day becomes year, month and day in a calendar whose years begin in March, so that a leap day is
 * the last of its year: 400 years have 146,097 days, and months from March on have 153 days in each
 * five of them.
 */
#include "io/arrow/arrow_text.h"

#include "base/core/error.h"

#include <stdbool.h>
#include <string.h>

enum { DAY_S = 86400, CYCLE_DAYS = 146097, CYCLE_YEARS = 400, MARCH_OF_YEAR_0 = 719468 };

static int64_t divide_down(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* Returns the rest of that division, 0 .. b - 1. */
static int64_t rest_down(int64_t a, int64_t b)
{
    return a % b + (a % b < 0 ? b : 0);
}

/* Writes the last n digits of a value. */
static char *put_digits(char *out, uint64_t value, uint32_t n)
{
    for (uint32_t i = n; i-- > 0;) {
        out[i] = (char)('0' + value % 10);
        value /= 10;
    }
    return out + n;
}

size_t tn_arrow_write_u64(char *out, uint64_t value)
{
    uint32_t n = 1;
    for (uint64_t rest = value / 10; rest > 0; rest /= 10) {
        n++;
    }
    return (size_t)(put_digits(out, value, n) - out);
}

/* ---- decimals ---- */

enum { LIMBS = 8, LIMB_DIGITS = 9, LIMB_BASE = 1000000000, DECIMAL_DIGITS = 81 };

/* The absolute value, limb by limb. */
static bool read_limbs(uint32_t limb[LIMBS], const char *value, uint32_t bytes)
{
    const bool negative = (value[bytes - 1] & 0x80) != 0;
    memset(limb, negative ? 0xff : 0, LIMBS * sizeof *limb);
    memcpy(limb, value, bytes);
    uint64_t carry = 1;
    for (uint32_t i = 0; negative && i < LIMBS; i++) {
        carry += (uint32_t)~limb[i];
        limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    return negative;
}

/* Writes the digits of a value to the end of `digits`, returns how many; 0 has none. */
static uint32_t digits_of(char digits[DECIMAL_DIGITS], uint32_t limb[LIMBS])
{
    uint32_t n = LIMBS;
    uint32_t at = DECIMAL_DIGITS;
    for (;;) {
        while (n > 0 && limb[n - 1] == 0) {
            n--;
        }
        if (n == 0) {
            break;
        }
        uint64_t rest = 0;
        for (uint32_t i = n; i-- > 0;) {
            rest = rest << 32 | limb[i];
            limb[i] = (uint32_t)(rest / LIMB_BASE);
            rest %= LIMB_BASE;
        }
        at -= LIMB_DIGITS;
        (void)put_digits(digits + at, rest, LIMB_DIGITS);
    }
    while (at < DECIMAL_DIGITS && digits[at] == '0') {
        at++;
    }
    return DECIMAL_DIGITS - at;
}

size_t tn_arrow_write_decimal(char *out, const void *value, uint32_t bytes, int32_t scale)
{
    TN_ASSERT(bytes > 0 && bytes <= LIMBS * sizeof(uint32_t));
    TN_ASSERT(scale >= -TN_ARROW_SCALE_MAX && scale <= TN_ARROW_SCALE_MAX);
    uint32_t limb[LIMBS];
    char digits[DECIMAL_DIGITS];
    char *at = out;
    if (read_limbs(limb, value, bytes)) {
        *at++ = '-';
    }
    const uint32_t n = digits_of(digits, limb);
    const char *first = digits + DECIMAL_DIGITS - n;
    const uint32_t after = scale > 0 ? (uint32_t)scale : 0;
    const uint32_t before = n > after ? n - after : 0;
    memcpy(at, before > 0 ? first : "0", before > 0 ? before : 1);
    at += before > 0 ? before : 1;
    if (scale < 0 && n > 0) {
        memset(at, '0', (size_t)-scale);
        at += -scale;
    }
    if (after > 0) {
        const uint32_t zeros = after - (n - before);
        *at++ = '.';
        memset(at, '0', zeros);
        memcpy(at + zeros, first + before, n - before);
        at += after;
    }
    return (size_t)(at - out);
}

/* ---- dates and times ---- */

size_t tn_arrow_write_date(char *out, int64_t days)
{
    /* Shifted by whole cycles, so that no sum overflows. */
    const int64_t day = days % CYCLE_DAYS + MARCH_OF_YEAR_0;
    const int64_t cycle = days / CYCLE_DAYS + divide_down(day, CYCLE_DAYS);
    const int64_t d = rest_down(day, CYCLE_DAYS);
    const int64_t y = (d - d / 1460 + d / 36524 - d / 146096) / 365;
    const int64_t of_year = d - (365 * y + y / 4 - y / 100);
    const int64_t month = (5 * of_year + 2) / 153;
    const int64_t of_month = of_year - (153 * month + 2) / 5 + 1;
    const int64_t year = y + cycle * CYCLE_YEARS + (month >= 10);
    const uint64_t years = year < 0 ? -(uint64_t)year : (uint64_t)year;
    char *at = out;
    if (year < 0) {
        *at++ = '-';
    }
    at = years < 10000 ? put_digits(at, years, 4) : at + tn_arrow_write_u64(at, years);
    *at++ = '-';
    at = put_digits(at, (uint64_t)(month < 10 ? month + 3 : month - 9), 2);
    *at++ = '-';
    return (size_t)(put_digits(at, (uint64_t)of_month, 2) - out);
}

static int64_t units_of_second(uint32_t digits)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < digits; i++) {
        n *= 10;
    }
    return n;
}

/* Writes seconds of a day and the units of the next one. */
static size_t write_clock(char *out, int64_t second, int64_t units, uint32_t digits)
{
    char *at = put_digits(out, (uint64_t)(second / 3600), 2);
    *at++ = ':';
    at = put_digits(at, (uint64_t)(second / 60 % 60), 2);
    *at++ = ':';
    at = put_digits(at, (uint64_t)(second % 60), 2);
    if (units > 0) {
        *at++ = '.';
        at = put_digits(at, (uint64_t)units, digits);
    }
    return (size_t)(at - out);
}

size_t tn_arrow_write_time(char *out, int64_t time, uint32_t digits)
{
    const int64_t units = units_of_second(digits);
    const int64_t second = rest_down(divide_down(time, units), DAY_S);
    return write_clock(out, second, rest_down(time, units), digits);
}

size_t tn_arrow_write_timestamp(char *out, int64_t time, uint32_t digits, int32_t zone_s)
{
    const int64_t units = units_of_second(digits);
    const int64_t second = divide_down(time, units);
    const int64_t there = rest_down(second, DAY_S) + zone_s; /* since midnight in UTC */
    const int64_t day = divide_down(second, DAY_S) + divide_down(there, DAY_S);
    const size_t n = tn_arrow_write_date(out, day);
    out[n] = ' ';
    return n + 1 +
           write_clock(out + n + 1, rest_down(there, DAY_S), rest_down(time, units), digits);
}
