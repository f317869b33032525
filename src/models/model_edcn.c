/* model_edcn.c - EDCN (Chen 2021): a cross network and an MLP as wide as the vectors, joined by a
 * bridge after each layer and parted again by gates on slots.
 *
 *     v -- gates --.-- c --.-- cross -- c' --.-- bridge -- gates --.-- ..
 *                  '-- d --'-- dense -- d' --'                     '-- ..
 *
 *     gates     v_f softmax(g / temperature)_f, g a trained number for each slot, then batch norm;
 *               without one, times the number of slots, so that gates begin as 1
 *     cross     c' = c0 (c w) + b + c, c0 the first c
 *     dense     d' = act(d W + b), then dropout
 *     bridge    c' * d', c' + d', or relu([c', d'] W + b)
 *     logit     dense([c', d', bridge]) of the last layer
 *
 * Numbers are not read, since gates are of slots.
 */
#include "config/field.h"
#include "config/tree.h"
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

/* Adds gates `name` on x; returns the name of the last part. */
static const char *write_gates(tn_list_writer *w, const edcn_opts *o, const char *name,
                               const char *x, uint32_t slots)
{
    const char *zero = tn_list_text(w, "%s.zero", name);
    const char *g = tn_list_text(w, "%s.g", name);
    const char *cooled = tn_list_text(w, "%s.cooled", name);
    const char *share = tn_list_text(w, "%s.share", name);
    const char *gates = tn_list_text(w, "%s.gates", name);
    tn_tree *constant = tn_list_layer(w, zero, "constant", TN_NAMES("0"));
    tn_list_set(w, constant, "cols", tn_list_text(w, "%u", slots));
    (void)tn_list_layer(w, g, "bias", TN_NAMES(zero));
    tn_tree *scale = tn_list_layer(w, cooled, "scale", TN_NAMES(g));
    tn_list_set(w, scale, "by", tn_list_text(w, "%.17g", 1 / o->temperature));
    (void)tn_list_layer(w, share, "softmax", TN_NAMES(cooled));
    if (!o->deep.batch_norm) {
        tn_tree *gate = tn_list_layer(w, gates, "scale", TN_NAMES(share));
        tn_list_set(w, gate, "by", tn_list_text(w, "%u", slots));
        share = gates;
    }
    (void)tn_list_layer(w, name, "mul", TN_NAMES(x, share));
    return tn_write_tail(
        w, name, name,
        &(tn_deep_opts){.batch_norm = o->deep.batch_norm, .bn_gamma = o->deep.bn_gamma});
}

/* Adds x0 (x w) + x + b as layer `name`. */
static void write_cross(tn_list_writer *w, const char *name, const char *x0, const char *x)
{
    const char *dot = tn_list_text(w, "%s.xw", name);
    const char *product = tn_list_text(w, "%s.product", name);
    const char *sum = tn_list_text(w, "%s.sum", name);
    tn_list_set(w, tn_list_dense(w, dot, x, 1, NULL), "bias", "false");
    (void)tn_list_layer(w, product, "mul", TN_NAMES(x0, dot));
    (void)tn_list_layer(w, sum, "add", TN_NAMES(product, x));
    (void)tn_list_layer(w, name, "bias", TN_NAMES(sum));
}

static void write_bridge(tn_list_writer *w, const edcn_opts *o, const char *name,
                         const char *const both[3], uint32_t cols)
{
    if (o->bridge != CONCAT) {
        (void)tn_list_layer(w, name, bridge_words[o->bridge], both);
        return;
    }
    tn_tree *dense = tn_list_layer(w, name, "dense", both);
    tn_list_set(w, dense, "units", tn_list_text(w, "%u", cols));
    tn_list_set(w, dense, "activation", "relu");
}

static void edcn_write(const tn_model_args *args, tn_list_writer *w)
{
    const edcn_opts *o = args->opts;
    tn_deep_shape shape;
    tn_write_vectors(w, args, 0);
    if (!tn_find_deep_shape(w, &shape)) {
        return;
    }
    const uint32_t cols = shape.slots * shape.slot;
    const char *x = "deep";
    const char *x0 = NULL;
    const char *last[4] = {NULL};
    for (uint32_t i = 1; i <= o->deep.layers; i++) {
        const char *cross = x;
        const char *deep = x;
        if (o->regulation) {
            cross = write_gates(w, o, tn_list_text(w, "cross.gate.%u", i), x, shape.slots);
            deep = write_gates(w, o, tn_list_text(w, "deep.gate.%u", i), x, shape.slots);
        }
        x0 = x0 == NULL ? cross : x0;
        last[0] = tn_list_text(w, "cross.%u", i);
        write_cross(w, last[0], x0, cross);
        last[1] = tn_list_text(w, "deep.%u", i);
        tn_tree *dense =
            tn_list_dense(w, last[1], deep, cols, tn_activation_words[o->deep.activation]);
        tn_list_set(w, dense, "dropout", tn_list_text(w, "%.17g", o->deep.dropout));
        last[2] = tn_list_text(w, "bridge.%u", i);
        write_bridge(w, o, last[2], (const char *const[]){last[0], last[1], NULL}, cols);
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
    {"paper", "model: {layers: 3, batch_norm: true, temperature: 1}\n"
              "embedding: {dim: 40}\n" TN_PAPER_TRAIN("  batch: 2000\n", "type: adam, lr: 1e-4")},
    {NULL, NULL},
};

const tn_model tn_model_edcn = {
    TN_MODEL_MEMBERS(edcn, "EDCN: cross network and MLP with bridges and gates between them"),
    .keys_only = true};
