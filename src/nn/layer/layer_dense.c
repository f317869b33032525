/* layer_dense.c - dense layers, stacks of them, and the parts of one as layers of their own:
 * activations, norms, dropout.
 *
 *     dense    dropout(act(bn(x W + b)))
 *     mlp      dense layers "<name>.1", "<name>.2", ..; with `units` one more, linear
 *
 * The norms: batch_norm (Ioffe 2015), layer_norm (Ba 2016), and data_norm, which is the cumulative
 * normalisation of TensorNet and Paddle with its faults mended.
 */
#include "config/diag.h"
#include "config/field.h"
#include "nn/layer/layers.h"
#include "nn/op/ops.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *const tn_activation_words[] = {
    "none", "relu", "leaky_relu", "prelu",    "sigmoid", "tanh",
    "gelu", "silu", "gelu_tanh",  "softplus", "dice",    NULL,
};

static tn_init constant(double value)
{
    return (tn_init){.kind = TN_INIT_CONSTANT, .a = value};
}

/* The activation called tn_activation_words[i], with parameters of its own where it has some. */
static tn_node *activate(const tn_net *net, const char *name, tn_node *x, uint32_t activation)
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
    uint32_t activation; /* index into tn_activation_words */
    bool batch_norm;
    double bn_decay, bn_epsilon;
    bool bn_unbiased;
    double dropout;
} dense_opts;

/* Rows that both tables have. */
#define DENSE_FIELDS(activation_)                                                                  \
    TN_FIELD_CHOICE(dense_opts, activation, activation_, tn_activation_words,                      \
                    "what follows the sums"),                                                      \
        TN_FIELD_BOOL(dense_opts, batch_norm, "false",                                             \
                      "normalise each unit over the batch before it"),                             \
        TN_FIELD_F64(dense_opts, bn_decay, "0.9", 0, 1, "",                                        \
                     "share of the running value that is kept"),                                   \
        TN_FIELD_F64(dense_opts, bn_epsilon, "1e-5", TN_EPSILON_MIN, 1, "",                        \
                     "added to the variance"),                                                     \
        TN_FIELD_BOOL(dense_opts, bn_unbiased, "true", "running variance by B - 1"),               \
        TN_FIELD_F64(dense_opts, dropout, "0", 0, 0.999, "",                                       \
                     "share of units set to 0 while training")

/* [B,n] -> [B,units]; of `opts` all but its units. */
static tn_node *dense_block(const tn_net *net, const char *name, tn_node *x, uint32_t units,
                            const dense_opts *opts)
{
    char node[TN_LAYER_NAME_MAX];
    bool act = opts->activation != 0;
    tn_node *w = tn_layer_param(net, name, ".W", (tn_shape){x->shape.cols, units}, net->dense_init);
    tn_node *b = tn_layer_param(net, name, ".b", (tn_shape){1, units}, constant(0));

    tn_node *y =
        tn_apply(net->g, &tn_op_matmul, tn_layer_name(node, name, ".matmul"), TN_IN(x, w), NULL);
    y = tn_apply(net->g, &tn_op_bias,
                 act || opts->batch_norm ? tn_layer_name(node, name, ".bias") : name, TN_IN(y, b),
                 NULL);
    if (opts->batch_norm) {
        char bn[TN_LAYER_NAME_MAX];
        tn_param_freeze(b); /* its gradient is rounding noise, which Adam would turn into steps */
        (void)tn_layer_name(bn, name, ".bn");
        tn_batch_norm_attr attr = {opts->bn_epsilon, opts->bn_decay, opts->bn_unbiased};
        y = tn_layer_of(net, &tn_op_batch_norm, bn, act ? bn : name, y, &attr);
    }
    y = activate(net, name, y, opts->activation);
    if (opts->dropout > 0) {
        y = tn_apply(net->g, &tn_op_dropout, tn_layer_name(node, name, ".drop"), TN_IN(y),
                     &(tn_dropout_attr){opts->dropout});
    }
    return y;
}

static const tn_field dense_fields[] = {
    TN_FIELD_U32(dense_opts, units, NULL, 1, 65536, "units", "width of the output"),
    DENSE_FIELDS("none"),
    TN_FIELD_END,
};

