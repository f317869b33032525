/* model_fm.c - factorization machine (Rendle 2010): z = b + wide + pairs of slot vectors. */
#include "models/model.h"
#include "models/presets.h"

extern const tn_model tn_model_fm;

typedef struct fm_opts {
    bool within_slot;
} fm_opts;

static const tn_field fm_fields[] = {
    TN_WITHIN_SLOT_FIELD(fm_opts),
    TN_FIELD_END,
};

static void fm_write(const tn_model_args *args, tn_list_writer *w)
{
    const fm_opts *o = args->opts;
    tn_write_wide_input(w, args);
    tn_list_embed(w, "deep", tn_tree_get(args->common->slots, "deep"), 0, NULL);
    (void)tn_list_layer(w, "wide.sum", "sum", (const char *const[]){"wide", NULL});
    tn_write_fm(w, o->within_slot);
    tn_write_added(w, (const char *const[]){"wide.sum", "fm", NULL});
}

static const tn_preset presets[] = {
    {"bars", TN_BARS_PAIRS(TN_BARS_EMBEDDING)},
    {"tensornet", TN_TENSORNET_BOTH},
    {"paper", "embedding: {dim: 8, init: {normal: [0, 0.01]}}\n"
              "train:\n"
              "  optimizer: {type: sgd, lr: 0.01}\n"
              "  sparse:\n"
              "    deep: {type: sgd, lr: 0.01, l2: 1e-4}\n"
              "    wide: {type: sgd, lr: 0.01, l2: 1e-4}\n"},
    {NULL, NULL},
};

const tn_model tn_model_fm = {
    .choice = {.name = "fm",
               .help = "factorization machine",
               .fields = fm_fields,
               .size = sizeof(fm_opts),
               .impl = &tn_model_fm},
    .presets = presets,
    .write = fm_write,
};
