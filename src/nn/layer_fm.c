/* layer_fm.c - pairs of slots, summed: 1/2 (|s|^2 - sum |v_f|^2), s = sum v_f (Rendle 2010). ->
 * [B,1] */
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

static tn_node *fm_build(const tn_net *net, const tn_layer_args *args)
{
    const pairs_opts *o = args->opts;
    tn_node *x = args->in[0];
    uint32_t dim = o->dim != 0 ? o->dim : tn_layer_slot_width(x);
    if (dim == 0 || x->shape.cols % dim != 0) {
        tn_diag_error(args->diag, args->at,
                      "'fm' needs slots of one width, but '%s' has %u columns of several", x->name,
                      x->shape.cols);
        return NULL;
    }
    return tn_fm(net->g, args->name, x, dim);
}

const tn_layer tn_layer_fm = {
    .name = "fm",
    .help = "second-order interaction of all pairs of slots",
    .fields = pairs_fields,
    .opts_size = sizeof(pairs_opts),
    .build = fm_build,
};
