/* model_nfm.c - neural factorization machine (He and Chua 2017): an MLP over pooled pairs; the
 * model of the recipe's test.
 */
#include "config/field.h"
#include "models/model.h"
#include "nn/layer/layers.h"

static const tn_field nfm_fields[] = {
    TN_DEEP_FIELDS(tn_deep_opts, "64"),
    TN_FIELD_END,
};

static void nfm_write(const tn_model_args *args, tn_list_writer *w)
{
    const tn_deep_opts *o = args->opts;
    tn_write_wide_input(w, args);
    tn_write_vectors(w, args, 0);
    (void)tn_list_layer(w, "wide.sum", "sum", (const char *const[]){"wide", NULL});
    (void)tn_list_layer(w, "bi", "bi_interaction", (const char *const[]){"deep", NULL});
    const char *top = tn_write_mlp(w, o, "bi", 1);
    (void)tn_list_layer(w, "logit", "add", (const char *const[]){"wide.sum", top, NULL});
    tn_list_output(w, "logit");
}

static const tn_preset presets[] = {
    {"bars", TN_BARS_PAIRS(TN_BARS_EMBEDDING)},
    {"tensornet", TN_TENSORNET_BOTH},
    {"paper", "embedding: {dim: 64}\n"},
    {NULL, NULL},
};

const tn_model tn_model_nfm = {
    .choice = {.name = "nfm",
               .help = "neural factorization machine",
               .fields = nfm_fields,
               .size = sizeof(tn_deep_opts),
               .impl = &tn_model_nfm},
    .presets = presets,
    .write = nfm_write,
};
