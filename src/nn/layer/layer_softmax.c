/* layer_softmax.c - e^x / sum e^x over each row. */
#include "nn/layer/layers.h"
#include "nn/op/ops.h"

static tn_node *softmax_build(const tn_net *net, const tn_layer_args *args)
{
    return tn_softmax(net->g, args->name, args->in[0]);
}

const tn_layer tn_layer_softmax = {
    .name = "softmax",
    .help = "softmax over the columns of each row",
    .build = softmax_build,
};
