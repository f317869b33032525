/* layer_interactions.c - layers that pair slots' vectors, cross networks, and two streams made one.
 *
 *     fm              1/2 (|s|^2 - sum |v_f|^2), s = sum v_f (Rendle 2010); or over pairs of
 *                     values, as libFM does                                        -> [B,1]
 *     bi_interaction  the pairs of fm, column by column (NFM, He 2017)             -> [B,dim]
 *     inner           <v_f, v_g> of all pairs (PNN, Qu 2016)                       -> [B,pairs]
 *     outer           s^T s, s = sum v_f (PNN)                                     -> [B,dim*dim]
 *     bilinear        (v_f W) * v_g of all pairs; one W, one for each f, one for each pair, or none
 *                     (FiBiNET, Huang 2019)                                        -> [B,pairs*dim]
 *     fwfm            sum R_fg <v_f, v_g>, a trained weight per pair (Pan 2018)    -> [B,1]
 *     ffm             every slot has a vector of its own for each other (Juan 2016) -> [B,1]
 *     ffm_inner       the same pairs, a column each (ONN, Yang 2019)               -> [B,pairs]
 *     cross           x' = x0 (x w) + b + x, `layers` times (DCN, Wang 2017)       -> [B,n]
 *     cross_v2        x' = x0 * (x W + b) + x, low rank W = V U (Wang 2021)        -> [B,n]
 *           experts   x' = x0 * (sum of g_i tanh(tanh(x V_i) C_i) U_i + b) + x, g = softmax(x G)
 *           gated     x' = x0 * (x W + b) * sigmoid(x G) + x (GDCN, Wang 2023), G with a W's rank
 *     fusion          b + o1 w1 + o2 w2 + sum_h o1_h W_h o2_h^T over the heads h, each a share of
 *                     both streams' columns (FinalMLP, Mao 2023)                   -> [B,1]
 */
#include "base/keys/keyspace.h"
#include "config/diag.h"
#include "config/field.h"
#include "nn/graph/embed.h"
#include "nn/layer/layers.h"
#include "nn/op/ops.h"

#include <inttypes.h>
#include <stdio.h>

/* Options of layers of pairs. */
#define PAIRS_DIM(type)                                                                            \
    TN_FIELD_U32(type, dim, "0", 0, TN_DIM_MAX, "floats",                                          \
                 "width of one slot's vector; 0: that of the embedding input")
#define PAIRS_WITHIN_SLOT(type)                                                                    \
    TN_FIELD_BOOL(type, within_slot, "false",                                                      \
                  "pair the values of one slot too; slots are pooled by sum")
#define PAIRS_NORMALISE(type)                                                                      \
    TN_FIELD_BOOL(type, normalise, "false", "divide by the sum of the example's squared values")

/* Returns whether the input is an embedding. False: reported. */
static bool is_embedded(const tn_layer_args *args, const char *option)
{
    const tn_node *x = args->in[0];
    if (x->op != &tn_op_embed) {
        tn_diag_error(args->diag, args->at, "'%s' needs an embedding input, not '%s'", option,
                      x->name);
    }
    return x->op == &tn_op_embed;
}

/* Returns whether the input is an embedding whose slots are plain sums. False: reported. */
static bool is_summed(const tn_layer_args *args, const char *option)
{
    const tn_node *x = args->in[0];
    if (!is_embedded(args, option)) {
        return false;
    }
    const tn_embed_list *e = tn_embed_list_of(x);
    for (uint32_t i = 0; i < e->n; i++) {
        if (e->slot[i].pool != TN_POOL_SUM) {
            tn_diag_error(args->diag, args->at, "'%s' needs 'pool: sum', which slot '%s' has not",
                          option, e->slot[i].name);
            return false;
        }
    }
    return true;
}

/* 1 / sum x_j^2 of the embedding input, called "<name>.norm". */
static tn_node *values_norm(const tn_net *net, const tn_layer_args *args)
{
    return TN_LAYER_NODE(net, embed_norm, args->name, ".norm", TN_IN(args->in[0]), NULL);
}

