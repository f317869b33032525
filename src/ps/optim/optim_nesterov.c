/* optim_nesterov.c - m = mu m + g,  w -= lr (g + mu m) */
#include "base/core/compiler.h"
#include "ps/optim/rulefields.h"

#include <string.h>

typedef struct nesterov_opts {
    tn_rule_opts rule;
    double mu;
} nesterov_opts;

extern const tn_optim tn_optim_nesterov;

TN_HOT static void nesterov_descend(size_t n, float *restrict w, float *restrict m,
                                    const float *restrict g, float lr, float mu)
{
    for (size_t i = 0; i < n; i++) {
        float v = mu * m[i] + g[i];
        m[i] = v;
        w[i] -= lr * (g[i] + mu * v);
    }
}

static uint32_t nesterov_states(const void *opts, tn_state out[TN_STATES_MAX])
{
    (void)opts;
    out[0] = (tn_state){.name = "m"};
    return 1;
}

static void nesterov_init(const void *opts, size_t n, const float *w, float *const state[])
{
    (void)opts;
    (void)w;
    memset(state[0], 0, n * sizeof *state[0]);
}

static void nesterov_update(const void *opts, const tn_update *u, size_t n, float *w,
                            float *const state[], const float *g)
{
    const nesterov_opts *o = opts;
    nesterov_descend(n, w, state[0], g, (float)u->lr, (float)o->mu);
}

static const tn_field nesterov_fields[] = {
    TN_RULE_LR("0.01"),
    TN_FIELD_F64(nesterov_opts, mu, "0.9", 0, 0.999999, "", "share of the last step that is kept"),
    TN_RULE_L1,
    TN_RULE_L2,
    TN_RULE_L2_MODE,
    TN_RULE_CHAIN,
    TN_FIELD_END,
};

const tn_optim tn_optim_nesterov = {
    .choice = {"nesterov", "gradient descent with Nesterov's momentum", nesterov_fields,
               sizeof(nesterov_opts), &tn_optim_nesterov},
    .states = nesterov_states,
    .init = nesterov_init,
    .update = nesterov_update,
};
