/* ops.h - the functions that put operators on a graph, with the shapes they take and give.
 *
 * B is the batch. Names are copied; NULL makes one from the operator's name and a number. A node's
 * operands are older than it; parameters come from tn_param and tn_running. Shapes that do not fit
 * are bugs (asserted). Formulas stand on top of the files of operators and in docs/numerics.md.
 */
#ifndef TN_NN_OPS_H
#define TN_NN_OPS_H

#include "nn/graph/graph.h" /* IWYU pragma: export */

/* Leaves are in graph.h; tn_embed and tn_numeric in embed.h. */

/* Linear. matmul, bias and an activation behind each other become one `dense` when the graph is
 * finished. */
/* x W: [B,n] [n,m] -> [B,m];  x + b: [B,n] [1,n] -> [B,n] */
tn_node *tn_matmul(tn_graph *g, const char *name, tn_node *x, tn_node *w);
tn_node *tn_bias(tn_graph *g, const char *name, tn_node *x, tn_node *b);

typedef struct tn_dense_attr {
    uint32_t activation; /* 0 none, 1 relu, 2 leaky_relu, 3 sigmoid, 4 tanh */
    double slope;        /* of leaky_relu */
} tn_dense_attr;
/* act(x W + b); b may be NULL.                                           [B,n] -> [B,m] */
tn_node *tn_dense(tn_graph *g, const char *name, tn_node *x, tn_node *const wb[2],
                  const tn_dense_attr *attr);
/* Whether n is an activation that a dense layer can do itself, and as which. */
bool tn_dense_activation(const tn_node *n, tn_dense_attr *out);

/* Activations, [B,n] -> [B,n]. tn_activate: one without parameters by the name of its operator,
 * leaky_relu with slope .01; NULL: none of that name. */
tn_node *tn_activate(tn_graph *g, const char *name, tn_node *x, const char *activation);
tn_node *tn_prelu(tn_graph *g, const char *name, tn_node *x, tn_node *a); /* a [1,n], init .25 */

/* Norms. params as listed: gamma, beta [1,n] from tn_param; mean, var .. [1,n] from tn_running. */
typedef struct tn_batch_norm_attr {
    double epsilon; /* 1e-5 */
    double decay;   /* .9: the fraction of the running value that is kept */
    bool unbiased;  /* true: var enters the running value as var * B / (B - 1) */
} tn_batch_norm_attr;
/* gamma (init 1), beta (0), mean (0), var (1); attr NULL: the defaults */
tn_node *tn_batch_norm(tn_graph *g, const char *name, tn_node *x, tn_node *const params[4],
                       const tn_batch_norm_attr *attr);
/* x (alpha + (1 - alpha) sigmoid(bn(x))): alpha [1,n] (init 0), mean (0), var (1) */
tn_node *tn_dice(tn_graph *g, const char *name, tn_node *x, tn_node *const params[3]);

typedef struct tn_data_norm_attr {
    double epsilon;   /* 1e-5 */
    double max_count; /* 1e6 */
} tn_data_norm_attr;
/* gamma (1), beta (0), sums [6,n] (state, 0: see tn_wide_get: n, mean, M2 as pairs of high and low
 * part) */
tn_node *tn_data_norm(tn_graph *g, const char *name, tn_node *x, tn_node *const params[3],
                      const tn_data_norm_attr *attr);
tn_node *tn_layer_norm(tn_graph *g, const char *name, tn_node *x, tn_node *const params[2],
                       double epsilon); /* gamma (1), beta (0); epsilon 1e-5 */
/* (x - mean) / max(s, 1e-12) by the rows before the batch; sums [6,n] (state, 0). Stops adding
 * after `freeze_rows` (1e6). No gradient. */
tn_node *tn_zscore(tn_graph *g, const char *name, tn_node *x, tn_node *sums, double freeze_rows);

/* p: the probability to become 0; gone when the graph does not train.            [B,n] -> [B,n] */
tn_node *tn_dropout(tn_graph *g, const char *name, tn_node *x, double p);