static tn_node *dense_build(const tn_net *net, const tn_layer_args *args)
{
    const dense_opts *o = args->opts;
    return dense_block(net, args->name, args->in[0], o->units, o);
}

static bool dense_output_bias(const char *name, const void *opts, char out[TN_LAYER_NAME_MAX])
{
    const dense_opts *o = opts;
    if (o->units != 1 || o->activation != 0 || o->batch_norm) {
        return false;
    }
    (void)tn_layer_name(out, name, ".b");
    return true;
}

const tn_layer tn_layer_dense = {
    TN_LAYER_WITH_OPTIONS(dense, "x W + b, then batch norm, activation and dropout as asked"),
    .output_bias = dense_output_bias};

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
    if (!tn_layer_widths(&o->hidden, args->at, args->diag)) {
        return NULL;
    }
    char name[TN_LAYER_NAME_MAX];
    tn_node *x = args->in[0];
    for (uint32_t i = 0; i < o->hidden.n; i++) {
        uint32_t units = (uint32_t)o->hidden.item[i];
        x = dense_block(net, tn_layer_numbered(name, args->name, i + 1), x, units, o);
    }
    if (o->units > 0) {
        dense_opts linear = {0};
        (void)tn_layer_numbered(name, args->name, o->hidden.n + 1);
        x = dense_block(net, name, x, o->units, &linear);
    }
    return x;
}

static bool mlp_output_bias(const char *name, const void *opts, char out[TN_LAYER_NAME_MAX])
{
    const mlp_opts *o = opts;
    if (o->units != 1) {
        return false;
    }
    char suffix[24];
    (void)snprintf(suffix, sizeof suffix, ".%u.b", o->hidden.n + 1);
    (void)tn_layer_name(out, name, suffix);
    return true;
}

const tn_layer tn_layer_mlp = {TN_LAYER_WITH_OPTIONS(mlp, "several dense layers behind each other"),
                               .output_bias = mlp_output_bias};

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
    return activate(net, args->name, args->in[0], o->function);
}

const tn_layer tn_layer_activation = {
    TN_LAYER_WITH_OPTIONS(activation, "an activation function on its own")};

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

typedef tn_batch_norm_attr batch_norm_opts;

static const tn_field batch_norm_fields[] = {
    TN_FIELD_F64(batch_norm_opts, decay, "0.9", 0, 1, "",
                 "share of the running value that is kept"),
    TN_FIELD_F64(batch_norm_opts, epsilon, "1e-5", TN_EPSILON_MIN, 1, "", "added to the variance"),
    TN_FIELD_BOOL(batch_norm_opts, unbiased, "true", "running variance by B - 1"),
    TN_FIELD_END,
};

const tn_layer tn_layer_batch_norm = {
    TN_LAYER_OF(batch_norm, batch_norm,
                "normalises each column by the batch, later by running values"),
    TN_LAYER_OPTIONS(batch_norm)};

typedef tn_data_norm_attr data_norm_opts;

static const tn_field data_norm_fields[] = {
    TN_FIELD_F64(data_norm_opts, max_count, "1e6", 1, 1e15, "rows", "the past never weighs more"),
    TN_FIELD_F64(data_norm_opts, epsilon, "1e-5", TN_EPSILON_MIN, 1, "", "added to the variance"),
    TN_FIELD_END,
};

const tn_layer tn_layer_data_norm = {
    TN_LAYER_OF(data_norm, data_norm, "normalises each column by all rows seen so far"),
    TN_LAYER_OPTIONS(data_norm)};

typedef tn_layer_norm_attr layer_norm_opts;

static const tn_field layer_norm_fields[] = {
    TN_FIELD_F64(layer_norm_opts, epsilon, "1e-5", TN_EPSILON_MIN, 1, "", "added to the variance"),
    TN_FIELD_END,
};

const tn_layer tn_layer_layer_norm = {
    TN_LAYER_OF(layer_norm, layer_norm, "normalises each row over its columns"),
    TN_LAYER_OPTIONS(layer_norm)};