/* Returns whether there are two slots to pair. False: reported. */
static bool has_slots(const tn_layer_args *args, const char *layer, uint64_t n)
{
    const tn_node *x = args->in[0];
    const tn_embed_list *e = tn_embed_list_of(x);
    if (n >= 2) {
        return true;
    }
    tn_diag_error(args->diag, args->at, "'%s' pairs slots, and there is only one, '%s'", layer,
                  e != NULL ? e->slot[0].name : x->name);
    tn_diag_hint(args->diag, "list more slots, or take a model without such pairs: fm pairs the "
                             "values of one slot, lr none");
    return false;
}

/* Returns whether there is anything to pair: two slots, or one that may have several values, which
 * then are paired with each other even if nobody asks for it. False: reported. */
static bool has_pairs(const tn_layer_args *args, uint32_t dim)
{
    const tn_node *x = args->in[0];
    const tn_embed_list *e = tn_embed_list_of(x);
    const bool any = x->shape.cols > dim || (e != NULL && !e->slot[0].single);
    if (!any) {
        tn_diag_error(args->diag, args->at,
                      "'fm' pairs values, and the only slot, '%s', has one value in a row",
                      e != NULL ? e->slot[0].name : x->name);
        tn_diag_hint(args->diag, "list more slots, or take a model without pairs, such as lr");
    }
    return any;
}

typedef struct fm_opts {
    uint32_t dim;
    bool within_slot;
} fm_opts;

static const tn_field fm_fields[] = {
    PAIRS_DIM(fm_opts),
    PAIRS_WITHIN_SLOT(fm_opts),
    TN_FIELD_END,
};

static tn_node *fm_build(const tn_net *net, const tn_layer_args *args)
{
    const fm_opts *o = args->opts;
    tn_node *x = args->in[0];
    uint32_t dim = tn_layer_slot_width(args, o->dim, "fm");
    if (dim == 0 || !has_pairs(args, dim)) {
        return NULL;
    }
    if (!o->within_slot && x->shape.cols > dim) {
        return tn_apply(net->g, &tn_op_fm, args->name, TN_IN(x), &(tn_pairs_attr){dim});
    }
    if (!is_summed(args, o->within_slot ? "within_slot" : "fm of one slot")) {
        return NULL;
    }
    tn_node *squares = TN_LAYER_NODE(net, embed_squares, args->name, ".squares", TN_IN(x), NULL);
    return tn_apply(net->g, &tn_op_fm_values, args->name, TN_IN(x, squares), &(tn_pairs_attr){dim});
}

const tn_layer tn_layer_fm = {
    TN_LAYER_WITH_OPTIONS(fm, "second-order interaction of all pairs of slots")};

typedef tn_pairs_attr bi_interaction_opts;

static const tn_field bi_interaction_fields[] = {
    PAIRS_DIM(bi_interaction_opts),
    TN_FIELD_END,
};

static tn_node *bi_interaction_build(const tn_net *net, const tn_layer_args *args)
{
    uint32_t dim =
        tn_layer_slot_width(args, ((const bi_interaction_opts *)args->opts)->dim, "bi_interaction");
    return dim == 0 || !has_slots(args, "bi_interaction", args->in[0]->shape.cols / dim)
               ? NULL
               : tn_apply(net->g, &tn_op_bi_interaction, args->name, TN_IN(args->in[0]),
                          &(tn_pairs_attr){dim});
}

const tn_layer tn_layer_bi_interaction = {TN_LAYER_WITH_OPTIONS(
    bi_interaction, "second-order interaction of all pairs of slots, one value per column")};

/* Counts the pairs. 0, reported: one slot alone, or too many. */
static uint32_t count_pairs(const tn_layer_args *args, uint32_t dim, const char *layer)
{
    uint64_t slots = args->in[0]->shape.cols / dim;
    uint64_t pairs = slots * (slots - 1) / 2;
    if (!has_slots(args, layer, slots)) {
        return 0;
    }
    if (pairs > TN_COLS_MAX) {
        tn_diag_error(args->diag, args->at,
                      "'%s' takes at most %d pairs of slots, and there are %" PRIu64 " slots",
                      layer, TN_COLS_MAX, slots);
        return 0;
    }
    return (uint32_t)pairs;
}

typedef tn_pairs_attr inner_opts;
#define inner_fields bi_interaction_fields

