/* op_dense.c - matrix products: matmul, and dense, which adds bias and activation in one pass over
 * a tile.
 *
 *   forward     y   = act(x W + b)                      tiles of rows
 *   backward    dz  = dy act'(y), in place of dy        tiles of rows
 *               dx += dz W^T                            the same rows
 *               db += column sums of dz                 tiles of columns, all rows
 *               dW += x^T dz                            the same columns
 *
 * matmul has dz = dy, as has a dense layer without activation. W^T is written out once per step,
 * before backward: products read it row by row.
 *
 * In bfloat16 (opts.bf16) both factors are rounded: weights once per step, as they are for y and
 * transposed for dx; activations and their gradients tile by tile. Sums are floats, as are the
 * weights that the optimizer sees. All tiles are cut by shape, so bits do not depend on threads.
 * Rounded weights lie in the node's state:
 *
 *     [ (k+1)/2 rows of n words, for y | (n+1)/2 rows of k words, for dx ]    rows padded to lines
 */
#include "nn/graph/graphcore.h"

#include "base/core/compiler.h"
#include "base/keys/init.h"
#include "config/field.h"
#include "nn/gemm/gemm.h"
#include "nn/graph/params.h"
#include "nn/op/productsplit.h"
#include "nn/op/sequence.h"

enum {
    LINE = 16,   /* words */
    ROWS = 24,   /* rows of activations that are rounded at once */
    WORDS = 256, /* and words of them; the kernels' depth */
    BATCH = 128, /* rows of the batch under dW at once */
    COLS = 128,  /* and columns */
};

/* W, the first parameter. */
static tn_node *weights_of(const tn_node *y)
{
    return y->in[y->op->n_in];
}

/* Returns whether y = x W multiplies so: W is no single column. */
static bool bf16_wanted(const tn_node *y)
{
    return y->graph->opts.bf16 && weights_of(y)->shape.cols > 1;
}

static size_t padded(size_t n)
{
    return (n + LINE - 1) / LINE * LINE;
}

/* Returns rounded weights for y. */
static tn_product packed(const tn_node *y)
{
    return (tn_product){y->state, padded(weights_of(y)->shape.cols), false};
}

/* Returns transposed weights for dx, which follow the rounded ones for y. */
static tn_product transposed(const tn_node *y)
{
    tn_shape w = weights_of(y)->shape;
    size_t before = bf16_wanted(y) ? tn_bf16_words(w.rows) * padded(w.cols) : 0;
    return (tn_product){(tn_real *)y->state + before, padded(w.rows), false};
}

/* c (+)= a b, with b in words: a is rounded piece by piece. */
static void multiply_rounded(const tn_products *by, tn_dims d, tn_mat a, tn_product b, tn_product c)
{
    _Alignas(64) tn_real words[ROWS * WORDS];
    for (size_t i = 0; i < d.m; i += ROWS) {
        size_t rows = d.m - i < ROWS ? d.m - i : ROWS;
        for (size_t p = 0; p < d.k; p += (size_t)2 * WORDS) {
            size_t terms = d.k - p < (size_t)2 * WORDS ? d.k - p : (size_t)2 * WORDS;
            tn_bf16_rows(rows, terms, (tn_mat){a.at + i * a.stride + p, a.stride, false},
                         (tn_product){words, WORDS, false});
            by->multiply(by, &(tn_factors){.d = {rows, d.n, tn_bf16_words(terms)},
                                           .a = {words, WORDS, false},
                                           .b = {b.at + p / 2 * b.stride, b.stride, true},
                                           .c = {c.at + i * c.stride, c.stride, c.add || p > 0}});
        }
    }
}

