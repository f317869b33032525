/* layer_bi_interaction.c - pairs of slots, per column (NFM, He 2017). -> [B,dim] */
#include "nn/layer/layers.h"
#include "nn/op/ops.h"

typedef struct bi_opts {
    uint32_t dim;
} bi_opts;

static const tn_field bi_fields[] = {
    TN_PAIRS_DIM(bi_opts),
    TN_FIELD_END,
};

static tn_node *bi_interaction_build(const tn_net *net, const tn_layer_args *args)
{
    uint32_t dim = tn_pairs_width(args, ((const bi_opts *)args->opts)->dim, "bi_interaction");
    return dim == 0 ? NULL : tn_bi_interaction(net->g, args->name, args->in[0], dim);
}

const tn_layer tn_layer_bi_interaction = {
    .name = "bi_interaction",
    .help = "second-order interaction of all pairs of slots, one value per column",
    .fields = bi_fields,
    .opts_size = sizeof(bi_opts),
    .build = bi_interaction_build,
};
