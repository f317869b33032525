/* optim_sgd.c - w -= lr g */
#include "base/core/compiler.h"
#include "ps/optim/rulefields.h"

typedef struct sgd_opts {
    tn_rule_opts rule;
} sgd_opts;

extern const tn_optim tn_optim_sgd;

TN_HOT static void sgd_descend(size_t n, float *restrict w, const float *restrict g, float lr)
{
    for (size_t i = 0; i < n; i++) {
        w[i] -= lr * g[i];
    }
}

static uint32_t sgd_states(const void *opts, tn_state out[TN_STATES_MAX])
{
    (void)opts;
    (void)out;
    return 0;
}

static void sgd_init(const void *opts, size_t n, const float *w, float *const state[])
{
    (void)opts;
    (void)n;
    (void)w;
    (void)state;
}

static void sgd_update(const void *opts, const tn_update *u, size_t n, float *w,
                       float *const state[], const float *g)
{
    (void)opts;
    (void)state;
    sgd_descend(n, w, g, (float)u->lr);
}

static const tn_field sgd_fields[] = {
    TN_RULE_LR("0.01"), TN_RULE_L1, TN_RULE_L2, TN_RULE_L2_MODE, TN_RULE_CHAIN, TN_FIELD_END,
};

const tn_optim tn_optim_sgd = {
    .choice = {"sgd", "plain gradient descent", sgd_fields, sizeof(sgd_opts), &tn_optim_sgd},
    .states = sgd_states,
    .init = sgd_init,
    .update = sgd_update,
};
