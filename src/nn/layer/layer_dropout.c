/* layer_dropout.c - inverted dropout on its own; identity outside training. */
#include "nn/layer/layers.h"
#include "nn/op/ops.h"

typedef struct dropout_opts {
    double rate;
} dropout_opts;

static const tn_field dropout_fields[] = {
    TN_FIELD_F64(dropout_opts, rate, "0.5", 0, 0.999, "", "share of values set to 0"),
    TN_FIELD_END,
};

static tn_node *dropout_build(const tn_net *net, const tn_layer_args *args)
{
    const dropout_opts *o = args->opts;
    return o->rate > 0 ? tn_dropout(net->g, args->name, args->in[0], o->rate) : args->in[0];
}

const tn_layer tn_layer_dropout = {
    .name = "dropout",
    .help = "sets a share of the values to 0 while training",
    .fields = dropout_fields,
    .opts_size = sizeof(dropout_opts),
    .build = dropout_build,
};
