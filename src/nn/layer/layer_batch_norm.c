/* layer_batch_norm.c - batch normalisation on its own (Ioffe 2015). */
#include "nn/layer/layers.h"
#include "nn/op/ops.h"

typedef struct batch_norm_opts {
    double decay, epsilon;
    bool unbiased;
} batch_norm_opts;

static const tn_field batch_norm_fields[] = {
    TN_FIELD_F64(batch_norm_opts, decay, "0.9", 0, 1, "",
                 "share of the running value that is kept"),
    TN_FIELD_F64(batch_norm_opts, epsilon, "1e-5", TN_EPSILON_MIN, 1, "", "added to the variance"),
    TN_FIELD_BOOL(batch_norm_opts, unbiased, "true", "running variance by B - 1"),
    TN_FIELD_END,
};

static tn_node *batch_norm_build(const tn_net *net, const tn_layer_args *args)
{
    const batch_norm_opts *o = args->opts;
    char name[TN_LAYER_NAME_MAX];
    tn_shape row = {1, args->in[0]->shape.cols};
    tn_node *params[4];
    params[0] = tn_param(net->g, net->params, tn_layer_name(name, args->name, ".gamma"), row,
                         (tn_init){.kind = TN_INIT_CONSTANT, .a = 1});
    params[1] = tn_param(net->g, net->params, tn_layer_name(name, args->name, ".beta"), row,
                         (tn_init){.kind = TN_INIT_CONSTANT});
    params[2] = tn_running(net->g, net->params, tn_layer_name(name, args->name, ".mean"), row, 0);
    params[3] = tn_running(net->g, net->params, tn_layer_name(name, args->name, ".var"), row, 1);
    tn_batch_norm_attr attr = {o->epsilon, o->decay, o->unbiased};
    return tn_batch_norm(net->g, args->name, args->in[0], params, &attr);
}

const tn_layer tn_layer_batch_norm = {
    .name = "batch_norm",
    .help = "normalises each column by the batch, later by running values",
    .fields = batch_norm_fields,
    .opts_size = sizeof(batch_norm_opts),
    .build = batch_norm_build,
};
