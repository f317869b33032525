/* layer_dense.c - dense layers, stacks of them, and the parts of one as layers of their own:
 * activations, norms, dropout.
 *
 *     dense    dropout(act(bn(x W + b))); without b, or with the W and b of other layers, as asked
 *     mlp      dense layers "<name>.1", "<name>.2", ..; with `units` one more, linear
 *
 * The norms: batch_norm (Ioffe 2015), layer_norm (Ba 2016), and data_norm, which is the cumulative
 * normalisation of TensorNet and Paddle with its faults mended.
 */
#include "base/keys/keyspace.h"
#include "config/diag.h"
#include "config/field.h"
#include "nn/layer/layers.h"
#include "nn/op/ops.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *const tn_activation_words[] = {
    "none",     "relu", "leaky_relu", "prelu", "sigmoid", "tanh", "gelu", "silu", "gelu_tanh",
    "softplus", "dice", "exp",        "log",   "square",  "sqrt", "abs",  NULL,
};

enum { LAYER_NORM_SLOTS_MAX = 1024 };

const char *const tn_bn_gamma_words[] = {"one", "uniform", NULL};

static tn_init constant(double value)
{
    return (tn_init){.kind = TN_INIT_CONSTANT, .a = value};
}

tn_node *tn_layer_activate(const tn_net *net, const char *name, tn_node *x, uint32_t activation)
{
    const char *word = tn_activation_words[activation];
    tn_shape row = {1, x->shape.cols};
    if (strcmp(word, "none") == 0) {
        return x;
    }
    if (strcmp(word, "prelu") == 0) {
        return tn_apply(net->g, &tn_op_prelu, name,
                        TN_IN(x, tn_layer_param(net, name, ".slope", row, constant(0.25))), NULL);
    }
    if (strcmp(word, "dice") == 0) {
        tn_node *params[3];
        params[0] = tn_layer_param(net, name, ".alpha", row, constant(0));
        params[1] = tn_layer_running(net, name, ".dice.mean", row, 0);
        params[2] = tn_layer_running(net, name, ".dice.var", row, 1);
        return tn_apply(net->g, &tn_op_dice, name, TN_IN(x, params[0], params[1], params[2]), NULL);
    }
    tn_node *y = tn_activate(net->g, name, x, word);
    TN_ASSERT(y != NULL);
    return y;
}

/* Options of dense and mlp. */
typedef struct dense_opts {
    tn_f64s hidden; /* mlp */
    uint32_t units;
    bool bias;
    const char *param;   /* dense: its weights are <param>.W and .b; NULL: the layer's own */
    uint32_t activation; /* index into tn_activation_words */
    bool batch_norm;
    uint32_t bn_gamma; /* index into tn_bn_gamma_words */
    double bn_decay, bn_epsilon;
    bool bn_unbiased;
    double dropout;
} dense_opts;

/* Rows that both tables have. */
#define DENSE_FIELDS(activation_)                                                                  \
    TN_FIELD_CHOICE(dense_opts, activation, activation_, tn_activation_words,                      \
                    "what follows the sums"),                                                      \
        TN_FIELD_BOOL(dense_opts, bias, "true", "false: x W alone"),                               \
        TN_FIELD_BOOL(dense_opts, batch_norm, "false",                                             \
                      "normalise each unit over the batch before it"),                             \
        TN_FIELD_CHOICE(dense_opts, bn_gamma, "one", tn_bn_gamma_words,                            \
                        "first scales of batch_norm: 1, or drawn from 0 to 1"),                    \
        TN_FIELD_F64(dense_opts, bn_decay, "0.9", 0, 1, "",                                        \
                     "share of the running value that is kept"),                                   \
        TN_FIELD_F64(dense_opts, bn_epsilon, "1e-5", TN_EPSILON_MIN, 1, "",                        \
                     "added to the variance"),                                                     \
        TN_FIELD_BOOL(dense_opts, bn_unbiased, "true", "running variance by B - 1"),               \
        TN_FIELD_F64(dense_opts, dropout, "0", 0, 0.999, "",                                       \
                     "share of units set to 0 while training")

/* Returns false after a report. */
static bool norm_fits(const dense_opts *o, const tn_layer_args *args)
{
    if (o->bn_gamma != 0 && !o->batch_norm) {
        tn_diag_error(args->diag, args->at,
                      "'bn_gamma: %s' needs 'batch_norm: true'; without it, say 'bn_gamma: one'",
                      tn_bn_gamma_words[o->bn_gamma]);
        return false;
    }
    return true;
}

/* Returns the node of a batch norm whose parameters are named after `layer`; `gamma`: an index into
 * tn_bn_gamma_words. */
