/* model_fnn.c - an MLP over single weights and vectors side by side (FNN, Zhang 2016); the model of
 * the recipe's test.
 */
#include "config/field.h"
#include "models/model.h"
#include "nn/layer/layers.h"

typedef tn_deep_opts fnn_opts;

static const tn_field fnn_fields[] = {
    TN_DEEP_FIELDS(fnn_opts, "64"),
    TN_FIELD_END,
};

static void fnn_write(const tn_model_args *args, tn_list_writer *w)
{
    tn_write_wide_input(w, args);
    tn_write_vectors(w, args, 0);
    (void)tn_list_layer(w, "z", "concat", TN_NAMES("wide", "deep"));
    tn_list_output(w, tn_write_mlp(w, args->opts, "z", 1));
}

static const tn_preset fnn_presets[] = {
    TN_BARS_PAIRS("frappe", "hidden: [400, 400, 400], init: xavier_normal, ", "0.05"),
    {"tensornet", "model: {" TN_TENSORNET_WIDE "}\n" TN_TENSORNET_BOTH},
    {"paper", "embedding: {dim: 10}\n"},
    {NULL, NULL},
};

const tn_model tn_model_fnn = {TN_MODEL_MEMBERS(fnn, "an MLP over single weights and vectors"),
                               .keys_only = true};
