/* layer_scale.c - by * x + plus, both fixed. */
#include "nn/layer/layers.h"
#include "nn/op/ops.h"

typedef struct scale_opts {
    double by, plus;
} scale_opts;

static const tn_field scale_fields[] = {
    TN_FIELD_F64(scale_opts, by, "1", -1e30, 1e30, "", "factor"),
    TN_FIELD_F64(scale_opts, plus, "0", -1e30, 1e30, "", "added afterwards"),
    TN_FIELD_END,
};

static tn_node *scale_build(const tn_net *net, const tn_layer_args *args)
{
    const scale_opts *o = args->opts;
    return tn_scale(net->g, args->name, args->in[0], o->by, o->plus);
}

const tn_layer tn_layer_scale = {
    .name = "scale",
    .help = "by * x + plus, both fixed",
    .fields = scale_fields,
    .opts_size = sizeof(scale_opts),
    .build = scale_build,
};