/* Elementwise and columns. */
tn_node *tn_add(tn_graph *g, const char *name, tn_node *const *in,
                uint32_t n); /* n x [B,m] -> [B,m] */
tn_node *tn_mul(tn_graph *g, const char *name, tn_node *a,
                tn_node *b); /* [B,n] [B,n] -> [B,n]; b may be [B,1] */
tn_node *tn_concat(tn_graph *g, const char *name, tn_node *const *in,
                   uint32_t n); /* -> [B, sum of cols] */
tn_node *tn_slice(tn_graph *g, const char *name, tn_node *x, uint32_t first,
                  uint32_t cols);                                /* -> [B,cols] */
tn_node *tn_sum_cols(tn_graph *g, const char *name, tn_node *x); /* [B,n] -> [B,1] sum of a row */
tn_node *tn_scale(tn_graph *g, const char *name, tn_node *x, double by,
                  double plus);                                 /* by * x + plus */
tn_node *tn_softmax(tn_graph *g, const char *name, tn_node *x); /* over each row */

/* Interactions of slots' vectors.
 *
 *     x    | v_1 | v_2 | .. | v_f |          one vector of length `dim` per slot: fm and its like
 *     x    | A_11 A_12 .. A_1f | A_21 .. |   f vectors per slot, one for each slot: ffm
 */
/* Of vectors of length `dim`, x [B,f*dim]. */
tn_node *tn_fm(tn_graph *g, const char *name, tn_node *x, uint32_t dim); /* -> [B,1] */
/* tn_fm over values: x an embedding of slots pooled by sum, and its squares, as wide as it. */
tn_node *tn_fm_values(tn_graph *g, const char *name, tn_node *const x_squares[2], uint32_t dim);
tn_node *tn_embed_squares(tn_graph *g, const char *name, tn_node *x);
tn_node *tn_embed_norm(tn_graph *g, const char *name, tn_node *x); /* 1 / sum x_j^2 -> [B,1] */
/* Of f fields with a vector for each field: x [B,f*f*dim]; of the values within a field. -> [B,1]
 */
tn_node *tn_ffm(tn_graph *g, const char *name, tn_node *x, uint32_t fields, uint32_t dim);
tn_node *tn_ffm_within(tn_graph *g, const char *name, tn_node *const x_squares[2], uint32_t fields,
                       uint32_t dim);
tn_node *tn_inner(tn_graph *g, const char *name, tn_node *x, uint32_t dim); /* [B,f*(f-1)/2] */
tn_node *tn_bi_interaction(tn_graph *g, const char *name, tn_node *x, uint32_t dim); /* [B,dim] */

/* Cross v1: x0 (x w) + b + x; w, b [1,n].                                [B,n] [B,n] -> [B,n] */
tn_node *tn_cross(tn_graph *g, const char *name, tn_node *const x0_x[2], tn_node *const wb[2]);
/* x0 * h + x. Cross v2: h = matmul + bias of x, low rank by two matmuls. [B,n] x 3 -> [B,n] */
tn_node *tn_cross_merge(tn_graph *g, const char *name, tn_node *x0, tn_node *h, tn_node *x);

/* Loss per row, from the logit and the feed's labels; weights enter by tn_wanted.loss. [B,1] ->
 * [B,1] */
typedef struct tn_bce_attr {
    double pos_weight;      /* 1 */
    double label_smoothing; /* 0 */
} tn_bce_attr;
tn_node *tn_bce(tn_graph *g, const char *name, tn_node *logit,
                const tn_bce_attr *attr); /* NULL: 1, 0 */

tn_shape tn_same_shape(const tn_node *y);   /* for operators: that of the first operand */
tn_shape tn_column_shape(const tn_node *y); /* one value per row of the batch */

uint32_t tn_fm_dim(const tn_node *y); /* the width of a slot's vector in a node of fm */

#define TN_OP(name) extern const tn_op tn_op_##name;
#include "nn/op/ops.def"
#undef TN_OP

/* All operators, NULL at the end. */
extern const tn_op *const tn_all_ops[];
const tn_op *tn_op_find(const char *name); /* NULL: none */

#endif
