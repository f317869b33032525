/* model_autoint.c - AutoInt+ (Song 2019): slots that attend to each other's vectors, beside an MLP.
 *
 *     wide ---------------------------- sum --.          wide: true
 *     deep --.-- attention x layers -- dense -+--> logit
 *            '-- [deep, num] -- mlp ----------'
 *
 *     v' = relu(ln([heads of softmax(Q K^T) V] + v R))   Q, K, V = v times a matrix each
 *
 * R is there where v' is not as wide as v, so in the first layer. The norm, if asked for, is of
 * each slot's vector.
 */
#include "base/keys/keyspace.h"
#include "config/field.h"
#include "config/tree.h"
#include "models/model.h"
#include "nn/layer/layers.h"

typedef struct autoint_opts {
    tn_deep_opts deep;
    uint32_t units, heads;
    bool scale, residual, layer_norm, wide;
} autoint_opts;

static const tn_field autoint_fields[] = {
    TN_DEEP_FIELDS(tn_deep_opts, "[400, 400, 400]"),
    TN_FIELD_U32(tn_deep_opts, layers, "3", 1, 64, "layers", "attention layers"),
    TN_FIELD_U32(autoint_opts, units, "32", 1, TN_DIM_MAX, "units",
                 "autoint: width of each slot after an attention layer"),
    TN_FIELD_U32(autoint_opts, heads, "2", 1, TN_DIM_MAX, "heads", "autoint: of each layer"),
    TN_FIELD_BOOL(autoint_opts, scale, "false",
                  "autoint: divide products by the root of a head's width"),
    TN_FIELD_BOOL(autoint_opts, residual, "true", "autoint: add the vectors that a layer read"),
    TN_FIELD_BOOL(autoint_opts, layer_norm, "false", "autoint: normalise each slot after a layer"),
    TN_FIELD_BOOL(autoint_opts, wide, "false", "autoint: add a weight per value"),
    TN_FIELD_END,
};

/* Adds attention layer i over vectors x of width `dim`; returns the name of its last part. */
static const char *write_attention(tn_list_writer *w, const autoint_opts *o, uint32_t i,
                                   const char *x, uint32_t dim)
{
    const char *name = tn_list_text(w, "att.%u", i);
    const char *units = tn_list_text(w, "%u", o->units);
    tn_tree *att = tn_list_layer(w, name, "slot_attention", TN_NAMES(x));
    tn_list_set(w, att, "units", units);
    tn_list_set(w, att, "heads", tn_list_text(w, "%u", o->heads));
    tn_list_set(w, att, "scale", o->scale ? "true" : "false");
    tn_list_set(w, att, "residual", o->residual ? "true" : "false");
    tn_list_set(w, att, "dim", tn_list_text(w, "%u", dim));
    const char *y = name;
    if (o->layer_norm) {
        y = tn_list_text(w, "%s.norm", name);
        tn_tree *norm = tn_list_layer(w, y, "layer_norm", TN_NAMES(name));
        tn_list_set(w, norm, "per_slot", "true");
        tn_list_set(w, norm, "dim", units);
    }
    return tn_write_tail(w, name, y, &(tn_deep_opts){.activation = TN_ACTIVATION_RELU});
}

static void autoint_write(const tn_model_args *args, tn_list_writer *w)
{
    const autoint_opts *o = args->opts;
    tn_deep_shape shape;
    if (o->wide) {
        tn_write_wide_input(w, args);
    }
    const char *x = tn_write_deep_input(w, args);
    if (!tn_find_deep_shape(w, &shape)) {
        return;
    }
    const char *att = "deep";
    for (uint32_t i = 0; i < o->deep.layers; i++) {
        att = write_attention(w, o, i + 1, att, i == 0 ? shape.slot : o->units);
    }
    tn_list_set(w, tn_list_dense(w, "att.out", att, 1, NULL), "bias", "false");
    const char *parts[] = {"att.out", tn_write_mlp(w, &o->deep, x, 1), NULL, NULL};
    if (o->wide) {
        (void)tn_list_layer(w, "wide.sum", "sum", TN_NAMES("wide"));
        parts[2] = "wide.sum";
    }
    (void)tn_list_layer(w, "logit", "add", parts);
    tn_list_output(w, "logit");
}

#define AUTOINT_BARS "hidden: [400, 400, 400], " TN_BARS_NORM "dropout: 0.1, layer_norm: true, "

static const tn_preset autoint_presets[] = {
    TN_BARS_CROSS("frappe", AUTOINT_BARS "layers: 5, units: 128, heads: 4, scale: true", "0.1"),
    TN_BARS_CROSS("avazu", AUTOINT_BARS "layers: 5, units: 256, heads: 2, scale: true", "0.01"),
    {"tensornet", "model: {hidden: [512, 256, 256], bias_init: 0}\n" TN_TENSORNET_DEEP},
    {"paper", "model: {hidden: [400, 400], layers: 3, units: 64, heads: 2}\n"
              "embedding: {dim: 16}\n" TN_PAPER_TRAIN("  batch: 1024\n", "type: adam, lr: 1e-3")},
    {NULL, NULL},
};

const tn_model tn_model_autoint = {
    TN_MODEL_MEMBERS(autoint, "AutoInt+: slots that attend to each other, beside an MLP")};
