/* init.c - first values of weights, by the formulas of docs/numerics.md section 5. */
#include "base/keys/init.h"

#include "base/core/compiler.h"
#include "base/core/error.h"
#include "base/math/rng.h"

#include <math.h>
#include <string.h>

/* P(Z < -2), the mass that a truncated normal leaves out on each side. */
static const double tail_mass = 0.022750131948179207;

static double uniform(double a, double b, uint64_t x)
{
    return a + (b - a) * tn_unit(x);
}

static double truncated(double mean, double deviation, uint64_t x)
{
    double p = tail_mass + tn_open(x) * ((1 - tail_mass) - tail_mass);
    return mean + deviation * tn_normal_quantile(p);
}

float tn_init_value(const tn_init *init, uint64_t stream, uint64_t index, uint32_t in, uint32_t out)
{
    TN_ASSERT(init->kind <= TN_INIT_HE_NORMAL);
    if (init->kind == TN_INIT_CONSTANT) {
        return (float)init->a;
    }
    uint64_t x = tn_draw(stream, index);
    double fan_in = in;
    double fans = fan_in + out;
    switch (init->kind) {
    case TN_INIT_CONSTANT:
        break;
    case TN_INIT_UNIFORM:
        return (float)uniform(init->a, init->b, x);
    case TN_INIT_NORMAL:
        return (float)(init->a + init->b * tn_normal(x));
    case TN_INIT_TRUNCATED:
        return (float)truncated(init->a, init->b, x);
    case TN_INIT_GLOROT_UNIFORM:
        return (float)uniform(-sqrt(6 / fans), sqrt(6 / fans), x);
    case TN_INIT_XAVIER_NORMAL:
        return (float)(sqrt(2 / fans) * tn_normal(x));
    case TN_INIT_HE_UNIFORM:
        return (float)uniform(-sqrt(6 / fan_in), sqrt(6 / fan_in), x);
    case TN_INIT_HE_NORMAL:
        return (float)(sqrt(2 / fan_in) * tn_normal(x));
    }
    return 0;
}

enum { TOGETHER = 8 };

/* Computes tn_unit in steps that vector instructions have: 32 and 21 bits become doubles below the
 * point of 2^52, and their sum is exact. */
static inline void units(uint64_t stream, uint32_t from, double unit[TOGETHER])
{
    const uint64_t two52 = UINT64_C(0x4330000000000000); /* the bits of 2^52 */
    uint64_t bits[2][TOGETHER];
    double part[2][TOGETHER];
    for (uint32_t k = 0; k < TOGETHER; k++) {
        const uint64_t x = tn_draw(stream, from + k);
        bits[0][k] = two52 | x >> 32;
        bits[1][k] = two52 | (x & UINT32_MAX) >> 11;
    }
    memcpy(part, bits, sizeof part);
    for (uint32_t k = 0; k < TOGETHER; k++) {
        unit[k] = ((part[0][k] - 0x1p52) * 0x1p21 + (part[1][k] - 0x1p52)) * 0x1p-53;
    }
}

/* Computes the first values of most rows, by the same operations as above. */
TN_HOT static void uniform_rows(double a, double b, uint32_t n, const uint64_t *stream,
                                uint32_t dim, float *const *w)
{
    for (uint32_t r = 0; r < n; r++) {
        uint32_t i = 0;
        for (; i + TOGETHER <= dim; i += TOGETHER) {
            double unit[TOGETHER];
            units(stream[r], i, unit);
            for (uint32_t k = 0; k < TOGETHER; k++) {
                w[r][i + k] = (float)(a + (b - a) * unit[k]);
            }
        }
        for (; i < dim; i++) {
            w[r][i] = (float)uniform(a, b, tn_draw(stream[r], i));
        }
    }
}

void tn_init_rows(const tn_init *init, uint32_t n, const uint64_t *stream, uint32_t dim,
                  float *const *w)
{
    TN_ASSERT(init->kind < TN_INIT_GLOROT_UNIFORM || dim > 0);
    if (init->kind == TN_INIT_UNIFORM) {
        uniform_rows(init->a, init->b, n, stream, dim, w);
        return;
    }
    for (uint32_t r = 0; r < n; r++) {
        for (uint32_t i = 0; i < dim; i++) {
            w[r][i] = tn_init_value(init, stream[r], i, dim, dim);
        }
    }
}
