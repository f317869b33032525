/* model_deep.c - models with an MLP on embeddings: Wide & Deep, DeepFM, Deep & Cross, Deep
 * Crossing.
 *
 * widedeep (Cheng 2016)
 *
 *     wide ------------- sum --.                 wide -----------.
 *                              +--> logit                        [ ] -- dense --> logit
 *     deep, num -- mlp ------- '                 deep, num -- mlp'
 *              head: sum                                  head: concat
 *
 * deepfm (Guo 2017): one set of embeddings, two readers of it
 *
 *     wide ------------------- sum --.
 *     deep --.---------------- fm ---+--> logit       head: sum
 *            '-- [deep, num] - mlp --'
 *
 * head: concat puts the wide columns, the FM term and the last hidden layer into one dense layer
 * (TensorNet's form), which weighs the FM term anew.
 *
 * dcn (Wang 2017), and dcnv2 (Wang 2021), whose cross layers have a matrix each, full or of low
 * rank
 *
 *     dcn                [deep, num] --.-- cross x layers --.
 *                                      '-- mlp -------------[ ] -- dense --> logit
 *
 *     dcnv2 parallel     [cross(x), mlp(x)] -- dense --> logit
 *     stacked            mlp(cross(x)) ------- dense --> logit
 *     cross_only         cross(x) ------------ dense --> logit
 *
 * gdcn (Wang 2023) is dcnv2 with gates: x' = x0 * (x W + b) * sigmoid(x G) + x, W and G of each
 * layer its own. parallel is the paper's GDCN-P, stacked GDCN-S, cross_only its GCN.
 *
 * dcnmix (Wang 2021, section 3.3) is dcnv2 with several matrices of low rank in a layer, whose
 * gates are a softmax of x: x' = x0 * (sum of g_i tanh(tanh(x V_i) C_i) U_i + b) + x.
 *
 * deepcrossing (Shan 2016): residual units, each as wide as the input, then a dense layer
 *
 *     x' = act(bn(act(x W1 + b1) W2 + b2 + x)), then dropout
 *
 * With a batch norm there is no b2, since the norm would take it away again.
 */
#include "base/keys/keyspace.h"
#include "config/field.h"
#include "config/tree.h"
#include "models/model.h"
#include "nn/layer/layers.h"

/* ---- widedeep ---- */

typedef tn_deep_opts widedeep_opts;

static const tn_field widedeep_fields[] = {
    TN_DEEP_FIELDS(widedeep_opts, "[400, 400, 400]"),
    TN_HEAD_FIELD(widedeep_opts),
    TN_FIELD_END,
};

/* Also deepfm, which has pairs beside it. */
static void write_wide_and_deep(const tn_model_args *args, tn_list_writer *w, bool fm)
{
    const tn_deep_opts *o = args->opts;
    const bool concat = o->head == TN_HEAD_CONCAT;
    tn_write_wide_input(w, args);
    const char *x = tn_write_deep_input(w, args);
    if (fm) {
        tn_write_fm(w, o->within_slot);
    }
    if (!concat) {
        (void)tn_list_layer(w, "wide.sum", "sum", TN_NAMES("wide"));
    }
    const char *deep = tn_write_mlp(w, o, x, concat ? 0 : 1);
    const char *wide = concat ? "wide" : "wide.sum";
    const char *const two[] = {concat ? deep : wide, concat ? wide : deep, NULL};
    const char *const three[] = {wide, "fm", deep, NULL};
    if (concat) {
        tn_write_concat_head(w, fm ? three : two);
    } else {
        (void)tn_list_layer(w, "logit", "add", fm ? three : two);
        tn_list_output(w, "logit");
    }
}

static void widedeep_write(const tn_model_args *args, tn_list_writer *w)
{
    write_wide_and_deep(args, w, false);
}

static const tn_preset widedeep_presets[] = {
    TN_BARS_WIDE("frappe", TN_BARS_NORM "dropout: 0.6", "0.1"),
    TN_BARS_WIDE("criteo", TN_BARS_NORM "dropout: 0.1", "1e-5"),
    TN_BARS_WIDE("avazu", TN_BARS_NORM "dropout: 0.2", "0.005"),
    TN_BARS_WIDE("movielens", TN_BARS_NORM "dropout: 0.1", "0.01"),
    {"tensornet",
     "model: {hidden: [512, 256, 256], head: concat, " TN_TENSORNET_WIDE "}\n" TN_TENSORNET_BOTH},
    {"paper", "model: {hidden: [1024, 512, 256], head: sum}\n"
              "embedding: {dim: 32}\n"
              "train:\n"
              "  optimizer: {type: adagrad, lr: 0.01}\n"
              "  sparse:\n"
              "    deep: {type: adagrad, lr: 0.01}\n"
              "    wide: {type: ftrl, alpha: 0.1, beta: 1, l1: 1, l2: 0}\n"},
    {NULL, NULL},
};

