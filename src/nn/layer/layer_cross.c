/* layer_cross.c - DCN's cross network (Wang 2017): x' = x0 (x w) + b + x, `layers` times. */
#include "nn/layer/layers.h"
#include "nn/op/ops.h"

#include <stdio.h>

typedef struct cross_opts {
    uint32_t layers;
} cross_opts;

static const tn_field cross_fields[] = {
    TN_FIELD_U32(cross_opts, layers, "3", 1, 64, "layers", "how many cross layers"),
    TN_FIELD_END,
};

static tn_node *cross_build(const tn_net *net, const tn_layer_args *args)
{
    const cross_opts *o = args->opts;
    tn_node *x0 = args->in[0];
    tn_shape shape = {1, x0->shape.cols};
    tn_node *x = x0;
    for (uint32_t i = 1; i <= o->layers; i++) {
        char layer[TN_LAYER_NAME_MAX];
        char full[TN_LAYER_NAME_MAX];
        char number[16];
        (void)snprintf(number, sizeof number, ".%u", i);
        (void)tn_layer_name(layer, args->name, number);
        tn_node *wb[2];
        wb[0] =
            tn_param(net->g, net->params, tn_layer_name(full, layer, ".w"), shape, net->dense_init);
        wb[1] = tn_param(net->g, net->params, tn_layer_name(full, layer, ".b"), shape,
                         (tn_init){.kind = TN_INIT_CONSTANT});
        x = tn_cross(net->g, layer, (tn_node *const[]){x0, x}, wb);
    }
    return x;
}

const tn_layer tn_layer_cross = {
    .name = "cross",
    .help = "cross network of DCN, one vector per layer",
    .fields = cross_fields,
    .opts_size = sizeof(cross_opts),
    .build = cross_build,
};
