/* layer_cross_v2.c - DCN v2's cross network (Wang 2021): x' = x0 * (x W + b) + x, `layers` times;
 * low rank W = V U. */
#include "nn/layer/layers.h"
#include "nn/op/ops.h"

#include <stdio.h>

typedef struct cross_v2_opts {
    uint32_t layers;
    uint32_t rank;
} cross_v2_opts;

static const tn_field cross_v2_fields[] = {
    TN_FIELD_U32(cross_v2_opts, layers, "3", 1, 64, "layers", "how many cross layers"),
    TN_FIELD_U32(cross_v2_opts, rank, "0", 0, 65536, "", "W = V U of this rank; 0: a full matrix"),
    TN_FIELD_END,
};

static tn_node *product(const tn_net *net, const char *layer, tn_node *x, const char *which,
                        uint32_t cols)
{
    char name[TN_LAYER_NAME_MAX];
    char suffix[16];
    (void)snprintf(suffix, sizeof suffix, ".%s", which);
    tn_node *w = tn_param(net->g, net->params, tn_layer_name(name, layer, suffix),
                          (tn_shape){x->shape.cols, cols}, net->dense_init);
    (void)snprintf(suffix, sizeof suffix, ".x%s", which);
    return tn_matmul(net->g, tn_layer_name(name, layer, suffix), x, w);
}

/* x W + b, or x V U + b */
static tn_node *mapped(const tn_net *net, const char *layer, tn_node *x, uint32_t rank)
{
    uint32_t cols = x->shape.cols;
    char name[TN_LAYER_NAME_MAX];
    tn_node *h = rank == 0 ? product(net, layer, x, "W", cols)
                           : product(net, layer, product(net, layer, x, "V", rank), "U", cols);
    tn_node *b = tn_param(net->g, net->params, tn_layer_name(name, layer, ".b"),
                          (tn_shape){1, cols}, (tn_init){.kind = TN_INIT_CONSTANT});
    return tn_bias(net->g, tn_layer_name(name, layer, ".h"), h, b);
}

static tn_node *cross_v2_build(const tn_net *net, const tn_layer_args *args)
{
    const cross_v2_opts *o = args->opts;
    tn_node *x0 = args->in[0];
    tn_node *x = x0;
    for (uint32_t i = 1; i <= o->layers; i++) {
        char layer[TN_LAYER_NAME_MAX];
        char number[16];
        (void)snprintf(number, sizeof number, ".%u", i);
        (void)tn_layer_name(layer, args->name, number);
        x = tn_cross_merge(net->g, layer, x0, mapped(net, layer, x, o->rank), x);
    }
    return x;
}

const tn_layer tn_layer_cross_v2 = {
    .name = "cross_v2",
    .help = "cross network of DCN v2, one matrix per layer",
    .fields = cross_v2_fields,
    .opts_size = sizeof(cross_v2_opts),
    .build = cross_v2_build,
};
