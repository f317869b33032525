/* layer_bias.c - x + b, one trained number per column. */
#include "nn/layer/layers.h"
#include "nn/op/ops.h"

#include <string.h>

typedef struct bias_opts {
    const char *param;
} bias_opts;

static const tn_field bias_fields[] = {
    TN_FIELD_STR(bias_opts, param, "~", "name of the parameter; ~: the layer's name and '.b'"),
    TN_FIELD_END,
};

static const char *param_name(char out[TN_LAYER_NAME_MAX], const char *name, const bias_opts *o)
{
    return o->param != NULL ? tn_layer_name(out, o->param, "") : tn_layer_name(out, name, ".b");
}

static tn_node *bias_build(const tn_net *net, const tn_layer_args *args)
{
    char name[TN_LAYER_NAME_MAX];
    const bias_opts *o = args->opts;
    tn_node *x = args->in[0];
    if (o->param != NULL && (o->param[0] == '\0' || strlen(o->param) >= TN_LAYER_NAME_MAX)) {
        tn_diag_error(args->diag, args->at, "'param' is a name of 1 to %d bytes",
                      TN_LAYER_NAME_MAX - 1);
        return NULL;
    }
    tn_node *b = tn_param(net->g, net->params, param_name(name, args->name, o),
                          (tn_shape){1, x->shape.cols}, (tn_init){.kind = TN_INIT_CONSTANT});
    return tn_bias(net->g, args->name, x, b);
}

static bool bias_output_bias(const char *name, const void *opts, char out[TN_LAYER_NAME_MAX])
{
    (void)param_name(out, name, opts);
    return true;
}

const tn_layer tn_layer_bias = {
    .name = "bias",
    .help = "x + b",
    .fields = bias_fields,
    .opts_size = sizeof(bias_opts),
    .build = bias_build,
    .output_bias = bias_output_bias,
};