const tn_model tn_model_widedeep = {
    TN_MODEL_MEMBERS(widedeep, "Wide & Deep: linear weights beside an MLP on embeddings")};

/* ---- deepfm ---- */

typedef tn_deep_opts deepfm_opts;

static const tn_field deepfm_fields[] = {
    TN_DEEP_FIELDS(deepfm_opts, "[400, 400, 400]"),
    TN_HEAD_FIELD(deepfm_opts),
    TN_WITHIN_SLOT_FIELD(deepfm_opts),
    TN_FIELD_END,
};

static void deepfm_write(const tn_model_args *args, tn_list_writer *w)
{
    write_wide_and_deep(args, w, true);
}

static const tn_preset deepfm_presets[] = {
    TN_BARS_WIDE("frappe", TN_BARS_NORM "dropout: 0.2", "0.05"),
    TN_BARS_WIDE("criteo", TN_BARS_NORM "dropout: 0.1", "1e-5"),
    TN_BARS_WIDE("avazu", TN_BARS_NORM "dropout: 0.3", "0.1"),
    TN_BARS_WIDE("movielens", TN_BARS_NORM "dropout: 0.3", "0.01"),
    {"tensornet",
     "model: {hidden: [512, 256, 256], head: concat, " TN_TENSORNET_WIDE "}\n" TN_TENSORNET_BOTH},
    {"paper", "model: {hidden: [400, 400, 400], dropout: 0.5, head: sum}\n"
              "embedding: {dim: 10}\n"
              "train:\n"
              "  optimizer: {type: adam, lr: 1e-3}\n"
              "  sparse:\n"
              "    deep: {type: adam, lr: 1e-3}\n"
              "    wide: {type: adam, lr: 1e-3}\n"},
    {NULL, NULL},
};

const tn_model tn_model_deepfm = {
    TN_MODEL_MEMBERS(deepfm, "DeepFM: factorization machine and MLP on shared embeddings"),
    .sums_pairs = true};

/* ---- dcn ---- */

typedef tn_deep_opts dcn_opts;

static const tn_field dcn_fields[] = {
    TN_DEEP_FIELDS(dcn_opts, "[400, 400, 400]"),
    TN_FIELD_U32(dcn_opts, layers, "3", 1, 64, "layers", "cross layers"),
    TN_FIELD_END,
};

static void dcn_write(const tn_model_args *args, tn_list_writer *w)
{
    const dcn_opts *o = args->opts;
    const char *x = tn_write_deep_input(w, args);
    tn_tree *cross = tn_list_layer(w, "cross", "cross", TN_NAMES(x));
    tn_list_set(w, cross, "layers", tn_list_text(w, "%u", o->layers));
    const char *deep = tn_write_mlp(w, o, x, 0);
    tn_write_concat_head(w, TN_NAMES("cross", deep));
}

static const tn_preset dcn_presets[] = {
    TN_BARS_CROSS("frappe", "hidden: [400, 400, 400], " TN_BARS_NORM "dropout: 0.2, layers: 3",
                  "0.05"),
    TN_BARS_CROSS("criteo", "hidden: [400, 400, 400], dropout: 0.1, layers: 3", "1e-5"),
    TN_BARS_CROSS("avazu", "hidden: [400, 400, 400], dropout: 0.1, layers: 3", "0.05"),
    TN_BARS_CROSS("movielens", "hidden: [400, 400, 400], " TN_BARS_NORM "dropout: 0.2, layers: 4",
                  "0.01"),
    {"tensornet", "model: {hidden: [512, 256, 256], layers: 3, bias_init: 0}\n" TN_TENSORNET_DEEP},
    {"paper", "model: {hidden: [1024, 1024], layers: 6, batch_norm: true}\n"
              "embedding: {dim: 16}\n" TN_PAPER_TRAIN(
                  "  batch: 512\n", "type: adam, lr: 1e-4") "  clip: {global: 100}\n"},
    {NULL, NULL},
};

const tn_model tn_model_dcn = {TN_MODEL_MEMBERS(dcn, "Deep & Cross Network")};

/* ---- dcnv2 ---- */

typedef tn_deep_opts dcnv2_opts;

enum { PARALLEL, STACKED, CROSS_ONLY };
static const char *const structure_words[] = {"parallel", "stacked", "cross_only", NULL};