/* Computes one piece: `rows` of the batch, `cols` of dW; its rows COLS at a time. */
static void piece_of_weights(tn_node *y, tn_range cols, tn_range rows, bool add)
{
    _Alignas(64) tn_real left[BATCH / 2 * COLS];
    _Alignas(64) tn_real right[BATCH / 2 * COLS];
    const tn_node *x = y->in[0];
    const tn_node *w = weights_of(y);
    const tn_products *by = &y->graph->halves;
    size_t n = cols.to - cols.from;
    size_t k = rows.to - rows.from;
    tn_bf16_pairs(k, n, (tn_mat){tn_grad_row(y, rows.from) + cols.from, y->stride, false},
                  (tn_product){right, COLS, false});
    for (size_t i = 0; i < w->shape.rows; i += COLS) {
        size_t m = w->shape.rows - i < COLS ? w->shape.rows - i : COLS;
        tn_bf16_pairs(k, m, (tn_mat){tn_val_row(x, rows.from) + i, x->stride, false},
                      (tn_product){left, COLS, false});
        by->multiply(by, &(tn_factors){.d = {m, n, tn_bf16_words(k)},
                                       .a = {left, COLS, false},
                                       .b = {right, COLS, true},
                                       .c = {w->grad + i * w->stride + cols.from, w->stride, add},
                                       .transposed = true});
    }
}

static void bf16_weights(tn_node *y, tn_range cols, tn_range rows)
{
    bool adds = rows.from > 0 || tn_adds(y, weights_of(y));
    for (uint32_t r = rows.from; r < rows.to; r += BATCH) {
        tn_range part = {r, rows.to - r < BATCH ? rows.to : r + BATCH};
        for (uint32_t c = cols.from; c < cols.to; c += COLS) {
            piece_of_weights(y, (tn_range){c, cols.to - c < COLS ? cols.to : c + COLS}, part,
                             adds || r > rows.from);
        }
    }
}

/* Batches are powers of two more often than not, and so are teams. A tile of columns reads all of x
 * once, so it is not narrower than it takes for a few threads to share the first layer of a small
 * net. */
enum { TILE_ROWS = 64, TILE_COLS = 96, TILE_COLS_SMALL = 32, SMALL = 128 };

static tn_shape product_shape(const tn_node *y)
{
    tn_shape x = y->in[0]->shape;
    tn_shape w = weights_of(y)->shape;
    return x.cols == w.rows ? (tn_shape){x.rows, w.cols} : TN_MISFIT;
}

static uint32_t product_tile(const tn_node *y, bool cols)
{
    if (!cols) {
        return TILE_ROWS;
    }
    /* positions are so many that they are read from memory, which is to be done once */
    const bool is_small = y->shape.cols <= SMALL && y->positions.max_len == 0;
    return is_small ? TILE_COLS_SMALL : TILE_COLS;
}

/* Returns the bytes without the room to split it. */
static size_t own_state_bytes(const tn_node *y)
{
    tn_shape w = weights_of(y)->shape;
    bool halves = bf16_wanted(y);
    size_t words = halves ? tn_bf16_words(w.rows) * padded(w.cols) : 0;
    if (y->graph->opts.train) {
        words += (halves ? tn_bf16_words(w.cols) : w.cols) * padded(w.rows);
    }
    return words * sizeof(tn_real);
}

static size_t product_state_bytes(const tn_node *y)
{
    return own_state_bytes(y) + tn_split_bytes(y);
}

static double product_flops(const tn_node *y)
{
    tn_shape w = weights_of(y)->shape;
    return 2.0 * y->shape.rows * w.rows * w.cols;
}

/* Rounds W before forward where products are in bfloat16. */
static void product_pack(tn_node *y, tn_range cols)
{
    const tn_node *w = weights_of(y);
    tn_product to = packed(y);
    if (bf16_wanted(y)) {
        to.at += cols.from;
        tn_bf16_pairs(w->shape.rows, cols.to - cols.from,
                      (tn_mat){w->val + cols.from, w->stride, false}, to);
    }
}

/* to (+)= x w, with the weights as `bf16_wanted` says. */
static void multiply_by(const tn_node *y, tn_dims d, tn_mat x, tn_product w, tn_product to)
{
    if (bf16_wanted(y)) {
        multiply_rounded(&y->graph->halves, d, x, w, to);
    } else {
        tn_gemm(&y->graph->products, d, x, (tn_mat){w.at, w.stride, false}, to);
    }
}

