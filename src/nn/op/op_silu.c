/* op_silu.c - x times its own sigmoid, also called swish.
 *
 *   forward     y   = x sigmoid(x)
 *   backward    dx += dy y',  y' = s + x s (1 - s), s = sigmoid(x)
 */
#include "nn/op/activations.h"
#include "nn/op/ops.h"

static tn_node *silu_example(tn_graph *g)
{
    return tn_silu(g, NULL, tn_input(g, NULL, 7, true));
}

const tn_op tn_op_silu = {
    .name = "silu",
    .formula = "y = x sigmoid(x)",
    .n_in = 1,
    .act = &tn_act_silu,
    .shape = tn_same_shape,
    .forward = tn_act_forward,
    .backward = tn_act_backward,
    .example = silu_example,
};

tn_node *tn_silu(tn_graph *g, const char *name, tn_node *x)
{
    return tn_apply(g, &tn_op_silu, name, &x, 1, NULL);
}