static tn_node *normalise(const tn_net *net, const char *layer, const char *node, tn_node *x,
                          const tn_batch_norm_attr *attr, uint32_t gamma)
{
    const tn_init drawn = {.kind = TN_INIT_UNIFORM, .a = 0, .b = 1};
    tn_shape row = {1, x->shape.cols};
    tn_node *in[4];
    in[0] = tn_layer_param(net, layer, ".gamma", row, gamma == 0 ? constant(1) : drawn);
    in[1] = tn_layer_param(net, layer, ".beta", row, constant(0));
    in[2] = tn_layer_running(net, layer, ".mean", row, 0);
    in[3] = tn_layer_running(net, layer, ".var", row, 1);
    return tn_apply(net->g, &tn_op_batch_norm, node, TN_IN(x, in[0], in[1], in[2], in[3]), attr);
}

/* Weights of a dense layer; b NULL: it has none. */
typedef struct dense_weights {
    tn_node *w, *b;
} dense_weights;

static dense_weights own_weights(const tn_net *net, const char *name, tn_shape shape, bool bias)
{
    dense_weights wb = {.w = tn_layer_param(net, name, ".W", shape, net->dense_init)};
    wb.b = bias ? tn_layer_param(net, name, ".b", (tn_shape){1, shape.cols}, constant(0)) : NULL;
    return wb;
}

/* Builds [B,n] -> [B,units]; of `opts` all but what the weights are. */
static tn_node *dense_block(const tn_net *net, const char *name, tn_node *x, dense_weights wb,
                            const dense_opts *opts)
{
    char node[TN_LAYER_NAME_MAX];
    const bool act = opts->activation != 0;
    const bool plain = !act && !opts->batch_norm;
    tn_node *y = tn_apply(net->g, &tn_op_matmul,
                          plain && wb.b == NULL ? name : tn_layer_name(node, name, ".matmul"),
                          TN_IN(x, wb.w), NULL);
    if (wb.b != NULL) {
        y = tn_apply(net->g, &tn_op_bias, plain ? name : tn_layer_name(node, name, ".bias"),
                     TN_IN(y, wb.b), NULL);
    }
    if (opts->batch_norm) {
        char bn[TN_LAYER_NAME_MAX];
        if (wb.b != NULL) {
            tn_param_freeze(wb.b); /* its gradient is rounding noise: Adam would make steps of it */
        }
        (void)tn_layer_name(bn, name, ".bn");
        const tn_batch_norm_attr attr = {opts->bn_epsilon, opts->bn_decay, opts->bn_unbiased};
        y = normalise(net, bn, act ? bn : name, y, &attr, opts->bn_gamma);
    }
    y = tn_layer_activate(net, name, y, opts->activation);
    if (opts->dropout > 0) {
        y = tn_apply(net->g, &tn_op_dropout, tn_layer_name(node, name, ".drop"), TN_IN(y),
                     &(tn_dropout_attr){opts->dropout});
    }
    return y;
}

static const tn_field dense_fields[] = {
    TN_FIELD_U32(dense_opts, units, NULL, 1, 65536, "units", "width of the output"),
    TN_FIELD_STR(dense_opts, param, "~",
                 "name of the weights, which layers may share; ~: the layer's own"),
    DENSE_FIELDS("none"),
    TN_FIELD_END,
};

/* Finds weights that layers share. w NULL: reported. */
static dense_weights shared_weights(const tn_net *net, const tn_layer_args *args, tn_shape shape)
{
    enum { LONGEST = TN_LAYER_NAME_MAX - 32 };
    const dense_opts *o = args->opts;
    char name[TN_LAYER_NAME_MAX];
    dense_weights wb = {0};
    if (o->param[0] == '\0' || strlen(o->param) > LONGEST) {
        tn_diag_error(args->diag, args->at, "'param' is a name of 1 to %d bytes", LONGEST);
        return wb;
    }
    if (o->batch_norm && o->bias) {
        tn_diag_error(
            args->diag, args->at,
            "'param' and 'batch_norm' need 'bias: false': a bias in front of a batch norm "
            "is not trained, so it cannot be another layer's");
        return wb;
    }
    wb.w = tn_layer_named_param(net, args, tn_layer_name(name, o->param, ".W"), shape,
                                net->dense_init);
    if (wb.w != NULL && o->bias) {
        wb.b = tn_layer_named_param(net, args, tn_layer_name(name, o->param, ".b"),
                                    (tn_shape){1, shape.cols}, constant(0));
        wb.w = wb.b != NULL ? wb.w : NULL;
    }
    return wb;
}

