/* op_tanh.c - hyperbolic tangent.
 *
 *   forward     y   = tanh x
 *   backward    dx += dy y',  y' = 1 - y^2
 */
#include "nn/op/activations.h"
#include "nn/op/ops.h"

static tn_node *tanh_example(tn_graph *g)
{
    return tn_tanh_act(g, NULL, tn_input(g, NULL, 7, true));
}

const tn_op tn_op_tanh = {
    .name = "tanh",
    .formula = "y = tanh x",
    .n_in = 1,
    .act = &tn_act_tanh,
    .shape = tn_same_shape,
    .forward = tn_act_forward,
    .backward = tn_act_backward,
    .example = tanh_example,
};

tn_node *tn_tanh_act(tn_graph *g, const char *name, tn_node *x)
{
    return tn_apply(g, &tn_op_tanh, name, &x, 1, NULL);
}
