/* layer_square.c - each number times itself: the layer of the recipe's test. */
#include "nn/layer/layers.h"
#include "nn/op/ops.h"

static tn_node *square_build(const tn_net *net, const tn_layer_args *args)
{
    return tn_apply(net->g, &tn_op_square, args->name, args->in, 1, NULL);
}

const tn_layer tn_layer_square = {
    .name = "square",
    .help = "each number times itself",
    .build = square_build,
};
