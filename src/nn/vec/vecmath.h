/* vecmath.h - exp, log, log1p, tanh, erfc of one number, so that loops over them vectorise.
 *
 * Own code with one order of operations, no branches and no table: libm picks its version by
 * processor, and numbers must not. In float within a few ulp; in the double build, which only the
 * gradient tests use, libm does.
 */
#pragma once

#include "nn/vec/real.h"

#include <math.h>
#include <stdint.h>

typedef union tn_float_bits {
    float f;
    uint32_t u;
} tn_float_bits;

#ifdef TN_REAL_DOUBLE

static inline double tn_exp_of(double x)
{
    return exp(x);
}

static inline double tn_log_of(double x)
{
    return log(x);
}

static inline double tn_log1p_of(double u)
{
    return log1p(u);
}

static inline double tn_tanh_of(double x)
{
    return tanh(x);
}

static inline double tn_erfc_of(double x)
{
    return erfc(x);
}

#else

/* x = n ln 2 + r, |r| <= ln 2 / 2; e^x = 2^n e^r. Below -87.3 it is 0, above 88.7 as at 88.7. */
static inline float tn_exp_of(float x)
{
    float z = x > 88.7F ? 88.7F : x;
    z = z < -87.3F ? -87.3F : z;
    tn_float_bits n = {.f = z * 1.44269504F + 12582912.0F}; /* 1.5 * 2^23: rounds to an integer */
    float k = n.f - 12582912.0F;
    float r = (z - k * 0.693359375F) - k * -2.12194440e-4F;
    float p = 1.9875691500e-4F;
    p = p * r + 1.3981999507e-3F;
    p = p * r + 8.3334519073e-3F;
    p = p * r + 4.1665795894e-2F;
    p = p * r + 1.6666665459e-1F;
    p = p * r + 5.0000001201e-1F;
    float e = (p * (r * r) + r) + 1;
    /* In two halves: 2^128 is not a float. */
    uint32_t whole = n.u - 0x4b400000U;
    uint32_t half = (uint32_t)((int32_t)whole >> 1);
    tn_float_bits a = {.u = (half + 127) << 23};
    tn_float_bits b = {.u = (whole - half + 127) << 23};
    float y = e * a.f * b.f;
    return x < -87.3F ? 0 : y;
}

/* ln(1 + u), 0 <= u <= 1: 2 atanh(u / (2 + u)) as a series; exact to the last bits for tiny u. */
static inline float tn_log1p_of(float u)
{
    float s = u / (2 + u);
    float q = s * s;
    float p = 1.0F / 15;
    p = p * q + 1.0F / 13;
    p = p * q + 1.0F / 11;
    p = p * q + 1.0F / 9;
    p = p * q + 1.0F / 7;
    p = p * q + 1.0F / 5;
    p = p * q + 1.0F / 3;
    return 2 * (s + s * q * p);
}

/* x = 2^k m, m from sqrt(1/2) to sqrt(2): k ln 2 + 2 atanh((m - 1) / (m + 1)). Of 0: minus
 * infinity, of less: no number. */
static inline float tn_log_of(float x)
{
    enum { HALF_ROOT = 0x3f3504f3, MANTISSA = 0x7fffff }; /* sqrt(1/2) */
    tn_float_bits b = {.f = x};
    uint32_t above = b.u - HALF_ROOT;
    float k = (float)((int32_t)above >> 23);
    tn_float_bits m = {.u = (above & MANTISSA) + HALF_ROOT};
    float s = (m.f - 1) / (m.f + 1);
    float q = s * s;
    float p = 1.0F / 11;
    p = p * q + 1.0F / 9;
    p = p * q + 1.0F / 7;
    p = p * q + 1.0F / 5;
    p = p * q + 1.0F / 3;
    float y = 2 * (s + s * (q * p)) + k * -2.12194440e-4F + k * 0.693359375F;
    y = x == INFINITY ? x : y;
    float none = x == 0 ? -INFINITY : NAN;
    return x > 0 ? y : none;
}

/* Near 0 by its series, else 1 - 2 / (e^(2|x|) + 1). */
static inline float tn_tanh_of(float x)
{
    float a = x < 0 ? -x : x;
    float far = 1 - 2 / (tn_exp_of(2 * a) + 1);
    far = x < 0 ? -far : far;
    float q = x * x;
    float p = -5.70498872745e-3F;
    p = p * q + 2.06390887954e-2F;
    p = p * q + -5.37397155531e-2F;
    p = p * q + 1.33314422036e-1F;
    p = p * q + -3.33332819422e-1F;
    float near = x + x * (q * p);
    return a < 0.625F ? near : far;
}

/* Chebyshev fit of erfc(z) = t e^(-z^2 + P(t)), t = 1 / (1 + z / 2), z >= 0; error below 1.2e-7 of
 * the value (Numerical Recipes, section 6.2). */
static inline float tn_erfc_of(float x)
{
    float z = x < 0 ? -x : x;
    float t = 1 / (1 + 0.5F * z);
    float p = 0.17087277F;
    p = p * t + -0.82215223F;
    p = p * t + 1.48851587F;
    p = p * t + -1.13520398F;
    p = p * t + 0.27886807F;
    p = p * t + -0.18628806F;
    p = p * t + 0.09678418F;
    p = p * t + 0.37409196F;
    p = p * t + 1.00002368F;
    p = p * t + -1.26551223F;
    float y = t * tn_exp_of(p - z * z);
    return x < 0 ? 2 - y : y;
}

#endif

static inline tn_real tn_abs_of(tn_real x)
{
    return x < 0 ? -x : x;
}

/* 1 / (1 + e^-x) without e of a large number. */
static inline tn_real tn_sigmoid_of(tn_real x)
{
    tn_real e = tn_exp_of(-tn_abs_of(x));
    tn_real s = 1 / (1 + e);
    tn_real t = e / (1 + e);
    return x < 0 ? t : s;
}

/* ln(1 + e^x) */
static inline tn_real tn_softplus_of(tn_real x)
{
    tn_real top = x > 0 ? x : 0;
    return top + tn_log1p_of(tn_exp_of(-tn_abs_of(x)));
}
