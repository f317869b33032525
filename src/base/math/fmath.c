/* fmath.c - rational approximations and their ranges.
 *
 * exp uses the coefficients of Sun's fdlibm (1993), tanh those of Cephes (Moshier 1989); ln is the
 * series of artanh. One order of operations, and built without contraction, so that no compiler
 * changes a bit.
 */
#include "base/math/fmath.h"

#include "base/core/bytes.h"
#include "base/core/error.h"

#include <math.h>
#include <stdint.h>

#define LN2 0.69314718055994530942
#define LN2_HIGH 6.93147180369123816490e-01 /* 33 bits: k * LN2_HIGH is exact */
#define LN2_LOW 1.90821492927058770002e-10
#define LOG2_E 1.44269504088896338700e+00
#define EXP_MAX 7.09782712893383973096e+02
#define EXP_MIN (-7.45133219101941108420e+02)
#define MANTISSA_MASK UINT64_C(0x000fffffffffffff)
#define ROUNDER 0x1.8p52 /* adding it leaves a whole number in the low bits */

enum { EXPONENT_BIAS = 1023, MANTISSA_BITS = 52 };

#define HORNER(c, x) horner((c), (int)(sizeof(c) / sizeof(c)[0]), (x))

/* Returns c[0] + c[1] x + .. + c[n - 1] x^(n - 1). */
static inline double horner(const double *c, int n, double x)
{
    double y = c[n - 1];
    for (int i = n - 2; i >= 0; i--) {
        y = y * x + c[i];
    }
    return y;
}

/* 1/3 + q/5 + q^2/7 .. 1/21 q^9: artanh(s) = s + s q of this, q = s^2 at most .03. */
static double artanh_tail(double q)
{
    static const double odd[] = {1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11,
                                 1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21};
    return HORNER(odd, q);
}

/* x is normal and positive. */
static double ln_of_normal(double x)
{
    uint64_t bits = tn_load_u64(&x);
    int e = (int)(bits >> MANTISSA_BITS) - (EXPONENT_BIAS - 1);
    TN_ASSERT(e > -(EXPONENT_BIAS - 1) && e <= EXPONENT_BIAS + 1);
    uint64_t m_bits = (bits & MANTISSA_MASK) | (uint64_t)(EXPONENT_BIAS - 1) << MANTISSA_BITS;
    double m = tn_load_f64(&m_bits); /* x = m 2^e, m in [1/2, 1) */
    if (m < 0.70710678118654752440) {
        m *= 2;
        e--;
    }
    double s = (m - 1) / (m + 1);
    double q = s * s;
    return 2 * s * (artanh_tail(q) * q + 1) + e * LN2;
}

double tn_ln(double x)
{
    uint64_t bits = tn_load_u64(&x);
    if (isnan(x) || bits == (uint64_t)(2 * EXPONENT_BIAS + 1) << MANTISSA_BITS) {
        return x;
    }
    if (bits << 1 == 0) {
        return -(double)INFINITY;
    }
    if (bits >> 63 != 0) {
        return (double)NAN;
    }
    if (bits <= MANTISSA_MASK) { /* denormal: by its bits, the CPU may take it for 0 */
        return ln_of_normal((double)bits) - (EXPONENT_BIAS + MANTISSA_BITS - 1) * LN2;
    }
    return ln_of_normal(x);
}

double tn_log1p(double x)
{
    TN_ASSERT(!(x < 0));
    if (x <= 0.41421356237309504880) {
        double s = x / (2 + x);
        double q = s * s;
        return x - s * (x - 2 * q * artanh_tail(q)); /* 2 s = x - s x; x itself is exact */
    }
    double u = 1 + x;
    return u > x ? tn_ln(u) + (x - (u - 1)) / u : tn_ln(x);
}

/* 2^k, normal. */
static inline double power_of_two(int k)
{
    uint64_t bits = (uint64_t)(k + EXPONENT_BIAS) << MANTISSA_BITS;
    return tn_load_f64(&bits);
}

double tn_exp(double x)
{
    static const double p[] = {0,
                               1.66666666666666019037e-01,
                               -2.77777777770155933842e-03,
                               6.61375632143793436117e-05,
                               -1.65339022054652515390e-06,
                               4.13813679705723846039e-08};
    if (isnan(x)) {
        return x;
    }
    if (x > EXP_MAX || x < EXP_MIN) {
        return x > 0 ? (double)INFINITY : 0;
    }
    double k = x * LOG2_E + ROUNDER - ROUNDER;
    double high = x - k * LN2_HIGH;
    double low = k * LN2_LOW;
    double r = high - low;
    double c = r - HORNER(p, r * r);
    double y = 1 - ((low - (r * c) / (2 - c)) - high);
    int half = (int)k / 2; /* in two steps: 2^k may be denormal or 2^1024 */
    return y * power_of_two(half) * power_of_two((int)k - half);
}

double tn_log1p_exp(double x)
{
    return (x > 0 ? x : 0) + tn_log1p(tn_exp(-fabs(x)));
}

double tn_sigmoid(double x)
{
    double e = tn_exp(-fabs(x));
    return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}

double tn_tanh(double x)
{
    static const double p[] = {-1.61468768441708447952e+03, -9.92877231001918586564e+01,
                               -9.64399179425052238628e-01};
    static const double q[] = {4.84406305325125486048e+03, 2.23548839060100448583e+03,
                               1.12811678491632931402e+02, 1};
    double a = fabs(x);
    if (a < 0.625) {
        double z = x * x;
        return x + x * z * (HORNER(p, z) / HORNER(q, z));
    }
    double y = 1 - 2 / (tn_exp(2 * a) + 1);
    return x < 0 ? -y : y;
}
