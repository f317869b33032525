/* optim.c - the list of all optimizers. */
#include "ps/optim/optim.h"

#include <string.h>

const char *const tn_l2_modes[] = {"touched", "dense", NULL};
const char *const tn_grad_scales[] = {"none", "show", "sum", NULL};

const tn_optim *const tn_all_optims[] = {
#define TN_OPTIM(name) &tn_optim_##name,
#include "ps/optim/optims.def"
#undef TN_OPTIM
    NULL,
};

const tn_choice *const tn_optim_choices[] = {
#define TN_OPTIM(name) &tn_optim_##name.choice,
#include "ps/optim/optims.def"
#undef TN_OPTIM
    NULL,
};

uint32_t tn_optim_states(const tn_optim *optim, const void *opts, tn_state out[TN_STATES_MAX])
{
    if (optim->states != NULL) {
        return optim->states(opts, out);
    }
    uint32_t n = 0;
    for (; optim->state[n].name != NULL; n++) {
        out[n] = optim->state[n];
    }
    return n;
}

void tn_optim_init(const tn_optim *optim, const void *opts, size_t n, const float *w,
                   float *const state[])
{
    if (optim->init != NULL) {
        optim->init(opts, n, w, state);
        return;
    }
    tn_state spec[TN_STATES_MAX];
    const uint32_t n_states = tn_optim_states(optim, opts, spec);
    for (uint32_t i = 0; i < n_states; i++) {
        if (!spec[i].count) {
            memset(state[i], 0, (spec[i].per_row ? 1 : n) * sizeof *state[i]);
        }
    }
}
