/* layer_square.c - each number times itself: the layer of the recipe's test. */
#include "nn/layer/layers.h"
#include "nn/op/ops.h"

static tn_node *square_build(const tn_net *net, const tn_layer_args *args)
{
    return tn_square(net->g, args->name, args->in[0]);
}

const tn_layer tn_layer_square = {
    .name = "square",
    .help = "each number times itself",
    .build = square_build,
};
