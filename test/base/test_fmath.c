/* test_fmath.c - V15 of docs/numerics.md, and ulps against libm in 80 bits. */
#include "base/core/bytes.h"
#include "base/math/fmath.h"
#include "support/test.h"

#include <float.h>

typedef double fn(double x);
typedef long double wide_fn(long double x);

/* |got - exact| in units of the last place of exact; denormal results count as if normal. */
static double ulps(double got, long double exact)
{
    if (isinf(got) && isinf((double)exact)) {
        return 0;
    }
    double magnitude = fabs((double)exact);
    double ulp = magnitude < DBL_MIN ? DBL_MIN * DBL_EPSILON
                                     : nextafter(magnitude, (double)INFINITY) - magnitude;
    return (double)(fabsl((long double)got - exact) / (long double)ulp);
}

static void stays_within(double limit, fn *ours, wide_fn *theirs, double from, double to)
{
    enum { POINTS = 40000 };
    double worst = 0;
    double at = from;
    for (uint64_t i = 0; i < POINTS; i++) {
        double x = from + (to - from) * tn_unit(tn_draw(15, i));
        double off = ulps(ours(x), theirs((long double)x));
        at = off > worst ? x : at;
        worst = off > worst ? off : worst;
    }
    print_message("%g .. %g: %.3f ulp at %.17g\n", from, to, worst, at);
    assert_true(worst <= limit);
}

static long double exact_sigmoid(long double x)
{
    return 1 / (1 + expl(-x));
}

static long double exact_softplus(long double x)
{
    return (x > 0 ? x : 0) + log1pl(expl(-fabsl(x)));
}

TEST(exp_is_within_one_ulp)
{
    stays_within(1, tn_exp, expl, -745, 709.7);
    stays_within(1, tn_exp, expl, -1, 1);
    stays_within(1, tn_exp, expl, -1e-5, 1e-5);
    assert_true(tn_exp(0) == 1 && tn_exp(-0.0) == 1);
    assert_true(isinf(tn_exp(709.79)) && isinf(tn_exp(1e300)) && isinf(tn_exp((double)INFINITY)));
    assert_true(tn_exp(-746) == 0 && tn_exp(-(double)INFINITY) == 0);
    assert_true(isfinite(tn_exp(709.78)) && isnan(tn_exp((double)NAN)));
}

TEST(ln_is_within_three_ulp)
{
    stays_within(3, tn_ln, logl, 1e-3, .7);
    stays_within(3, tn_ln, logl, .7, 1.5);
    stays_within(3, tn_ln, logl, .999, 1.001);
    stays_within(3, tn_ln, logl, 1, 1e6);
    stays_within(3, tn_ln, logl, 1e300, 1.7e308);
    stays_within(3, tn_log1p, log1pl, 0, 1);
    stays_within(3, tn_log1p, log1pl, 0, 1e-9);
    stays_within(3, tn_log1p, log1pl, 0, 1e20);
    assert_true(tn_ln(1) == 0 && tn_log1p(0) == 0);
    assert_true(isinf(tn_ln(0)) && tn_ln(-0.0) < 0 && isnan(tn_ln(-1)));
    assert_true(isinf(tn_ln((double)INFINITY)) && isnan(tn_ln((double)NAN)));
    const uint64_t denormal = 3;
    assert_true(ulps(tn_ln(tn_load_f64(&denormal)), logl(3) - 1074 * logl(2)) < 1);
}

TEST(sigmoid_softplus_and_tanh_are_within_three_ulp)
{
    stays_within(3, tn_sigmoid, exact_sigmoid, -700, 0);
    stays_within(3, tn_sigmoid, exact_sigmoid, -10, 50);
    stays_within(3, tn_log1p_exp, exact_softplus, -700, 50);
    stays_within(3, tn_log1p_exp, exact_softplus, -1, 1);
    stays_within(2, tn_tanh, tanhl, -25, 25);
    stays_within(2, tn_tanh, tanhl, -1, 1);
    assert_true(tn_sigmoid(-1e300) == 0 && tn_sigmoid(1e300) == 1 && tn_sigmoid(0) == .5);
    assert_true(tn_log1p_exp(1e300) == 1e300 && tn_log1p_exp(-1e300) == 0);
    assert_true(tn_tanh(1e300) == 1 && tn_tanh(-1e300) == -1);
    assert_true(isnan(tn_sigmoid((double)NAN)) && isnan(tn_tanh((double)NAN)));
    assert_true(isnan(tn_log1p_exp((double)NAN)));
}

TEST(v15_bce_and_its_gradient)
{
    const double z[] = {-40, -2, 0, 1.5, 100};
    const double y[] = {0, 1, 1, 0, 1};
    const double loss[] = {4.24835426e-18, 2.126928011, .693147181, 1.701413278, 3.72e-44};
    const double slope[] = {4.24835426e-18, -.880797078, -.5, .817574476, 0};
    const double digits[] = {5e-27, 1e-9, 1e-9, 1e-9, 1e-46}; /* half a unit of what is printed */
    for (int i = 0; i < 5; i++) {
        double l = fmax(z[i], 0) - z[i] * y[i] + tn_log1p(tn_exp(-fabs(z[i])));
        assert_true(fabs(l - loss[i]) <= digits[i]);
        double g = tn_sigmoid(z[i]) - y[i];
        assert_true(fabs(g - slope[i]) <= (i == 0 ? digits[0] : 1e-9));
    }
    assert_true(fabs(tn_log1p_exp(-40) / 4.24835426e-18 - 1) < 1e-8);
}
