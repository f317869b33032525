/* ops.h - all operators, and their constants. B is the batch; formulas are on top of the files of
 * operators and in docs/numerics.md.
 *
 *     tn_node *y = tn_apply(g, &tn_op_bias, "y", TN_IN(x, b), NULL);
 *     y = tn_apply(g, &tn_op_dropout, NULL, TN_IN(y), &(tn_dropout_attr){0.5});
 *
 * A node's operands are older than it; parameters, which come after them, are made by tn_param
 * and, where they are running values, by tn_running. Shapes that do not fit are bugs (asserted).
 *
 *     matmul            x, W                                [B,n] [n,m] -> [B,m]
 *     bias              x, b                                [B,n] [1,n] -> [B,n]
 *     dense             x, W, b; b may be missing; matmul, bias and an activation after each other
 *                       become one when the graph is finished
 *     relu ..           see tn_activate                     [B,n] -> [B,n]
 *     prelu             x, a (begins as .25)                likewise, as the norms
 *     batch_norm        x, gamma (1), beta (0), mean (0), var (1)
 *     dice              x, alpha (0), mean (0), var (1)
 *     data_norm         x, gamma (1), beta (0), sums (0): see tn_wide_get
 *     layer_norm        x, gamma (1), beta (0)
 *     zscore            x, sums (0): by the rows before the batch; no gradient
 *     dropout           gone when the graph does not train
 *     add, concat       any number
 *     mul               a, b                                [B,n] [B,m] -> [B,n]; m divides n:
 *                       each column of b scales n/m neighbours of a
 *     sub, div, maximum, minimum    a, b                    as mul
 *     where             c, a, b                             [B,m] [B,n] [B,n] -> [B,n]; m divides n
 *     slice, scale, softmax, sum_cols (-> [B,1]), sum_groups, max_groups (-> [B,n/dim])
 *     mix               g, e1 .. en                         [B,n] [B,m] .. -> [B,m]: sum g_i e_i
 *     both              a, b                                [B,n] [B,n] -> [B,n]
 *     cross             x0, x, w, b                         [B,n] [B,n] [1,n] [1,n] -> [B,n]
 *     cross_merge       x0, h, x                            h is matmul and bias of x
 *     of losses (nn/loss/loss.h)    score                   [B,1] -> [B,1]: the loss of each row
 *     numeric           the batch's numeric columns         -> [B,cols]
 *     constant          one number in all columns           -> [B,cols]
 *     embed ..          nn/graph/embed.h
 *
 * Sequences: P are the positions of a batch (tn_positions), after each other row by row:
 *
 *     embed_sequence    nn/graph/embed.h                    -> [P,n]
 *     sequence_mul      h, t                                [P,n] [B,n] -> [P,n]: t of h's row
 *     sequence_dense    h, t, W                             [P,n] [B,m] [n,m] -> [P,m]: h W + t
 *     sequence_append   h, t        t after the positions of each row
 *     sequence_positions  x, T      [P,n] [m,n] -> [P,n]: plus T by the position from the end
 *     sequence_softmax  x           [P,1] -> [P,1]: within a row
 *     sequence_sum      a, h        [P,1] [P,n] -> [B,n]: sum of a h
 *     sequence_pool     x           [P,n] -> [B,n]
 *     sequence_attention  q, k, v   [P,n] each -> [P,n]: within a row
 *
 * Interactions of slots' vectors:
 *
 *     x    | v_1 | v_2 | .. | v_f |          one vector of length `dim` per slot: fm and its like
 *     x    | A_11 A_12 .. A_1f | A_21 .. |   f vectors per slot, one for each slot: ffm
 *
 *     fm, ffm           x                                   -> [B,1]
 *     bi_interaction    x                                   -> [B,dim]
 *     inner             x                                   -> [B,f*(f-1)/2]
 *     outer             x                                   -> [B,dim*dim]
 *     bilinear          x, W; W may be missing              -> [B,f*(f-1)/2*dim]
 *     cin               x0, x, W, b; b may be missing       [B,m*dim] [B,h*dim] [h*m,u]
 *                                                           -> [B,u*dim]
 *     slot_dense        x, W, b; b may be missing           [B,f*dim] [dim,n] or [f*dim,n]
 *                                                           -> [B,f*n]
 *     slot_sum          x                                   -> [B,dim]
 *     slot_attention    q, k, v                             [B,f*dim] each -> [B,f*dim]
 *     ffm_inner         x                                   -> [B,f*(f-1)/2]
 *     fm_values         x, squares: an embedding of slots pooled by sum, and embed_squares of it
 *     ffm_within        x, squares: the pairs of values within a field
 *     embed_squares, embed_norm     of an embedding; the norm is 1 / sum x_j^2, [B,1]
 */
#pragma once

#include "nn/graph/graph.h" /* IWYU pragma: export */

