/* model_fm.c - logistic regression, and the factorization machines, which add pairs of slot
 * vectors.
 *
 *     lr      z = b + sum of the wide weights
 *     fm      z = b + wide + pairs of slot vectors (Rendle 2010)
 *     ffm     the same, where a slot has a vector for each other slot (Juan 2016)
 *     fwfm    z = b + linear part + pairs, each pair of slots with a weight (Pan 2018)
 */
#include "base/keys/keyspace.h"
#include "config/field.h"
#include "models/model.h"

/* ---- lr ---- */

static void lr_write(const tn_model_args *args, tn_list_writer *w)
{
    tn_write_wide_input(w, args);
    (void)tn_list_layer(w, "wide.sum", "sum", TN_NAMES("wide"));
    tn_tree *logit = tn_list_layer(w, "logit", "bias", TN_NAMES("wide.sum"));
    tn_list_set(w, logit, "param", "bias");
    tn_list_output(w, "logit");
}

#define LR_BARS(set, l2)                                                                           \
    {                                                                                              \
        "bars-" set,                                                                               \
            "model: {wide_init: {normal: [0, 1e-4]}, bias_init: 0}\n" TN_BARS_TRAIN TN_BARS_ROWS(  \
                "wide", l2) TN_BARS_STOP                                                           \
    }

static const tn_preset lr_presets[] = {
    LR_BARS("frappe", "1e-5"),
    LR_BARS("criteo", "5e-7"),
    LR_BARS("avazu", "5e-7"),
    LR_BARS("movielens", "5e-6"),
    {"tensornet", "model: {" TN_TENSORNET_WIDE "}\n" TN_TENSORNET_TRAIN TN_TENSORNET_ROWS("wide")},
    {"paper", "train:\n"
              "  sparse: {wide: {type: ftrl, alpha: 0.05, beta: 1, l1: 1, l2: 0}}\n"},
    {NULL, NULL},
};

const tn_model tn_model_lr = {
    .choice = {.name = "lr", .help = "logistic regression", .impl = &tn_model_lr},
    .presets = lr_presets,
    .keys_only = true,
    .linear = true,
    .write = lr_write,
};

/* ---- fm ---- */

/* Adds single weights and their sum, and vectors. */
static void write_inputs(const tn_model_args *args, tn_list_writer *w, uint32_t k)
{
    tn_write_wide_input(w, args);
    tn_write_vectors(w, args, k);
    (void)tn_list_layer(w, "wide.sum", "sum", TN_NAMES("wide"));
}

/* Adds the sum of `parts` (up to a NULL), each of one column, and then a bias: the output. */
static void write_added(tn_list_writer *w, const char *const *parts)
{
    (void)tn_list_layer(w, "parts", "add", parts);
    tn_tree *logit = tn_list_layer(w, "logit", "bias", TN_NAMES("parts"));
    tn_list_set(w, logit, "param", "bias");
    tn_list_output(w, "logit");
}

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
    write_inputs(args, w, 0);
    tn_write_fm(w, o->within_slot);
    write_added(w, TN_NAMES("wide.sum", "fm"));
}

static const tn_preset fm_presets[] = {
    TN_BARS_PAIRS("frappe", "", "5e-6"),
    TN_BARS_PAIRS("criteo", "", "5e-6"),
    TN_BARS_PAIRS("avazu", "", "1e-5"),
    TN_BARS_PAIRS("movielens", "", "5e-6"),
    {"tensornet", "model: {" TN_TENSORNET_WIDE "}\n" TN_TENSORNET_BOTH},
    {"paper", "embedding: {dim: 8, init: {normal: [0, 0.01]}}\n"
              "train:\n"
              "  optimizer: {type: sgd, lr: 0.01}\n"
              "  sparse:\n"
              "    deep: {type: sgd, lr: 0.01, l2: 1e-4}\n"
              "    wide: {type: sgd, lr: 0.01, l2: 1e-4}\n"},
    {NULL, NULL},
};

