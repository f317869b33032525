/* layer_layer_norm.c - normalises each row over its columns (Ba 2016). */
#include "nn/layer/layers.h"
#include "nn/op/ops.h"

typedef struct layer_norm_opts {
    double epsilon;
} layer_norm_opts;

static const tn_field layer_norm_fields[] = {
    TN_FIELD_F64(layer_norm_opts, epsilon, "1e-5", TN_EPSILON_MIN, 1, "", "added to the variance"),
    TN_FIELD_END,
};

static tn_node *layer_norm_build(const tn_net *net, const tn_layer_args *args)
{
    const layer_norm_opts *o = args->opts;
    char name[TN_LAYER_NAME_MAX];
    tn_shape row = {1, args->in[0]->shape.cols};
    tn_node *params[2];
    params[0] = tn_param(net->g, net->params, tn_layer_name(name, args->name, ".gamma"), row,
                         (tn_init){.kind = TN_INIT_CONSTANT, .a = 1});
    params[1] = tn_param(net->g, net->params, tn_layer_name(name, args->name, ".beta"), row,
                         (tn_init){.kind = TN_INIT_CONSTANT});
    return tn_layer_norm(net->g, args->name, args->in[0], params, o->epsilon);
}

const tn_layer tn_layer_layer_norm = {
    .name = "layer_norm",
    .help = "normalises each row over its columns",
    .fields = layer_norm_fields,
    .opts_size = sizeof(layer_norm_opts),
    .build = layer_norm_build,
};
