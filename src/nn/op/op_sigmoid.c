/* op_sigmoid.c - logistic function.
 *
 *   forward     y   = 1 / (1 + e^-x)
 *   backward    dx += dy y',  y' = y (1 - y)
 */
#include "nn/op/activations.h"
#include "nn/op/ops.h"

static tn_node *sigmoid_example(tn_graph *g)
{
    return tn_sigmoid_act(g, NULL, tn_input(g, NULL, 7, true));
}

const tn_op tn_op_sigmoid = {
    .name = "sigmoid",
    .formula = "y = 1 / (1 + e^-x)",
    .n_in = 1,
    .act = &tn_act_sigmoid,
    .shape = tn_same_shape,
    .forward = tn_act_forward,
    .backward = tn_act_backward,
    .example = sigmoid_example,
};

tn_node *tn_sigmoid_act(tn_graph *g, const char *name, tn_node *x)
{
    return tn_apply(g, &tn_op_sigmoid, name, &x, 1, NULL);
}
