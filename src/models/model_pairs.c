/* model_pairs.c - models whose MLP reads pairs of slot vectors: NFM, IPNN, DLRM.
 *
 *     nfm (He 2017)        wide ------------------------------ sum --.
 *                          deep -- bi_interaction -- dropout -- mlp --+--> logit
 *
 *     ipnn (Qu 2016)       [deep, num] ---.
 *                          deep -- inner -+-- mlp --> logit
 *
 *     dlrm (Naumov 2019)   num -- bottom mlp -- t0 -.---------------.
 *                                                   [t0, deep] -- inner -- mlp --> logit
 *
 * t0 is as wide as a slot's vector and pairs with all of them. Without numbers there is no t0. With
 * interaction: cat the MLP reads [t0, deep] itself.
 */
#include "config/field.h"
#include "models/layerlist.h"
#include "models/model.h"
#include "nn/layer/layers.h"

/* ---- nfm ---- */

typedef struct nfm_opts {
    tn_deep_opts deep;
    double pair_dropout;
} nfm_opts;

static const tn_field nfm_fields[] = {
    TN_DEEP_FIELDS(tn_deep_opts, "[400, 400, 400]"),
    TN_FIELD_F64(nfm_opts, pair_dropout, "0", 0, 0.999, "", "nfm: behind the pooled pairs"),
    TN_FIELD_END,
};

static void nfm_write(const tn_model_args *args, tn_list_writer *w)
{
    const nfm_opts *o = args->opts;
    tn_write_wide_input(w, args);
    tn_write_vectors(w, args, 0);
    (void)tn_list_layer(w, "wide.sum", "sum", TN_NAMES("wide"));
    (void)tn_list_layer(w, "bi", "bi_interaction", TN_NAMES("deep"));
    const char *x = tn_write_tail(w, "bi", "bi", &(tn_deep_opts){.dropout = o->pair_dropout});
    const char *deep = tn_write_mlp(w, &o->deep, x, 1);
    (void)tn_list_layer(w, "logit", "add", TN_NAMES("wide.sum", deep));
    tn_list_output(w, "logit");
}

#define NFM_BARS(set, dropout, l2)                                                                 \
    TN_BARS_PAIRS(set, "hidden: [400, 400, 400], dropout: " dropout ", init: xavier_normal, ", l2)

static const tn_preset nfm_presets[] = {
    NFM_BARS("frappe", "0.4", "1e-4"),
    NFM_BARS("criteo", "0.1", "1e-4"),
    NFM_BARS("avazu", "0.3", "5e-4"),
    NFM_BARS("movielens", "0.2", "1e-4"),
    {"tensornet", "model: {hidden: [512, 256, 256], " TN_TENSORNET_WIDE "}\n" TN_TENSORNET_BOTH},
    {"paper", "model: {hidden: [64], dropout: 0.2, pair_dropout: 0.2, batch_norm: true}\n"
              "embedding: {dim: 64}\n"
              "train:\n"
              "  batch: 128\n"
              "  optimizer: {type: adagrad, lr: 0.02}\n"
              "  sparse:\n"
              "    deep: {type: adagrad, lr: 0.02}\n"
              "    wide: {type: adagrad, lr: 0.02}\n"},
    {NULL, NULL},
};

/* Here and in dlrm products of vectors are all that the MLP reads: within +-.01 they are too small
 * to learn from. */
const tn_model tn_model_nfm = {
    TN_MODEL_MEMBERS(nfm, "neural factorization machine: an MLP over pooled pairs of slot vectors"),
    .defaults = "embedding: {init: {uniform: [-0.1, 0.1]}}", .keys_only = true};

/* ---- ipnn ---- */

typedef tn_deep_opts ipnn_opts;

static const tn_field ipnn_fields[] = {
    TN_DEEP_FIELDS(ipnn_opts, "[400, 400, 400]"),
    TN_FIELD_END,
};

static void ipnn_write(const tn_model_args *args, tn_list_writer *w)
{
    const char *x = tn_write_deep_input(w, args);
    (void)tn_list_layer(w, "pairs", "inner", TN_NAMES("deep"));
    (void)tn_list_layer(w, "z", "concat", TN_NAMES(x, "pairs"));
    tn_list_output(w, tn_write_mlp(w, args->opts, "z", 1));
}

static const tn_preset ipnn_presets[] = {
    TN_BARS_CROSS("frappe", "hidden: [400, 400, 400], dropout: 0.3", "0.05"),
    TN_BARS_CROSS("criteo", "hidden: [400, 400, 400], " TN_BARS_NORM "dropout: 0.1", "1e-5"),
    TN_BARS_CROSS("avazu", "hidden: [400, 400, 400], dropout: 0.2", "5e-5"),
    TN_BARS_CROSS("movielens", "hidden: [400, 400, 400], dropout: 0.1", "0.01"),
    {"tensornet", "model: {hidden: [512, 256, 256], bias_init: 0}\n" TN_TENSORNET_DEEP},
    {"paper", "model: {hidden: [400, 400, 400], dropout: 0.5}\n"
              "embedding: {dim: 10}\n" TN_PAPER_TRAIN("", "type: adam, lr: 1e-3")},
    {NULL, NULL},
};