static tn_node *inner_build(const tn_net *net, const tn_layer_args *args)
{
    uint32_t dim = tn_layer_slot_width(args, ((const inner_opts *)args->opts)->dim, "inner");
    return dim == 0 || count_pairs(args, dim, "inner") == 0
               ? NULL
               : tn_apply(net->g, &tn_op_inner, args->name, TN_IN(args->in[0]),
                          &(tn_pairs_attr){dim});
}

const tn_layer tn_layer_inner = {
    TN_LAYER_WITH_OPTIONS(inner, "inner products of all pairs of slots, a column each")};

typedef tn_pairs_attr outer_opts;
#define outer_fields bi_interaction_fields

static tn_node *outer_build(const tn_net *net, const tn_layer_args *args)
{
    uint32_t dim = tn_layer_slot_width(args, ((const outer_opts *)args->opts)->dim, "outer");
    if ((uint64_t)dim * dim > TN_COLS_MAX) {
        tn_diag_error(args->diag, args->at, "'outer' of vectors of %u makes more than %d columns",
                      dim, TN_COLS_MAX);
        return NULL;
    }
    return dim == 0 ? NULL
                    : tn_apply(net->g, &tn_op_outer, args->name, TN_IN(args->in[0]),
                               &(tn_pairs_attr){dim});
}

const tn_layer tn_layer_outer = {TN_LAYER_WITH_OPTIONS(
    outer, "outer product of the sum of all slots with itself, dim * dim columns")};

typedef struct bilinear_opts {
    uint32_t dim;
    uint32_t form;
} bilinear_opts;

enum { BILINEAR_ALL, BILINEAR_EACH, BILINEAR_INTERACTION, BILINEAR_NONE };
static const char *const bilinear_words[] = {"all", "each", "interaction", "none", NULL};

static const tn_field bilinear_fields[] = {
    TN_FIELD_CHOICE(bilinear_opts, form, "interaction", bilinear_words,
                    "one matrix for all pairs, for each first slot, for each pair, or none"),
    PAIRS_DIM(bilinear_opts),
    TN_FIELD_END,
};

static tn_node *bilinear_build(const tn_net *net, const tn_layer_args *args)
{
    const bilinear_opts *o = args->opts;
    tn_node *x = args->in[0];
    const uint32_t dim = tn_layer_slot_width(args, o->dim, "bilinear");
    const uint32_t n = dim != 0 ? count_pairs(args, dim, "bilinear") : 0;
    if (n == 0) {
        return NULL;
    }
    if ((uint64_t)n * dim > TN_COLS_MAX) {
        tn_diag_error(args->diag, args->at, "'bilinear' of %u pairs makes more than %d columns", n,
                      TN_COLS_MAX);
        return NULL;
    }
    const tn_pairs_attr attr = {dim};
    if (o->form == BILINEAR_NONE) {
        return tn_apply(net->g, &tn_op_bilinear, args->name, TN_IN(x), &attr);
    }
    const uint32_t slots = x->shape.cols / dim;
    const uint32_t matrices = o->form == BILINEAR_ALL    ? 1
                              : o->form == BILINEAR_EACH ? slots - 1
                                                         : n;
    tn_node *w = tn_layer_param(net, args->name, ".W", (tn_shape){matrices * dim, dim},
                                tn_layer_init_of(net->dense_init, dim, dim));
    return tn_apply(net->g, &tn_op_bilinear, args->name, TN_IN(x, w), &attr);
}

const tn_layer tn_layer_bilinear = {
    TN_LAYER_WITH_OPTIONS(bilinear, "products of all pairs of slots, the first times a matrix"),
    .weighs = true};

typedef struct fwfm_opts {
    uint32_t dim;
    bool normalise;
} fwfm_opts;

static const tn_field fwfm_fields[] = {
    PAIRS_DIM(fwfm_opts),
    PAIRS_NORMALISE(fwfm_opts),
    TN_FIELD_END,
};

