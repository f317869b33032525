/* number_write.c - the shortest text of a float: try digits until it reads back equal. */
#include "base/core/bytes.h"
#include "base/core/error.h"
#include "base/core/number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    F32_DIGITS = 9, /* always enough */
    F64_DIGITS = 17,
    FIXED_FROM = -4, /* powers of ten written without an exponent */
    FIXED_TO = 16,
    SCIENTIFIC_MAX = 32,
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

/* "-d.ddde-xx" with as many digits as it takes; returns how many. */
static int shortest(const target *t, char out[SCIENTIFIC_MAX])
{
    int low = 1;
    int high = t->single ? F32_DIGITS : F64_DIGITS;
    locale_t before = uselocale(tn_locale_c());
    while (low < high) { /* more digits are never further off, so halving finds the fewest */
        int middle = (low + high) / 2;
        int size = snprintf(out, SCIENTIFIC_MAX, "%.*e", middle - 1, t->value);
        if (reads_back(out, (size_t)size, t)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    (void)snprintf(out, SCIENTIFIC_MAX, "%.*e", low - 1, t->value);
    (void)uselocale(before);
    return low;
}

/* 0 .. 324 behind the e, signed. */
static int power_of(const char *scientific)
{
    const char *e = strchr(scientific, 'e');
    TN_ASSERT(e != NULL);
    uint64_t power = 0;
    tn_numeral result = tn_read_u64(e + 2, strlen(e + 2), &power);
    TN_ASSERT(result == TN_NUM_OK);
    return e[1] == '-' ? -(int)power : (int)power;
}

/* `digits`, padded with zeros, as ddd000, dd.d or 0.000ddd. */
static size_t write_fixed(char *out, const char digits[F64_DIGITS], int n_digits, int power)
{
    char *at = out;
    int i = 0;
    if (power < 0) {
        *at++ = '0';
    }
    for (; i <= power; i++) {
        *at++ = digits[i];
    }
    if (i < n_digits) {
        *at++ = '.';
        for (int zeros = -1; zeros > power; zeros--) {
            *at++ = '0';
        }
        memcpy(at, digits + i, (size_t)(n_digits - i));
        at += n_digits - i;
    }
    *at = 0;
    return (size_t)(at - out);
}

static size_t write_finite(char *out, const target *t)
{
    char scientific[SCIENTIFIC_MAX];
    int n_digits = shortest(t, scientific);
    int power = power_of(scientific);
    size_t sign = scientific[0] == '-';
    if (power < FIXED_FROM || power >= FIXED_TO) {
        size_t size = strlen(scientific);
        TN_ASSERT(size < TN_NUMBER_TEXT_MAX);
        memcpy(out, scientific, size + 1);
        return size;
    }
    char digits[F64_DIGITS];
    memset(digits, '0', sizeof digits);
    digits[0] = scientific[sign];
    memcpy(digits + 1, scientific + sign + 2, (size_t)n_digits - 1);
    out[0] = '-';
    return sign + write_fixed(out + sign, digits, n_digits, power);
}

static size_t write_any(char *out, const target *t)
{
    const char *word = isnan(t->value) ? "nan" : t->value > 0 ? "inf" : "-inf";
    if (isfinite(t->value)) {
        return write_finite(out, t);
    }
    size_t size = strlen(word);
    memcpy(out, word, size + 1);
    return size;
}

/* Exact, denormals included where the CPU would take them for 0. */
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
