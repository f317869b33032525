/* model_ffm.c - field-aware factorization machine (Juan 2016): z = b + wide + pairs of slot
 * vectors, where a slot has a vector for each other slot. */
#include "models/model.h"
#include "models/presets.h"

extern const tn_model tn_model_ffm;

typedef struct ffm_opts {
    uint32_t k;
    bool within_slot;
    bool normalise;
} ffm_opts;

static const tn_field ffm_fields[] = {
    TN_FIELD_U32(ffm_opts, k, "4", 1, TN_DIM_MAX, "floats",
                 "ffm: width of a slot's vector for one other slot; embedding.dim has no part"),
    TN_WITHIN_SLOT_FIELD(ffm_opts),
    TN_NORMALISE_FIELD(ffm_opts),
    TN_FIELD_END,
};

static void ffm_write(const tn_model_args *args, tn_list_writer *w)
{
    const ffm_opts *o = args->opts;
    tn_write_wide_input(w, args);
    tn_list_fields(w, "deep", tn_tree_get(args->common->slots, "deep"), o->k);
    (void)tn_list_layer(w, "wide.sum", "sum", (const char *const[]){"wide", NULL});
    tn_tree *pairs = tn_list_layer(w, "ffm", "ffm", (const char *const[]){"deep", NULL});
    tn_list_set(w, pairs, "k", "%u", o->k);
    if (o->within_slot) {
        tn_list_set(w, pairs, "within_slot", "true");
    }
    if (o->normalise) {
        tn_list_set(w, pairs, "normalise", "true");
    }
    tn_write_added(w, (const char *const[]){"wide.sum", "ffm", NULL});
}

/* paper: what libffm does by default. */
static const tn_preset presets[] = {
    {"bars", TN_BARS_PAIRS("embedding: {init: {normal: [0, 1e-4]}}\n")},
    {"tensornet", TN_TENSORNET_BOTH},
    {"paper", "model: {k: 4, normalise: true}\n"
              "embedding: {init: {uniform: [0, 0.5]}}\n"
              "train:\n"
              "  optimizer: {type: adagrad, lr: 0.2, n0: 1}\n"
              "  sparse:\n"
              "    deep: {type: adagrad, lr: 0.2, n0: 1, l2: 2e-5, grad_scale: sum}\n"
              "    wide: {type: adagrad, lr: 0.2, n0: 1, l2: 2e-5, grad_scale: sum}\n"},
    {NULL, NULL},
};

const tn_model tn_model_ffm = {
    .choice = {.name = "ffm",
               .help = "field-aware factorization machine",
               .fields = ffm_fields,
               .size = sizeof(ffm_opts),
               .impl = &tn_model_ffm},
    .presets = presets,
    .write = ffm_write,
};
