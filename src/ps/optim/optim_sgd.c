/* optim_sgd.c - gradient descent, plain and with two kinds of momentum.
 *
 *   sgd        w -= lr g
 *   momentum   m = mu m + g,  w -= lr m
 *   nesterov   m = mu m + g,  w -= lr (g + mu m)
 */
#include "base/core/compiler.h"
#include "config/field.h"
#include "ps/optim/optim.h"

typedef struct sgd_opts {
    tn_rule_opts rule;
} sgd_opts;

TN_HOT static void sgd_descend(size_t n, float *restrict w, const float *restrict g, float lr)
{
    for (size_t i = 0; i < n; i++) {
        w[i] -= lr * g[i];
    }
}

static void sgd_update(const void *opts, const tn_update *u, size_t n, float *w,
                       float *const state[], const float *g)
{
    (void)opts;
    (void)state;
    sgd_descend(n, w, g, (float)u->lr);
}

static const tn_field sgd_fields[] = {
    TN_RULE_LR("0.01"),
    TN_RULE_USUAL,
    TN_FIELD_END,
};

const tn_optim tn_optim_sgd = {
    TN_OPTIM_MEMBERS(sgd, "plain gradient descent"),
};

/* ---- momentum ---- */

typedef struct momentum_opts {
    tn_rule_opts rule;
    double mu;
} momentum_opts;

TN_HOT static void momentum_descend(size_t n, float *restrict w, float *restrict m,
                                    const float *restrict g, float lr, float mu)
{
    for (size_t i = 0; i < n; i++) {
        float v = mu * m[i] + g[i];
        m[i] = v;
        w[i] -= lr * v;
    }
}

static void momentum_update(const void *opts, const tn_update *u, size_t n, float *w,
                            float *const state[], const float *g)
{
    const momentum_opts *o = opts;
    momentum_descend(n, w, state[0], g, (float)u->lr, (float)o->mu);
}

static const tn_field momentum_fields[] = {
    TN_RULE_LR("0.01"),
    TN_FIELD_F64(momentum_opts, mu, "0.9", 0, 0.999999, "", "share of the last step that is kept"),
    TN_RULE_USUAL,
    TN_FIELD_END,
};

const tn_optim tn_optim_momentum = {
    TN_OPTIM_MEMBERS(momentum, "gradient descent with momentum (Polyak)"),
    .state = {{.name = "m"}},
};

/* ---- Nesterov: momentum's options and state, another step ---- */

TN_HOT static void nesterov_descend(size_t n, float *restrict w, float *restrict m,
                                    const float *restrict g, float lr, float mu)
{
    for (size_t i = 0; i < n; i++) {
        float v = mu * m[i] + g[i];
        m[i] = v;
        w[i] -= lr * (g[i] + mu * v);
    }
}

static void nesterov_update(const void *opts, const tn_update *u, size_t n, float *w,
                            float *const state[], const float *g)
{
    const momentum_opts *o = opts;
    nesterov_descend(n, w, state[0], g, (float)u->lr, (float)o->mu);
}

const tn_optim tn_optim_nesterov = {
    .choice = {"nesterov", "gradient descent with Nesterov's momentum", momentum_fields,
               sizeof(momentum_opts), &tn_optim_nesterov},
    .state = {{.name = "m"}},
    .update = nesterov_update,
};
