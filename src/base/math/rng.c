/* rng.c - names, ranges, shuffles and the normal quantile of docs/numerics.md section 5. */
#include "base/math/rng.h"

#include "base/core/error.h"
#include "base/math/fmath.h"

#include <math.h>
#include <stdbool.h>

enum { QUANTILE_TERMS = 8 };

__extension__ typedef unsigned __int128 wide;

uint64_t tn_name64(const char *text)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (const char *c = text; *c != 0; c++) {
        h = (h ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    }
    return h;
}

uint64_t tn_below(uint64_t x, uint64_t n)
{
    return (uint64_t)(((wide)x * n) >> 64);
}

void tn_shuffle(uint64_t stream, uint32_t *a, size_t n)
{
    TN_ASSERT(n == 0 || a != NULL);
    for (size_t k = n; k-- > 1;) {
        size_t other = tn_below(tn_draw(stream, n - 1 - k), k + 1);
        uint32_t kept = a[k];
        a[k] = a[other];
        a[other] = kept;
    }
}

/* Wichura 1988, algorithm AS 241, PPND16: powers 0 .. 7. A/B in the middle, C/D further out,
 * E/F in the tails. */
static const double as241[3][2][QUANTILE_TERMS] = {
    {{3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
      1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
      3.3430575583588128105e4, 2.5090809287301226727e3},
     {1, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
      2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4,
      5.2264952788528545610e3}},
    {{1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
      3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
      2.27238449892691845833e-2, 7.74545014278341407640e-4},
     {1, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
      1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
      1.05075007164441684324e-9}},
    {{6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
      2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
      2.71155556874348757815e-5, 2.01033439929228813265e-7},
     {1, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
      7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
      2.04426310338993978564e-15}},
};

static double horner(const double c[QUANTILE_TERMS], double x)
{
    double y = c[QUANTILE_TERMS - 1];
    for (int i = QUANTILE_TERMS - 2; i >= 0; i--) {
        y = y * x + c[i];
    }
    return y;
}

double tn_normal_quantile(double p)
{
    TN_ASSERT(p > 0 && p < 1);
    double q = p - 0.5;
    if (fabs(q) <= 0.425) {
        double r = 0.180625 - q * q;
        return q * horner(as241[0][0], r) / horner(as241[0][1], r);
    }
    double r = sqrt(-tn_ln(q < 0 ? p : 1 - p));
    bool tail = r > 5;
    r -= tail ? 5 : 1.6;
    double y = horner(as241[1 + tail][0], r) / horner(as241[1 + tail][1], r);
    return q < 0 ? -y : y;
}
