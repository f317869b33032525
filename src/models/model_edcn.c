/* model_edcn.c - EDCN (Chen 2021): a cross network and an MLP as wide as the vectors, joined by a
 * bridge after each layer and parted again by gates on slots, so that numbers are not read.
 *
 *     v -- gates --.-- c --.-- cross -- c' --.-- bridge -- gates --.-- ..
 *                  '-- d --'-- dense -- d' --'                     '-- ..
 *
 *     gates     v_f softmax(g / temperature)_f, g a trained number for each slot, then batch norm;
 *               without one, times the number of slots, so that gates begin as 1
 *     layers    c' = c0 (c w) + b + c, c0 the first c; d' = act(d W + b), then dropout
 *     bridge    c' * d', c' + d', or relu([c', d'] W + b)
 *     logit     dense([c', d', bridge]) of the last layer
 */
#include "config/field.h"
#include "models/model.h"
#include "nn/layer/layers.h"

typedef struct edcn_opts {
    tn_deep_opts deep; /* without hidden and head */
    uint32_t bridge;
    double temperature;
    bool regulation;
} edcn_opts;

enum { MUL, ADD, CONCAT };
static const char *const bridge_words[] = {"mul", "add", "concat", NULL};
static const char *const bridge_layers[] = {"mul", "add", "dense"};

static const tn_field edcn_fields[] = {
    TN_FIELD_U32(tn_deep_opts, layers, "3", 1, 64, "layers", "layers of both networks"),
    TN_FIELD_CHOICE(tn_deep_opts, activation, "relu", tn_activation_words, "of dense layers"),
    TN_FIELD_F64(tn_deep_opts, dropout, "0", 0, 0.999, "", "after each dense layer"),
    TN_FIELD_BOOL(tn_deep_opts, batch_norm, "false", "after the gates"),
    TN_BN_GAMMA_FIELD(tn_deep_opts),
    TN_FIELD_CHOICE(edcn_opts, bridge, "mul", bridge_words, "edcn: how the networks join"),
    TN_FIELD_F64(edcn_opts, temperature, "1", 1e-3, 1e3, "", "edcn: divides the gates' numbers"),
    TN_FIELD_BOOL(edcn_opts, regulation, "true", "edcn: gates on slots; false: none"),
    TN_FIELD_END,
};

#define PART(suffix) tn_list_text(w, "%s." suffix, name) /* the name of a part of layer `name` */

/* Adds gates `name` on x, if there are any; returns the name of the last part. */
static const char *write_gates(tn_list_writer *w, const edcn_opts *o, const char *name,
                               const char *x, uint32_t slots)
{
    const char *n = tn_list_text(w, "%u", slots);
    const char *share = PART("share");
    if (!o->regulation) {
        return x;
    }
    tn_list_set(w, tn_list_layer(w, PART("zero"), "constant", TN_NAMES("0")), "cols", n);
    (void)tn_list_layer(w, PART("g"), "bias", TN_NAMES(PART("zero")));
    tn_tree *cooled = tn_list_layer(w, PART("cooled"), "scale", TN_NAMES(PART("g")));
    tn_list_set(w, cooled, "by", tn_list_text(w, "%.17g", 1 / o->temperature));
    (void)tn_list_layer(w, share, "softmax", TN_NAMES(PART("cooled")));
    if (!o->deep.batch_norm) {
        tn_list_set(w, tn_list_layer(w, PART("gates"), "scale", TN_NAMES(share)), "by", n);
        share = PART("gates");
    }
    (void)tn_list_layer(w, name, "mul", TN_NAMES(x, share));
    const tn_deep_opts tail = {.batch_norm = o->deep.batch_norm, .bn_gamma = o->deep.bn_gamma};
    return tn_write_tail(w, name, name, &tail);
}

/* Adds x0 (x w) + x + b as layer `name`. */
static void write_cross(tn_list_writer *w, const char *name, const char *x0, const char *x)
{
    tn_list_set(w, tn_list_dense(w, PART("xw"), x, 1, NULL), "bias", "false");
    (void)tn_list_layer(w, PART("product"), "mul", TN_NAMES(x0, PART("xw")));
    (void)tn_list_layer(w, PART("sum"), "add", TN_NAMES(PART("product"), x));
    (void)tn_list_layer(w, name, "bias", TN_NAMES(PART("sum")));
}

static void edcn_write(const tn_model_args *args, tn_list_writer *w)
{
    const edcn_opts *o = args->opts;
    tn_deep_shape shape;
    tn_write_vectors(w, args, 0);
    if (!tn_find_deep_shape(w, &shape)) {
        return;
    }
    const char *x = "deep";
    const char *x0 = NULL;
    const char *last[4] = {NULL};
    for (uint32_t i = 1; i <= o->deep.layers; i++) {
        const char *cross = write_gates(w, o, tn_list_text(w, "cross.gate.%u", i), x, shape.slots);
        const char *deep = write_gates(w, o, tn_list_text(w, "deep.gate.%u", i), x, shape.slots);
        x0 = x0 == NULL ? cross : x0;
        last[0] = tn_list_text(w, "cross.%u", i);
        write_cross(w, last[0], x0, cross);
        last[1] = tn_list_text(w, "deep.%u", i);
        tn_tree *dense = tn_list_dense(w, last[1], deep, shape.slots * shape.slot,
                                       tn_activation_words[o->deep.activation]);
        tn_list_set(w, dense, "dropout", tn_list_text(w, "%.17g", o->deep.dropout));
        last[2] = tn_list_text(w, "bridge.%u", i);
        tn_tree *bridge =
            tn_list_layer(w, last[2], bridge_layers[o->bridge], TN_NAMES(last[0], last[1]));
        if (o->bridge == CONCAT) {
            tn_list_set(w, bridge, "units", tn_list_text(w, "%u", shape.slots * shape.slot));
            tn_list_set(w, bridge, "activation", "relu");
        }
        x = last[2];
    }
    tn_write_concat_head(w, last);
}

static const tn_preset edcn_presets[] = {
    TN_BARS_CROSS("frappe", TN_BARS_NORM "dropout: 0.3, layers: 3, temperature: 5", "0.05"),
    TN_BARS_CROSS("criteo", TN_BARS_NORM "dropout: 0.1, layers: 3, temperature: 20", "1e-5"),
    TN_BARS_CROSS("avazu", "dropout: 0.1, layers: 3, regulation: false", "0.05"),
    TN_BARS_CROSS("movielens", "dropout: 0.1, layers: 2, regulation: false", "0.01"),
    {"tensornet", "model: {bias_init: 0}\n" TN_TENSORNET_DEEP},
    {"paper", "model: {batch_norm: true}\nembedding: {dim: 40}\n" TN_PAPER_TRAIN(
                  "  batch: 2000\n", "type: adam, lr: 1e-4")},
    {NULL, NULL},
};

const tn_model tn_model_edcn = {
    TN_MODEL_MEMBERS(edcn, "EDCN: cross network and MLP with bridges and gates between them"),
    .keys_only = true};
