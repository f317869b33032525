/* op_leaky_relu.c - rectifier that lets a little through.
 *
 *   forward     y   = x > 0 ? x : a x
 *   backward    dx += dy (x > 0 ? 1 : a)
 */
#include "nn/op/activations.h"
#include "nn/op/ops.h"

static tn_node *leaky_relu_example(tn_graph *g)
{
    return tn_leaky_relu(g, NULL, tn_input(g, NULL, 7, true), 0.1);
}

/* The slope is positive, so that y has the sign of x: a dense layer keeps y only. */
static const tn_field attrs[] = {
    TN_FIELD_F64(tn_act_attr, slope, "0.01", 1e-30, 1e6, "", "factor below 0"),
    TN_FIELD_END,
};

const tn_op tn_op_leaky_relu = {
    .name = "leaky_relu",
    .formula = "y = x > 0 ? x : a x",
    .n_in = 1,
    .attrs = attrs,
    .attr_size = sizeof(tn_act_attr),
    .act = &tn_act_leaky_relu,
    .shape = tn_same_shape,
    .forward = tn_act_forward,
    .backward = tn_act_backward,
    .example = leaky_relu_example,
};

tn_node *tn_leaky_relu(tn_graph *g, const char *name, tn_node *x, double slope)
{
    TN_ASSERT(slope > 0);
    return tn_apply(g, &tn_op_leaky_relu, name, &x, 1, &(tn_act_attr){.slope = slope});
}
