/* vecmath.h - exp, log1p, tanh, erfc of one number, written so that a loop over them vectorises.
 *
 * Own code with one order of operations, no branches and no table: libm picks its version by
 * processor, and numbers must not. In float within a few ulp; in the double build, which only the
 * gradient tests use, libm does.
 */
#ifndef TN_NN_VECMATH_H
#define TN_NN_VECMATH_H

#include "nn/vec/real.h"

#ifdef TN_REAL_DOUBLE
#include <math.h>

static inline double tn_exp_of(double x)
{
    return exp(x);
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

#include "nn/vec/vecfloat.h"
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

#endif
