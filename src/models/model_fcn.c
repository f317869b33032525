/* model_fcn.c - FCN, also known as DCNv3 (Li 2024): an exponential and a linear cross network side
 * by side, without an MLP.
 *
 *     x --.-- exponential cross x layers -- dense --.
 *         '-- linear cross x shallow ------ dense --+--> logit
 *
 *     h  = x W, half as wide as x
 *     c  = [h, h * max(0, ln(h))]                     the second half is masked by itself
 *     x' = x * (c + b) + x                            exponential: the degree doubles
 *     x' = x0 * (c + b) + x                           linear: it grows by one
 *
 * The logit is the mean of both, which share their last bias. Each network has a loss of its own
 * beside that of the mean, weighed by how much worse it is (Tri-BCE).
 */
#include "config/field.h"
#include "config/tree.h"
#include "models/model.h"
#include "nn/layer/layers.h"

typedef struct fcn_opts {
    uint32_t layers, shallow;
    double dropout, shallow_dropout;
    bool tri_loss;
} fcn_opts;

static const tn_field fcn_fields[] = {
    TN_FIELD_U32(fcn_opts, layers, "3", 1, 16, "layers", "layers of the exponential network"),
    TN_FIELD_U32(fcn_opts, shallow, "3", 1, 64, "layers", "fcn: layers of the linear network"),
    TN_FIELD_F64(fcn_opts, dropout, "0", 0, 0.999, "", "after each exponential layer"),
    TN_FIELD_F64(fcn_opts, shallow_dropout, "0", 0, 0.999, "", "fcn: after each linear layer"),
    TN_FIELD_BOOL(fcn_opts, tri_loss, "true",
                  "fcn: each network has a loss, weighed by how much larger it is than that of "
                  "the mean"),
    TN_FIELD_END,
};

/* One of the two networks. */
typedef struct network {
    const char *name;
    const char *x0; /* NULL: the layer's own input */
    uint32_t cols, layers;
    double dropout;
} network;

/* Adds layer `name` over x; returns the name of its last part. */
static const char *write_cross(tn_list_writer *w, const network *n, const char *name, const char *x)
{
    const char *half = tn_list_text(w, "%s.h", name);
    const char *norm = tn_list_text(w, "%s.norm", name);
    const char *mask = tn_list_text(w, "%s.mask", name);
    const char *masked = tn_list_text(w, "%s.masked", name);
    const char *both = tn_list_text(w, "%s.c", name);
    const char *more = tn_list_text(w, "%s.cb", name);
    const char *crossed = tn_list_text(w, "%s.crossed", name);
    const uint32_t cols = n->cols - n->cols / 2;
    tn_list_set(w, tn_list_dense(w, half, x, cols, NULL), "bias", "false");
    (void)tn_list_layer(w, norm, "layer_norm", TN_NAMES(half));
    tn_list_set(w, tn_list_layer(w, mask, "activation", TN_NAMES(norm)), "function", "relu");
    (void)tn_list_layer(w, masked, "mul", TN_NAMES(half, mask));
    tn_tree *c =
        tn_list_layer(w, both, n->cols % 2 == 0 ? "concat" : "slice", TN_NAMES(half, masked));
    if (n->cols % 2 != 0) {
        tn_list_set(w, c, "cols", tn_list_text(w, "%u", n->cols));
    }
    (void)tn_list_layer(w, more, "bias", TN_NAMES(both));
    (void)tn_list_layer(w, crossed, "mul", TN_NAMES(n->x0 != NULL ? n->x0 : x, more));
    (void)tn_list_layer(w, name, "add", TN_NAMES(crossed, x));
    return tn_write_tail(w, name, name, &(tn_deep_opts){.dropout = n->dropout});
}

static const char *write_network(tn_list_writer *w, const network *n, const char *x)
{
    for (uint32_t i = 0; i < n->layers; i++) {
        x = write_cross(w, n, tn_list_text(w, "%s.%u", n->name, i + 1), x);
    }
    const char *plain = tn_list_text(w, "%s.plain", n->name);
    const char *out = tn_list_text(w, "%s.out", n->name);
    tn_list_set(w, tn_list_dense(w, plain, x, 1, NULL), "bias", "false");
    tn_list_set(w, tn_list_layer(w, out, "bias", TN_NAMES(plain)), "param", "out.b");
    return out;
}

static void fcn_write(const tn_model_args *args, tn_list_writer *w)
{
    const fcn_opts *o = args->opts;
    tn_deep_shape shape;
    const char *x = tn_write_deep_input(w, args);
    if (!tn_find_deep_shape(w, &shape)) {
        return;
    }
    const network deep = {"deep", NULL, shape.cols, o->layers, o->dropout};
    const network shallow = {"shallow", x, shape.cols, o->shallow, o->shallow_dropout};
    const char *parts[] = {write_network(w, &deep, x), write_network(w, &shallow, x), NULL};
    (void)tn_list_layer(w, "logit", "mean", parts);
    tn_list_output(w, "logit");
    for (uint32_t i = 0; o->tri_loss && i < 2; i++) {
        tn_list_loss(w, parts[i], "excess");
    }
}

/* The benchmark has no fcn: its recipe with the sizes of the authors for small sets. */
static const tn_preset fcn_presets[] = {
    TN_BARS_CROSS("frappe", "layers: 3, shallow: 3, dropout: 0.1, shallow_dropout: 0.3", "0.05"),
    {"tensornet", "model: {bias_init: 0}\n" TN_TENSORNET_DEEP},
    {"paper", "model: {layers: 4, shallow: 4, dropout: 0.1, shallow_dropout: 0.3}\n"
              "embedding: {dim: 16}\n" TN_PAPER_TRAIN("  batch: 10000\n", "type: adam, lr: 1e-3")},
    {NULL, NULL},
};

const tn_model tn_model_fcn = {
    TN_MODEL_MEMBERS(fcn, "FCN (DCNv3): exponential and linear cross networks, no MLP")};
