/* node.h - one value of a graph: its operator, operands, matrix and gradient. */
#ifndef TN_NN_NODE_H
#define TN_NN_NODE_H

#include "nn/vec/real.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct tn_graph tn_graph;
typedef struct tn_node tn_node;
typedef struct tn_op tn_op;

typedef struct tn_shape {
    uint32_t rows;
    uint32_t cols;
} tn_shape;

struct tn_node {
    const tn_op *op;  /* NULL: a leaf, whose val is set from outside */
    const char *name; /* unique in the graph; "deep.1" */
    tn_node **in;     /* operands, then parameters, all older than this node */
    uint32_t n_in;
    bool is_param;   /* a leaf that does not follow the batch */
    bool is_state;   /* a running value: `grad` takes its new value instead of a gradient */
    bool grad_alone; /* nobody but first_writer adds to grad */
    tn_shape shape;
    uint32_t stride; /* floats from one row of val (and grad) to the next; >= cols: a node may
                      * live inside the matrix of the concat that it feeds */
    tn_real *val;    /* owned by the graph or, in a parameter, lent to it */
    tn_real *grad;   /* likewise; NULL when nothing upstream is trained */
    const tn_node *first_writer; /* backward: whose part of grad comes first and is assigned, so
                                  * that grad need not be cleared; NULL: it is cleared */
    void *attr;                  /* the operator's constants; owned by the graph */
    void *state; /* the operator's scratch (masks, statistics); owned by the graph */
    tn_graph *graph;
    struct tn_node_place *place; /* the graph's own notes: graphcore.h */
};

/* What an operator may ask about the step that runs. */
typedef struct tn_step_info {
    uint64_t seed;
    uint64_t step;      /* 0-based, for random streams */
    uint64_t first_row; /* of this batch in the joint batch */
    bool training;
} tn_step_info;
const tn_step_info *tn_info(const tn_node *self);
/* Whether running values move: a training step over rows whose weights are not all 0. */
bool tn_moves(const tn_node *self);

static inline tn_real *tn_val_row(const tn_node *n, size_t row)
{
    return n->val + row * n->stride;
}

static inline tn_real *tn_grad_row(const tn_node *n, size_t row)
{
    return n->grad + row * n->stride;
}

static inline void tn_clear(tn_real *row, size_t n)
{
    memset(row, 0, n * sizeof *row);
}

/* Whether self's backward adds to the operand's gradient or, as its first writer, assigns all of
 * it. */
static inline bool tn_adds(const tn_node *self, const tn_node *operand)
{
    return operand->first_writer != self;
}

#endif
