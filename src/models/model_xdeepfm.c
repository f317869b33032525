/* model_xdeepfm.c - xDeepFM (Lian 2018): a compressed interaction network and an MLP on shared
 * vectors.
 *
 *     wide ------------------------------------- sum --.
 *     deep --.---------------- cin -- dense -----------+--> logit
 *            '-- [deep, num] - mlp --------------------'
 *
 * A layer of the network makes maps x' = sum of W_ij x_i * v_j of the maps x before it and the
 * slots' vectors v, column by column; each map is summed over its columns. As in the paper there
 * are no activations between its layers.
 */
#include "config/field.h"
#include "config/tree.h"
#include "models/model.h"
#include "nn/layer/layers.h"

typedef struct xdeepfm_opts {
    tn_deep_opts deep;
    tn_f64s cin;
} xdeepfm_opts;

static const tn_field xdeepfm_fields[] = {
    TN_DEEP_FIELDS(tn_deep_opts, "[400, 400, 400]"),
    TN_FIELD_F64S(xdeepfm_opts, cin, "[64, 64]", 1, 65536,
                  "xdeepfm: maps of each layer of the compressed interaction network"),
    TN_FIELD_END,
};

static void xdeepfm_write(const tn_model_args *args, tn_list_writer *w)
{
    const xdeepfm_opts *o = args->opts;
    tn_write_wide_input(w, args);
    const char *x = tn_write_deep_input(w, args);
    (void)tn_list_layer(w, "wide.sum", "sum", TN_NAMES("wide"));
    tn_list_set_numbers(w, tn_list_layer(w, "cin", "cin", TN_NAMES("deep")), "hidden", &o->cin);
    tn_list_set(w, tn_list_dense(w, "cin.out", "cin", 1, NULL), "bias", "false");
    const char *deep = tn_write_mlp(w, &o->deep, x, 1);
    (void)tn_list_layer(w, "logit", "add", TN_NAMES("wide.sum", "cin.out", deep));
    tn_list_output(w, "logit");
}

#define XDEEPFM_BARS(set, options, l2)                                                             \
    TN_BARS_PAIRS(set, "hidden: [400, 400, 400], init: xavier_normal, " options ", ", l2)

static const tn_preset xdeepfm_presets[] = {
    XDEEPFM_BARS("frappe", TN_BARS_NORM "dropout: 0.2, cin: [64]", "0.1"),
    XDEEPFM_BARS("criteo", "dropout: 0.2, cin: [16, 16]", "1e-5"),
    XDEEPFM_BARS("avazu", TN_BARS_NORM "dropout: 0.2, cin: [64]", "0.01"),
    XDEEPFM_BARS("movielens", "dropout: 0.3, cin: [64, 64, 64]", "0.005"),
    {"tensornet", "model: {hidden: [512, 256, 256], " TN_TENSORNET_WIDE "}\n" TN_TENSORNET_BOTH},
    {"paper", "model: {hidden: [400, 400], dropout: 0.5, cin: [200, 200, 200]}\n"
              "embedding: {dim: 10}\n"
              "train:\n"
              "  optimizer: {type: adam, lr: 1e-3}\n"
              "  sparse:\n"
              "    deep: {type: adam, lr: 1e-3}\n"
              "    wide: {type: adam, lr: 1e-3}\n"},
    {NULL, NULL},
};

const tn_model tn_model_xdeepfm = {
    TN_MODEL_MEMBERS(xdeepfm, "xDeepFM: compressed interaction network and MLP on shared vectors")};
