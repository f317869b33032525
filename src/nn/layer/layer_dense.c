/* layer_dense.c - y = dropout(act(bn(x W + b))). */
#include "nn/layer/layers.h"

typedef struct dense_opts {
    uint32_t units;
    uint32_t activation;
    bool batch_norm;
    double bn_decay, bn_epsilon;
    bool bn_unbiased;
    double dropout;
} dense_opts;

static const tn_field dense_fields[] = {
    TN_FIELD_U32(dense_opts, units, NULL, 1, 65536, "units", "width of the output"),
    TN_BLOCK_FIELDS(dense_opts, "none"),
    TN_FIELD_END,
};

static tn_node *dense_build(const tn_net *net, const tn_layer_args *args)
{
    const dense_opts *o = args->opts;
    tn_block_opts block = {o->activation, o->batch_norm,  o->bn_decay,
                           o->bn_epsilon, o->bn_unbiased, o->dropout};
    return tn_dense_block(net, args->name, args->in[0], o->units, &block);
}

static bool dense_output_bias(const char *name, const void *opts, char out[TN_LAYER_NAME_MAX])
{
    const dense_opts *o = opts;
    if (o->units != 1 || o->activation != 0 || o->batch_norm) {
        return false;
    }
    (void)tn_layer_name(out, name, ".b");
    return true;
}

const tn_layer tn_layer_dense = {
    .name = "dense",
    .help = "x W + b, then batch norm, activation and dropout as asked",
    .fields = dense_fields,
    .opts_size = sizeof(dense_opts),
    .build = dense_build,
    .output_bias = dense_output_bias,
};
