/* op_softplus.c - smooth rectifier.
 *
 *   forward     y   = ln(1 + e^x)
 *   backward    dx += dy y',  y' = sigmoid(x)
 */
#include "nn/op/activations.h"
#include "nn/op/ops.h"

static tn_node *softplus_example(tn_graph *g)
{
    return tn_softplus(g, NULL, tn_input(g, NULL, 7, true));
}

const tn_op tn_op_softplus = {
    .name = "softplus",
    .formula = "y = ln(1 + e^x)",
    .n_in = 1,
    .act = &tn_act_softplus,
    .shape = tn_same_shape,
    .forward = tn_act_forward,
    .backward = tn_act_backward,
    .example = softplus_example,
};

tn_node *tn_softplus(tn_graph *g, const char *name, tn_node *x)
{
    return tn_apply(g, &tn_op_softplus, name, &x, 1, NULL);
}