static tn_node *fwfm_build(const tn_net *net, const tn_layer_args *args)
{
    const fwfm_opts *o = args->opts;
    uint32_t dim = tn_layer_slot_width(args, o->dim, "fwfm");
    uint32_t n = dim != 0 ? count_pairs(args, dim, "fwfm") : 0;
    if (n == 0 || (o->normalise && !is_embedded(args, "normalise"))) {
        return NULL;
    }
    tn_node *r = tn_layer_param(net, args->name, ".R", (tn_shape){n, 1},
                                (tn_init){.kind = TN_INIT_CONSTANT, .a = 1});
    tn_node *pairs =
        TN_LAYER_NODE(net, inner, args->name, ".pairs", TN_IN(args->in[0]), &(tn_pairs_attr){dim});
    if (!o->normalise) {
        return tn_apply(net->g, &tn_op_matmul, args->name, TN_IN(pairs, r), NULL);
    }
    tn_node *norm = values_norm(net, args);
    tn_node *sum = TN_LAYER_NODE(net, matmul, args->name, ".sum", TN_IN(pairs, r), NULL);
    return tn_apply(net->g, &tn_op_mul, args->name, TN_IN(sum, norm), NULL);
}

const tn_layer tn_layer_fwfm = {
    TN_LAYER_WITH_OPTIONS(fwfm,
                          "interaction of all pairs of slots, each pair with a trained weight"),
    .weighs = true};

typedef struct ffm_opts {
    uint32_t k;
    bool within_slot;
    bool normalise;
} ffm_opts;

static const tn_field ffm_fields[] = {
    TN_FIELD_U32(ffm_opts, k, "0", 0, TN_DIM_MAX, "floats",
                 "width of a slot's vector for one other slot; 0: as the embedding input has it"),
    PAIRS_WITHIN_SLOT(ffm_opts),
    PAIRS_NORMALISE(ffm_opts),
    TN_FIELD_END,
};

/* Fields and k of an input of fields * fields * k columns. */
static bool find_shape(const tn_layer_args *args, uint32_t k, tn_ffm_attr *out)
{
    const tn_node *x = args->in[0];
    const tn_embed_list *e = tn_embed_list_of(x);
    uint32_t fields = e != NULL ? e->n : 1;
    if (e != NULL && !has_slots(args, "ffm", fields)) {
        return false;
    }
    while (e == NULL && fields < TN_FFM_FIELDS_MAX &&
           (uint64_t)fields * fields * k < x->shape.cols) {
        fields++;
    }
    *out = (tn_ffm_attr){.fields = fields, .dim = k};
    if (e != NULL && k == 0) {
        out->dim = x->shape.cols / fields / fields;
    }
    bool fits = out->dim > 0 && fields > 1 && fields <= TN_FFM_FIELDS_MAX && tn_ffm_fits(out, x);
    for (uint32_t i = 0; e != NULL && fits && i < fields; i++) {
        fits = e->at[i + 1] - e->at[i] == fields * out->dim;
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
    return (!o->within_slot || is_summed(args, "within_slot")) &&
           (!o->normalise || is_embedded(args, "normalise"));
}

/* Builds all pairs, those within slots included as asked, under `name`. */
static tn_node *ffm_pairs(const tn_net *net, const tn_layer_args *args, const tn_ffm_attr *a,
                          const char *name)
{
    tn_node *x = args->in[0];
    if (!((const ffm_opts *)args->opts)->within_slot) {
        return tn_apply(net->g, &tn_op_ffm, name, TN_IN(x), a);
    }
    tn_node *q = TN_LAYER_NODE(net, embed_squares, args->name, ".squares", TN_IN(x), NULL);
    tn_node *across = TN_LAYER_NODE(net, ffm, args->name, ".across", TN_IN(x), a);
    tn_node *within = TN_LAYER_NODE(net, ffm_within, args->name, ".within", TN_IN(x, q), a);
    return tn_apply(net->g, &tn_op_add, name, TN_IN(across, within), NULL);
}

static tn_node *ffm_build(const tn_net *net, const tn_layer_args *args)
{
    const ffm_opts *o = args->opts;
    tn_ffm_attr shape;
    if (!find_shape(args, o->k, &shape) || !can_have_options(args, o)) {
        return NULL;
    }
    if (!o->normalise) {
        return ffm_pairs(net, args, &shape, args->name);
    }
    char name[TN_LAYER_NAME_MAX];
    tn_node *norm = values_norm(net, args);
    tn_node *y = ffm_pairs(net, args, &shape, tn_layer_name(name, args->name, ".pairs"));
    return tn_apply(net->g, &tn_op_mul, args->name, TN_IN(y, norm), NULL);
}

const tn_layer tn_layer_ffm = {
    TN_LAYER_WITH_OPTIONS(ffm, "field-aware interaction of all pairs of slots")};

static const tn_field ffm_inner_fields[] = {
    TN_FIELD_U32(ffm_opts, k, "0", 0, TN_DIM_MAX, "floats",
                 "width of a slot's vector for one other slot; 0: as the embedding input has it"),
    TN_FIELD_END,
};
typedef ffm_opts ffm_inner_opts;

static tn_node *ffm_inner_build(const tn_net *net, const tn_layer_args *args)
{
    tn_ffm_attr shape;
    return find_shape(args, ((const ffm_inner_opts *)args->opts)->k, &shape)
               ? tn_apply(net->g, &tn_op_ffm_inner, args->name, TN_IN(args->in[0]), &shape)
               : NULL;
}

const tn_layer tn_layer_ffm_inner = {TN_LAYER_WITH_OPTIONS(
    ffm_inner, "field-aware inner products of all pairs of slots, a column each")};

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
        (void)tn_layer_numbered(layer, args->name, i);
        tn_node *wb[2];
        wb[0] = tn_layer_param(net, layer, ".w", shape, net->dense_init);
        wb[1] = tn_layer_param(net, layer, ".b", shape, (tn_init){.kind = TN_INIT_CONSTANT});
        x = tn_apply(net->g, &tn_op_cross, layer, TN_IN(x0, x, wb[0], wb[1]), NULL);
    }
    return x;
}

