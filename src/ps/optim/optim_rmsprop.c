/* optim_rmsprop.c - steps divided by a running root mean square: RMSprop (Hinton 2012), and
 * Adadelta (Zeiler 2012), whose unit is the running size of its own steps.
 *
 *   rmsprop    v = rho v + (1 - rho) g^2,  w -= lr g / (sqrt(v) + eps)
 *   adadelta   v = rho v + (1 - rho) g^2,  d = g sqrt(u + eps) / sqrt(v + eps)
 *              u = rho u + (1 - rho) d^2,  w -= lr d
 */
#include "config/field.h"
#include "ps/optim/optim.h"

#include <math.h>

typedef struct rmsprop_opts {
    tn_rule_opts rule;
    double rho, eps;
} rmsprop_opts;

typedef struct rmsprop_steps {
    float lr, keep, add, eps;
} rmsprop_steps;

TN_DESCENT_ONE(rmsprop, rmsprop_steps) // NOLINT(readability-non-const-parameter): as of all
{
    const rmsprop_steps c = *rates;
    (void)b;
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        a[i] = c.keep * a[i] + c.add * g[i] * g[i];
        w[i] -= c.lr * g[i] / (sqrtf(a[i]) + c.eps);
    }
}

static rmsprop_steps rmsprop_rates(const void *opts, const tn_update *u)
{
    const rmsprop_opts *o = opts;
    return (rmsprop_steps){(float)u->lr, (float)o->rho, (float)(1 - o->rho), (float)o->eps};
}

TN_DESCENT_UPDATES(rmsprop, rmsprop_steps)

static const tn_field rmsprop_fields[] = {
    TN_RULE_LR("1e-3"),
    TN_FIELD_F64(rmsprop_opts, rho, "0.9", 0, 0.999999, "", "share of the old mean square"),
    TN_FIELD_F64(rmsprop_opts, eps, "1e-8", 1e-15, 1, "", "added to the root"),
    TN_RULE_USUAL,
    TN_FIELD_END,
};

const tn_optim tn_optim_rmsprop = {
    TN_OPTIM_MEMBERS(rmsprop, "steps divided by a running root mean square (Hinton 2012)"),
    TN_OPTIM_UPDATES(rmsprop),
    .state = {{.name = "v"}},
};

/* ---- Adadelta, with RMSprop's options ---- */

TN_DESCENT_ONE(adadelta, rmsprop_steps)
{
    const rmsprop_steps c = *rates;
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        a[i] = c.keep * a[i] + c.add * g[i] * g[i];
        float d = g[i] * sqrtf(b[i] + c.eps) / sqrtf(a[i] + c.eps);
        b[i] = c.keep * b[i] + c.add * d * d;
        w[i] -= c.lr * d;
    }
}

static rmsprop_steps adadelta_rates(const void *opts, const tn_update *u)
{
    return rmsprop_rates(opts, u);
}

TN_DESCENT_UPDATES(adadelta, rmsprop_steps)

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
    TN_OPTIM_UPDATES(adadelta),
};