static const tn_field dcnv2_fields[] = {
    TN_DEEP_FIELDS(dcnv2_opts, "[400, 400, 400]"),
    TN_FIELD_U32(dcnv2_opts, layers, "3", 1, 64, "layers", "cross layers"),
    TN_FIELD_U32(dcnv2_opts, rank, "0", 0, 65536, "", "of the cross matrices; 0: full"),
    TN_FIELD_CHOICE(dcnv2_opts, structure, "parallel", structure_words, "how cross and MLP join"),
    TN_FIELD_END,
};

/* Also gdcn and dcnmix. */
static void write_dcnv2(const tn_model_args *args, tn_list_writer *w, bool gated)
{
    const dcnv2_opts *o = args->opts;
    const char *x = tn_write_deep_input(w, args);
    tn_tree *cross = tn_list_layer(w, "cross", "cross_v2", TN_NAMES(x));
    tn_list_set(w, cross, "layers", tn_list_text(w, "%u", o->layers));
    if (o->rank > 0) {
        tn_list_set(w, cross, "rank", tn_list_text(w, "%u", o->rank));
    }
    if (o->experts > 0) {
        tn_list_set(w, cross, "experts", tn_list_text(w, "%u", o->experts));
    }
    if (gated) {
        tn_list_set(w, cross, "gated", "true");
    }
    const char *last[3] = {"cross", NULL, NULL};
    if (o->structure == PARALLEL) {
        last[1] = tn_write_mlp(w, o, x, 0);
    } else if (o->structure == STACKED) {
        last[0] = tn_write_mlp(w, o, "cross", 0);
    }
    tn_write_concat_head(w, last);
}

static void dcnv2_write(const tn_model_args *args, tn_list_writer *w)
{
    write_dcnv2(args, w, false);
}

static const tn_preset dcnv2_presets[] = {
    TN_BARS_CROSS("frappe", "hidden: [400, 400, 400], " TN_BARS_NORM "dropout: 0.4, layers: 4",
                  "0.05"),
    TN_BARS_CROSS("criteo", "hidden: [500, 500, 500], dropout: 0.1, layers: 3", "1e-5"),
    TN_BARS_CROSS("avazu", "hidden: [400, 400, 400], " TN_BARS_NORM "dropout: 0.2, layers: 5",
                  "0.05"),
    TN_BARS_CROSS("movielens", "hidden: [400, 400, 400], " TN_BARS_NORM "dropout: 0.2, layers: 5",
                  "0.01"),
    {"tensornet", "model: {hidden: [512, 256, 256], layers: 3, bias_init: 0}\n" TN_TENSORNET_DEEP},
    {"paper", "model: {hidden: [768, 768], layers: 2, structure: stacked}\n"
              "embedding: {dim: 39}\n" TN_PAPER_TRAIN(
                  "  batch: 512\n", "type: adam, lr: 1e-4") "  clip: {global: 10}\n"},
    {NULL, NULL},
};

const tn_model tn_model_dcnv2 = {
    TN_MODEL_MEMBERS(dcnv2, "DCN v2: cross layers with a matrix each")};

/* ---- gdcn ---- */

typedef tn_deep_opts gdcn_opts;
#define gdcn_fields dcnv2_fields

static void gdcn_write(const tn_model_args *args, tn_list_writer *w)
{
    write_dcnv2(args, w, true);
}

/* The benchmark has no gdcn: its recipe with the sizes of dcnv2. */
static const tn_preset gdcn_presets[] = {
    TN_BARS_CROSS("frappe", "hidden: [400, 400, 400], " TN_BARS_NORM "dropout: 0.4, layers: 4",
                  "0.05"),
    {"tensornet", "model: {hidden: [512, 256, 256], layers: 3, bias_init: 0}\n" TN_TENSORNET_DEEP},
    {"paper", "model: {hidden: [400, 400, 400], layers: 3, structure: parallel}\n"
              "embedding: {dim: 16}\n" TN_PAPER_TRAIN("  batch: 4096\n", "type: adam, lr: 1e-3")},
    {NULL, NULL},
};

const tn_model tn_model_gdcn = {
    TN_MODEL_MEMBERS(gdcn, "gated DCN: cross layers that let through what they need")};

/* ---- dcnmix ---- */

typedef tn_deep_opts dcnmix_opts;

