/* layer_ffm.c - field-aware pairs of slots, summed (Juan 2016): every slot has a vector of its own
 * for each other slot. -> [B,1] */
#include "nn/layer/layers.h"
#include "nn/op/ops.h"
#include "nn/pooling/ffmloops.h"

typedef struct ffm_opts {
    uint32_t k;
    bool within_slot;
    bool normalise;
} ffm_opts;

static const tn_field ffm_fields[] = {
    TN_FIELD_U32(ffm_opts, k, "0", 0, TN_DIM_MAX, "floats",
                 "width of a slot's vector for one other slot; 0: as the embedding input has it"),
    TN_FIELD_BOOL(ffm_opts, within_slot, "false",
                  "pair the values of one slot too; slots are pooled by sum"),
    TN_PAIRS_NORMALISE(ffm_opts),
    TN_FIELD_END,
};

/* Fields and k of an input of fields * fields * k columns. */
static bool find_shape(const tn_layer_args *args, uint32_t k, tn_ffm_attr *out)
{
    const tn_node *x = args->in[0];
    bool embed = x->op == &tn_op_embed;
    uint32_t fields = embed ? tn_embed_count(x) : 1;
    while (!embed && fields < TN_FFM_FIELDS_MAX && (uint64_t)fields * fields * k < x->shape.cols) {
        fields++;
    }
    *out = (tn_ffm_attr){.fields = fields, .dim = k};
    if (embed && k == 0) {
        out->dim = x->shape.cols / fields / fields;
    }
    bool fits = out->dim > 0 && fields > 1 && fields <= TN_FFM_FIELDS_MAX && tn_ffm_fits(out, x);
    for (uint32_t i = 0; embed && fits && i < fields; i++) {
        uint32_t first = 0;
        uint32_t cols = 0;
        tn_embed_columns(x, i, &first, &cols);
        fits = cols == fields * out->dim;
    }
    if (!fits) {
        tn_diag_error(args->diag, args->at,
                      "'ffm' needs 2 to %d slots with k numbers for each slot: slots * slots * k "
                      "columns, but '%s' has %u",
                      TN_FFM_FIELDS_MAX, x->name, x->shape.cols);
        tn_diag_hint(args->diag, "give the embedding input 'field_dim: k'");
    }
    return fits;
}

static bool can_have_options(const tn_layer_args *args, const ffm_opts *o)
{
    return (!o->within_slot || tn_pairs_summed(args, "within_slot")) &&
           (!o->normalise || tn_pairs_embedded(args, "normalise"));
}

/* All pairs, those within slots included as asked, under `name`. */
static tn_node *pairs(const tn_net *net, const tn_layer_args *args, const tn_ffm_attr *a,
                      const char *name)
{
    tn_node *x = args->in[0];
    char text[TN_LAYER_NAME_MAX];
    if (!((const ffm_opts *)args->opts)->within_slot) {
        return tn_ffm(net->g, name, x, a->fields, a->dim);
    }
    tn_node *q = tn_embed_squares(net->g, tn_layer_name(text, args->name, ".squares"), x);
    tn_node *across =
        tn_ffm(net->g, tn_layer_name(text, args->name, ".across"), x, a->fields, a->dim);
    tn_node *within = tn_ffm_within(net->g, tn_layer_name(text, args->name, ".within"),
                                    (tn_node *[]){x, q}, a->fields, a->dim);
    return tn_add(net->g, name, (tn_node *[]){across, within}, 2);
}

static tn_node *ffm_build(const tn_net *net, const tn_layer_args *args)
{
    const ffm_opts *o = args->opts;
    tn_ffm_attr shape;
    if (!find_shape(args, o->k, &shape) || !can_have_options(args, o)) {
        return NULL;
    }
    if (!o->normalise) {
        return pairs(net, args, &shape, args->name);
    }
    char name[TN_LAYER_NAME_MAX];
    tn_node *norm = tn_pairs_norm(net, args);
    tn_node *y = pairs(net, args, &shape, tn_layer_name(name, args->name, ".pairs"));
    return tn_mul(net->g, args->name, y, norm);
}

const tn_layer tn_layer_ffm = {
    .name = "ffm",
    .help = "field-aware interaction of all pairs of slots",
    .fields = ffm_fields,
    .opts_size = sizeof(ffm_opts),
    .build = ffm_build,
};
