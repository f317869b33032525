/* layer_fm.c - pairs of slots, summed: 1/2 (|s|^2 - sum |v_f|^2), s = sum v_f (Rendle 2010). ->
 * [B,1] */
#include "nn/layers.h"
#include "nn/ops.h"

static tn_node *fm_build(const tn_net *net, const tn_layer_args *args)
{
    uint32_t dim = tn_pairs_width(args, "fm");
    return dim == 0 ? NULL : tn_fm(net->g, args->name, args->in[0], dim);
}

const tn_layer tn_layer_fm = {
    .name = "fm",
    .help = "second-order interaction of all pairs of slots",
    .fields = tn_pairs_fields,
    .opts_size = sizeof(tn_pairs_opts),
    .build = fm_build,
};
