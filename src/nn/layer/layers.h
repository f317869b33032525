/* layers.h - a layer is a function that adds nodes and named parameters to a graph.
 *
 * There is no layer object: nothing to register, resize or free. A layer is one constant in its
 * own file layer_<name>.c plus one row in layers.def; models and `type: graph` are lists of them:
 *
 *     - {name: deep1, dense: x, units: 256, activation: relu, batch_norm: true, dropout: 0.1}
 *
 * The word after the name is the layer, its value the inputs (one name, or a list, which is their
 * concat unless the layer takes several), the rest are options, read by its table.
 *
 * Names: parameters are "<layer>.W", "<layer>.b", ..; the node that carries the layer's value is
 * called like the layer, those before it "<layer>.matmul", "<layer>.bn", ..; dropout behind it is
 * "<layer>.drop". Streams of random numbers follow these names, so equal names give equal bits.
 */
#ifndef TN_NN_LAYERS_H
#define TN_NN_LAYERS_H

#include "config/field.h"
#include "nn/graph/graph.h"

enum { TN_LAYER_NAME_MAX = 200 };

typedef struct tn_net {
    tn_graph *g;
    tn_params *params;
    tn_init dense_init; /* of weights that name no rule of their own */
} tn_net;

/* What a layer gets. */
typedef struct tn_layer_args {
    const char *name;
    tn_node *const *in;
    uint32_t n_in; /* 1 unless `many` */
    const void *opts;
    const tn_origin *at; /* where it stands, for messages */
    tn_diag *diag;
} tn_layer_args;

typedef struct tn_layer {
    const char *name;
    const char *help;
    bool many;              /* takes its inputs one by one instead of their concat */
    const tn_field *fields; /* NULL: no options */
    size_t opts_size;
    /* The node that carries the layer's value. NULL: a fault was reported to args->diag. */
    tn_node *(*build)(const tn_net *net, const tn_layer_args *args);

    /* Writes the name of the bias that shifts every value of the layer into `out`, if there is one:
     * where a prior belongs. NULL: none. */
    bool (*output_bias)(const char *name, const void *opts, char out[TN_LAYER_NAME_MAX]);
} tn_layer;

extern const tn_layer *const tn_all_layers[]; /* NULL-terminated, in the order of layers.def */
const tn_layer *tn_layer_find(const char *name);

/* Dense -> batch norm -> activation -> dropout: what dense and mlp are made of. */
typedef struct tn_block_opts {
    uint32_t activation; /* index into tn_activation_words */
    bool batch_norm;
    double bn_decay, bn_epsilon;
    bool bn_unbiased;
    double dropout;
} tn_block_opts;

extern const char *const tn_activation_words[]; /* NULL-terminated; 0 is "none" */

/* Rows for an option table whose struct holds a tn_block_opts called `block`'s members. */
#define TN_BLOCK_FIELDS(type, activation_)                                                         \
    TN_FIELD_CHOICE(type, activation, activation_, tn_activation_words, "what follows the sums"),  \
        TN_FIELD_BOOL(type, batch_norm, "false", "normalise each unit over the batch before it"),  \
        TN_FIELD_F64(type, bn_decay, "0.9", 0, 1, "", "share of the running value that is kept"),  \
        TN_FIELD_F64(type, bn_epsilon, "1e-5", TN_EPSILON_MIN, 1, "", "added to the variance"),    \
        TN_FIELD_BOOL(type, bn_unbiased, "true", "running variance by B - 1"),                     \
        TN_FIELD_F64(type, dropout, "0", 0, 0.999, "", "share of units set to 0 while training")

/* [B,n] -> [B,units] */
tn_node *tn_dense_block(const tn_net *net, const char *name, tn_node *x, uint32_t units,
                        const tn_block_opts *opts);

/* The activation called tn_activation_words[i], with parameters of its own where it has some. */
tn_node *tn_activation_block(const tn_net *net, const char *name, tn_node *x, uint32_t activation);

/* False, reported: a width in `hidden` is no whole number, or there are more than 64. */
bool tn_layer_widths(const tn_f64s *hidden, const tn_origin *at, tn_diag *diag);

/* What fm, fwfm and bi_interaction have: pairs of vectors of one width. */
#define TN_PAIRS_DIM(type)                                                                         \
    TN_FIELD_U32(type, dim, "0", 0, TN_DIM_MAX, "floats",                                          \
                 "width of one slot's vector; 0: that of the embedding input")
/* `dim`, or that of the input; 0, reported: the input is not made of such vectors. */
uint32_t tn_pairs_width(const tn_layer_args *args, uint32_t dim, const char *layer);

#define TN_PAIRS_NORMALISE(type)                                                                   \
    TN_FIELD_BOOL(type, normalise, "false", "divide by the sum of the example's squared values")
/* 1 / sum x_j^2 of the embedding input, called "<name>.norm". */
tn_node *tn_pairs_norm(const tn_net *net, const tn_layer_args *args);
bool tn_pairs_embedded(const tn_layer_args *args, const char *option); /* false: reported */
/* False, reported: the input is no embedding, or a slot has no plain sum. */
bool tn_pairs_summed(const tn_layer_args *args, const char *option);

/* "<name><suffix>", in the caller's buffer. Names that are too long were refused before. */
const char *tn_layer_name(char out[TN_LAYER_NAME_MAX], const char *name, const char *suffix);

#define TN_LAYER(name) extern const tn_layer tn_layer_##name;
#include "nn/layer/layers.def"
#undef TN_LAYER

#endif