/* y = x W, where rows have columns of x in common: those are multiplied before the first row. */
static void split_forward(tn_node *y, tn_product_split *s, tn_range rows)
{
    const size_t n = weights_of(y)->shape.cols;
    if (rows.from == 0) {
        tn_split_weights(y, s, bf16_wanted(y));
        multiply_by(y, (tn_dims){1, n, s->n_shared}, tn_split_shared(y, s), s->shared,
                    (tn_product){s->base, n, false});
    }
    tn_split_begin(y, s, rows);
    if (s->n_own > 0) {
        multiply_by(y, (tn_dims){rows.to - rows.from, n, s->n_own}, tn_split_own(y, s, rows),
                    s->own, (tn_product){tn_val_row(y, rows.from), y->stride, true});
    }
}

/* Multiplies row by row, of words (gemm.h): three rows take longer than all of W once. */
static bool few_by_words(const tn_node *y, tn_range rows)
{
    enum { FEW = 2 };
    const tn_node *w = weights_of(y);
    const tn_real *words =
        rows.to - rows.from <= FEW ? tn_params_words(w->place->params, w->place->slice) : NULL;
    bool done = words != NULL;
    for (size_t r = rows.from; done && r < rows.to; r++) {
        done = tn_gemm_words(&y->graph->products, w->shape.rows, w->shape.cols,
                             tn_val_row(y->in[0], r), words, tn_val_row(y, r));
    }
    return done;
}

/* y = x W */
static void product_forward(tn_node *y, tn_range rows)
{
    const tn_node *w = weights_of(y);
    tn_product_split *split = tn_split_find(y, rows, own_state_bytes(y));
    if (split != NULL) {
        split_forward(y, split, rows);
        return;
    }
    if (few_by_words(y, rows)) {
        return;
    }
    tn_dims d = {rows.to - rows.from, w->shape.cols, w->shape.rows};
    tn_mat x = {tn_val_row(y->in[0], rows.from), y->in[0]->stride, false};
    tn_product to = {tn_val_row(y, rows.from), y->stride, false};
    multiply_by(y, d, x, bf16_wanted(y) ? packed(y) : (tn_product){w->val, w->stride, false}, to);
}

/* dx += dy W^T */
static void product_backward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    if (x->grad == NULL) {
        return;
    }
    tn_shape w = weights_of(y)->shape;
    tn_dims d = {rows.to - rows.from, w.rows, w.cols};
    tn_mat dy = {tn_grad_row(y, rows.from), y->stride, false};
    tn_product to = {tn_grad_row(x, rows.from), x->stride, tn_adds(y, x)};
    const tn_product t = transposed(y);
    if (bf16_wanted(y)) {
        multiply_rounded(&y->graph->halves, d, dy, t, to);
    } else {
        tn_gemm(&y->graph->products, d, dy, (tn_mat){t.at, t.stride, true}, to);
    }
}

/* Writes W^T before backward. Columns come in whole vectors, none with another tile's. */
static void product_transpose(tn_node *y, tn_range cols)
{
    const tn_node *w = weights_of(y);
    tn_mat from = {w->val + cols.from, w->stride, false};
    tn_product to = transposed(y);
    if (y->in[0]->grad != NULL && bf16_wanted(y)) {
        TN_ASSERT(cols.from % 2 == 0);
        to.at += cols.from / 2 * to.stride;
        tn_bf16_pairs_transposed(w->shape.rows, cols.to - cols.from, from, to);
    } else if (y->in[0]->grad != NULL) {
        to.at += cols.from * to.stride;
        tn_transpose(w->shape.rows, cols.to - cols.from, from, to);
    }
}

