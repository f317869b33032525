/* graph.h - a network as a list of nodes, in the order they were made.
 *
 * A node can only use older nodes, so the list is already in topological order: forward walks it
 * up, backward walks it down. There is no sort, no visited set, no recursion.
 *
 *     tn_graph *g = tn_graph_new(&(tn_graph_opts){.max_rows = 1024, .team = team, .train = true});
 *     tn_node *x = tn_input(g, "x", 13, false);            [B,13], set per batch
 *     tn_node *w = tn_param(g, params, "out.W", ...);      trained
 *     tn_node *z = tn_apply(g, &tn_op_matmul, "out", TN_IN(x, w), NULL);      nn/op/ops.h
 *     TN_TRY(tn_graph_finish(g, &(tn_wanted){...}, err));  nn/passes/finish.h
 *     tn_forward(g, &feed);  tn_backward(g);               ... use the parameters' gradients ...
 *     tn_graph_free(g);
 *
 * The passes (nn/passes/graph_passes.c): drop what no wanted output needs, fold batch norm into the
 * dense layer before it when weights are final, fuse dense = GEMM + bias + activation, fold
 * constants, make one of equal values and drop scales by 1, place concat's operands inside its
 * matrix, plan memory by liveness (forward-only graphs reuse buffers). A step allocates nothing.
 *
 * One thread uses a graph at a time; the team works inside the calls. Parameters
 * (nn/graph/params.h) outlive the graph and may be shared by several, to train and to evaluate.
 */
#pragma once

#include "nn/gemm/gemm.h"
#include "nn/graph/op.h"

typedef struct tn_init tn_init;     /* base/keys/init.h */
typedef struct tn_params tn_params; /* nn/graph/params.h */
typedef struct tn_sparse tn_sparse; /* nn/graph/embed.h */
typedef struct tn_team tn_team;     /* base/thread/team.h */
typedef struct tn_trace tn_trace;   /* base/trace/trace.h */

/* L = sum of w_i l_i over the rows, divided by W: the sum of w_i, 1, or the rows. */
typedef enum tn_reduction { TN_REDUCE_MEAN, TN_REDUCE_SUM, TN_REDUCE_ROWS } tn_reduction;

enum { TN_COLS_MAX = 1 << 20 }; /* bound for a node of a graph out of a file */

typedef struct tn_graph_opts {
    uint32_t max_rows;
    bool train;     /* false: forward only; dropout is gone, norms use running values */
    bool frozen;    /* with !train: weights are final at tn_graph_finish, so norms fold into them */
    bool no_passes; /* for tests: the graph as it was written */
    tn_reduction reduction;
    tn_products_choice products; /* the maker of matrix products */
    bool bf16;                   /* layers of more than one column multiply in bfloat16: gemm.h */
    bool shares; /* with !train and no team: weights are final at tn_graph_finish, and rows may have
                  * slots in common (tn_graph_feed.shared) */
    uint64_t seed;
    tn_team *team; /* must outlive the graph; NULL: the calling thread alone */
} tn_graph_opts;

/* The part that all rows of a batch have in common, as candidates of one user have: slots whose
 * bags hold the same entries for every row, and numeric columns of one value. It is pooled once for
 * a tile, and products multiply it once (nn/op/productsplit.h): their sums are then cut in two, so
 * that their rounding differs from that of rows by themselves. */
typedef struct tn_shared {
    const bool *slot;    /* flags of slots of the schema */
    const bool *numeric; /* columns of the feed */
} tn_shared;

/* The labels of a batch for one of several losses, and the share of each row's weight that counts
 * there (base/keys/tasks.h). */
typedef struct tn_feed_task {
    const tn_real *label;
    const tn_real *factor;
} tn_feed_task;

/* The inputs of one batch. Everything is lent until the call returns. */
typedef struct tn_graph_feed {
    uint32_t rows; /* at most max_rows; 0 is legal and does nothing, but for peers */
    const tn_sparse *sparse;
    const tn_shared *shared;  /* NULL: nothing is. Only with opts.shares */
    const tn_real *numeric;   /* rows * n_numeric */
    const tn_real *label;     /* rows; NULL when no loss is wanted */
    const tn_feed_task *task; /* in its place, with several losses, by tn_node_set_task */
    const uint64_t *group;    /* rows: of losses of pairs; NULL: TN_NO_GROUP for all */
    const tn_real *weight;    /* rows; NULL when all are 1 */
    /* rows of the batches of all peers that make one step; 0: only this one */
    uint64_t joint_rows;
    double joint_weight; /* likewise; the loss is divided by these */
    const struct tn_feed_peers
        *peers; /* peer_column_stats.h; NULL: this batch's statistics alone */
    tn_step_info info;
} tn_graph_feed;

