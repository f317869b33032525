/* layer_activation.c - an activation on its own. */
#include "nn/layer/layers.h"

typedef struct activation_opts {
    uint32_t function;
} activation_opts;

static const tn_field activation_fields[] = {
    TN_FIELD_CHOICE(activation_opts, function, "relu", tn_activation_words, "which one"),
    TN_FIELD_END,
};

static tn_node *activation_build(const tn_net *net, const tn_layer_args *args)
{
    const activation_opts *o = args->opts;
    return tn_activation_block(net, args->name, args->in[0], o->function);
}

const tn_layer tn_layer_activation = {
    .name = "activation",
    .help = "an activation function on its own",
    .fields = activation_fields,
    .opts_size = sizeof(activation_opts),
    .build = activation_build,
};
