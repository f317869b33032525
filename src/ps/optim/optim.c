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

const tn_optim *tn_optim_find(const char *name)
{
    for (const tn_optim *const *o = tn_all_optims; *o != NULL; o++) {
        if (strcmp((*o)->choice.name, name) == 0) {
            return *o;
        }
    }
    return NULL;
}
