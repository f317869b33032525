/* optim_lion.c - w -= lr sign(b1 m + (1 - b1) g),  m = b2 m + (1 - b2) g  (Chen et al. 2023): the
 * rule of the recipe's test.
 */
#include "config/field.h"
#include "ps/optim/optim.h"

typedef struct lion_opts {
    tn_rule_opts rule;
    double beta1, beta2;
} lion_opts;

typedef struct lion_steps {
    float lr, b1, b2;
} lion_steps;

TN_DESCENT_ONE(lion, lion_steps) // NOLINT(readability-non-const-parameter): as of all
{
    (void)b;
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        const float c = rates->b1 * a[i] + (1 - rates->b1) * g[i];
        w[i] -= rates->lr * (float)((c > 0) - (c < 0));
        a[i] = rates->b2 * a[i] + (1 - rates->b2) * g[i];
    }
}

static lion_steps lion_rates(const void *opts, const tn_update *u)
{
    const lion_opts *o = opts;
    return (lion_steps){(float)u->lr, (float)o->beta1, (float)o->beta2};
}

TN_DESCENT_UPDATES(lion, lion_steps)

static const tn_field lion_fields[] = {
    TN_RULE_LR("1e-3"),
    TN_FIELD_F64(lion_opts, beta1, "0.9", 0, 0.999999, "", "share of m in the direction"),
    TN_FIELD_F64(lion_opts, beta2, "0.99", 0, 0.999999, "", "share of m that is kept"),
    TN_RULE_USUAL,
    TN_FIELD_END,
};

const tn_optim tn_optim_lion = {
    TN_OPTIM_MEMBERS(lion, "sign of a running mean"),
    TN_OPTIM_UPDATES(lion),
    .state = {{.name = "m"}},
};
