/* layer_bi_interaction.c - pairs of slots, per column (NFM, He 2017). -> [B,dim] */
#include "nn/layers.h"
#include "nn/ops.h"

typedef struct pairs_opts {
    uint32_t dim;
} pairs_opts;

static const tn_field pairs_fields[] = {
    TN_FIELD_U32(pairs_opts, dim, "0", 0, TN_DIM_MAX, "floats",
                 "width of one slot's vector; 0: that of the embedding input"),
    TN_FIELD_END,
};

static tn_node *bi_interaction_build(const tn_net *net, const tn_layer_args *args)
{
    const pairs_opts *o = args->opts;
    tn_node *x = args->in[0];
    uint32_t dim = o->dim != 0 ? o->dim : tn_layer_slot_width(x);
    if (dim == 0 || x->shape.cols % dim != 0) {
        tn_diag_error(
            args->diag, args->at,
            "'bi_interaction' needs slots of one width, but '%s' has %u columns of several",
            x->name, x->shape.cols);
        return NULL;
    }
    return tn_bi_interaction(net->g, args->name, x, dim);
}

const tn_layer tn_layer_bi_interaction = {
    .name = "bi_interaction",
    .help = "second-order interaction of all pairs of slots, one value per column",
    .fields = pairs_fields,
    .opts_size = sizeof(pairs_opts),
    .build = bi_interaction_build,
};
