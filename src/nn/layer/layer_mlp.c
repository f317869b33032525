/* layer_mlp.c - a stack of dense layers "<name>.1", "<name>.2", ..; with `units` one more, linear.
 */
#include "nn/layer/layers.h"

#include <stdio.h>

typedef struct mlp_opts {
    tn_f64s hidden;
    uint32_t units;
    uint32_t activation;
    bool batch_norm;
    double bn_decay, bn_epsilon;
    bool bn_unbiased;
    double dropout;
} mlp_opts;

static const tn_field mlp_fields[] = {
    TN_FIELD_F64S(mlp_opts, hidden, NULL, 1, 65536, "widths of the hidden layers"),
    TN_FIELD_U32(mlp_opts, units, "0", 0, 65536, "units",
                 "width of a linear layer behind; 0: none"),
    TN_BLOCK_FIELDS(mlp_opts, "relu"),
    TN_FIELD_END,
};

static const char *numbered(char out[TN_LAYER_NAME_MAX], const char *name, uint32_t i)
{
    char suffix[16];
    (void)snprintf(suffix, sizeof suffix, ".%u", i);
    return tn_layer_name(out, name, suffix);
}

static tn_node *mlp_build(const tn_net *net, const tn_layer_args *args)
{
    const mlp_opts *o = args->opts;
    tn_block_opts block = {o->activation, o->batch_norm,  o->bn_decay,
                           o->bn_epsilon, o->bn_unbiased, o->dropout};
    if (!tn_layer_widths(&o->hidden, args->at, args->diag)) {
        return NULL;
    }
    char name[TN_LAYER_NAME_MAX];
    tn_node *x = args->in[0];
    for (uint32_t i = 0; i < o->hidden.n; i++) {
        uint32_t units = (uint32_t)o->hidden.item[i];
        x = tn_dense_block(net, numbered(name, args->name, i + 1), x, units, &block);
    }
    if (o->units > 0) {
        tn_block_opts linear = {0};
        x = tn_dense_block(net, numbered(name, args->name, o->hidden.n + 1), x, o->units, &linear);
    }
    return x;
}

static bool mlp_output_bias(const char *name, const void *opts, char out[TN_LAYER_NAME_MAX])
{
    const mlp_opts *o = opts;
    if (o->units != 1) {
        return false;
    }
    char suffix[24];
    (void)snprintf(suffix, sizeof suffix, ".%u.b", o->hidden.n + 1);
    (void)tn_layer_name(out, name, suffix);
    return true;
}

const tn_layer tn_layer_mlp = {
    .name = "mlp",
    .help = "several dense layers behind each other",
    .fields = mlp_fields,
    .opts_size = sizeof(mlp_opts),
    .build = mlp_build,
    .output_bias = mlp_output_bias,
};
