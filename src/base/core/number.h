/* number.h - numbers from text and back, the same on every machine and in every locale. Reading
 * takes exactly `size` bytes: no blanks before the number, nothing after it. Rules and limits are
 * those of the input formats (docs/formats.md): an integer that overflows is an error, a float is
 * decimal only, finite text beyond FLT_MAX is an error, underflow is a denormal or 0.
 */
#pragma once

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum tn_numeral {
    TN_NUM_OK = 0,
    TN_NUM_NONE,       /* not a number of this kind */
    TN_NUM_RANGE,      /* too large */
    TN_NUM_NOT_FINITE, /* nan, inf, infinity in any case, signed or not */
} tn_numeral;

tn_numeral tn_read_u64(const char *text, size_t size, uint64_t *out); /* 1 to 20 digits */
tn_numeral tn_read_i64(const char *text, size_t size, int64_t *out);  /* optional sign */
tn_numeral tn_read_hex(const char *text, size_t size, uint64_t *out); /* 1 to 16 hex digits */

/* Reads the nearest double, then float. On TN_NUM_NOT_FINITE *out is the nan or infinity. */
tn_numeral tn_read_f32(const char *text, size_t size, float *out);
tn_numeral tn_read_f64(const char *text, size_t size, double *out);
tn_numeral tn_round_f32(double value, float *out); /* TN_NUM_RANGE: infinite, or would be */

enum { TN_NUMBER_TEXT_MAX = 32 };

/* Writes the fewest digits that read back equal ("0.5", "1e-07", "16777217", "60500"), with an
 * exponent below 1e-4 and from 1e16 on; returns the length. `out` holds TN_NUMBER_TEXT_MAX bytes
 * and ends in a NUL. Not-finite: "nan", "inf", "-inf". */
size_t tn_write_f32(char *out, float value);
size_t tn_write_f64(char *out, double value);

/* Returns the "C" locale, for printf and uselocale(3): a host program may have set another one. */
locale_t tn_locale_c(void);
