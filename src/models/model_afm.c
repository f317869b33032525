/* model_afm.c - AFM (Xiao 2017): a factorization machine whose pairs are weighed by attention.
 *
 *     wide ------------------------------------------------------------ sum --.
 *     deep -- pairs --.-- slot_dense -- relu -- slot_dense -- softmax --.     +--> logit
 *                     '------------------------------------------------ mul -- slot_sum -- dense
 *
 *     e_ij = v_i * v_j,  a = softmax over the pairs of h relu(e_ij W + b)
 *     logit = wide + p sum of a_ij e_ij
 *
 * Numbers are not read.
 */
#include "base/keys/keyspace.h"
#include "config/field.h"
#include "config/tree.h"
#include "models/model.h"
#include "nn/layer/layers.h"

typedef struct afm_opts {
    uint32_t attention;
    double dropout, pair_dropout;
} afm_opts;

static const tn_field afm_fields[] = {
    TN_FIELD_U32(afm_opts, attention, "10", 1, TN_DIM_MAX, "units",
                 "afm: hidden width of the attention"),
    TN_FIELD_F64(afm_opts, dropout, "0", 0, 0.999, "", "after the sum of pairs"),
    TN_FIELD_F64(afm_opts, pair_dropout, "0", 0, 0.999, "", "afm: of the weights of pairs"),
    TN_FIELD_END,
};

/* Adds the weights of the pairs, one for each; returns their name. */
static const char *write_weights(tn_list_writer *w, const afm_opts *o, uint32_t dim)
{
    tn_tree *hidden = tn_list_layer(w, "att.hidden", "slot_dense", TN_NAMES("pairs"));
    tn_list_set(w, hidden, "units", tn_list_text(w, "%u", o->attention));
    tn_list_set(w, hidden, "dim", tn_list_text(w, "%u", dim));
    tn_tree *act = tn_list_layer(w, "att.act", "activation", TN_NAMES("att.hidden"));
    tn_list_set(w, act, "function", "relu");
    tn_tree *score = tn_list_layer(w, "att.scores", "slot_dense", TN_NAMES("att.act"));
    tn_list_set(w, score, "units", "1");
    tn_list_set(w, score, "bias", "false");
    tn_list_set(w, score, "dim", tn_list_text(w, "%u", o->attention));
    (void)tn_list_layer(w, "att", "softmax", TN_NAMES("att.scores"));
    return tn_write_tail(w, "att", "att", &(tn_deep_opts){.dropout = o->pair_dropout});
}

static void afm_write(const tn_model_args *args, tn_list_writer *w)
{
    const afm_opts *o = args->opts;
    tn_deep_shape shape;
    tn_write_wide_input(w, args);
    tn_write_vectors(w, args, 0);
    if (!tn_find_deep_shape(w, &shape)) {
        return;
    }
    (void)tn_list_layer(w, "wide.sum", "sum", TN_NAMES("wide"));
    tn_list_set(w, tn_list_layer(w, "pairs", "bilinear", TN_NAMES("deep")), "form", "none");
    const char *att = write_weights(w, o, shape.slot);
    (void)tn_list_layer(w, "weighed", "mul", TN_NAMES("pairs", att));
    tn_tree *sum = tn_list_layer(w, "sum", "slot_sum", TN_NAMES("weighed"));
    tn_list_set(w, sum, "dim", tn_list_text(w, "%u", shape.slot));
    const char *x = tn_write_tail(w, "sum", "sum", &(tn_deep_opts){.dropout = o->dropout});
    (void)tn_list_dense(w, "afm", x, 1, NULL);
    (void)tn_list_layer(w, "logit", "add", TN_NAMES("wide.sum", "afm"));
    tn_list_output(w, "logit");
}

#define AFM_BARS(set, attention, dropout, l2)                                                      \
    TN_BARS_PAIRS(set,                                                                             \
                  "attention: " attention ", dropout: " dropout ", pair_dropout: " dropout         \
                  ", init: xavier_normal, ",                                                       \
                  l2)

static const tn_preset afm_presets[] = {
    AFM_BARS("frappe", "128", "0.1", "1e-5"),
    AFM_BARS("criteo", "32", "0", "1e-6"),
    AFM_BARS("avazu", "16", "0.2", "1e-5"),
    AFM_BARS("movielens", "16", "0.4", "1e-5"),
    {"tensornet", "model: {" TN_TENSORNET_WIDE "}\n" TN_TENSORNET_BOTH},
    {"paper", "model: {attention: 256, dropout: 0.2, pair_dropout: 0.2}\n"
              "embedding: {dim: 256}\n"
              "train:\n"
              "  batch: 4096\n"
              "  optimizer: {type: adagrad, lr: 0.1}\n"
              "  sparse:\n"
              "    deep: {type: adagrad, lr: 0.1}\n"
              "    wide: {type: adagrad, lr: 0.1}\n"},
    {NULL, NULL},
};

/* Products of vectors are all that there is: within +-.01 they are too small to learn from. */
const tn_model tn_model_afm = {
    TN_MODEL_MEMBERS(afm, "AFM: factorization machine whose pairs are weighed by attention"),
    .defaults = "embedding: {init: {uniform: [-0.1, 0.1]}}", .keys_only = true};
