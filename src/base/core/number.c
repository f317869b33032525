/* number.c - text to numbers, on the hot path of every text parser, and numbers to text.
 *
 * A decimal of at most 19 significant digits is read into a u64. If that is below 2^53 and the
 * power of ten is within 10^22, both are exact doubles and one multiplication or division rounds
 * once: the nearest double (Clinger 1990). All else goes to strtod_l in the "C" locale, at most 771
 * digits of it: more cannot decide a bit if a last digit says whether anything was left out.
 *
 * The shortest text of a float is found by trying digits until it reads back equal.
 */
#include "base/core/number.h"

#include "base/core/bytes.h"
#include "base/core/error.h"

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    U64_DIGITS_MAX = 20,
    HEX_DIGITS_MAX = 16,
    EXACT_DIGITS = 19,      /* any 19 digits fit a u64 */
    EXACT_POWER = 22,       /* 10^22 is the last exact power */
    SLOW_DIGITS = 770,      /* 767 digits decide any double */
    SLOW_POWER = 5000,      /* far beyond anything finite or not 0 */
    POWER_MAX = 1000000000, /* bound above which further digits of an exponent are ignored */
};

static const double exact_power[EXACT_POWER + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static pthread_once_t locale_once = PTHREAD_ONCE_INIT;
static locale_t locale_c;

static void make_locale(void)
{
    locale_c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    TN_ASSERT(locale_c != (locale_t)0);
}

locale_t tn_locale_c(void)
{
    pthread_once(&locale_once, make_locale);
    return locale_c;
}

/* Returns 0 .. 9, or more when c is no digit. */
static inline unsigned digit_of(char c)
{
    return (unsigned)(unsigned char)c - '0';
}

tn_numeral tn_read_u64(const char *text, size_t size, uint64_t *out)
{
    uint64_t value = 0;
    bool fits = size <= U64_DIGITS_MAX;
    for (size_t i = 0; i < size; i++) {
        unsigned digit = digit_of(text[i]);
        if (digit > 9) {
            return TN_NUM_NONE;
        }
        /* Only a twentieth digit can overflow. */
        fits = fits && (i < EXACT_DIGITS || value < UINT64_MAX / 10 ||
                        (value == UINT64_MAX / 10 && digit <= UINT64_MAX % 10));
        value = value * 10 + digit;
    }
    if (size == 0 || !fits) {
        return size == 0 ? TN_NUM_NONE : TN_NUM_RANGE;
    }
    *out = value;
    return TN_NUM_OK;
}

tn_numeral tn_read_i64(const char *text, size_t size, int64_t *out)
{
    bool negative = size > 0 && text[0] == '-';
    size_t sign = size > 0 && (text[0] == '-' || text[0] == '+');
    uint64_t magnitude = 0;
    tn_numeral result = tn_read_u64(text + sign, size - sign, &magnitude);
    if (result != TN_NUM_OK) {
        return result;
    }
    if (magnitude > (uint64_t)INT64_MAX + negative) {
        return TN_NUM_RANGE;
    }
    *out = (int64_t)(negative ? 0 - magnitude : magnitude);
    return TN_NUM_OK;
}

static inline unsigned hex_of(char c)
{
    unsigned digit = digit_of(c);
    unsigned letter = ((unsigned)(unsigned char)c | 0x20U) - 'a';
    return digit <= 9 ? digit : letter <= 5 ? letter + 10 : 16;
}

tn_numeral tn_read_hex(const char *text, size_t size, uint64_t *out)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++) {
        unsigned digit = hex_of(text[i]);
        if (digit > 15) {
            return TN_NUM_NONE;
        }
        value = value << 4 | digit;
    }
    if (size == 0 || size > HEX_DIGITS_MAX) {
        return size == 0 ? TN_NUM_NONE : TN_NUM_RANGE;
    }
    *out = value;
    return TN_NUM_OK;
}

/* A decimal that is well formed: value = digits * 10^power, negated or not. */
typedef struct decimal {
    const char *mantissa; /* digits and at most one point */
    const char *mantissa_end;
    uint64_t digits; /* all digits as one whole number, modulo 2^64 */
    int64_t power;   /* power of ten of the last digit */
    bool negative;
} decimal;

/* Reads [eE][+-]?D+ up to `end`. Returns false for anything else. */
static bool scan_power(const char *p, const char *end, int64_t *power)
{
    if ((*p | 0x20) != 'e') {
        return false;
    }
    p++;
    bool negative = p < end && *p == '-';
    p += p < end && (*p == '-' || *p == '+');
    if (p == end) {
        return false;
    }
    int64_t value = 0;
    for (; p < end; p++) {
        unsigned digit = digit_of(*p);
        if (digit > 9) {
            return false;
        }
        value = value < POWER_MAX ? value * 10 + digit : value;
    }
    *power += negative ? -value : value;
    return true;
}

