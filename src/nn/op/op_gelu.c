/* op_gelu.c - Gaussian error linear unit.
 *
 *   forward     y   = x Phi(x)
 *   backward    dx += dy y',  y' = Phi(x) + x phi(x)
 */
#include "nn/op/activations.h"
#include "nn/op/ops.h"

static tn_node *gelu_example(tn_graph *g)
{
    return tn_gelu(g, NULL, tn_input(g, NULL, 7, true));
}

const tn_op tn_op_gelu = {
    .name = "gelu",
    .formula = "y = x Phi(x)",
    .n_in = 1,
    .act = &tn_act_gelu,
    .shape = tn_same_shape,
    .forward = tn_act_forward,
    .backward = tn_act_backward,
    .example = gelu_example,
};

tn_node *tn_gelu(tn_graph *g, const char *name, tn_node *x)
{
    return tn_apply(g, &tn_op_gelu, name, &x, 1, NULL);
}