static tn_node *dense_build(const tn_net *net, const tn_layer_args *args)
{
    const dense_opts *o = args->opts;
    if (!norm_fits(o, args)) {
        return NULL;
    }
    const tn_shape shape = {args->in[0]->shape.cols, o->units};
    const dense_weights wb = o->param != NULL ? shared_weights(net, args, shape)
                                              : own_weights(net, args->name, shape, o->bias);
    return wb.w == NULL ? NULL : dense_block(net, args->name, args->in[0], wb, o);
}

static bool dense_output_bias(const char *name, const void *opts, char out[TN_LAYER_NAME_MAX])
{
    const dense_opts *o = opts;
    if (o->units != 1 || o->activation != 0 || o->batch_norm || !o->bias) {
        return false;
    }
    (void)tn_layer_name(out, o->param != NULL ? o->param : name, ".b");
    return true;
}

const tn_layer tn_layer_dense = {
    TN_LAYER_WITH_OPTIONS(dense, "x W + b, then batch norm, activation and dropout as asked"),
    .output_bias = dense_output_bias, .weighs = true};

typedef dense_opts mlp_opts;

static const tn_field mlp_fields[] = {
    TN_FIELD_F64S(mlp_opts, hidden, NULL, 1, 65536, "widths of the hidden layers"),
    TN_FIELD_U32(mlp_opts, units, "0", 0, 65536, "units",
                 "width of a linear layer behind; 0: none"),
    DENSE_FIELDS("relu"),
    TN_FIELD_END,
};

bool tn_layer_widths(const tn_f64s *hidden, const tn_origin *at, tn_diag *diag)
{
    enum { HIDDEN_MAX = 64 };
    if (hidden->n > HIDDEN_MAX) {
        tn_diag_error(diag, at, "'hidden' has %u layers, more than %d", hidden->n, HIDDEN_MAX);
        return false;
    }
    for (uint32_t i = 0; i < hidden->n; i++) {
        if (hidden->item[i] > floor(hidden->item[i])) {
            tn_diag_error(diag, at, "'hidden' has a layer of %g units, which is no whole number",
                          hidden->item[i]);
            return false;
        }
    }
    return true;
}

static tn_node *mlp_build(const tn_net *net, const tn_layer_args *args)
{
    const mlp_opts *o = args->opts;
    if (!tn_layer_widths(&o->hidden, args->at, args->diag) || !norm_fits(o, args)) {
        return NULL;
    }
    char name[TN_LAYER_NAME_MAX];
    tn_node *x = args->in[0];
    for (uint32_t i = 0; i < o->hidden.n; i++) {
        const tn_shape shape = {x->shape.cols, (uint32_t)o->hidden.item[i]};
        (void)tn_layer_numbered(name, args->name, i + 1);
        x = dense_block(net, name, x, own_weights(net, name, shape, o->bias), o);
    }
    if (o->units > 0) {
        dense_opts linear = {0};
        (void)tn_layer_numbered(name, args->name, o->hidden.n + 1);
        const tn_shape shape = {x->shape.cols, o->units};
        x = dense_block(net, name, x, own_weights(net, name, shape, o->bias), &linear);
    }
    return x;
}

static bool mlp_output_bias(const char *name, const void *opts, char out[TN_LAYER_NAME_MAX])
{
    const mlp_opts *o = opts;
    if (o->units != 1 || !o->bias) {
        return false;
    }
    char suffix[24];
    (void)snprintf(suffix, sizeof suffix, ".%u.b", o->hidden.n + 1);
    (void)tn_layer_name(out, name, suffix);
    return true;
}

const tn_layer tn_layer_mlp = {TN_LAYER_WITH_OPTIONS(mlp, "several dense layers behind each other"),
                               .output_bias = mlp_output_bias, .weighs = true};

typedef struct activation_opts {
    uint32_t function;
} activation_opts;

static const tn_field activation_fields[] = {
    TN_FIELD_CHOICE(activation_opts, function, "relu", tn_activation_words, "which one"),
    TN_FIELD_END,
};

static tn_node *activation_build(const tn_net *net, const tn_layer_args *args)
{
    const activation_opts *o = args->opts;
    return tn_layer_activate(net, args->name, args->in[0], o->function);
}

const tn_layer tn_layer_activation = {
    TN_LAYER_WITH_OPTIONS(activation, "an activation function on its own"), .weighs = true};

const tn_layer tn_layer_softmax = {
    TN_LAYER_OF(softmax, softmax, "softmax over the columns of each row")};

typedef struct dropout_opts {
    double rate;
} dropout_opts;

static const tn_field dropout_fields[] = {
    TN_FIELD_F64(dropout_opts, rate, "0.5", 0, 0.999, "", "share of values set to 0"),
    TN_FIELD_END,
};

