/* layer_concat.c - the inputs side by side; one input is handed through. */
#include "nn/layer/layers.h"

static tn_node *concat_build(const tn_net *net, const tn_layer_args *args)
{
    (void)net;
    return args->in[0]; /* whoever resolved the list of inputs has joined them */
}

const tn_layer tn_layer_concat = {
    .name = "concat",
    .help = "the inputs side by side",
    .build = concat_build,
};
