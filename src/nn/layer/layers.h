/* layers.h - a layer is a function that adds nodes and named parameters to a graph.
 *
 * There is no layer object: nothing to register, resize or free. A layer is one constant in a
 * layer_*.c (small ones in layers.c), plus one row in layers.def; models and `type: graph` are
 * lists of them:
 *
 *     - {name: deep1, dense: x, units: 256, activation: relu, batch_norm: true, dropout: 0.1}
 *
 * Layers that name the same `param` (dense, bias) have one weight; those that name the same
 * `weights` have all of them in common but running values.
 *
 * The word after the name is the layer, its value the inputs (one name, or a list, which is their
 * concat unless the layer takes several), the rest are options, read by its table.
 *
 * Names: parameters are "<layer>.W", "<layer>.b", ..; the node that carries the layer's value is
 * called like the layer, those before it "<layer>.matmul", "<layer>.bn", ..; dropout after it is
 * "<layer>.drop". Streams of random numbers follow these names, so equal names give equal bits.
 */
#pragma once

#include "base/keys/init.h"
#include "nn/graph/graph.h"

typedef struct tn_diag tn_diag;     /* config/diag.h */
typedef struct tn_f64s tn_f64s;     /* config/values.h */
typedef struct tn_origin tn_origin; /* config/tree.h */

enum { TN_LAYER_NAME_MAX = 200 };

typedef struct tn_layer_args tn_layer_args;

typedef struct tn_net {
    tn_graph *g;
    tn_params *params;
    tn_init dense_init; /* rule for weights that name none of their own */
    /* While a layer is built whose parameters are "<weights>.W" .., which layers may share. NULL:
     * "<layer>.W" .., its own. */
    const char *weights;
    const tn_layer_args *args; /* arguments of that layer */
} tn_net;

/* The arguments of a layer. */
struct tn_layer_args {
    const char *name;
    tn_node *const *in;
    uint32_t n_in; /* 1 unless `many` or `source` */
    const void *opts;
    const tn_origin *at; /* position of the layer, for messages */
    tn_diag *diag;
};

typedef struct tn_layer {
    const char *name;
    const char *help;
    bool many;              /* takes its inputs one by one instead of their concat */
    bool mixes;             /* its inputs may be positions of a sequence beside rows of the batch */
    bool weighs;            /* has parameters, or may have: `weights` can name them */
    bool source;            /* takes no input: the value of its word is its option of that name */
    const tn_field *fields; /* NULL: no options */
    size_t opts_size;
    /* operator that the layer is, with the options as its constants and parameters called
     * "<layer>.gamma" and so on; NULL: `build` makes it */
    const tn_op *op;
    tn_node *(*build)(const tn_net *net, const tn_layer_args *args); /* used where `op` is NULL */

    /* Writes the name of the bias that shifts every value of the layer into `out`, if there is one:
     * where a prior belongs. NULL: none. */
    bool (*output_bias)(const char *name, const void *opts, char out[TN_LAYER_NAME_MAX]);
} tn_layer;

/* Members of layer `id`: id_build and, with options, a struct id_opts and its table id_fields. */
#define TN_LAYER_PLAIN(id, help_) .name = #id, .help = (help_), .build = id##_build
#define TN_LAYER_OPTIONS(id) .fields = id##_fields, .opts_size = sizeof(id##_opts)
#define TN_LAYER_WITH_OPTIONS(id, help_) TN_LAYER_PLAIN(id, help_), TN_LAYER_OPTIONS(id)
/* Members of a layer that is operator `op_`. */
#define TN_LAYER_OF(id, op_, help_) .name = #id, .help = (help_), .op = &tn_op_##op_

extern const tn_layer *const tn_all_layers[]; /* NULL-terminated, in the order of layers.def */
const tn_layer *tn_layer_find(const char *name);

/* Returns the node that carries the layer's value. NULL: a fault was reported to args->diag. */
tn_node *tn_layer_build(const tn_layer *layer, const tn_net *net, const tn_layer_args *args);

/* `op` on x called `node`; parameters "<layer>.<param>": gamma and var begin as 1, others as 0. */
tn_node *tn_layer_of(const tn_net *net, const tn_op *op, const char *layer, const char *node,
                     tn_node *x, const void *attr);

extern const char *const tn_activation_words[]; /* NULL-terminated; 0 is "none" */
extern const char *const tn_bn_gamma_words[];   /* NULL-terminated; 0 is "one" */
enum { TN_ACTIVATION_RELU = 1 };

/* Adds tn_activation_words[i] as node `name`, with parameters of its own where it has some; x: none
 * is asked for. */
tn_node *tn_layer_activate(const tn_net *net, const char *name, tn_node *x, uint32_t activation);

/* Returns a parameter that the user has named: the one that another layer has under this name, or a
 * new one. NULL, reported: that one has another shape, or the name is too long. */
tn_node *tn_layer_named_param(const tn_net *net, const tn_layer_args *args, const char *name,
                              tn_shape shape, tn_init init);

/* `dim`, or the width of one slot's vector in an embedding input, of which the columns of the input
 * are a multiple. 0, reported: `option` cannot be had of this input. */
uint32_t tn_layer_slot_width(const tn_layer_args *args, uint32_t dim, const char *option);

/* Options of layers that can do their work slot by slot, and the width of a slot they ask for:
 * false, reported, or 0 where the whole row is meant. */
#define TN_PER_SLOT_FIELDS(type, help)                                                             \
    TN_FIELD_BOOL(type, per_slot, "false", help),                                                  \
        TN_FIELD_U32(type, dim, "0", 0, TN_DIM_MAX, "floats",                                      \
                     "per_slot: width of one slot; 0: that of the embedding input")
bool tn_layer_per_slot(const tn_layer_args *args, bool per_slot, uint32_t dim, uint32_t *out);

/* Returns whether the widths in `hidden` are whole numbers, at most 64 of them. False: reported. */
bool tn_layer_widths(const tn_f64s *hidden, const tn_origin *at, tn_diag *diag);

/* "<name><suffix>" and "<name>.<i>", in the caller's buffer. Longer names were refused before. */
const char *tn_layer_name(char out[TN_LAYER_NAME_MAX], const char *name, const char *suffix);
const char *tn_layer_numbered(char out[TN_LAYER_NAME_MAX], const char *name, uint32_t i);

/* Operator `op` as the node "<layer><suffix>", of a TN_IN and constants as tn_apply takes them. */
#define TN_LAYER_NODE(net, op, layer, suffix, ...)                                                 \
    tn_apply((net)->g, &tn_op_##op,                                                                \
             tn_layer_name((char[TN_LAYER_NAME_MAX]){0}, (layer), (suffix)), __VA_ARGS__)

/* Returns the parameter "<layer><suffix>", or as net->weights calls it, and the running value of
 * that name. Where that one has another shape, a fault is reported, and the layer gets one to go on
 * with. */
tn_node *tn_layer_param(const tn_net *net, const char *layer, const char *suffix, tn_shape shape,
                        tn_init init);
tn_node *tn_layer_running(const tn_net *net, const char *layer, const char *suffix, tn_shape shape,
                          double value);

/* Returns `rule` as for a matrix of these fans, whatever the shape of what it is a part of. */
tn_init tn_layer_init_of(tn_init rule, double in, double out);

#define TN_LAYER(name) extern const tn_layer tn_layer_##name;
#include "nn/layer/layers.def"
#undef TN_LAYER
