/* model_final.c - two networks without a wide part: FinalMLP and FinalNet.
 *
 * finalmlp (Mao 2023): two MLPs, each after gates of its own, joined by products of heads
 *
 *     x = [deep, num] --.-- * 2 sigmoid(mlp(context 1)) -- mlp 1 --.
 *                       |                                           fusion --> logit
 *                       '-- * 2 sigmoid(mlp(context 2)) -- mlp 2 --'
 *
 * A context is some slots, with vectors for this alone, or, without any, a trained vector that
 * begins as 0. The fusion is b + o1 w1 + o2 w2 + sum over heads of o1_h W_h o2_h^T.
 *
 * finalnet (Zhu 2023), of one block: layers that multiply their halves
 *
 *     h = x W + b,  y = [h2, h1 * h2] or h2 + h1 * h2,  then batch norm, activation, dropout
 *
 * where h2 are the first columns of h and h1 the others; for a sum, h is twice as wide.
 */
#include "config/diag.h"
#include "config/field.h"
#include "config/tree.h"
#include "models/model.h"
#include "nn/layer/layers.h"

#include <math.h>

/* ---- finalmlp ---- */

typedef struct finalmlp_opts {
    tn_deep_opts deep; /* options of the first MLP */
    tn_f64s hidden2;
    double dropout2;
    uint32_t heads;
    bool gate;
    tn_f64s gate_hidden;
    const tn_tree *context1, *context2;
} finalmlp_opts;

static const tn_field finalmlp_fields[] = {
    TN_DEEP_FIELDS(tn_deep_opts, "[400, 400, 400]"),
    TN_FIELD_F64S(finalmlp_opts, hidden2, "[400]", 1, 65536,
                  "finalmlp: widths of the second MLP, which has the first one's activation and "
                  "batch norm"),
    TN_FIELD_F64(finalmlp_opts, dropout2, "0", 0, 0.999, "", "finalmlp: in the second MLP"),
    TN_FIELD_U32(finalmlp_opts, heads, "8", 1, 1024, "heads",
                 "finalmlp: of the fusion; divides the last widths of both MLPs"),
    TN_FIELD_BOOL(finalmlp_opts, gate, "true", "finalmlp: a gate for each column of each input"),
    TN_FIELD_F64S(finalmlp_opts, gate_hidden, "[64]", 1, 65536,
                  "finalmlp: hidden layers of the gates"),
    TN_FIELD_TREE(finalmlp_opts, context1, "~",
                  "finalmlp: slots that the gates of the first MLP depend on; ~: none"),
    TN_FIELD_TREE(finalmlp_opts, context2, "~", "finalmlp: the same for the second MLP"),
    TN_FIELD_END,
};

/* Adds a vector of `cols` trained numbers, the same for every row; returns its name. */
static const char *write_constant(tn_list_writer *w, const char *name, uint32_t cols)
{
    const char *any = tn_list_text(w, "%s.any", name);
    const char *zero = tn_list_text(w, "%s.zero", name);
    tn_tree *slice = tn_list_layer(w, any, "slice", TN_NAMES("deep"));
    tn_list_set(w, slice, "cols", tn_list_text(w, "%u", cols));
    tn_tree *scale = tn_list_layer(w, zero, "scale", TN_NAMES(any));
    tn_list_set(w, scale, "by", "0");
    (void)tn_list_layer(w, name, "bias", TN_NAMES(zero));
    return name;
}

/* Multiplies x by the gates of stream `i`; returns the name of the product. */
static const char *write_gate(tn_list_writer *w, const finalmlp_opts *o, uint32_t i, const char *x,
                              tn_deep_shape shape)
{
    const tn_tree *slots = i == 1 ? o->context1 : o->context2;
    const char *context = tn_list_text(w, "context%u", i);
    const char *gate = tn_list_text(w, "gate%u", i);
    const char *twice = tn_list_text(w, "gate%u.twice", i);
    const char *gated = tn_list_text(w, "x%u", i);
    if (tn_tree_is_null(slots) || (slots->kind == TN_TREE_LIST && tn_tree_count(slots) == 0)) {
        context = write_constant(w, context, shape.slot);
    } else {
        tn_write_slots_input(w, context, slots);
    }
    const tn_deep_opts mlp = {.hidden = o->gate_hidden, .activation = TN_ACTIVATION_RELU};
    const char *h = tn_write_named_mlp(w, gate, &mlp, context, 0);
    (void)tn_list_dense(w, gate, h, shape.cols, "sigmoid");
    tn_tree *scale = tn_list_layer(w, twice, "scale", TN_NAMES(gate));
    tn_list_set(w, scale, "by", "2");
    (void)tn_list_layer(w, gated, "mul", TN_NAMES(x, twice));
    return gated;
}

