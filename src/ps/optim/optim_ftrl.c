/* optim_ftrl.c - FTRL-proximal (McMahan 2013, algorithm 1), per coordinate.
 *
 *   s = (sqrt(n + g^2) - sqrt(n)) / alpha,  z += g - s w,  n += g^2
 *   w = 0 if |z| <= l1, else -(z - sign(z) l1) / ((beta + sqrt(n)) / alpha + l2)
 *
 * The difference of roots is 0 in float at n = 1e6, g = .01, so s is computed as
 * g^2 / (alpha (sqrt(n + g^2) + sqrt(n))). Fresh weights that are not 0 are kept by a warm start:
 * n = 0, z = -w (beta / alpha + l2) - sign(w) l1. With beta = l2 = 0 a gradient whose square is 0
 * in float moves z and leaves w.
 */
#include "base/core/compiler.h"
#include "ps/optim/rulefields.h"

#include <math.h>

typedef struct ftrl_opts {
    tn_rule_opts rule;
    double alpha, beta;
} ftrl_opts;

enum { STATE_Z, STATE_N };

extern const tn_optim tn_optim_ftrl;

typedef struct factors {
    float alpha, beta, l1, l2;
} factors;

static factors factors_of(const ftrl_opts *o)
{
    return (factors){(float)o->alpha, (float)o->beta, (float)o->rule.l1, (float)o->rule.l2};
}

TN_HOT static void ftrl_descend(size_t n, float *restrict w, float *restrict z, float *restrict sum,
                                const float *restrict g, const factors *restrict f)
{
    factors c = *f;
    for (size_t i = 0; i < n; i++) {
        float square = g[i] * g[i];
        float root = sqrtf(sum[i] + square);
        float roots = c.alpha * (root + sqrtf(sum[i]));
        float s = roots > 0 ? square / roots : 0;
        float zi = z[i] + (g[i] - s * w[i]);
        float shrunk = zi - copysignf(c.l1, zi);
        float rate = (c.beta + root) / c.alpha + c.l2;
        float next = -shrunk / rate;
        z[i] = zi;
        sum[i] += square;
        next = fabsf(zi) <= c.l1 ? 0 : next;
        w[i] = rate > 0 ? next : w[i];
    }
}

static uint32_t ftrl_states(const void *opts, tn_state out[TN_STATES_MAX])
{
    (void)opts;
    out[STATE_Z] = (tn_state){.name = "z"};
    out[STATE_N] = (tn_state){.name = "n"};
    return 2;
}

static void ftrl_init(const void *opts, size_t n, const float *w, float *const state[])
{
    factors c = factors_of(opts);
    for (size_t i = 0; i < n; i++) {
        float z = -w[i] * (c.beta / c.alpha + c.l2) - copysignf(c.l1, w[i]);
        state[STATE_Z][i] = w[i] != 0 ? z : 0;
        state[STATE_N][i] = 0;
    }
}

static void ftrl_update(const void *opts, const tn_update *u, size_t n, float *w,
                        float *const state[], const float *g)
{
    (void)u; /* alpha is no learning rate: schedules do not reach it */
    factors f = factors_of(opts);
    ftrl_descend(n, w, state[STATE_Z], state[STATE_N], g, &f);
}

static const tn_field ftrl_fields[] = {
    TN_FIELD_F64(ftrl_opts, alpha, "0.05", 1e-9, 1e6, "", "size of the steps"),
    TN_FIELD_F64(ftrl_opts, beta, "1", 0, 1e6, "", "damps the first steps"),
    TN_RULE_L1,
    TN_RULE_L2,
    TN_RULE_CHAIN,
    TN_FIELD_END,
};

const tn_optim tn_optim_ftrl = {
    .choice = {"ftrl", "follow the regularised leader, sparse weights (McMahan 2013)", ftrl_fields,
               sizeof(ftrl_opts), &tn_optim_ftrl},
    .own_l2 = true,
    .states = ftrl_states,
    .init = ftrl_init,
    .update = ftrl_update,
};