tn_graph *tn_graph_new(const tn_graph_opts *opts);
/* One that never ends the process (base/core/arena.h): a caller that adds to it reserves first, for
 * so many nodes and parameters, `bytes` of their names and `n_in` operands in all. */
tn_status tn_graph_open(tn_graph **out, const tn_graph_opts *opts, tn_error *err) TN_MUST_USE;
tn_status tn_graph_reserve(tn_graph *g, uint32_t nodes, uint32_t n_in, size_t bytes,
                           tn_error *err) TN_MUST_USE;
void tn_graph_free(tn_graph *g); /* NULL is fine */

/* For operator files: what the running batch brought. */
const tn_graph_feed *tn_feed_of(const tn_node *self);
/* Returns the labels that a loss reads; NULL: none are wanted. */
const tn_real *tn_label_of(const tn_node *loss);
/* From here on the loss reads the labels of that task of the feed. */
void tn_node_set_task(tn_node *loss, uint32_t task);
uint32_t tn_max_rows(const tn_node *self); /* most rows of the node */

/* Leaves. `params` NULL: the graph's own (for examples and tests). */
tn_node *tn_input(tn_graph *g, const char *name, uint32_t cols,
                  bool wants_grad); /* [B,cols], val set from outside */
/* The same of positions, for tests: rows are those of `positions`. */
tn_node *tn_input_positions(tn_graph *g, const char *name, uint32_t cols, tn_positions positions,
                            bool wants_grad);
tn_node *tn_param(tn_graph *g, tn_params *params, const char *name, tn_shape shape, tn_init init);
/* The same, but of one that this made before, by the same name, whatever the chapter. */
tn_node *tn_shared_param(tn_graph *g, tn_params *params, const char *name, tn_shape shape,
                         tn_init init);
/* Adds a running value: saved and sent like a weight, touched by no optimizer. Begins as
 * `value`. */
tn_node *tn_running(tn_graph *g, tn_params *params, const char *name, tn_shape shape, double value);
/* tn_params_freeze for a parameter node (a bias right in front of a batch norm). */
void tn_param_freeze(tn_node *param);

/* For operator files: adds a node with `n` operands (parameters included). `attr` is copied.
 * `name` is copied; NULL: made from the operator's name and a number. */
tn_node *tn_apply(tn_graph *g, const tn_op *op, const char *name, tn_node *const *in, uint32_t n,
                  const void *attr);

/* As tn_apply, but NULL when shapes do not fit. For graphs out of files. */
tn_node *tn_try_apply(tn_graph *g, const tn_op *op, const char *name, tn_node *const *in,
                      uint32_t n, const void *attr);
uint32_t tn_params_max(const tn_op *op);    /* how many parameters a node of `op` may have */
bool tn_takes(const tn_op *op, uint32_t n); /* whether `n` operands and parameters can be right */

/* Lists of layers are written by users, who may call two things the same, or write too many. A
 * graph keeps the first such fault, and whatever is added afterwards only serves to go on; NULL:
 * none. tn_graph_finish takes it for a bug. */
const char *tn_graph_fault(const tn_graph *g);
/* From here on it is a fault to ask for a parameter that was made before. Else it is shared, as is
 * one of tn_shared_param. */
void tn_graph_chapter(tn_graph *g);

/* Work on every node is a span of its name in the lanes of the team. After tn_graph_finish. */
void tn_graph_trace(tn_graph *g, tn_trace *trace);

/* Sums the weights of a batch, by index; a NULL `weight` is 1 everywhere. */
double tn_weight_sum(const tn_real *weight, uint32_t rows);

void tn_forward(tn_graph *g, const tn_graph_feed *feed);

/* Returns the loss of the last forward: sum of w_i l_i over the rows, divided by W (of the joint
 * batch, if it is part of one). In double, by index. */
double tn_graph_loss(const tn_graph *g);

/* Clears all gradients, then adds: parameters' grads in params, rows' grads in sparse->grads. */
void tn_backward(tn_graph *g);

/* Name of the first node whose value (or gradient) is not finite, or NULL. For messages. */
const char *tn_graph_not_finite(const tn_graph *g);

/* Returns whether the latest backward has left finite gradients of all rows of the batch. */
bool tn_graph_rows_finite(const tn_graph *g);

tn_node *tn_graph_node(const tn_graph *g, uint32_t i);       /* NULL past the end */
tn_node *tn_graph_find(const tn_graph *g, const char *name); /* NULL: none */
