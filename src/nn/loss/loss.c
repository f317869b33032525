/* loss.c - the list of losses. */
#include "nn/loss/loss.h"

#include "base/core/error.h"
#include "config/field.h"

#include <string.h>

static const char *const reduction_words[] = {"mean", "sum", "rows", NULL};

const tn_field tn_loss_common_fields[] = {
    TN_FIELD_CHOICE(tn_loss_common, reduction, "mean", reduction_words,
                    "gradients divided by the sum of weights, by 1 or by the rows"),
    TN_FIELD_END,
};

const tn_choice *const tn_loss_choices[] = {
#define TN_LOSS(name) &tn_loss_##name.choice,
#include "nn/loss/losses.def"
#undef TN_LOSS
    NULL,
};

tn_shape tn_loss_shape(const tn_node *l)
{
    return l->in[0]->shape.cols == 1 ? l->in[0]->shape : TN_MISFIT;
}

const tn_loss *tn_loss_find(const char *name)
{
    for (const tn_choice *const *c = tn_loss_choices; *c != NULL; c++) {
        if (strcmp((*c)->name, name) == 0) {
            return (*c)->impl;
        }
    }
    return NULL;
}

const tn_loss *tn_loss_of(const tn_variant *loss)
{
    const tn_loss *found =
        loss->choice != NULL ? loss->choice->impl : tn_loss_find(TN_LOSS_DEFAULT);
    TN_ASSERT(found->target < TN_TARGETS && found->watched != NULL);
    return found;
}
