/* layer_fwfm.c - pairs of slots, each pair with a weight of its own (Pan 2018):
 * sum R_fg <v_f, v_g>. R begins as 1, which is fm. -> [B,1] */
#include "nn/layer/layers.h"
#include "nn/op/ops.h"

#include <inttypes.h>

typedef struct fwfm_opts {
    uint32_t dim;
    bool normalise;
} fwfm_opts;

static const tn_field fwfm_fields[] = {
    TN_PAIRS_DIM(fwfm_opts),
    TN_PAIRS_NORMALISE(fwfm_opts),
    TN_FIELD_END,
};

/* 0, reported: one slot alone, or too many. */
static uint32_t count_pairs(const tn_layer_args *args, uint32_t dim)
{
    uint64_t slots = args->in[0]->shape.cols / dim;
    uint64_t pairs = slots * (slots - 1) / 2;
    if (pairs == 0 || pairs > TN_COLS_MAX) {
        tn_diag_error(args->diag, args->at,
                      "'fwfm' needs at least 2 slots and at most %d pairs, but '%s' has %" PRIu64
                      " slots",
                      TN_COLS_MAX, args->in[0]->name, slots);
        return 0;
    }
    return (uint32_t)pairs;
}

static tn_node *fwfm_build(const tn_net *net, const tn_layer_args *args)
{
    const fwfm_opts *o = args->opts;
    uint32_t dim = tn_pairs_width(args, o->dim, "fwfm");
    uint32_t n = dim != 0 ? count_pairs(args, dim) : 0;
    if (n == 0 || (o->normalise && !tn_pairs_embedded(args, "normalise"))) {
        return NULL;
    }
    char name[TN_LAYER_NAME_MAX];
    tn_node *r = tn_param(net->g, net->params, tn_layer_name(name, args->name, ".R"),
                          (tn_shape){n, 1}, (tn_init){.kind = TN_INIT_CONSTANT, .a = 1});
    tn_node *pairs = tn_inner(net->g, tn_layer_name(name, args->name, ".pairs"), args->in[0], dim);
    if (!o->normalise) {
        return tn_matmul(net->g, args->name, pairs, r);
    }
    tn_node *norm = tn_pairs_norm(net, args);
    tn_node *sum = tn_matmul(net->g, tn_layer_name(name, args->name, ".sum"), pairs, r);
    return tn_mul(net->g, args->name, sum, norm);
}

const tn_layer tn_layer_fwfm = {
    .name = "fwfm",
    .help = "interaction of all pairs of slots, each pair with a trained weight",
    .fields = fwfm_fields,
    .opts_size = sizeof(fwfm_opts),
    .build = fwfm_build,
};