/* dW += x^T dy: columns `cols` of it, by `rows` of the batch, which come in ascending order. */
static void product_weights(tn_node *y, tn_range cols, tn_range rows)
{
    const tn_node *x = y->in[0];
    const tn_node *w = weights_of(y);
    if (w->grad != NULL && bf16_wanted(y)) {
        bf16_weights(y, cols, rows);
    } else if (w->grad != NULL) {
        tn_dims d = {w->shape.rows, cols.to - cols.from, rows.to - rows.from};
        tn_gemm_at(&y->graph->products, d, (tn_mat){tn_val_row(x, rows.from), x->stride, false},
                   (tn_mat){tn_grad_row(y, rows.from) + cols.from, y->stride, false},
                   (tn_product){w->grad + cols.from, w->stride, rows.from > 0 || tn_adds(y, w)});
    }
}

static void matmul_backward_params(tn_node *y, tn_range cols)
{
    product_weights(y, cols, (tn_range){0, y->shape.rows});
}

static tn_node *matmul_example(tn_graph *g)
{
    tn_node *w = tn_param(g, NULL, NULL, (tn_shape){5, 3}, (tn_init){.kind = TN_INIT_CONSTANT});
    return tn_apply(g, &tn_op_matmul, NULL, TN_IN(tn_input(g, NULL, 5, true), w), NULL);
}

static const char *const matmul_params[] = {"W", NULL};

const tn_op tn_op_matmul = {
    .name = "matmul",
    .formula = "y = x W",
    .n_in = 1,
    .params = matmul_params,
    .shape = product_shape,
    .cols[TN_PACK] = product_pack,
    .forward = product_forward,
    .state_bytes = product_state_bytes,
    .cols[TN_PREPARE] = product_transpose,
    .backward = product_backward,
    .cols[TN_BACKWARD_PARAMS] = matmul_backward_params,
    .tile = product_tile,
    .flops = product_flops,
    .example = {.build = matmul_example},
};

/* ---- sequence_dense: the same of positions, and t of their row ----
 *
 *   y_p = h_p W + t_r          dh = dy W^T, dW = h^T dy, dt_r += sum_p dy_p
 *
 * The product of a row's positions is in cache when t is added.
 */

static tn_shape sequence_dense_shape(const tn_node *y)
{
    const tn_node *t = y->in[1];
    const tn_shape s = product_shape(y);
    const bool fits = tn_has_positions(y->in[0]) && !tn_has_positions(t) && t->shape.cols == s.cols;
    return fits ? s : TN_MISFIT;
}

TN_HOT static void vec_add_row(size_t rows, size_t n, tn_real *restrict y, size_t stride,
                               const tn_real *restrict row)
{
    for (size_t r = 0; r < rows; r++) {
        for (size_t i = 0; i < n; i++) {
            y[r * stride + i] += row[i];
        }
    }
}

TN_HOT static void vec_sum_rows(size_t rows, size_t n, const tn_real *restrict x, size_t stride,
                                tn_real *restrict total)
{
    for (size_t r = 0; r < rows; r++) {
        for (size_t i = 0; i < n; i++) {
            total[i] += x[r * stride + i];
        }
    }
}

/* Calls a product in pieces of TILE_ROWS positions. */
static void each_piece(tn_node *y, tn_range own, void (*product)(tn_node *y, tn_range rows))
{
    for (uint32_t from = own.from; from < own.to; from += TILE_ROWS) {
        product(y, (tn_range){from, own.to - from < TILE_ROWS ? own.to : from + TILE_ROWS});
    }
}

static void sequence_dense_forward(tn_node *y, tn_range rows)
{
    each_piece(y, tn_rows_of(y, rows), product_forward);
    for (size_t r = rows.from; r < rows.to; r++) {
        const tn_range own = tn_positions_of(y, r);
        vec_add_row(own.to - own.from, y->shape.cols, tn_val_row(y, own.from), y->stride,
                    tn_val_row(y->in[1], r));
    }
}

static void sequence_dense_backward(tn_node *y, tn_range rows)
{
    const tn_node *t = y->in[1];
    for (size_t r = rows.from; r < rows.to && t->grad != NULL; r++) {
        const tn_range own = tn_positions_of(y, r);
        vec_sum_rows(own.to - own.from, y->shape.cols, tn_grad_row(y, own.from), y->stride,
                     tn_grad_row_to_add(y, t, r));
    }
    each_piece(y, tn_rows_of(y, rows), product_backward);
}