static void finalmlp_write(const tn_model_args *args, tn_list_writer *w)
{
    const finalmlp_opts *o = args->opts;
    const char *x = tn_write_deep_input(w, args);
    const char *stream[3] = {NULL, NULL, NULL};
    tn_deep_shape shape;
    if (!tn_find_deep_shape(w, &shape)) {
        return;
    }
    for (uint32_t i = 0; i < 2; i++) {
        tn_deep_opts mlp = o->deep;
        mlp.hidden = i == 0 ? mlp.hidden : o->hidden2;
        mlp.dropout = i == 0 ? mlp.dropout : o->dropout2;
        const char *in = o->gate ? write_gate(w, o, i + 1, x, shape) : x;
        stream[i] = tn_write_named_mlp(w, tn_list_text(w, "stream%u", i + 1), &mlp, in, 0);
    }
    tn_tree *fusion = tn_list_layer(w, "logit", "fusion", stream);
    tn_list_set(w, fusion, "heads", tn_list_text(w, "%u", o->heads));
    tn_list_output(w, "logit");
}

/* With rules for the vectors of both contexts. */
#define FINALMLP_BARS(set, options, l2)                                                            \
    {                                                                                              \
        "bars-" set,                                                                               \
            "model: {" options ", " TN_BARS_NORM                                                   \
            "init: xavier_normal, bias_init: 0}\n" TN_BARS_EMBEDDING TN_BARS_TRAIN TN_BARS_ROWS(   \
                "deep", l2) TN_BARS_ROWS("context1", l2) TN_BARS_ROWS("context2", l2) TN_BARS_STOP \
    }

static const tn_preset finalmlp_presets[] = {
    FINALMLP_BARS("frappe",
                  "hidden: [400], dropout: 0.4, hidden2: [100], dropout2: 0.4, heads: 5, "
                  "gate_hidden: [400], context1: [user], context2: [item]",
                  "0.05"),
    FINALMLP_BARS("criteo",
                  "hidden: [400, 400, 400], dropout: 0.2, hidden2: [1000], dropout2: 0.3, "
                  "heads: 200, gate_hidden: [800], context1: [I1, I2, I3, I4, I5, I6, I7, I8, I9, "
                  "I10, I11, I12, I13], context2: [C6]",
                  "1e-5"),
    TN_BARS_CROSS(
        "avazu",
        "hidden: [400, 400, 400], dropout: 0.3, hidden2: [800], dropout2: 0.3, " TN_BARS_NORM
        "heads: 10, gate_hidden: [800]",
        "0.05"),
    TN_BARS_CROSS("movielens",
                  "hidden: [400], dropout: 0.4, hidden2: [800], dropout2: 0.2, " TN_BARS_NORM ""
                  "heads: 10, gate_hidden: [800]",
                  "0.01"),
    {"tensornet",
     "model: {hidden: [512, 256, 256], hidden2: [256], bias_init: 0}\n" TN_TENSORNET_DEEP},
    {"paper", "model: {hidden: [400, 400, 400], hidden2: [800], heads: 10, gate_hidden: [800]}\n"
              "embedding: {dim: 10}\n" TN_PAPER_TRAIN("  batch: 4096\n", "type: adam, lr: 1e-3")},
    {NULL, NULL},
};

const tn_model tn_model_finalmlp = {
    TN_MODEL_MEMBERS(finalmlp, "FinalMLP: two MLPs with gated inputs, joined by products")};

/* ---- finalnet ---- */

