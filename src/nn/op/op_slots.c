/* op_slots.c - what is done to each slot's vector alike, and what makes one of them all:
 * slot_dense, slot_sum.
 *
 * A row of x holds f vectors v of length dim, one of y as many of another length:
 *
 *   slot_dense  y_f   = v_f W + b          one W [dim, n] for all of them, or v_f W_f, one for
 *                                          each, below each other in W [f dim, n]; b is shared
 *               dv_f += dy_f W^T,  dW += v_f^T dy_f,  db += dy_f
 *   slot_sum    y     = v_1 + .. + v_f
 *               dv_f += dy
 *
 * Products are of a tile of rows, so that a vector of each row makes a matrix whose stride is that
 * of x. W^T is written to the node's state before backward.
 */
#include "nn/graph/graphcore.h"

#include "base/keys/init.h"
#include "base/keys/record.h"
#include "config/field.h"
#include "nn/gemm/gemm.h"
#include "nn/op/ops.h"
#include "nn/vec/vec.h"

enum { TILE_ROWS = 64, TILE_COLS = 1024 };

static const tn_field attrs[] = {
    TN_FIELD_U32(tn_pairs_attr, dim, "8", 1, TN_DIM_MAX, "columns", "width of one field's vector"),
    TN_FIELD_END,
};

static uint32_t dim_of(const tn_node *y)
{
    return ((const tn_pairs_attr *)y->attr)->dim;
}

static uint32_t fields_of(const tn_node *y)
{
    return y->in[0]->shape.cols / dim_of(y);
}

/* ---- slot_dense ---- */

static bool is_shared(const tn_node *y)
{
    return y->in[1]->shape.rows == dim_of(y);
}

static tn_shape dense_shape(const tn_node *y)
{
    const tn_shape x = y->in[0]->shape;
    const tn_shape w = y->in[1]->shape;
    const uint64_t cols = (uint64_t)fields_of(y) * w.cols;
    bool fits = x.cols % dim_of(y) == 0 && (w.rows == dim_of(y) || w.rows == x.cols);
    fits = fits && cols <= TN_COLS_MAX;
    fits = fits && (y->n_in < 3 || (y->in[2]->shape.rows == 1 && y->in[2]->shape.cols == w.cols));
    return fits ? (tn_shape){x.rows, (uint32_t)cols} : TN_MISFIT;
}

static size_t dense_state_bytes(const tn_node *y)
{
    const tn_shape w = y->in[1]->shape;
    return y->graph->opts.train ? (size_t)w.rows * w.cols * sizeof(tn_real) : 0;
}

static uint32_t dense_tile(const tn_node *y, bool cols)
{
    return !cols ? TILE_ROWS : is_shared(y) ? TN_COLS_MAX : TILE_COLS;
}

/* First row of a field's matrix in W. */
static size_t matrix_of(const tn_node *y, size_t field)
{
    return is_shared(y) ? 0 : field * dim_of(y);
}

static void dense_forward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    const tn_node *w = y->in[1];
    const size_t n = w->shape.cols;
    const tn_dims d = {rows.to - rows.from, n, dim_of(y)};
    for (size_t f = 0; f < fields_of(y); f++) {
        tn_gemm(&y->graph->products, d,
                (tn_mat){tn_val_row(x, rows.from) + f * d.k, x->stride, false},
                (tn_mat){w->val + matrix_of(y, f) * w->stride, w->stride, false},
                (tn_product){tn_val_row(y, rows.from) + f * n, y->stride, false});
    }
    for (size_t r = rows.from; r < rows.to && y->n_in > 2; r++) {
        for (size_t f = 0; f < fields_of(y); f++) {
            tn_vec_copy(n, tn_val_row(y, r) + f * n, y->in[2]->val, true);
        }
    }
}

static void dense_backward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    const tn_dims d = {rows.to - rows.from, dim_of(y), y->in[1]->shape.cols};
    for (size_t f = 0; f < fields_of(y) && x->grad != NULL; f++) {
        tn_gemm(&y->graph->products, d,
                (tn_mat){tn_grad_row(y, rows.from) + f * d.k, y->stride, false},
                (tn_mat){(tn_real *)y->state + matrix_of(y, f) * d.k, d.n, false},
                (tn_product){tn_grad_row(x, rows.from) + f * d.n, x->stride, tn_adds(y, x)});
    }
}

/* Fields whose matrix belongs to a tile of columns: those that begin in it, or, where they share
 * one, all of them for the only tile. */
static tn_range fields_in(const tn_node *y, tn_range cols)
{
    const uint32_t n = y->in[1]->shape.cols;
    return (tn_range){(cols.from + n - 1) / n, (cols.to + n - 1) / n};
}