const tn_model tn_model_fm = {TN_MODEL_MEMBERS(fm, "factorization machine"), .keys_only = true,
                              .sums_pairs = true};

/* ---- ffm ---- */

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
    write_inputs(args, w, o->k);
    tn_tree *pairs = tn_list_layer(w, "ffm", "ffm", TN_NAMES("deep"));
    tn_list_set(w, pairs, "k", tn_list_text(w, "%u", o->k));
    if (o->within_slot) {
        tn_list_set(w, pairs, "within_slot", "true");
    }
    if (o->normalise) {
        tn_list_set(w, pairs, "normalise", "true");
    }
    write_added(w, TN_NAMES("wide.sum", "ffm"));
}

/* paper: the defaults of libffm. */
static const tn_preset ffm_presets[] = {
    TN_BARS_PAIRS("frappe", "k: 10, ", "1e-6"),
    TN_BARS_PAIRS("criteo", "k: 5, ", "1e-6"),
    TN_BARS_PAIRS("avazu", "k: 10, ", "1e-5"),
    TN_BARS_PAIRS("movielens", "k: 10, ", "1e-6"),
    {"tensornet", "model: {" TN_TENSORNET_WIDE "}\n" TN_TENSORNET_BOTH},
    {"paper", "model: {k: 4, normalise: true}\n"
              "embedding: {init: {uniform: [0, 0.5]}}\n"
              "train:\n"
              "  optimizer: {type: adagrad, lr: 0.2, n0: 1}\n"
              "  sparse:\n"
              "    deep: {type: adagrad, lr: 0.2, n0: 1, l2: 2e-5, grad_scale: sum}\n"
              "    wide: {type: adagrad, lr: 0.2, n0: 1, l2: 2e-5, grad_scale: sum}\n"},
    {NULL, NULL},
};

const tn_model tn_model_ffm = {TN_MODEL_MEMBERS(ffm, "field-aware factorization machine"),
                               .keys_only = true};

/* ---- fwfm ---- */

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
        write_inputs(args, w, 0);
    } else {
        tn_write_vectors(w, args, 0);
    }
    tn_tree *pairs = tn_list_layer(w, "fwfm", "fwfm", TN_NAMES("deep"));
    if (o->normalise) {
        tn_list_set(w, pairs, "normalise", "true");
    }
    if (o->linear == WIDE) {
        write_added(w, TN_NAMES("wide.sum", "fwfm"));
        return;
    }
    (void)tn_list_dense(w, "linear", "deep", 1, NULL);
    (void)tn_list_layer(w, "logit", "add", TN_NAMES("fwfm", "linear"));
    tn_list_output(w, "logit");
}

/* The benchmark's linear part is a vector of each slot, FeLV of the paper. */
#define FWFM_BARS(set, l2)                                                                         \
    {                                                                                              \
        "bars-" set, "model: {linear: per_field, bias_init: 0}\n" TN_BARS_EMBEDDING TN_BARS_TRAIN  \
                         TN_BARS_ROWS("deep", l2) TN_BARS_STOP                                     \
    }

static const tn_preset fwfm_presets[] = {
    FWFM_BARS("frappe", "5e-6"),
    FWFM_BARS("criteo", "5e-6"),
    FWFM_BARS("avazu", "1e-5"),
    FWFM_BARS("movielens", "5e-6"),
    {"tensornet", "model: {" TN_TENSORNET_WIDE "}\n" TN_TENSORNET_BOTH},
    {"paper", "model: {linear: per_field}\n"
              "embedding: {dim: 10, init: {normal: [0, 0.01]}}\n"
              "train:\n"
              "  optimizer: {type: adam, lr: 1e-4}\n"
              "  sparse: {deep: {type: adam, lr: 1e-4, l2: 1e-5}}\n"},
    {NULL, NULL},
};

const tn_model tn_model_fwfm = {TN_MODEL_MEMBERS(fwfm, "field-weighted factorization machine"),
                                .keys_only = true, .sums_pairs = true};
