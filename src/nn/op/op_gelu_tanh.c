/* op_gelu_tanh.c - the approximation of gelu by a tanh.
 *
 *   forward     y   = x/2 (1 + tanh(sqrt(2/pi) (x + .044715 x^3)))
 *   backward    dx += dy y',  y' = by the product rule; see activations.c
 */
#include "nn/op/activations.h"
#include "nn/op/ops.h"

static tn_node *gelu_tanh_example(tn_graph *g)
{
    return tn_gelu_tanh(g, NULL, tn_input(g, NULL, 7, true));
}

const tn_op tn_op_gelu_tanh = {
    .name = "gelu_tanh",
    .formula = "y = x/2 (1 + tanh(sqrt(2/pi) (x + .044715 x^3)))",
    .n_in = 1,
    .act = &tn_act_gelu_tanh,
    .shape = tn_same_shape,
    .forward = tn_act_forward,
    .backward = tn_act_backward,
    .example = gelu_tanh_example,
};

tn_node *tn_gelu_tanh(tn_graph *g, const char *name, tn_node *x)
{
    return tn_apply(g, &tn_op_gelu_tanh, name, &x, 1, NULL);
}
