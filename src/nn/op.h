/* op.h - what an operator is.
 *
 * An operator is one constant of type tn_op, defined in its own file together
 * with the function that puts it on a graph. Formula, shape, forward, backward,
 * cost and example stand side by side; nothing else in TNet knows it exists.
 *
 * To add one:
 *   1. write src/nn/op_<name>.c      (copy op_mul.c; op_bias.c when it has a parameter)
 *   2. add TN_OP(<name>) to src/nn/ops.def and its builder to ops.h
 * The gradient test, the benchmark and `tnet-train --list-ops` walk ops.def, so
 * an operator whose backward is wrong cannot be merged.
 *
 * Everything is a matrix of [rows x cols], row-major; rows is the batch, except
 * in parameters. Work is cut into tiles of fixed size: tiles of rows touch only
 * those rows, tiles of columns only those columns, so no sum depends on the
 * number of threads.
 *
 * The two laws of backward:
 *   - add into in[i]->grad (+=), never assign: a node may feed several others
 *     (the graph clears gradients, or tells the first writer to assign: see tn_adds);
 *   - skip in[i] when in[i]->grad is NULL: nobody wants that gradient.
 */
#ifndef TN_NN_OP_H
#define TN_NN_OP_H

#include "base/error.h"
#include "base/field.h"
#include "base/range.h"
#include "nn/real.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct tn_graph tn_graph;
typedef struct tn_node tn_node;

typedef struct tn_shape {
    uint32_t rows;
    uint32_t cols;
} tn_shape;

#define TN_MISFIT ((tn_shape){0, 0})

typedef void tn_rows_fn(tn_node *self, tn_range rows);
typedef void tn_cols_fn(tn_node *self, tn_range cols);
typedef void tn_keys_fn(tn_node *self, tn_range keys);
typedef struct tn_act tn_act; /* act.h */

#define TN_ANY UINT32_MAX

typedef struct tn_op {
    const char *name;
    const char *formula;       /* one line for --list-ops: "y = x W + b" */
    uint32_t n_in;             /* operands that follow the batch; TN_ANY for one or more */
    const char *const *params; /* names of the parameters behind them, NULL-terminated; or NULL */
    uint32_t n_optional;       /* of these, at the end, that may be missing */
    const tn_field *attrs;     /* the operator's own constants as an option table; or NULL */
    size_t attr_size;
    const tn_act *act; /* an activation that a dense layer can do itself; or NULL */

    tn_shape (*shape)(const tn_node *self); /* from the operands' shapes; TN_MISFIT: cannot be */
    size_t (*state_bytes)(const tn_node *self); /* of self->state, for graph's max_rows; or NULL */

    /* In this order, each NULL when there is nothing to do. Column passes see all rows. */
    tn_cols_fn *forward_cols;    /* statistics over the batch */
    tn_rows_fn *forward;         /* writes `rows` of self->val */
    tn_cols_fn *backward_cols;   /* sums over the batch; gradients of parameters that others need */
    tn_rows_fn *backward;        /* adds to the same rows of the operands' grad */
    tn_cols_fn *backward_params; /* adds to the gradients of parameters: columns of self->grad */
    tn_keys_fn *backward_keys;   /* after all others: adds to the same keys of the feed's grads */

    /* Layout instead of work: a join's operands live side by side in its matrix, a part lives in
     * its operand's from column part(self) on. Both fall back to copies. */
    bool joins;
    uint32_t (*part)(const tn_node *self);

    /* Forward-only graphs: the older node that self is equal to, or NULL. */
    tn_node *(*at_rest)(tn_node *self);
    /* Weights that stay as they are: self as y = x * scale + shift, one of each per column. */
    void (*affine)(const tn_node *self, tn_real *scale, tn_real *shift);

    uint32_t (*tile)(const tn_node *self, bool cols); /* size of a tile; NULL: the graph's rule */
    double (*flops)(const tn_node *self); /* multiply-adds times two, forward; NULL: rows * cols */
    tn_node *(*example)(tn_graph *graph); /* a small use on random leaves, for tests, benchmarks */
} tn_op;

struct tn_node {
    const tn_op *op;  /* NULL: a leaf, whose val is set from outside */
    const char *name; /* unique in the graph; "deep.1" */
    tn_node **in;     /* operands, then parameters, all older than this node */
    uint32_t n_in;
    bool is_param;   /* a leaf that does not follow the batch */
    bool is_state;   /* a running value: `grad` takes its new value instead of a gradient */
    bool grad_fresh; /* backward: nothing has been added to grad yet, so assign (see tn_adds) */
    tn_shape shape;
    uint32_t stride; /* floats from one row of val (and grad) to the next; >= cols: a node may
                      * live inside the matrix of the concat that it feeds */
    tn_real *val;    /* owned by the graph or, in a parameter, lent to it */
    tn_real *grad;   /* likewise; NULL when nothing upstream is trained */
    void *attr;      /* the operator's constants; owned by the graph */
    void *state;     /* the operator's scratch (masks, statistics); owned by the graph */
    tn_graph *graph;
    struct tn_place *place; /* the graph's own notes: graphcore.h */
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

/* Whether backward adds to n->grad or, as its first writer, assigns all of it. */
static inline bool tn_adds(const tn_node *n)
{
    return !n->grad_fresh;
}

#endif
