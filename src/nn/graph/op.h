/* op.h - what an operator is, and a node: one value of a graph.
 *
 * An operator is one constant of type tn_op. Formula, shape, forward, backward,
 * cost and example are side by side; nothing else in TNet knows it exists.
 *
 * To add one:
 *   1. write src/nn/op/op_<name>.c   (copy `mul` of op_elementwise.c; `bias` when it has a
 *      parameter); one of less than 60 lines belongs in the file of its kind
 *   2. add TN_OP(<name>) to src/nn/op/ops.def, which the gradient test, the benchmark and
 *      `tnet-train --list-ops` walk: an operator whose backward is wrong cannot be merged
 *
 * Everything is a matrix of [rows x cols], row-major; rows is the batch, except in parameters and
 * in values of the positions of a sequence (tn_positions). Work is cut into tiles of fixed size:
 * tiles of rows touch only those rows, tiles of columns only those columns, so no sum depends on
 * the number of threads.
 *
 * The two laws of backward:
 *   - add into in[i]->grad (+=), never assign: a node may feed several others
 *     (or assign, as its first writer: see tn_adds, which all operators ask);
 *   - skip in[i] when in[i]->grad is NULL: that gradient is not wanted.
 */
#pragma once

#include "base/core/error.h"
#include "base/keys/bag.h"
#include "base/thread/range.h"
#include "nn/vec/real.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct tn_graph tn_graph;
typedef struct tn_node tn_node;
typedef struct tn_op tn_op;
typedef struct tn_field tn_field; /* config/field.h */

typedef struct tn_shape {
    uint32_t rows;
    uint32_t cols;
} tn_shape;

/* Positions of a sequence: the values of lists as rows of a matrix, those of one row of the batch
 * after those of the one before.
 *
 *     row of the batch    0      1    2          row 1 has none; a row costs what it holds
 *     positions           a b c       d
 *     slot's offset       0      3    3    4
 */
typedef struct tn_positions {
    uint32_t slot;    /* index in the schema: whose offsets they are */
    uint32_t max_len; /* most of one row; 0: no positions */
    uint32_t extra;   /* 1: each row has one more after these (sequence_append); else 0 */
} tn_positions;

