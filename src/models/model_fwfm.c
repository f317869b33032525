/* model_fwfm.c - field-weighted factorization machine (Pan 2018): z = b + linear part + pairs of
 * slot vectors, each pair of slots with a weight. */
#include "models/model.h"
#include "models/presets.h"

extern const tn_model tn_model_fwfm;

typedef struct fwfm_opts {
    uint32_t linear; /* wide per_field */
    bool normalise;
} fwfm_opts;

enum { WIDE, PER_FIELD };
static const char *const linear_words[] = {"wide", "per_field", NULL};

static const tn_field fwfm_fields[] = {
    TN_FIELD_CHOICE(fwfm_opts, linear, "wide", linear_words,
                    "fwfm: a weight per key, or <v_f, u_f> with a trained u_f per slot"),
    TN_NORMALISE_FIELD(fwfm_opts),
    TN_FIELD_END,
};

static void fwfm_write(const tn_model_args *args, tn_list_writer *w)
{
    const fwfm_opts *o = args->opts;
    if (o->linear == WIDE) {
        tn_write_wide_input(w, args);
    }
    tn_list_embed(w, "deep", tn_tree_get(args->common->slots, "deep"), 0, NULL);
    if (o->linear == WIDE) {
        (void)tn_list_layer(w, "wide.sum", "sum", (const char *const[]){"wide", NULL});
    }
    tn_tree *pairs = tn_list_layer(w, "fwfm", "fwfm", (const char *const[]){"deep", NULL});
    if (o->normalise) {
        tn_list_set(w, pairs, "normalise", "true");
    }
    if (o->linear == WIDE) {
        tn_write_added(w, (const char *const[]){"wide.sum", "fwfm", NULL});
        return;
    }
    tn_tree *linear = tn_list_layer(w, "linear", "dense", (const char *const[]){"deep", NULL});
    tn_list_set(w, linear, "units", "1");
    (void)tn_list_layer(w, "logit", "add", (const char *const[]){"fwfm", "linear", NULL});
    tn_list_output(w, "logit");
}

static const tn_preset presets[] = {
    {"bars", TN_BARS_PAIRS(TN_BARS_EMBEDDING)},
    {"tensornet", TN_TENSORNET_BOTH},
    {"paper", "model: {linear: per_field}\n"
              "embedding: {dim: 10, init: {normal: [0, 0.01]}}\n"
              "train:\n"
              "  optimizer: {type: adam, lr: 1e-4}\n"
              "  sparse: {deep: {type: adam, lr: 1e-4, l2: 1e-5}}\n"},
    {NULL, NULL},
};

const tn_model tn_model_fwfm = {
    .choice = {.name = "fwfm",
               .help = "field-weighted factorization machine",
               .fields = fwfm_fields,
               .size = sizeof(fwfm_opts),
               .impl = &tn_model_fwfm},
    .presets = presets,
    .write = fwfm_write,
};