static inline bool scan(const char *text, size_t size, decimal *out)
{
    const char *p = text;
    const char *end = text + size;
    out->negative = size > 0 && *p == '-';
    p += size > 0 && (*p == '-' || *p == '+');
    out->mantissa = p;
    uint64_t digits = 0;
    for (; p < end && digit_of(*p) <= 9; p++) {
        digits = digits * 10 + digit_of(*p);
    }
    size_t n_digits = (size_t)(p - out->mantissa);
    out->power = 0;
    if (p < end && *p == '.') {
        const char *fraction = ++p;
        for (; p < end && digit_of(*p) <= 9; p++) {
            digits = digits * 10 + digit_of(*p);
        }
        n_digits += (size_t)(p - fraction);
        out->power = fraction - p;
    }
    out->mantissa_end = p;
    out->digits = digits;
    return n_digits > 0 && (p == end || scan_power(p, end, &out->power));
}

/* Returns whether d->digits is the whole number, not only its low 64 bits. */
static bool all_digits_fit(const decimal *d)
{
    if (d->mantissa_end - d->mantissa <= EXACT_DIGITS) {
        return true;
    }
    size_t significant = 0;
    for (const char *p = d->mantissa; p < d->mantissa_end; p++) {
        significant += *p != '.' && (significant > 0 || *p != '0');
    }
    return significant <= EXACT_DIGITS;
}

static double read_slowly(const decimal *d)
{
    char text[SLOW_DIGITS + 32];
    size_t n = 0;
    int64_t power = d->power;
    bool left_out = false;
    for (const char *p = d->mantissa; p < d->mantissa_end; p++) {
        if (*p == '.' || (n == 0 && *p == '0')) {
            continue;
        }
        if (n < SLOW_DIGITS) {
            text[n++] = *p;
        } else {
            left_out = left_out || *p != '0';
            power++;
        }
    }
    if (left_out) {
        text[n++] = '1';
        power--;
    }
    power = power > SLOW_POWER ? SLOW_POWER : power < -SLOW_POWER ? -SLOW_POWER : power;
    TN_ASSERT(n > 0 && n <= SLOW_DIGITS + 1);
    (void)snprintf(text + n, sizeof text - n, "e%d", (int)power);
    return strtod_l(text, NULL, tn_locale_c());
}

static inline double value_of(const decimal *d)
{
    double value;
    if (all_digits_fit(d) && d->digits == 0) {
        value = 0;
    } else if (d->digits <= (UINT64_C(1) << 53) && d->power >= -EXACT_POWER &&
               d->power <= EXACT_POWER && all_digits_fit(d)) {
        double digits = (double)d->digits;
        value = d->power < 0 ? digits / exact_power[-d->power] : digits * exact_power[d->power];
    } else {
        value = read_slowly(d);
    }
    return d->negative ? -value : value;
}

static bool is_word(const char *text, size_t size, const char *word)
{
    return size == strlen(word) && strncasecmp_l(text, word, size, tn_locale_c()) == 0;
}

static tn_numeral read_not_finite(const char *text, size_t size, double *out)
{
    bool negative = size > 0 && text[0] == '-';
    size_t sign = size > 0 && (text[0] == '-' || text[0] == '+');
    double value;
    if (is_word(text + sign, size - sign, "nan")) {
        value = (double)NAN;
    } else if (is_word(text + sign, size - sign, "inf") ||
               is_word(text + sign, size - sign, "infinity")) {
        value = (double)INFINITY;
    } else {
        return TN_NUM_NONE;
    }
    *out = negative ? -value : value;
    return TN_NUM_NOT_FINITE;
}

tn_numeral tn_read_f64(const char *text, size_t size, double *out)
{
    decimal d;
    if (!scan(text, size, &d)) {
        return read_not_finite(text, size, out);
    }
    double value = value_of(&d);
    if (fabs(value) > DBL_MAX) {
        return TN_NUM_RANGE;
    }
    *out = value;
    return TN_NUM_OK;
}

/* Returns the nearest float, denormal ones too where the CPU would flush them to 0. */
static float nearest_f32(double value)
{
    double magnitude = fabs(value);
    if (magnitude >= (double)FLT_MIN) {
        return (float)value;
    }
    double units = magnitude * 0x1p149 + 0x1p52 - 0x1p52; /* rounds to a whole number */
    uint32_t bits = (uint32_t)units | (signbit(value) ? UINT32_C(1) << 31 : 0);
    return tn_load_f32(&bits);
}

