/* op_relu.c - rectifier.
 *
 *   forward     y   = max(x, 0)
 *   backward    dx += dy y',  y' = x > 0 ? 1 : 0
 */
#include "nn/op/activations.h"
#include "nn/op/ops.h"

static tn_node *relu_example(tn_graph *g)
{
    return tn_relu(g, NULL, tn_input(g, NULL, 7, true));
}

const tn_op tn_op_relu = {
    .name = "relu",
    .formula = "y = max(x, 0)",
    .n_in = 1,
    .act = &tn_act_relu,
    .shape = tn_same_shape,
    .forward = tn_act_forward,
    .backward = tn_act_backward,
    .example = relu_example,
};

tn_node *tn_relu(tn_graph *g, const char *name, tn_node *x)
{
    return tn_apply(g, &tn_op_relu, name, &x, 1, NULL);
}
