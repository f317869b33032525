/* model_fibinet.c - FiBiNET (Huang 2019): pairs of slots by matrices, of the vectors as they are
 * and of those that SENet weighs anew.
 *
 *     wide ------------------------------------------------ sum --.
 *     deep --.-------------------- bilinear --.                   +--> logit
 *            '-- senet -- mul ---- bilinear --[ , num] --- mlp --'
 *
 *     senet = relu(relu(means of each slot's vector, M1) M2), a weight for each slot
 */
#include "config/field.h"
#include "config/tree.h"
#include "models/layerlist.h"
#include "models/model.h"
#include "nn/layer/layers.h"

typedef struct fibinet_opts {
    tn_deep_opts deep;
    uint32_t bilinear;
    double reduction;
} fibinet_opts;

static const char *const bilinear_words[] = {"all", "each", "interaction", NULL};

static const tn_field fibinet_fields[] = {
    TN_DEEP_FIELDS(tn_deep_opts, "[400, 400, 400]"),
    TN_FIELD_CHOICE(fibinet_opts, bilinear, "interaction", bilinear_words,
                    "fibinet: one matrix for all pairs, for each first slot, or for each pair"),
    TN_FIELD_F64(fibinet_opts, reduction, "3", 0.001, 1000, "",
                 "fibinet: number of slots by the hidden width of SENet"),
    TN_FIELD_END,
};

/* Adds the vectors that SENet weighs, called "senet". */
static void write_senet(tn_list_writer *w, uint32_t slots, double reduction)
{
    const uint32_t hidden = slots / reduction < 1 ? 1 : (uint32_t)(slots / reduction);
    tn_list_set(w, tn_list_layer(w, "senet.means", "mean", TN_NAMES("deep")), "per_slot", "true");
    tn_tree *in = tn_list_dense(w, "senet.hidden", "senet.means", hidden, "relu");
    tn_list_set(w, in, "bias", "false");
    tn_tree *out = tn_list_dense(w, "senet.weights", "senet.hidden", slots, "relu");
    tn_list_set(w, out, "bias", "false");
    (void)tn_list_layer(w, "senet", "mul", TN_NAMES("deep", "senet.weights"));
}

static void fibinet_write(const tn_model_args *args, tn_list_writer *w)
{
    const fibinet_opts *o = args->opts;
    tn_deep_shape shape;
    tn_write_wide_input(w, args);
    tn_write_vectors(w, args, 0);
    tn_write_numbers_input(w);
    if (!tn_find_deep_shape(w, &shape)) {
        return;
    }
    (void)tn_list_layer(w, "wide.sum", "sum", TN_NAMES("wide"));
    write_senet(w, shape.slots, o->reduction);
    static const char *const of[] = {"deep", "senet"};
    for (uint32_t i = 0; i < 2; i++) {
        tn_tree *pairs =
            tn_list_layer(w, i == 0 ? "pairs" : "senet.pairs", "bilinear", TN_NAMES(of[i]));
        tn_list_set(w, pairs, "form", bilinear_words[o->bilinear]);
        tn_list_set(w, pairs, "dim", tn_list_text(w, "%u", shape.slot));
    }
    (void)tn_list_layer(w, "both", "concat", TN_NAMES("pairs", "senet.pairs"));
    const char *deep = tn_write_mlp(w, &o->deep, tn_write_numbers(w, "z", "both"), 1);
    (void)tn_list_layer(w, "logit", "add", TN_NAMES("wide.sum", deep));
    tn_list_output(w, "logit");
}

#define FIBINET_BARS(set, options, l2)                                                             \
    TN_BARS_PAIRS(set, "hidden: [400, 400, 400], init: xavier_normal, " options ", ", l2)

static const tn_preset fibinet_presets[] = {
    FIBINET_BARS("frappe", TN_BARS_NORM "dropout: 0.3, bilinear: all, reduction: 2", "0.05"),
    FIBINET_BARS("criteo", "dropout: 0.5, bilinear: interaction, reduction: 12", "1e-5"),
    FIBINET_BARS("avazu", TN_BARS_NORM "dropout: 0.2, bilinear: all, reduction: 3", "0.1"),
    FIBINET_BARS("movielens", TN_BARS_NORM "dropout: 0.3, bilinear: all, reduction: 0.3", "0.05"),
    {"tensornet", "model: {hidden: [512, 256, 256], " TN_TENSORNET_WIDE "}\n" TN_TENSORNET_BOTH},
    {"paper", "model: {hidden: [400, 400, 400], dropout: 0.5, bilinear: interaction}\n"
              "embedding: {dim: 10}\n"
              "train:\n"
              "  batch: 1000\n"
              "  optimizer: {type: adam, lr: 1e-4}\n"
              "  sparse:\n"
              "    deep: {type: adam, lr: 1e-4}\n"
              "    wide: {type: adam, lr: 1e-4}\n"},
    {NULL, NULL},
};

const tn_model tn_model_fibinet = {
    TN_MODEL_MEMBERS(fibinet, "FiBiNET: an MLP over bilinear pairs of slots, also weighed ones")};