/* Operands and parameters for tn_apply, and how many. */
#define TN_IN(...) ((tn_node *[]){__VA_ARGS__}), TN_COUNT_IN(__VA_ARGS__)
#define TN_COUNT_IN(...) (sizeof((tn_node *[]){__VA_ARGS__}) / sizeof(tn_node *))

typedef struct tn_dense_attr {
    uint32_t activation; /* 0 none, 1 relu, 2 leaky_relu, 3 sigmoid, 4 tanh */
    double slope;        /* slope of leaky_relu */
} tn_dense_attr;
/* Returns whether n is an activation that a dense layer can do itself, and as which. */
bool tn_dense_activation(const tn_node *n, tn_dense_attr *out);

/* Adds an activation without parameters by the name of its operator, leaky_relu with slope .01;
 * NULL: none of that name. */
tn_node *tn_activate(tn_graph *g, const char *name, tn_node *x, const char *activation);

typedef struct tn_batch_norm_attr {
    double epsilon;
    double decay;  /* the fraction of the running value that is kept */
    bool unbiased; /* true: var enters the running value as var * B / (B - 1) */
} tn_batch_norm_attr;

typedef struct tn_data_norm_attr {
    double epsilon;
    double max_count;
} tn_data_norm_attr;

/* A cumulative count, mean and sum of squared deviations of one column, kept as pairs of reals in
 * a state of shape [6, n]: high and low part of each. */
typedef struct tn_wide {
    double n, mean, m2;
} tn_wide;
tn_wide tn_wide_get(const tn_real *sums, uint32_t cols, uint32_t col);
void tn_wide_put(tn_real *sums, uint32_t cols, uint32_t col, tn_wide value);

typedef struct tn_layer_norm_attr {
    double epsilon;
} tn_layer_norm_attr;

typedef struct tn_zscore_attr {
    double freeze_rows; /* then it stops adding */
} tn_zscore_attr;

typedef struct tn_dropout_attr {
    double p; /* the probability to become 0 */
} tn_dropout_attr;

typedef struct tn_slice_attr {
    uint32_t first, cols;
} tn_slice_attr;

typedef struct tn_scale_attr {
    double by, plus; /* by * x + plus */
} tn_scale_attr;

typedef struct tn_numeric_attr {
    uint32_t cols, first;
    uint32_t of; /* columns of the data; 0: these alone */
} tn_numeric_attr;

typedef struct tn_constant_attr {
    double value;
    uint32_t cols;
} tn_constant_attr;

/* Constants of fm, fm_values, bi_interaction, inner, outer, bilinear, cin, slot_dense, slot_sum;
 * and of sum_groups, max_groups. */
typedef struct tn_pairs_attr {
    uint32_t dim; /* 1 .. TN_DIM_MAX; of the groups 1 .. TN_COLS_MAX */
} tn_pairs_attr;

enum { TN_ATTENTION_SLOTS_MAX = 1024 };

typedef struct tn_attention_attr {
    uint32_t dim;   /* width of the vectors that attend to each other */
    uint32_t heads; /* dim is a multiple of it */
    double scale;   /* factor of the products of queries and keys */
} tn_attention_attr;

typedef enum tn_sequence_pool {
    TN_SEQUENCE_SUM,
    TN_SEQUENCE_MEAN,
    TN_SEQUENCE_MAX,
    TN_SEQUENCE_LAST
} tn_sequence_pool;
extern const char *const tn_sequence_pool_words[]; /* NULL at the end */

typedef struct tn_sequence_pool_attr {
    uint32_t kind; /* tn_sequence_pool */
} tn_sequence_pool_attr;

enum { TN_SEQUENCE_LEN_MAX = 1024, TN_HEADS_MAX = 64 };

typedef struct tn_sequence_attention_attr {
    uint32_t heads; /* a divisor of the columns */
} tn_sequence_attention_attr;

enum { TN_FFM_FIELDS_MAX = 1024 }; /* n * n * dim is at most TN_COLS_MAX */

typedef struct tn_ffm_attr {
    uint32_t fields;
    uint32_t dim;
} tn_ffm_attr;
/* Returns whether x [B, fields * fields * dim] is an example's fields side by side. */
bool tn_ffm_fits(const tn_ffm_attr *attr, const tn_node *x);

/* For operators: the shape of the first operand, whose width all others and the parameters must
 * have; and one value per row of the batch. */
tn_shape tn_same_shape(const tn_node *y);
tn_shape tn_column_shape(const tn_node *y);

#define TN_OP(name) extern const tn_op tn_op_##name;
#include "nn/op/ops.def"
#undef TN_OP

/* All operators, those of losses last, NULL at the end. */
extern const tn_op *const tn_all_ops[];
const tn_op *tn_op_find(const char *name); /* NULL: none */

/* op->example as a node, for tests and benchmarks. */
tn_node *tn_op_example(tn_graph *g, const tn_op *op);
