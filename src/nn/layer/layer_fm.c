/* layer_fm.c - pairs of slots, summed: 1/2 (|s|^2 - sum |v_f|^2), s = sum v_f (Rendle 2010); or, as
 * libFM has it, pairs of values. -> [B,1] */
#include "nn/layer/layers.h"
#include "nn/op/ops.h"

typedef struct fm_opts {
    uint32_t dim;
    bool within_slot;
} fm_opts;

static const tn_field fm_fields[] = {
    TN_PAIRS_DIM(fm_opts),
    TN_FIELD_BOOL(fm_opts, within_slot, "false",
                  "pair the values of one slot too; slots are pooled by sum"),
    TN_FIELD_END,
};

static tn_node *fm_build(const tn_net *net, const tn_layer_args *args)
{
    const fm_opts *o = args->opts;
    tn_node *x = args->in[0];
    uint32_t dim = tn_pairs_width(args, o->dim, "fm");
    if (dim == 0 || !o->within_slot) {
        return dim == 0 ? NULL : tn_fm(net->g, args->name, x, dim);
    }
    if (!tn_pairs_summed(args, "within_slot")) {
        return NULL;
    }
    char name[TN_LAYER_NAME_MAX];
    tn_node *squares = tn_embed_squares(net->g, tn_layer_name(name, args->name, ".squares"), x);
    return tn_fm_values(net->g, args->name, (tn_node *[]){x, squares}, dim);
}

const tn_layer tn_layer_fm = {
    .name = "fm",
    .help = "second-order interaction of all pairs of slots",
    .fields = fm_fields,
    .opts_size = sizeof(fm_opts),
    .build = fm_build,
};