static const tn_field dcnmix_fields[] = {
    TN_DEEP_FIELDS(dcnmix_opts, "[400, 400, 400]"),
    TN_FIELD_U32(dcnmix_opts, layers, "3", 1, 64, "layers", "cross layers"),
    TN_FIELD_U32(dcnmix_opts, rank, "32", 1, TN_DIM_MAX, "", "of the cross matrices"),
    TN_FIELD_U32(dcnmix_opts, experts, "4", 1, 64, "experts", "matrices of each cross layer"),
    TN_FIELD_CHOICE(dcnmix_opts, structure, "parallel", structure_words, "how cross and MLP join"),
    TN_FIELD_END,
};

static void dcnmix_write(const tn_model_args *args, tn_list_writer *w)
{
    write_dcnv2(args, w, false);
}

/* The benchmark has no dcnmix: its recipe with the sizes of dcnv2, rank and experts of FuxiCTR. */
static const tn_preset dcnmix_presets[] = {
    TN_BARS_CROSS("frappe", "hidden: [400, 400, 400], " TN_BARS_NORM "dropout: 0.4, layers: 4",
                  "0.05"),
    {"tensornet", "model: {hidden: [512, 256, 256], layers: 3, bias_init: 0}\n" TN_TENSORNET_DEEP},
    {"paper", "model: {hidden: [768, 768], layers: 2, rank: 258, experts: 4, structure: stacked}\n"
              "embedding: {dim: 39}\n" TN_PAPER_TRAIN(
                  "  batch: 512\n", "type: adam, lr: 1e-4") "  clip: {global: 10}\n"},
    {NULL, NULL},
};

const tn_model tn_model_dcnmix = {
    TN_MODEL_MEMBERS(dcnmix, "DCN-Mix: cross layers of several matrices of low rank, with gates")};

/* ---- deepcrossing ---- */

typedef tn_deep_opts deepcrossing_opts;

static const tn_field deepcrossing_fields[] = {
    TN_FIELD_F64S(deepcrossing_opts, hidden, "[400, 400, 400]", 1, 65536,
                  "inner widths of the residual units"),
    TN_FIELD_CHOICE(deepcrossing_opts, activation, "relu", tn_activation_words,
                    "inside and behind each unit"),
    TN_FIELD_F64(deepcrossing_opts, dropout, "0", 0, 0.999, "", "behind each unit"),
    TN_FIELD_BOOL(deepcrossing_opts, batch_norm, "false", "in each unit, behind its sum"),
    TN_BN_GAMMA_FIELD(deepcrossing_opts),
    TN_FIELD_END,
};

/* A residual unit called `name` over `x` of `cols` columns; returns the name of its last layer. */
static const char *write_unit(tn_list_writer *w, const deepcrossing_opts *o, uint32_t i,
                              const char *x, uint32_t cols)
{
    const char *unit = tn_list_text(w, "unit.%u", i + 1);
    const char *in = tn_list_text(w, "%s.in", unit);
    const char *back = tn_list_text(w, "%s.back", unit);
    const char *sum = tn_list_text(w, "%s.sum", unit);
    (void)tn_list_dense(w, in, x, (uint32_t)o->hidden.item[i], tn_activation_words[o->activation]);
    tn_tree *dense = tn_list_dense(w, back, in, cols, NULL);
    if (o->batch_norm) {
        tn_list_set(w, dense, "bias", "false");
    }
    (void)tn_list_layer(w, sum, "add", TN_NAMES(back, x));
    return tn_write_tail(w, unit, sum, o);
}

static void deepcrossing_write(const tn_model_args *args, tn_list_writer *w)
{
    const deepcrossing_opts *o = args->opts;
    const char *x = tn_write_deep_input(w, args);
    tn_deep_shape shape;
    if (!tn_layer_widths(&o->hidden, &w->list->at, w->diag) || !tn_find_deep_shape(w, &shape)) {
        return;
    }
    for (uint32_t i = 0; i < o->hidden.n; i++) {
        x = write_unit(w, o, i, x, shape.cols);
    }
    tn_write_concat_head(w, TN_NAMES(x));
}

/* The benchmark has no deepcrossing on its small sets: its recipe with the sizes of dcn. */
static const tn_preset deepcrossing_presets[] = {
    TN_BARS_CROSS("frappe", "hidden: [400, 400, 400], " TN_BARS_NORM "dropout: 0.2", "0.05"),
    {"tensornet", "model: {hidden: [512, 256, 256], bias_init: 0}\n" TN_TENSORNET_DEEP},
    {"paper", "model: {hidden: [512, 512, 256, 128, 64]}\n"
              "embedding: {dim: 32}\n" TN_PAPER_TRAIN("", "type: sgd, lr: 0.01")},
    {NULL, NULL},
};

const tn_model tn_model_deepcrossing = {
    TN_MODEL_MEMBERS(deepcrossing, "Deep Crossing: residual units on embeddings")};
