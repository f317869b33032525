/* optim_lion.c - w -= lr sign(b1 m + (1 - b1) g),  m = b2 m + (1 - b2) g  (Chen et al. 2023): the
 * rule of the recipe's test.
 */
#include "config/field.h"
#include "ps/optim/optim.h"

typedef struct lion_opts {
    tn_rule_opts rule;
    double beta1, beta2;
} lion_opts;

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
    TN_RULE_USUAL,
    TN_FIELD_END,
};

const tn_optim tn_optim_lion = {TN_OPTIM_MEMBERS(lion, "sign of a running mean"),
                                .state = {{.name = "m"}}};