const tn_layer tn_layer_cross = {
    TN_LAYER_WITH_OPTIONS(cross, "cross network of DCN, one vector per layer"), .weighs = true};

typedef struct cross_v2_opts {
    uint32_t layers;
    uint32_t rank;
    uint32_t experts;
    bool gated;
} cross_v2_opts;

static const tn_field cross_v2_fields[] = {
    TN_FIELD_U32(cross_v2_opts, layers, "3", 1, 64, "layers", "how many cross layers"),
    TN_FIELD_U32(cross_v2_opts, rank, "0", 0, 65536, "", "W = V U of this rank; 0: a full matrix"),
    TN_FIELD_U32(cross_v2_opts, experts, "0", 0, 64, "experts",
                 "several matrices of this rank, mixed by gates of x (DCN-Mix); 0: one"),
    TN_FIELD_BOOL(cross_v2_opts, gated, "false",
                  "times sigmoid(x G), a gate for each crossed column (GDCN)"),
    TN_FIELD_END,
};

static tn_node *product(const tn_net *net, const char *layer, tn_node *x, const char *which,
                        uint32_t cols)
{
    char suffix[16];
    (void)snprintf(suffix, sizeof suffix, ".%s", which);
    tn_node *w =
        tn_layer_param(net, layer, suffix, (tn_shape){x->shape.cols, cols}, net->dense_init);
    (void)snprintf(suffix, sizeof suffix, ".x%s", which);
    return TN_LAYER_NODE(net, matmul, layer, suffix, TN_IN(x, w), NULL);
}

/* Builds x W or, of low rank, x V U, by the names of the three. */
static tn_node *mapped(const tn_net *net, const char *layer, tn_node *x, const char *const which[3],
                       uint32_t rank)
{
    uint32_t cols = x->shape.cols;
    return rank == 0 ? product(net, layer, x, which[0], cols)
                     : product(net, layer, product(net, layer, x, which[1], rank), which[2], cols);
}

/* Builds x W + b; gated, times sigmoid(x G). */
static tn_node *crossed(const tn_net *net, const char *layer, tn_node *x, const cross_v2_opts *o)
{
    static const char *const names[][3] = {{"W", "V", "U"}, {"G", "GV", "GU"}};
    char name[TN_LAYER_NAME_MAX];
    tn_node *h = mapped(net, layer, x, names[0], o->rank);
    tn_node *b = tn_layer_param(net, layer, ".b", (tn_shape){1, x->shape.cols},
                                (tn_init){.kind = TN_INIT_CONSTANT});
    h = TN_LAYER_NODE(net, bias, layer, ".h", TN_IN(h, b), NULL);
    if (!o->gated) {
        return h;
    }
    tn_node *gate = tn_activate(net->g, tn_layer_name(name, layer, ".gate"),
                                mapped(net, layer, x, names[1], o->rank), "sigmoid");
    return TN_LAYER_NODE(net, mul, layer, ".gated", TN_IN(h, gate), NULL);
}

