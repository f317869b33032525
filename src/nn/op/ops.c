/* ops.c - the list of all operators, and activations by name. */
#include "nn/op/ops.h"

#include "nn/op/activations.h"

#include <string.h>

#define TN_OP(name) &tn_op_##name,
const tn_op *const tn_all_ops[] = {
#include "nn/op/ops.def"
    NULL,
};
#undef TN_OP

const tn_op *tn_op_find(const char *name)
{
    for (const tn_op *const *op = tn_all_ops; *op != NULL; op++) {
        if (strcmp((*op)->name, name) == 0) {
            return *op;
        }
    }
    return NULL;
}

tn_node *tn_activate(tn_graph *g, const char *name, tn_node *x, const char *activation)
{
    static const tn_act_attr leaky = {.slope = 0.01};
    const tn_op *op = tn_op_find(activation);
    if (op == NULL || op->act == NULL) {
        return NULL;
    }
    return tn_apply(g, op, name, &x, 1, op->attrs != NULL ? &leaky : NULL);
}
