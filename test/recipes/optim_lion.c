/* optim_lion.c - w -= lr sign(b1 m + (1 - b1) g),  m = b2 m + (1 - b2) g  (Chen et al. 2023): the
 * rule of the recipe's test.
 */
#include "base/core/compiler.h"
#include "config/field.h"
#include "ps/optim/optim.h"

#include <string.h>

typedef struct lion_opts {
    tn_rule_opts rule;
    double beta1, beta2;
} lion_opts;

static uint32_t lion_states(const void *opts, tn_state out[TN_STATES_MAX])
{
    (void)opts;
    out[0] = (tn_state){.name = "m"};
    return 1;
}

static void lion_init(const void *opts, size_t n, const float *w, float *const state[])
{
    (void)opts;
    (void)w;
    memset(state[0], 0, n * sizeof *state[0]);
}

static void lion_update(const void *opts, const tn_update *u, size_t n, float *w,
                        float *const state[], const float *g)
{
    const lion_opts *o = opts;
    const float b1 = (float)o->beta1;
    const float b2 = (float)o->beta2;
    for (size_t i = 0; i < n; i++) {
        const float c = b1 * state[0][i] + (1 - b1) * g[i];
        w[i] -= (float)u->lr * (float)((c > 0) - (c < 0));
        state[0][i] = b2 * state[0][i] + (1 - b2) * g[i];
    }
}

static const tn_field lion_fields[] = {
    TN_RULE_LR("1e-3"),
    TN_FIELD_F64(lion_opts, beta1, "0.9", 0, 0.999999, "", "share of m in the direction"),
    TN_FIELD_F64(lion_opts, beta2, "0.99", 0, 0.999999, "", "share of m that is kept"),
    TN_RULE_L1,
    TN_RULE_L2,
    TN_RULE_L2_MODE,
    TN_RULE_CHAIN,
    TN_FIELD_END,
};

const tn_optim tn_optim_lion = {
    .choice = {"lion", "sign of a running mean", lion_fields, sizeof(lion_opts), &tn_optim_lion},
    .states = lion_states,
    .init = lion_init,
    .update = lion_update,
};