/* Builds sum of g_i tanh(tanh(x V_i) C_i) U_i + b, the matrices of all experts beside or below each
 * other: gates are on the tanh, since what follows it is a sum. */
static tn_node *mixed(const tn_net *net, const char *layer, tn_node *x, const cross_v2_opts *o)
{
    char name[TN_LAYER_NAME_MAX];
    const uint32_t cols = x->shape.cols;
    const tn_shape shape[] = {{cols, o->experts * o->rank},
                              {o->experts * o->rank, o->rank},
                              {o->experts * o->rank, cols}};
    tn_node *w[3];
    w[0] = tn_layer_param(net, layer, ".V", shape[0],
                          tn_layer_init_of(net->dense_init, cols, o->rank));
    w[1] = tn_layer_param(net, layer, ".C", shape[1],
                          tn_layer_init_of(net->dense_init, o->rank, o->rank));
    w[2] = tn_layer_param(net, layer, ".U", shape[2],
                          tn_layer_init_of(net->dense_init, o->rank, cols));
    tn_node *h = TN_LAYER_NODE(net, matmul, layer, ".xV", TN_IN(x, w[0]), NULL);
    h = tn_activate(net->g, tn_layer_name(name, layer, ".inner"), h, "tanh");
    h = TN_LAYER_NODE(net, slot_dense, layer, ".xVC", TN_IN(h, w[1]), &(tn_pairs_attr){o->rank});
    h = tn_activate(net->g, tn_layer_name(name, layer, ".outer"), h, "tanh");
    tn_node *gates = product(net, layer, x, "G", o->experts);
    gates = TN_LAYER_NODE(net, softmax, layer, ".gates", TN_IN(gates), NULL);
    h = TN_LAYER_NODE(net, mul, layer, ".gated", TN_IN(h, gates), NULL);
    h = TN_LAYER_NODE(net, matmul, layer, ".xVCU", TN_IN(h, w[2]), NULL);
    tn_node *b =
        tn_layer_param(net, layer, ".b", (tn_shape){1, cols}, (tn_init){.kind = TN_INIT_CONSTANT});
    return TN_LAYER_NODE(net, bias, layer, ".h", TN_IN(h, b), NULL);
}

/* Returns whether the options go together. False: reported. */
static bool can_cross(const tn_layer_args *args, const cross_v2_opts *o)
{
    if (o->experts > 0 && (o->rank == 0 || o->gated)) {
        tn_diag_error(args->diag, args->at, "'experts' of 'cross_v2' %s",
                      o->gated ? "have gates already: leave out 'gated'" : "need a 'rank'");
        return false;
    }
    if (o->experts > 0 && o->rank > TN_DIM_MAX) {
        tn_diag_error(args->diag, args->at, "'experts' have a rank of at most %d, not %u",
                      TN_DIM_MAX, o->rank);
        return false;
    }
    return true;
}

static tn_node *cross_v2_build(const tn_net *net, const tn_layer_args *args)
{
    const cross_v2_opts *o = args->opts;
    if (!can_cross(args, o)) {
        return NULL;
    }
    tn_node *x0 = args->in[0];
    tn_node *x = x0;
    for (uint32_t i = 1; i <= o->layers; i++) {
        char layer[TN_LAYER_NAME_MAX];
        (void)tn_layer_numbered(layer, args->name, i);
        tn_node *h = o->experts > 0 ? mixed(net, layer, x, o) : crossed(net, layer, x, o);
        x = tn_apply(net->g, &tn_op_cross_merge, layer, TN_IN(x0, h, x), NULL);
    }
    return x;
}

const tn_layer tn_layer_cross_v2 = {
    TN_LAYER_WITH_OPTIONS(cross_v2, "cross network of DCN v2, one matrix per layer"),
    .weighs = true};

