/* optim_sgd.c - gradient descent, plain and with two kinds of momentum.
 *
 *   sgd        w -= lr g
 *   momentum   m = mu m + g,  w -= lr m
 *   nesterov   m = mu m + g,  w -= lr (g + mu m)
 */
#include "config/field.h"
#include "ps/optim/optim.h"

typedef struct sgd_opts {
    tn_rule_opts rule;
} sgd_opts;

typedef struct sgd_steps {
    float lr, mu;
} sgd_steps;

TN_DESCENT_ONE(sgd, sgd_steps) // NOLINT(readability-non-const-parameter): as of all
{
    (void)a;
    (void)b;
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        w[i] -= rates->lr * g[i];
    }
}

static sgd_steps sgd_rates(const void *opts, const tn_update *u)
{
    (void)opts;
    return (sgd_steps){.lr = (float)u->lr};
}

TN_DESCENT_UPDATES(sgd, sgd_steps)

static const tn_field sgd_fields[] = {
    TN_RULE_LR("0.01"),
    TN_RULE_USUAL,
    TN_FIELD_END,
};

const tn_optim tn_optim_sgd = {
    TN_OPTIM_MEMBERS(sgd, "plain gradient descent"),
    TN_OPTIM_UPDATES(sgd),
};

/* ---- momentum ---- */

typedef struct momentum_opts {
    tn_rule_opts rule;
    double mu;
} momentum_opts;

TN_DESCENT_ONE(momentum, sgd_steps) // NOLINT(readability-non-const-parameter): as of all
{
    (void)b;
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        float v = rates->mu * a[i] + g[i];
        a[i] = v;
        w[i] -= rates->lr * v;
    }
}

static sgd_steps momentum_rates(const void *opts, const tn_update *u)
{
    const momentum_opts *o = opts;
    return (sgd_steps){(float)u->lr, (float)o->mu};
}

TN_DESCENT_UPDATES(momentum, sgd_steps)

static const tn_field momentum_fields[] = {
    TN_RULE_LR("0.01"),
    TN_FIELD_F64(momentum_opts, mu, "0.9", 0, 0.999999, "", "share of the last step that is kept"),
    TN_RULE_USUAL,
    TN_FIELD_END,
};

const tn_optim tn_optim_momentum = {
    TN_OPTIM_MEMBERS(momentum, "gradient descent with momentum (Polyak)"),
    TN_OPTIM_UPDATES(momentum),
    .state = {{.name = "m"}},
};

/* ---- Nesterov: momentum's options and state, another step ---- */

TN_DESCENT_ONE(nesterov, sgd_steps) // NOLINT(readability-non-const-parameter): as of all
{
    (void)b;
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        float v = rates->mu * a[i] + g[i];
        a[i] = v;
        w[i] -= rates->lr * (g[i] + rates->mu * v);
    }
}

static sgd_steps nesterov_rates(const void *opts, const tn_update *u)
{
    return momentum_rates(opts, u);
}

TN_DESCENT_UPDATES(nesterov, sgd_steps)

const tn_optim tn_optim_nesterov = {
    .choice = {"nesterov", "gradient descent with Nesterov's momentum", momentum_fields,
               sizeof(momentum_opts), &tn_optim_nesterov},
    .state = {{.name = "m"}},
    TN_OPTIM_UPDATES(nesterov),
};