static void dense_transpose(tn_node *y, tn_range cols)
{
    const tn_node *w = y->in[1];
    const tn_range fields = fields_in(y, cols);
    for (size_t f = fields.from; f < fields.to && y->in[0]->grad != NULL; f++) {
        if (f == 0 || !is_shared(y)) {
            const size_t at = matrix_of(y, f);
            tn_transpose(dim_of(y), w->shape.cols,
                         (tn_mat){w->val + at * w->stride, w->stride, false},
                         (tn_product){(tn_real *)y->state + at * w->shape.cols, dim_of(y), false});
        }
    }
}

/* Adds to db from the first tile, which sees all columns of the rows. */
static void add_biases(const tn_node *y)
{
    const tn_node *b = y->in[2];
    const size_t n = b->shape.cols;
    if (!tn_adds(y, b)) {
        tn_clear(b->grad, n);
    }
    for (size_t r = 0; r < y->shape.rows; r++) {
        for (size_t f = 0; f < fields_of(y); f++) {
            tn_vec_copy(n, b->grad, tn_grad_row(y, r) + f * n, true);
        }
    }
}

static void dense_params(tn_node *y, tn_range cols)
{
    const tn_node *x = y->in[0];
    const tn_node *w = y->in[1];
    const tn_range fields = fields_in(y, cols);
    const tn_dims d = {dim_of(y), w->shape.cols, y->shape.rows};
    for (size_t f = fields.from; f < fields.to && w->grad != NULL; f++) {
        tn_gemm_at(&y->graph->products, d, (tn_mat){x->val + f * d.m, x->stride, false},
                   (tn_mat){y->grad + f * d.n, y->stride, false},
                   (tn_product){w->grad + matrix_of(y, f) * w->stride, w->stride,
                                tn_adds(y, w) || (is_shared(y) && f > 0)});
    }
    if (cols.from == 0 && y->n_in > 2 && y->in[2]->grad != NULL) {
        add_biases(y);
    }
}

static double dense_flops(const tn_node *y)
{
    return 2.0 * y->shape.rows * y->shape.cols * dim_of(y);
}

/* Three vectors of 2 become three of 4. */
static tn_node *dense_example(tn_graph *g)
{
    const tn_init zero = {.kind = TN_INIT_CONSTANT};
    tn_node *wb[] = {tn_param(g, NULL, NULL, (tn_shape){2, 4}, zero),
                     tn_param(g, NULL, NULL, (tn_shape){1, 4}, zero)};
    return tn_apply(g, &tn_op_slot_dense, NULL, TN_IN(tn_input(g, NULL, 6, true), wb[0], wb[1]),
                    &(tn_pairs_attr){2});
}

static const char *const params[] = {"W", "b", NULL};

const tn_op tn_op_slot_dense = {
    TN_OP_MEMBERS(slot_dense, dense),
    .shape = dense_shape,
    .formula = "y_f = vf W + b for each field, W its own or shared",
    .n_in = 1,
    .params = params,
    .n_optional = 1,
    TN_OP_ATTRS(attrs, tn_pairs_attr),
    .state_bytes = dense_state_bytes,
    .cols[TN_PREPARE] = dense_transpose,
    .cols[TN_BACKWARD_PARAMS] = dense_params,
    .tile = dense_tile,
    .flops = dense_flops,
    .example = {.build = dense_example},
};

/* ---- slot_sum ---- */

static tn_shape sum_shape(const tn_node *y)
{
    const tn_shape x = y->in[0]->shape;
    return x.cols % dim_of(y) == 0 ? (tn_shape){x.rows, dim_of(y)} : TN_MISFIT;
}

static void sum_forward(tn_node *y, tn_range rows)
{
    const size_t dim = dim_of(y);
    for (size_t r = rows.from; r < rows.to; r++) {
        for (size_t f = 0; f < fields_of(y); f++) {
            tn_vec_copy(dim, tn_val_row(y, r), tn_val_row(y->in[0], r) + f * dim, f > 0);
        }
    }
}

static void sum_backward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    const size_t dim = dim_of(y);
    for (size_t r = rows.from; r < rows.to && x->grad != NULL; r++) {
        for (size_t f = 0; f < fields_of(y); f++) {
            tn_vec_copy(dim, tn_grad_row(x, r) + f * dim, tn_grad_row(y, r), tn_adds(y, x));
        }
    }
}

static double sum_flops(const tn_node *y)
{
    return (double)y->shape.rows * y->in[0]->shape.cols;
}

const tn_op tn_op_slot_sum = {
    TN_OP_MEMBERS(slot_sum, sum),
    .shape = sum_shape,
    .formula = "y = sum of vf over all fields",
    .n_in = 1,
    TN_OP_ATTRS(attrs, tn_pairs_attr),
    .flops = sum_flops,
    .example = {.cols = 6, .attr = &(const tn_pairs_attr){2}},
};