/* ---- fusion ---- */

enum { HEADS_MAX = 1024 };

typedef struct fusion_opts {
    uint32_t heads;
} fusion_opts;

static const tn_field fusion_fields[] = {
    TN_FIELD_U32(fusion_opts, heads, "1", 1, HEADS_MAX, "heads",
                 "parts that each stream is cut into; the widths of both are multiples of it"),
    TN_FIELD_END,
};

/* o1_h W_h of all heads side by side, as wide as the second stream. All their entries are terms of
 * one sum, so first values are as for one column of them all. */
static tn_node *head_products(const tn_net *net, const tn_layer_args *args, uint32_t heads)
{
    tn_node *const *o = args->in;
    const tn_shape w = {o[0]->shape.cols / heads, o[1]->shape.cols / heads};
    const tn_init init = tn_layer_init_of(net->dense_init, (double)heads * w.rows * w.cols, 1);
    tn_node *all[HEADS_MAX];
    for (uint32_t h = 0; h < heads; h++) {
        char suffix[24];
        (void)snprintf(suffix, sizeof suffix, ".in.%u", h + 1);
        tn_node *part = TN_LAYER_NODE(net, slice, args->name, suffix, TN_IN(o[0]),
                                      &(tn_slice_attr){h * w.rows, w.rows});
        (void)snprintf(suffix, sizeof suffix, ".W.%u", h + 1);
        tn_node *weights = tn_layer_param(net, args->name, suffix, w, init);
        (void)snprintf(suffix, sizeof suffix, ".xW.%u", h + 1);
        all[h] = TN_LAYER_NODE(net, matmul, args->name, suffix, TN_IN(part, weights), NULL);
    }
    char name[TN_LAYER_NAME_MAX];
    return tn_apply(net->g, &tn_op_concat, tn_layer_name(name, args->name, ".heads"), all, heads,
                    NULL);
}

static bool can_fuse(const tn_layer_args *args, uint32_t heads)
{
    if (args->n_in != 2) {
        tn_diag_error(args->diag, args->at, "'fusion' takes two inputs, not %u", args->n_in);
        return false;
    }
    const uint32_t a = args->in[0]->shape.cols;
    const uint32_t b = args->in[1]->shape.cols;
    if (a % heads != 0 || b % heads != 0) {
        tn_diag_error(args->diag, args->at,
                      "inputs of 'fusion' have %u and %u columns, which %u "
                      "heads cannot share",
                      a, b, heads);
        tn_diag_hint(args->diag, "take a number of heads that divides both");
        return false;
    }
    return true;
}

static tn_node *fusion_build(const tn_net *net, const tn_layer_args *args)
{
    const uint32_t heads = ((const fusion_opts *)args->opts)->heads;
    if (!can_fuse(args, heads)) {
        return NULL;
    }
    tn_node *heads_out = head_products(net, args, heads);
    tn_node *pairs =
        TN_LAYER_NODE(net, mul, args->name, ".products", TN_IN(heads_out, args->in[1]), NULL);
    tn_node *part[3];
    part[0] = product(net, args->name, args->in[0], "w1", 1);
    part[1] = product(net, args->name, args->in[1], "w2", 1);
    part[2] = TN_LAYER_NODE(net, sum_cols, args->name, ".pairs", TN_IN(pairs), NULL);
    tn_node *sum =
        TN_LAYER_NODE(net, add, args->name, ".sum", TN_IN(part[0], part[1], part[2]), NULL);
    tn_node *b = tn_layer_param(net, args->name, ".b", (tn_shape){1, 1},
                                (tn_init){.kind = TN_INIT_CONSTANT});
    return tn_apply(net->g, &tn_op_bias, args->name, TN_IN(sum, b), NULL);
}

static bool fusion_output_bias(const char *name, const void *opts, char out[TN_LAYER_NAME_MAX])
{
    (void)opts;
    (void)tn_layer_name(out, name, ".b");
    return true;
}

const tn_layer tn_layer_fusion = {
    TN_LAYER_WITH_OPTIONS(fusion, "two streams made one number, linearly and by products of heads"),
    .many = true, .output_bias = fusion_output_bias, .weighs = true};