struct tn_node {
    const tn_op *op;  /* NULL: a leaf, whose val is set from outside */
    const char *name; /* unique in the graph; "deep.1" */
    tn_node **in;     /* operands, then parameters, all older than this node */
    uint32_t n_in;
    bool is_param;   /* a leaf that does not follow the batch */
    bool is_state;   /* a running value: `grad` takes its new value instead of a gradient */
    bool grad_alone; /* nobody but first_writer adds to grad */
    tn_shape shape;
    tn_positions positions; /* max_len 0: its rows are those of the batch; else positions */
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

/* Facts that an operator may ask about the step that runs. */
typedef struct tn_step_info {
    uint64_t seed;
    uint64_t step;      /* 0-based, for random streams */
    uint64_t first_row; /* position of this batch in the joint batch */
    bool training;
} tn_step_info;
const tn_step_info *tn_info(const tn_node *self);
/* Returns whether running values move: a training step over rows whose weights are not all 0. */
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

/* Returns whether self's backward adds to the operand's gradient or, as its first writer, assigns
 * it. */
static inline bool tn_adds(const tn_node *self, const tn_node *operand)
{
    return operand->first_writer != self;
}

/* Returns the row of the operand's gradient that self adds to; its first writer clears it
 * before. */
static inline tn_real *tn_grad_row_to_add(const tn_node *self, const tn_node *operand, size_t row)
{
    tn_real *grad = tn_grad_row(operand, row);
    if (!tn_adds(self, operand)) {
        tn_clear(grad, operand->shape.cols);
    }
    return grad;
}

/* Returns whether the rows of a and b are those of the batch, or the same positions. */
static inline bool tn_same_rows(const tn_node *a, const tn_node *b)
{
    const tn_positions p = a->positions;
    const tn_positions q = b->positions;
    return p.max_len == q.max_len && (p.max_len == 0 || (p.slot == q.slot && p.extra == q.extra));
}

/* Returns the rows of n that belong to `rows` of the running batch: its positions, or the same. */
tn_range tn_rows_of(const tn_node *n, tn_range rows);

/* Adds to the gradient of one column of a parameter, if that is wanted. */
static inline void tn_add_param_grad(const tn_node *self, const tn_node *param, uint32_t col,
                                     tn_real sum)
{
    if (param->grad != NULL) {
        param->grad[col] = (tn_adds(self, param) ? param->grad[col] : 0) + sum;
    }
}

/* Result of a shape function where the operands do not fit. */
#define TN_MISFIT ((tn_shape){0, 0})

typedef void tn_rows_fn(tn_node *self, tn_range rows);
typedef void tn_cols_fn(tn_node *self, tn_range cols);
typedef void tn_block_fn(tn_node *self, const tn_row_block *block);
typedef void tn_blocks_fn(tn_node *self, const tn_row_block *block, uint32_t n);

#define TN_ANY UINT32_MAX
enum { TN_BLOCKS_TOGETHER = 4 };

/* Least epsilon that is added to a variance: without it a column of one value would be divided by
 * 0. */
#define TN_EPSILON_MIN 1e-12

/* Part of some matrices, row by row. */
typedef struct tn_act_area {
    size_t rows, cols;
    const tn_real *x; /* NULL to a slope that follows from y alone */
    tn_real *y;       /* may be x */
    tn_real *d;
    size_t x_stride, y_stride, d_stride;
    tn_real a; /* the activation's parameter */
} tn_act_area;

/* An elementwise activation without trained parameters. Where its slope follows from y alone (relu,
 * leaky_relu, sigmoid, tanh), a dense layer applies it to a tile of its product while that is still
 * in cache, and keeps no x. */
typedef struct tn_act {
    void (*forward)(const tn_act_area *area);
    void (*slope)(const tn_act_area *area); /* d *= y' */
} tn_act;

typedef struct tn_act_attr {
    double slope;
} tn_act_attr;

/* A small use on random leaves, for tests and benchmarks (tn_op_example). */
typedef struct tn_example {
    uint32_t cols;                  /* columns of each operand, and of parameters */
    const void *attr;               /* NULL: the operator has none */
    tn_node *(*build)(tn_graph *g); /* instead, where not all have one width; or NULL */
} tn_example;

/* Passes over columns, in the order of a step. Each sees all rows. The two parts are for a batch
 * that is a part of a joint one (tn_graph_feed.peers): they run before the pass of statistics after
 * them, which then finds the parts of all peers (peer_column_stats.h), also without rows. */
typedef enum tn_cols_pass {
    TN_PACK, /* before any forward, from weights alone */
    TN_FORWARD_PART,
    TN_FORWARD_COLS, /* statistics over the batch */
    TN_PREPARE,      /* before any backward, from weights alone */
    TN_BACKWARD_PART,
    TN_BACKWARD_COLS,   /* sums over the batch that `backward` needs */
    TN_BACKWARD_PARAMS, /* adds to the gradients of parameters: columns of self->grad */
    TN_COLS_PASSES,
} tn_cols_pass;

/* Members of norms besides: running values, which are their last parameters. */
typedef struct tn_norm_op {
    uint32_t n_states;   /* number of parameters, at the end, that are running values */
    uint32_t state_rows; /* rows of running values; 0: one, as all other parameters */
    /* Weights that stay as they are: self as y = x * scale + shift, one of each per column. */
    void (*affine)(const tn_node *self, tn_real *scale, tn_real *shift);
    /* Running values that stay as they are: x^ = (x - mean) * rstd, by column. */
    void (*running)(const tn_node *self, tn_range cols, tn_real *mean, tn_real *rstd);
} tn_norm_op;

/* Layout instead of work: a join's operands live side by side in its matrix, a part lives in its
 * operand's from column part(self) on. Both fall back to copies. */
typedef struct tn_layout_op {
    bool joins;
    uint32_t (*part)(const tn_node *self);
    bool trains_only; /* in forward-only graphs the node is its operand */
} tn_layout_op;

/* Members of nodes that read rows of the batch's table. Backward is after all other passes. */
typedef struct tn_sparse_op {
    bool embeds;                   /* slots side by side: its attr is a tn_embed_list (embed.h) */
    tn_block_fn *backward_rows;    /* adds to a block of the feed's grads */
    tn_blocks_fn *backward_blocks; /* instead: to TN_BLOCKS_TOGETHER blocks, the last to fewer */
} tn_sparse_op;

struct tn_op {
    const char *name;
    const char *formula;       /* one line for --list-ops: "y = x W + b" */
    uint32_t n_in;             /* operands that follow the batch; TN_ANY for one or more */
    const char *const *params; /* names of the parameters after them, NULL-terminated; or NULL */
    uint32_t n_optional;       /* number of these, at the end, that may be missing */
    const tn_field *attrs;     /* the operator's own constants as an option table; or NULL */
    size_t attr_size;
    const tn_act *act; /* an activation that a dense layer can do itself; or NULL */

    /* Rows of the node where they are not those of its operands, which then need not agree; NULL:
     * they are, and must. */
    tn_positions (*positions)(const tn_node *self);
    bool by_row; /* passes get rows of the batch, also where the node has positions (tn_rows_of) */

    tn_shape (*shape)(const tn_node *self); /* from the operands' shapes; TN_MISFIT: cannot be */
    /* size of self->state, for graph's max_rows; or NULL */
    size_t (*state_bytes)(const tn_node *self);

    /* Each NULL when there is nothing to do. Nodes in a row that have row passes only are done tile
     * by tile, all of them on one tile after the other; parameters come when all row passes of the
     * graph are over. */
    tn_rows_fn *forward;  /* writes `rows` of self->val */
    tn_rows_fn *backward; /* adds to the same rows of the operands' grad */
    tn_cols_fn *cols[TN_COLS_PASSES];

    tn_norm_op norm;
    tn_layout_op layout;
    tn_sparse_op sparse;
    bool is_loss; /* a loss of each row, from the feed's labels; no part of a model */

    uint32_t (*tile)(const tn_node *self, bool cols); /* size of a tile; NULL: the graph's rule */
    double flops_each; /* forward, of one value of self: multiply-adds times two; 0: 1 */
    /* FLOPs of the whole node, where they are no multiple; or NULL */
    double (*flops)(const tn_node *self);
    tn_example example;
};

/* Members of operator `id` whose functions are called f_forward and f_backward. */
#define TN_OP_MEMBERS(id, f) .name = #id, .forward = f##_forward, .backward = f##_backward
/* Members of an operator with constants: their table, and their struct. */
#define TN_OP_ATTRS(table, type) .attrs = (table), .attr_size = sizeof(type)

/* Returns the FLOPs of a node's forward pass. */
static inline double tn_op_flops(const tn_node *n)
{
    double each = n->op->flops_each > 0 ? n->op->flops_each : 1;
    return n->op->flops != NULL ? n->op->flops(n) : each * n->shape.rows * n->shape.cols;
}
