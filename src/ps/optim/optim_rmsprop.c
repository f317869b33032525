/* optim_rmsprop.c - steps divided by a running root mean square: RMSprop (Hinton 2012), and
 * Adadelta (Zeiler 2012), whose unit is the running size of its own steps.
 *
 *   rmsprop    v = rho v + (1 - rho) g^2,  w -= lr g / (sqrt(v) + eps)
 *   adadelta   v = rho v + (1 - rho) g^2,  d = g sqrt(u + eps) / sqrt(v + eps)
 *              u = rho u + (1 - rho) d^2,  w -= lr d
 */
#include "base/core/compiler.h"
#include "config/field.h"
#include "ps/optim/optim.h"

#include <math.h>

typedef struct rmsprop_opts {
    tn_rule_opts rule;
    double rho, eps;
} rmsprop_opts;

TN_HOT static void rmsprop_descend(size_t n, float *restrict w, float *restrict v,
                                   const float *restrict g, float lr, const rmsprop_opts *o)
{
    float keep = (float)o->rho;
    float add = (float)(1 - o->rho);
    float eps = (float)o->eps;
    for (size_t i = 0; i < n; i++) {
        v[i] = keep * v[i] + add * g[i] * g[i];
        w[i] -= lr * g[i] / (sqrtf(v[i]) + eps);
    }
}

static void rmsprop_update(const void *opts, const tn_update *u, size_t n, float *w,
                           float *const state[], const float *g)
{
    rmsprop_descend(n, w, state[0], g, (float)u->lr, opts);
}

static const tn_field rmsprop_fields[] = {
    TN_RULE_LR("1e-3"),
    TN_FIELD_F64(rmsprop_opts, rho, "0.9", 0, 0.999999, "", "share of the old mean square"),
    TN_FIELD_F64(rmsprop_opts, eps, "1e-8", 1e-15, 1, "", "added to the root"),
    TN_RULE_USUAL,
    TN_FIELD_END,
};

const tn_optim tn_optim_rmsprop = {
    TN_OPTIM_MEMBERS(rmsprop, "steps divided by a running root mean square (Hinton 2012)"),
    .state = {{.name = "v"}},
};

/* ---- Adadelta, with RMSprop's options ---- */

TN_HOT static void adadelta_descend(size_t n, float *restrict w, float *restrict v,
                                    float *restrict u, const float *restrict g, const float rate[4])
{
    float lr = rate[0];
    float keep = rate[1];
    float add = rate[2];
    float eps = rate[3];
    for (size_t i = 0; i < n; i++) {
        v[i] = keep * v[i] + add * g[i] * g[i];
        float d = g[i] * sqrtf(u[i] + eps) / sqrtf(v[i] + eps);
        u[i] = keep * u[i] + add * d * d;
        w[i] -= lr * d;
    }
}

static void adadelta_update(const void *opts, const tn_update *u, size_t n, float *w,
                            float *const state[], const float *g)
{
    const rmsprop_opts *o = opts;
    const float rate[4] = {(float)u->lr, (float)o->rho, (float)(1 - o->rho), (float)o->eps};
    adadelta_descend(n, w, state[0], state[1], g, rate);
}

static const tn_field adadelta_fields[] = {
    TN_RULE_LR("1"),
    TN_FIELD_F64(rmsprop_opts, rho, "0.9", 0, 0.999999, "", "share of the old mean squares"),
    TN_FIELD_F64(rmsprop_opts, eps, "1e-6", 1e-15, 1, "", "added under both roots"),
    TN_RULE_USUAL,
    TN_FIELD_END,
};

const tn_optim tn_optim_adadelta = {
    .choice = {"adadelta", "steps in units of past steps, no rate to choose (Zeiler 2012)",
               adadelta_fields, sizeof(rmsprop_opts), &tn_optim_adadelta},
    .state = {{.name = "v"}, {.name = "u"}},
    .update = adadelta_update,
};
