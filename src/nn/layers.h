/* layers.h - a layer is a function that adds nodes and named parameters to a graph.
 *
 * There is no layer object: nothing to register, resize or free. A layer is one constant in its
 * own file layer_<name>.c plus one row in layers.def; models and `type: graph` are lists of them:
 *
 *     - {name: deep1, dense: x, units: 256, activation: relu, batch_norm: true, dropout: 0.1}
 *
 * The word after the name is the layer, its value the inputs (one name, or a list, which is their
 * concat unless the layer takes several), the rest are options, read by its table.
 */
#ifndef TN_NN_LAYERS_H
#define TN_NN_LAYERS_H

#include "base/field.h"
#include "nn/graph.h"

typedef struct tn_net {
    tn_graph *g;
    tn_params *params;
    tn_init dense_init; /* of weights that name no rule of their own */
} tn_net;

/* What a layer gets. */
typedef struct tn_layer_args {
    const char *name;     /* parameters are "<name>.W", nodes "<name>", "<name>.bn", .. */
    tn_node *const *in;
    uint32_t n_in;        /* 1 unless `many` */
    const void *opts;
    const tn_tree *tree;  /* where it stands, for messages */
    tn_diag *diag;
} tn_layer_args;

typedef struct tn_layer {
    const char *name;
    const char *help;
    bool many;              /* takes its inputs one by one instead of their concat */
    const tn_field *fields;
    size_t opts_size;
    /* The last node, named args->name. NULL: a fault was reported to args->diag. */
    tn_node *(*build)(const tn_net *net, const tn_layer_args *args);
} tn_layer;

extern const tn_layer *const tn_all_layers[]; /* NULL-terminated, in the order of layers.def */
const tn_layer *tn_layer_find(const char *name);

#endif