tn_numeral tn_round_f32(double value, float *out)
{
    const float nearest = nearest_f32(value);
    if (fabsf(nearest) > FLT_MAX) {
        return TN_NUM_RANGE;
    }
    *out = nearest;
    return TN_NUM_OK;
}

tn_numeral tn_read_f32(const char *text, size_t size, float *out)
{
    double value = 0;
    tn_numeral result = tn_read_f64(text, size, &value);
    if (result == TN_NUM_NOT_FINITE) {
        *out = (float)value;
    }
    return result == TN_NUM_OK ? tn_round_f32(value, out) : result;
}

/* ---- writing ---- */

enum {
    F32_DIGITS = 9, /* always enough */
    F64_DIGITS = 17,
    FIXED_TO = 16, /* the first power of ten that is written with an exponent */
};

/* A value as both kinds see it: compared by bits, so that flushing denormals changes nothing. */
typedef struct target {
    double value;
    uint64_t bits;
    bool single;
} target;

static bool reads_back(const char *text, size_t size, const target *t)
{
    uint64_t bits = 0;
    tn_numeral result;
    if (t->single) {
        float back = 0;
        result = tn_read_f32(text, size, &back);
        bits = tn_load_u32(&back);
    } else {
        double back = 0;
        result = tn_read_f64(text, size, &back);
        bits = tn_load_u64(&back);
    }
    return result == TN_NUM_OK && bits == t->bits;
}

/* Writes "%.*g" with as few digits as read back equal; returns how many. */
static int shortest(const target *t, char out[TN_NUMBER_TEXT_MAX])
{
    int low = 1;
    int high = t->single ? F32_DIGITS : F64_DIGITS;
    int printed = 0;
    while (low < high) { /* more digits are never further off, so halving finds the fewest */
        printed = (low + high) / 2;
        int size = snprintf(out, TN_NUMBER_TEXT_MAX, "%.*g", printed, t->value);
        if (reads_back(out, (size_t)size, t)) {
            high = printed;
        } else {
            low = printed + 1;
        }
    }
    TN_ASSERT(low > 0 && low <= F64_DIGITS);
    if (printed != low) {
        (void)snprintf(out, TN_NUMBER_TEXT_MAX, "%.*g", low, t->value);
    }
    return low;
}

/* Writes as "%g" does, but whole numbers below 10^FIXED_TO without an exponent. */
static void write_finite(char *out, const target *t)
{
    int digits = shortest(t, out);
    const char *e = strchr(out, 'e');
    uint64_t power = FIXED_TO;
    if (e != NULL && e[1] == '+') {
        tn_numeral result = tn_read_u64(e + 2, strlen(e + 2), &power);
        TN_ASSERT(result == TN_NUM_OK);
    }
    if (power < FIXED_TO) {
        double rounded = t->value; /* a float may have more digits than it takes */
        tn_numeral result = tn_read_f64(out, strlen(out), &rounded);
        TN_ASSERT(result == TN_NUM_OK);
        (void)snprintf(out, TN_NUMBER_TEXT_MAX, "%.0f", rounded);
    } else if (e == NULL && strcspn(out + (out[0] == '-'), ".") > FIXED_TO) {
        (void)snprintf(out, TN_NUMBER_TEXT_MAX, "%.*e", digits - 1, t->value);
    }
}

static size_t write_any(char *out, const target *t)
{
    if (isfinite(t->value)) {
        locale_t before = uselocale(tn_locale_c());
        write_finite(out, t);
        (void)uselocale(before);
    } else {
        const char *word = isnan(t->value) ? "nan" : t->value > 0 ? "inf" : "-inf";
        memcpy(out, word, strlen(word) + 1);
    }
    return strlen(out);
}

/* Converts exactly, denormals included where the CPU would take them for 0. */
static double widen(uint32_t bits)
{
    uint32_t magnitude = bits & UINT32_C(0x7fffffff);
    if (magnitude >= UINT32_C(0x00800000)) {
        return (double)tn_load_f32(&bits);
    }
    double value = (double)magnitude * 0x1p-149;
    return bits != magnitude ? -value : value;
}

size_t tn_write_f32(char *out, float value)
{
    uint32_t bits = tn_load_u32(&value);
    return write_any(out, &(target){widen(bits), bits, true});
}

size_t tn_write_f64(char *out, double value)
{
    return write_any(out, &(target){value, tn_load_u64(&value), false});
}
