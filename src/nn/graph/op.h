/* op.h - what an operator is.
 *
 * An operator is one constant of type tn_op, defined together with the
 * function that puts it on a graph. Formula, shape, forward, backward, cost and
 * example stand side by side; nothing else in TNet knows it exists.
 *
 * To add one:
 *   1. write src/nn/op/op_<name>.c   (copy `mul` of op_elementwise.c; `bias` when it has a
 *      parameter); one of less than 60 lines stands in the file of its kind
 *   2. add TN_OP(<name>) to src/nn/op/ops.def and its builder to ops.h
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
 *     (or assign, as its first writer: see tn_adds, which all operators ask);
 *   - skip in[i] when in[i]->grad is NULL: that gradient is not wanted.
 */
#ifndef TN_NN_OP_H
#define TN_NN_OP_H

#include "base/core/error.h"
#include "base/thread/range.h"
#include "config/field.h"
#include "nn/graph/node.h"

#define TN_MISFIT ((tn_shape){0, 0})

typedef void tn_rows_fn(tn_node *self, tn_range rows);
typedef void tn_cols_fn(tn_node *self, tn_range cols);
typedef void tn_keys_fn(tn_node *self, tn_range keys);
typedef struct tn_act tn_act; /* activations.h */

#define TN_ANY UINT32_MAX
enum { TN_FIELDS_TILE = 8 };

/* Of what is added to a variance: without it a column of one value would be divided by 0. */
#define TN_EPSILON_MIN 1e-12

struct tn_op {
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

    /* In this order, each NULL when there is nothing to do. Column passes see all rows. Nodes in a
     * row that have row passes only are done tile by tile, all of them on one tile after the other;
     * parameters come when all row passes of the graph are over. */
    tn_cols_fn *pack;            /* before any forward, from weights alone */
    tn_cols_fn *forward_cols;    /* statistics over the batch */
    tn_rows_fn *forward;         /* writes `rows` of self->val */
    tn_cols_fn *prepare;         /* before any backward, from weights alone */
    tn_cols_fn *backward_cols;   /* sums over the batch that `backward` needs */
    tn_rows_fn *backward;        /* adds to the same rows of the operands' grad */
    tn_cols_fn *backward_params; /* adds to the gradients of parameters: columns of self->grad */
    tn_keys_fn *backward_keys;   /* after all others: adds to the same keys of the feed's grads */
    tn_cols_fn *backward_fields; /* instead: adds to blocks [from, to) of all keys' grads, of .. */
    uint32_t (*fields)(const tn_node *self); /* .. so many, cut in tiles of TN_FIELDS_TILE */

    /* Of a batch that is a part of a joint one (tn_graph_feed.peers): column passes before the two
     * of statistics, which then find the parts of all peers (peer_column_stats.h). Also without
     * rows. */
    tn_cols_fn *forward_part;
    tn_cols_fn *backward_part;

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
};

#endif