static tn_node *dropout_build(const tn_net *net, const tn_layer_args *args)
{
    const dropout_opts *o = args->opts;
    return o->rate > 0 ? tn_apply(net->g, &tn_op_dropout, args->name, TN_IN(args->in[0]),
                                  &(tn_dropout_attr){o->rate})
                       : args->in[0];
}

const tn_layer tn_layer_dropout = {
    TN_LAYER_WITH_OPTIONS(dropout, "sets a share of the values to 0 while training")};

typedef struct batch_norm_opts {
    uint32_t gamma; /* index into tn_bn_gamma_words */
    double epsilon, decay;
    bool unbiased;
} batch_norm_opts;

static const tn_field batch_norm_fields[] = {
    TN_FIELD_CHOICE(batch_norm_opts, gamma, "one", tn_bn_gamma_words,
                    "first scales: 1, or drawn from 0 to 1"),
    TN_FIELD_F64(batch_norm_opts, decay, "0.9", 0, 1, "",
                 "share of the running value that is kept"),
    TN_FIELD_F64(batch_norm_opts, epsilon, "1e-5", TN_EPSILON_MIN, 1, "", "added to the variance"),
    TN_FIELD_BOOL(batch_norm_opts, unbiased, "true", "running variance by B - 1"),
    TN_FIELD_END,
};

static tn_node *batch_norm_build(const tn_net *net, const tn_layer_args *args)
{
    const batch_norm_opts *o = args->opts;
    const tn_batch_norm_attr attr = {o->epsilon, o->decay, o->unbiased};
    return normalise(net, args->name, args->name, args->in[0], &attr, o->gamma);
}

const tn_layer tn_layer_batch_norm = {
    TN_LAYER_WITH_OPTIONS(batch_norm,
                          "normalises each column by the batch, later by running values"),
    .weighs = true};

typedef tn_data_norm_attr data_norm_opts;

static const tn_field data_norm_fields[] = {
    TN_FIELD_F64(data_norm_opts, max_count, "1e6", 1, 1e15, "rows", "the past never weighs more"),
    TN_FIELD_F64(data_norm_opts, epsilon, "1e-5", TN_EPSILON_MIN, 1, "", "added to the variance"),
    TN_FIELD_END,
};

const tn_layer tn_layer_data_norm = {
    TN_LAYER_OF(data_norm, data_norm, "normalises each column by all rows seen so far"),
    TN_LAYER_OPTIONS(data_norm), .weighs = true};

typedef struct layer_norm_opts {
    double epsilon;
    bool per_slot;
    uint32_t dim;
} layer_norm_opts;

static const tn_field layer_norm_fields[] = {
    TN_FIELD_F64(layer_norm_opts, epsilon, "1e-5", TN_EPSILON_MIN, 1, "", "added to the variance"),
    TN_PER_SLOT_FIELDS(layer_norm_opts, "over each slot's vector instead of the row"),
    TN_FIELD_END,
};

/* Slices off slot i, normalises it as "<name>.<i>" and puts it beside the others again. */
static tn_node *layer_norm_build(const tn_net *net, const tn_layer_args *args)
{
    const layer_norm_opts *o = args->opts;
    const tn_layer_norm_attr attr = {o->epsilon};
    tn_node *x = args->in[0];
    uint32_t dim = 0;
    if (!tn_layer_per_slot(args, o->per_slot, o->dim, &dim)) {
        return NULL;
    }
    if (dim == 0 || x->shape.cols == dim) {
        return tn_layer_of(net, &tn_op_layer_norm, args->name, args->name, x, &attr);
    }
    const uint32_t slots = x->shape.cols / dim;
    if (slots > LAYER_NORM_SLOTS_MAX) {
        tn_diag_error(args->diag, args->at, "'per_slot' is for at most %d slots, not %u",
                      LAYER_NORM_SLOTS_MAX, slots);
        return NULL;
    }
    tn_node *part[LAYER_NORM_SLOTS_MAX];
    for (uint32_t i = 0; i < slots; i++) {
        char slot[TN_LAYER_NAME_MAX];
        char in[TN_LAYER_NAME_MAX];
        (void)tn_layer_numbered(slot, args->name, i + 1);
        part[i] = tn_apply(net->g, &tn_op_slice, tn_layer_name(in, slot, ".in"), TN_IN(x),
                           &(tn_slice_attr){i * dim, dim});
        part[i] = tn_layer_of(net, &tn_op_layer_norm, slot, slot, part[i], &attr);
    }
    return tn_apply(net->g, &tn_op_concat, args->name, part, slots, NULL);
}

const tn_layer tn_layer_layer_norm = {
    TN_LAYER_WITH_OPTIONS(layer_norm, "normalises each row, or each slot, over its columns"),
    .weighs = true};
