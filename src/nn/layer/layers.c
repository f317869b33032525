/* layers.c - the list of layers, and the dense block that several of them share. */
#include "nn/layer/layers.h"

#include "base/core/error.h"
#include "nn/op/ops.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const tn_layer *const tn_all_layers[] = {
#define TN_LAYER(name) &tn_layer_##name,
#include "nn/layer/layers.def"
#undef TN_LAYER
    NULL,
};

const char *const tn_activation_words[] = {
    "none", "relu", "leaky_relu", "prelu",    "sigmoid", "tanh",
    "gelu", "silu", "gelu_tanh",  "softplus", "dice",    NULL,
};

const tn_layer *tn_layer_find(const char *name)
{
    for (const tn_layer *const *l = tn_all_layers; *l != NULL; l++) {
        if (strcmp((*l)->name, name) == 0) {
            return *l;
        }
    }
    return NULL;
}

const char *tn_layer_name(char out[TN_LAYER_NAME_MAX], const char *name, const char *suffix)
{
    int used = snprintf(out, TN_LAYER_NAME_MAX, "%s%s", name, suffix);
    TN_ASSERT(used > 0 && used < TN_LAYER_NAME_MAX);
    return out;
}

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

static tn_node *param(const tn_net *net, const char *layer, const char *suffix, tn_shape shape,
                      tn_init init)
{
    char name[TN_LAYER_NAME_MAX];
    return tn_param(net->g, net->params, tn_layer_name(name, layer, suffix), shape, init);
}

static tn_init constant(double value)
{
    return (tn_init){.kind = TN_INIT_CONSTANT, .a = value};
}

static tn_node *running(const tn_net *net, const char *layer, const char *suffix, uint32_t cols,
                        double value)
{
    char name[TN_LAYER_NAME_MAX];
    return tn_running(net->g, net->params, tn_layer_name(name, layer, suffix), (tn_shape){1, cols},
                      value);
}

static tn_node *batch_norm(const tn_net *net, const char *layer, const char *node, tn_node *x,
                           const tn_block_opts *opts)
{
    uint32_t cols = x->shape.cols;
    tn_node *params[4] = {
        param(net, layer, ".bn.gamma", (tn_shape){1, cols}, constant(1)),
        param(net, layer, ".bn.beta", (tn_shape){1, cols}, constant(0)),
        running(net, layer, ".bn.mean", cols, 0),
        running(net, layer, ".bn.var", cols, 1),
    };
    tn_batch_norm_attr attr = {opts->bn_epsilon, opts->bn_decay, opts->bn_unbiased};
    return tn_batch_norm(net->g, node, x, params, &attr);
}

tn_node *tn_activation_block(const tn_net *net, const char *name, tn_node *x, uint32_t activation)
{
    const char *word = tn_activation_words[activation];
    uint32_t cols = x->shape.cols;
    if (strcmp(word, "none") == 0) {
        return x;
    }
    if (strcmp(word, "prelu") == 0) {
        tn_node *slope = param(net, name, ".slope", (tn_shape){1, cols}, constant(0.25));
        return tn_prelu(net->g, name, x, slope);
    }
    if (strcmp(word, "dice") == 0) {
        tn_node *params[3] = {
            param(net, name, ".alpha", (tn_shape){1, cols}, constant(0)),
            running(net, name, ".dice.mean", cols, 0),
            running(net, name, ".dice.var", cols, 1),
        };
        return tn_dice(net->g, name, x, params);
    }
    tn_node *y = tn_activate(net->g, name, x, word);
    TN_ASSERT(y != NULL);
    return y;
}

tn_node *tn_dense_block(const tn_net *net, const char *name, tn_node *x, uint32_t units,
                        const tn_block_opts *opts)
{
    char node[TN_LAYER_NAME_MAX];
    bool act = opts->activation != 0;
    bool norm = opts->batch_norm;
    tn_node *w = param(net, name, ".W", (tn_shape){x->shape.cols, units}, net->dense_init);
    tn_node *b = param(net, name, ".b", (tn_shape){1, units}, constant(0));

    tn_node *y = tn_matmul(net->g, tn_layer_name(node, name, ".matmul"), x, w);
    y = tn_bias(net->g, act || norm ? tn_layer_name(node, name, ".bias") : name, y, b);
    if (norm) {
        tn_param_freeze(b); /* its gradient is rounding noise, which Adam would turn into steps */
        y = batch_norm(net, name, act ? tn_layer_name(node, name, ".bn") : name, y, opts);
    }
    y = tn_activation_block(net, name, y, opts->activation);
    if (opts->dropout > 0) {
        y = tn_dropout(net->g, tn_layer_name(node, name, ".drop"), y, opts->dropout);
    }
    return y;
}