static tn_node *sequence_dense_example(tn_graph *g)
{
    tn_node *w = tn_param(g, NULL, NULL, (tn_shape){5, 3}, (tn_init){.kind = TN_INIT_CONSTANT});
    return tn_apply(g, &tn_op_sequence_dense, NULL,
                    TN_IN(tn_sequence_leaf(g, 5, 0), tn_input(g, NULL, 3, true), w), NULL);
}

const tn_op tn_op_sequence_dense = {
    TN_OP_MEMBERS(sequence_dense, sequence_dense),
    .formula = "y_p = h_p W + t of the row of p",
    .n_in = 2,
    .params = matmul_params,
    .positions = tn_positions_of_first,
    .by_row = true,
    .shape = sequence_dense_shape,
    .cols[TN_PACK] = product_pack,
    .state_bytes = product_state_bytes,
    .cols[TN_PREPARE] = product_transpose,
    .cols[TN_BACKWARD_PARAMS] = matmul_backward_params,
    .tile = product_tile,
    .flops = product_flops,
    .example = {.build = sequence_dense_example},
};

static const tn_op *const activations[] = {
    NULL, &tn_op_relu, &tn_op_leaky_relu, &tn_op_sigmoid, &tn_op_tanh,
};
enum { N_ACTIVATIONS = sizeof activations / sizeof activations[0] };

static const char *const activation_words[] = {
    "none", "relu", "leaky_relu", "sigmoid", "tanh", NULL,
};

static const tn_field dense_attrs[] = {
    TN_FIELD_CHOICE(tn_dense_attr, activation, "none", activation_words,
                    "what follows the product"),
    TN_FIELD_F64(tn_dense_attr, slope, "0", -1e6, 1e6, "", "of leaky_relu below 0"),
    TN_FIELD_END,
};

static const tn_dense_attr *attr_of(const tn_node *y)
{
    return y->attr;
}

static const tn_act *act_of(const tn_node *y)
{
    const tn_op *activation = activations[attr_of(y)->activation];
    return activation == NULL ? NULL : activation->act;
}

bool tn_dense_activation(const tn_node *n, tn_dense_attr *out)
{
    for (uint32_t i = 1; i < N_ACTIVATIONS; i++) {
        if (n->op == activations[i]) {
            double slope = n->attr == NULL ? 0 : ((const tn_act_attr *)n->attr)->slope;
            *out = (tn_dense_attr){.activation = i, .slope = slope};
            return true;
        }
    }
    return false;
}

static tn_shape dense_shape(const tn_node *y)
{
    tn_shape s = product_shape(y);
    bool fits = y->n_in < 3 || (y->in[2]->shape.rows == 1 && y->in[2]->shape.cols == s.cols);
    return fits && attr_of(y)->activation < N_ACTIVATIONS ? s : TN_MISFIT;
}

/* Rows of a tile that are finished before the next ones begin, so that they are still in cache for
 * bias and activation; and rows of the batch that are masked and then multiplied. */
enum { ROWS_AT_ONCE = 24, BATCH_AT_ONCE = 128 };

static tn_act_area area_of(const tn_node *y, tn_range rows)
{
    tn_real *at = tn_val_row(y, rows.from);
    return (tn_act_area){.rows = rows.to - rows.from,
                         .cols = y->shape.cols,
                         .x = at,
                         .y = at,
                         .x_stride = y->stride,
                         .y_stride = y->stride,
                         .a = (tn_real)attr_of(y)->slope};
}

static void finish_rows(tn_node *y, tn_range rows)
{
    const tn_act *act = act_of(y);
    if (y->n_in == 3) {
        vec_add_row(rows.to - rows.from, y->shape.cols, tn_val_row(y, rows.from), y->stride,
                    y->in[2]->val);
    }
    if (act != NULL) {
        tn_act_area area = area_of(y, rows);
        act->forward(&area);
    }
}

