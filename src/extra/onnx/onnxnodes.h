/* onnxnodes.h - the messages of onnx.proto that a graph takes, as text that grows.
 *
 *     const char *in[] = {tn_onnx_in(o, 0), tn_onnx_param(o, o->y->in[1], TN_ONNX_MATRIX)};
 *     (void)tn_onnx_put(o, out, "MatMul", in, 2, NULL);        a node of the operand and W
 *
 * Initializers and inputs are collected while nodes are written, since they follow them in the
 * model. Names live in `arena`. Nothing fails here: the texts are checked when all is written.
 */
#pragma once

#include "base/core/arena.h"
#include "base/core/text.h"
#include "nn/graph/graph.h"

enum { TN_ONNX_FLOATS = 1, TN_ONNX_INT64S = 7 };               /* TensorProto.data_type */
enum { TN_ONNX_FLOAT = 1, TN_ONNX_INT = 2, TN_ONNX_INTS = 7 }; /* AttributeProto.type */
enum { TN_ONNX_NAME = 512, TN_ONNX_RANK = 4 };

/* One attribute; NULL name: none. */
typedef struct tn_onnx_map tn_onnx_map; /* extra/onnx/onnx.h */

typedef struct tn_onnx_attr {
    const char *name;
    uint32_t type;
    float f;
    uint32_t n; /* TN_ONNX_INTS: how many */
    int64_t i[TN_ONNX_RANK];
} tn_onnx_attr;

typedef struct tn_onnx {
    const tn_graph *g;
    const struct tn_onnx_model *m; /* extra/onnx/onnx.h */
    const tn_node *logit, *pctr;   /* its outputs */
    bool calibrated;               /* they are calibrated after these nodes */
    tn_arena *arena;               /* holds names */
    tn_text nodes, inits;
    tn_text known;    /* names of initializers, each ended by NUL */
    bool *used;       /* per node of the graph: something reads it */
    uint8_t *form;    /* per parameter: 1 + the form that has its own name */
    tn_text outputs;  /* names of outputs of further tasks, each ended by NUL */
    bool unknown;     /* TN_ONNX_UNKNOWN is read */
    const tn_node *y; /* the node that is written */
    const char *word; /* the word of its row */
    uint32_t steps;   /* nodes in between that were written for it */
} tn_onnx;

/* Returns "a:b". */
const char *tn_onnx_join(tn_onnx *o, const char *a, const char *b);
/* Returns the name of a node. Outputs have fixed names; another node that has one of them is called
 * otherwise. */
const char *tn_onnx_name(tn_onnx *o, const tn_node *n);
/* Returns the name of operand i of the node that is written. */
const char *tn_onnx_in(tn_onnx *o, uint32_t i);

/* Adds nodes that calibrate `logit` into `out`, named after o->y (onnx.c). The map is one. */
void tn_onnx_put_map(tn_onnx *o, const tn_onnx_map *map, const char *logit, const char *out);

/* Adds the outputs of further tasks, after all nodes (onnxtasks.c). */
void tn_onnx_put_tasks(tn_onnx *o);

/* Adds a field that is text. */
void tn_onnx_text(tn_text *t, uint32_t number, const char *text);

/* Adds a node of n operands; `out` NULL: a step, whose name is made. Attributes end with one
 * without a name. Returns the name of its output. */
const char *tn_onnx_put(tn_onnx *o, const char *out, const char *op, const char *const *in,
                        uint32_t n, const tn_onnx_attr *a);

/* Adds an initializer. */
void tn_onnx_tensor(tn_onnx *o, const char *name, uint32_t type, uint32_t rank,
                    const int64_t dims[TN_ONNX_RANK], const void *data);

typedef enum tn_onnx_form { TN_ONNX_ROW, TN_ONNX_MATRIX, TN_ONNX_COLUMN } tn_onnx_form;

/* Returns the name of a parameter as [n], [rows, cols], or [n, 1]. One that is used in two ways is
 * there twice. */
const char *tn_onnx_param(tn_onnx *o, const tn_node *p, tn_onnx_form form);
/* Returns the name of a number, or of some whole ones, as an initializer. */
const char *tn_onnx_number(tn_onnx *o, double value);
const char *tn_onnx_whole(tn_onnx *o, uint32_t n, const int64_t *value);
