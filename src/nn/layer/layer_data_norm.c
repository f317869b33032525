/* layer_data_norm.c - cumulative normalisation of inputs, as TensorNet and Paddle have it, done
 * right. */
#include "nn/layer/layers.h"
#include "nn/op/ops.h"

typedef struct data_norm_opts {
    double max_count, epsilon;
} data_norm_opts;

static const tn_field data_norm_fields[] = {
    TN_FIELD_F64(data_norm_opts, max_count, "1e6", 1, 1e15, "rows", "the past never weighs more"),
    TN_FIELD_F64(data_norm_opts, epsilon, "1e-5", TN_EPSILON_MIN, 1, "", "added to the variance"),
    TN_FIELD_END,
};

static tn_node *data_norm_build(const tn_net *net, const tn_layer_args *args)
{
    const data_norm_opts *o = args->opts;
    char name[TN_LAYER_NAME_MAX];
    uint32_t cols = args->in[0]->shape.cols;
    tn_node *params[3];
    params[0] = tn_param(net->g, net->params, tn_layer_name(name, args->name, ".gamma"),
                         (tn_shape){1, cols}, (tn_init){.kind = TN_INIT_CONSTANT, .a = 1});
    params[1] = tn_param(net->g, net->params, tn_layer_name(name, args->name, ".beta"),
                         (tn_shape){1, cols}, (tn_init){.kind = TN_INIT_CONSTANT});
    params[2] = tn_running(net->g, net->params, tn_layer_name(name, args->name, ".sums"),
                           (tn_shape){6, cols}, 0);
    tn_data_norm_attr attr = {o->epsilon, o->max_count};
    return tn_data_norm(net->g, args->name, args->in[0], params, &attr);
}

const tn_layer tn_layer_data_norm = {
    .name = "data_norm",
    .help = "normalises each column by all rows seen so far",
    .fields = data_norm_fields,
    .opts_size = sizeof(data_norm_opts),
    .build = data_norm_build,
};