static void dense_forward(tn_node *y, tn_range rows)
{
    for (uint32_t from = rows.from; from < rows.to; from += ROWS_AT_ONCE) {
        uint32_t to = rows.to - from < ROWS_AT_ONCE ? rows.to : from + ROWS_AT_ONCE;
        product_forward(y, (tn_range){from, to});
        finish_rows(y, (tn_range){from, to});
    }
}

/* dz in place of dy. */
static void mask_rows(const tn_node *y, tn_range rows)
{
    tn_act_area area = area_of(y, rows);
    area.x = NULL;
    area.d = tn_grad_row(y, rows.from);
    area.d_stride = y->stride;
    activations[attr_of(y)->activation]->act->slope(&area);
}

/* Returns whether a dense layer that directly follows this one is the only one to write its
 * gradient. That layer then masks it as well, while the rows are in cache. */
static bool is_masked_by_writer(const tn_node *y)
{
    return y->grad_alone && act_of(y) != NULL && y->first_writer->op == &tn_op_dense;
}

static void dense_backward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    bool masks = act_of(y) != NULL && !is_masked_by_writer(y);
    bool masks_x = x->op == &tn_op_dense && is_masked_by_writer(x);
    for (uint32_t from = rows.from; from < rows.to; from += ROWS_AT_ONCE) {
        uint32_t to = rows.to - from < ROWS_AT_ONCE ? rows.to : from + ROWS_AT_ONCE;
        if (masks) {
            mask_rows(y, (tn_range){from, to});
        }
        product_backward(y, (tn_range){from, to});
        if (masks_x) {
            mask_rows(x, (tn_range){from, to});
        }
    }
}

static void add_column_sums(const tn_node *y, tn_range cols, tn_range rows)
{
    const tn_node *b = y->in[2];
    tn_real *db = b->grad + cols.from;
    if (rows.from == 0 && !tn_adds(y, b)) {
        tn_clear(db, cols.to - cols.from);
    }
    vec_sum_rows(rows.to - rows.from, cols.to - cols.from, tn_grad_row(y, rows.from) + cols.from,
                 y->stride, db);
}

static void dense_backward_params(tn_node *y, tn_range cols)
{
    bool sums = y->n_in == 3 && y->in[2]->grad != NULL;
    for (uint32_t from = 0; from < y->shape.rows; from += BATCH_AT_ONCE) {
        uint32_t to = y->shape.rows - from < BATCH_AT_ONCE ? y->shape.rows : from + BATCH_AT_ONCE;
        if (sums) {
            add_column_sums(y, cols, (tn_range){from, to});
        }
        product_weights(y, cols, (tn_range){from, to});
    }
}

static tn_node *dense_example(tn_graph *g)
{
    tn_init init = {.kind = TN_INIT_CONSTANT};
    tn_node *wb[] = {tn_param(g, NULL, NULL, (tn_shape){5, 7}, init),
                     tn_param(g, NULL, NULL, (tn_shape){1, 7}, init)};
    return tn_apply(g, &tn_op_dense, NULL, TN_IN(tn_input(g, NULL, 5, true), wb[0], wb[1]),
                    &(tn_dense_attr){.activation = 4});
}

static const char *const dense_params[] = {"W", "b", NULL};

const tn_op tn_op_dense = {
    TN_OP_MEMBERS(dense, dense),
    .shape = dense_shape,
    .example = {.build = dense_example},
    .formula = "y = act(x W + b)",
    .n_in = 1,
    .params = dense_params,
    .n_optional = 1,
    TN_OP_ATTRS(dense_attrs, tn_dense_attr),
    .state_bytes = product_state_bytes,
    .cols[TN_PACK] = product_pack,
    .cols[TN_PREPARE] = product_transpose,
    .cols[TN_BACKWARD_PARAMS] = dense_backward_params,
    .tile = product_tile,
    .flops = product_flops,
};