const tn_model tn_model_ipnn = {
    TN_MODEL_MEMBERS(ipnn, "product-based network: an MLP over vectors and their inner products")};

/* ---- dlrm ---- */

typedef struct dlrm_opts {
    tn_deep_opts deep;
    tn_f64s bottom;
    double bottom_dropout;
    uint32_t interaction; /* dot cat */
} dlrm_opts;

enum { DOT, CAT };
static const char *const interaction_words[] = {"dot", "cat", NULL};

static const tn_field dlrm_fields[] = {
    TN_DEEP_FIELDS(tn_deep_opts, "[400, 400, 400]"),
    TN_FIELD_F64S(dlrm_opts, bottom, "[400, 400, 400]", 1, 65536,
                  "dlrm: hidden layers over the numbers; one as wide as a slot follows"),
    TN_FIELD_F64(dlrm_opts, bottom_dropout, "0", 0, 0.999, "", "dlrm: behind each of these"),
    TN_FIELD_CHOICE(dlrm_opts, interaction, "dot", interaction_words,
                    "dlrm: inner products of all pairs, or the vectors as they are"),
    TN_FIELD_END,
};

/* Makes the numbers one more vector of width `dim`; returns its name. */
static const char *write_bottom(tn_list_writer *w, const dlrm_opts *o, const char *in, uint32_t dim)
{
    tn_deep_opts mlp = o->deep;
    mlp.hidden = o->bottom;
    mlp.dropout = o->bottom_dropout;
    const char *x = tn_write_named_mlp(w, "bottom", &mlp, in, 0);
    const char *last = tn_list_text(w, "bottom.%u", o->bottom.n + 1);
    (void)tn_list_dense(w, last, x, dim, tn_activation_words[mlp.activation]);
    return last;
}

static void dlrm_write(const tn_model_args *args, tn_list_writer *w)
{
    const dlrm_opts *o = args->opts;
    tn_write_vectors(w, args, 0);
    tn_deep_shape shape;
    if (!tn_find_deep_shape(w, &shape)) {
        return;
    }
    const char *x = "deep";
    tn_write_numbers_input(w);
    const char *numbers = tn_write_numbers(w, "numbers", NULL);
    if (numbers != NULL) {
        numbers = write_bottom(w, o, numbers, shape.slot);
        (void)tn_list_layer(w, "vectors", "concat", TN_NAMES(numbers, "deep"));
        x = "vectors";
    }
    if (o->interaction == DOT) {
        tn_tree *pairs = tn_list_layer(w, "pairs", "inner", TN_NAMES(x));
        x = "pairs";
        if (numbers != NULL) {
            tn_list_set(w, pairs, "dim", tn_list_text(w, "%u", shape.slot));
            (void)tn_list_layer(w, "z", "concat", TN_NAMES(numbers, "pairs"));
            x = "z";
        }
    }
    tn_list_output(w, tn_write_mlp(w, &o->deep, x, 1));
}

static const tn_preset dlrm_presets[] = {
    TN_BARS_CROSS("frappe",
                  "hidden: [400, 400, 400], " TN_BARS_NORM "dropout: 0.4, interaction: cat", "0.1"),
    TN_BARS_CROSS("criteo", "hidden: [400, 400, 400], " TN_BARS_NORM "dropout: 0.2", "1e-5"),
    TN_BARS_CROSS("avazu",
                  "hidden: [400, 400, 400], " TN_BARS_NORM "dropout: 0.3, bottom_dropout: 0.3",
                  "0.01"),
    TN_BARS_CROSS("movielens",
                  "hidden: [400, 400, 400], " TN_BARS_NORM "dropout: 0.2, interaction: cat",
                  "0.01"),
    {"tensornet", "model: {hidden: [512, 256, 256], bias_init: 0}\n" TN_TENSORNET_DEEP},
    {"paper", "model: {hidden: [512, 256], bottom: [512, 256, 64], init: xavier_normal}\n"
              "embedding: {dim: 16}\n" TN_PAPER_TRAIN("  batch: 128\n", "type: sgd, lr: 0.1")},
    {NULL, NULL},
};

const tn_model tn_model_dlrm = {
    TN_MODEL_MEMBERS(dlrm, "DLRM: an MLP over inner products of vectors, one of them the numbers'"),
    .defaults = "embedding: {init: {uniform: [-0.05, 0.05]}}"};
