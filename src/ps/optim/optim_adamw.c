/* optim_adamw.c - w *= 1 - lr wd, then Adam; no l2 (Loshchilov 2019). Rows decay when touched. */
#include "base/core/compiler.h"
#include "ps/optim/adam.h"

typedef struct adamw_opts {
    tn_adam_opts adam;
    double wd;
} adamw_opts;

extern const tn_optim tn_optim_adamw;

TN_HOT static void adamw_scale(size_t n, float *w, float factor)
{
    for (size_t i = 0; i < n; i++) {
        w[i] *= factor;
    }
}

static void adamw_update(const void *opts, const tn_update *u, size_t n, float *w,
                         float *const state[], const float *g)
{
    const adamw_opts *o = opts;
    adamw_scale(n, w, (float)(1 - u->lr * o->wd));
    tn_adam_update(&o->adam, u, n, w, state, g);
}

static const tn_field adamw_fields[] = {
    TN_RULE_LR("1e-3"),
    TN_ADAM_FIELDS,
    TN_FIELD_F64(adamw_opts, wd, "0.01", 0, 1e3, "", "weight decay: w shrinks by lr * wd a step"),
    TN_RULE_L1,
    TN_RULE_CHAIN,
    TN_FIELD_END,
};

const tn_optim tn_optim_adamw = {
    .choice = {"adamw", "Adam with decoupled weight decay (Loshchilov 2019)", adamw_fields,
               sizeof(adamw_opts), &tn_optim_adamw},
    .states = tn_adam_states,
    .init = tn_adam_init,
    .update = adamw_update,
};