typedef struct finalnet_opts {
    tn_deep_opts deep;
    uint32_t residual; /* concat sum */
} finalnet_opts;

enum { CONCAT, SUM };
static const char *const residual_words[] = {"concat", "sum", NULL};

static const tn_field finalnet_fields[] = {
    TN_DEEP_FIELDS(tn_deep_opts, "[400, 400]"),
    TN_FIELD_CHOICE(finalnet_opts, residual, "concat", residual_words,
                    "finalnet: how a layer's products join what it multiplies"),
    TN_FIELD_END,
};

/* Adds a layer of `units` columns over `x`; returns the name of its last part. */
static const char *write_products(tn_list_writer *w, const finalnet_opts *o, uint32_t i,
                                  const char *x)
{
    const double units = o->deep.hidden.item[i];
    const double half = o->residual == CONCAT ? units / 2 : units;
    const char *name = tn_list_text(w, "block.%u", i + 1);
    const char *h = tn_list_text(w, "%s.h", name);
    const char *h2 = tn_list_text(w, "%s.h2", name);
    const char *h1 = tn_list_text(w, "%s.h1", name);
    const char *products = tn_list_text(w, "%s.products", name);
    (void)tn_list_dense(w, h, x, (uint32_t)(2 * half), NULL);
    tn_tree *first = tn_list_layer(w, h2, "slice", TN_NAMES(h));
    tn_list_set(w, first, "cols", tn_list_text(w, "%.0f", half));
    tn_tree *second = tn_list_layer(w, h1, "slice", TN_NAMES(h));
    tn_list_set(w, second, "first", tn_list_text(w, "%.0f", half));
    tn_list_set(w, second, "cols", tn_list_text(w, "%.0f", half));
    (void)tn_list_layer(w, products, "mul", TN_NAMES(h1, h2));
    (void)tn_list_layer(w, name, o->residual == CONCAT ? "concat" : "add", TN_NAMES(h2, products));
    return tn_write_tail(w, name, name, &o->deep);
}

static bool has_halves(const tn_model_args *args, tn_list_writer *w)
{
    const finalnet_opts *o = args->opts;
    for (uint32_t i = 0; i < o->deep.hidden.n && o->residual == CONCAT; i++) {
        if (fmod(o->deep.hidden.item[i], 2) > 0) {
            tn_diag_error(w->diag, &w->list->at,
                          "'hidden' has a layer of %g units, which are no two halves",
                          o->deep.hidden.item[i]);
            tn_diag_hint(w->diag, "take an even number, or 'residual: sum'");
            return false;
        }
    }
    return true;
}

static void finalnet_write(const tn_model_args *args, tn_list_writer *w)
{
    const finalnet_opts *o = args->opts;
    const char *x = tn_write_deep_input(w, args);
    if (!tn_layer_widths(&o->deep.hidden, &w->list->at, w->diag) || !has_halves(args, w)) {
        return;
    }
    for (uint32_t i = 0; i < o->deep.hidden.n; i++) {
        x = write_products(w, o, i, x);
    }
    tn_write_concat_head(w, TN_NAMES(x));
}

/* For Criteo the benchmark puts a gate on its slots, which is not there. */
static const tn_preset finalnet_presets[] = {
    TN_BARS_CROSS("frappe", "hidden: [400, 400], " TN_BARS_NORM "dropout: 0.2", "0.1"),
    TN_BARS_CROSS("avazu", "hidden: [400, 400, 400], " TN_BARS_NORM "dropout: 0.2", "0.05"),
    TN_BARS_CROSS("movielens", "hidden: [400], " TN_BARS_NORM "dropout: 0.1", "0.01"),
    {"tensornet", "model: {hidden: [512, 256, 256], bias_init: 0}\n" TN_TENSORNET_DEEP},
    {"paper", "model: {hidden: [400, 400], batch_norm: true}\n"
              "embedding: {dim: 10}\n" TN_PAPER_TRAIN("  batch: 4096\n", "type: adam, lr: 1e-3")},
    {NULL, NULL},
};

const tn_model tn_model_finalnet = {
    TN_MODEL_MEMBERS(finalnet, "FinalNet, one block: layers that multiply their halves")};
