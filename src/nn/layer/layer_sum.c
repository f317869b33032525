/* layer_sum.c - sum over the columns of a row: the wide part of a model. [B,n] -> [B,1] */
#include "nn/layer/layers.h"
#include "nn/op/ops.h"

static tn_node *sum_build(const tn_net *net, const tn_layer_args *args)
{
    return tn_sum_cols(net->g, args->name, args->in[0]);
}

const tn_layer tn_layer_sum = {
    .name = "sum",
    .help = "sum over the columns of each row",
    .build = sum_build,
};
