/* op_bilinear.c - products of all pairs of slot vectors, column by column, the first of each pair
 * multiplied by a matrix before (FiBiNET, Huang 2019).
 *
 * A row of x holds f vectors v of length dim. Pairs are in the order (0,1), (0,2) .. (1,2) ..:
 *
 *   forward     y_ij  = u_i * v_j          u_i = v_i W: one W for all, [dim, dim];
 *                                          v_i W_i, one for each first slot, [(f-1) dim, dim];
 *                                          v_i W_ij, one for each pair, [pairs dim, dim];
 *                                          or v_i itself where there is no W
 *   backward    dv_j += dy_ij * u_i
 *               du_i  = sum_j dy_ij * v_j  over the pairs that have u_i in common: a run
 *               dv_i += du_i W^T
 *               dW   += v_i^T du_i
 *
 * Matrices lie below each other in W, and their transposes in the node's state. Products are of a
 * tile of rows, so that a vector of each row makes a matrix whose stride is that of x.
 */
#include "nn/graph/graphcore.h"

#include "base/core/compiler.h"
#include "base/keys/init.h"
#include "base/keys/record.h"
#include "config/field.h"
#include "nn/gemm/gemm.h"
#include "nn/op/ops.h"
#include "nn/vec/vec.h"

enum { TILE_ROWS = 64, TILE_COLS = 1024, SCRATCH = 2 * TN_DIM_MAX };

static const tn_field attrs[] = {
    TN_FIELD_U32(tn_pairs_attr, dim, "8", 1, TN_DIM_MAX, "columns", "width of one field's vector"),
    TN_FIELD_END,
};

/* Pairs (i, j), (i, j+1) .. of one u_i: `n` of them, the first of which is pair `at`. */
typedef struct run {
    uint32_t i, j, n, at;
    size_t w_row; /* first row of their matrix in W */
} run;

static size_t dim_of(const tn_node *y)
{
    return ((const tn_pairs_attr *)y->attr)->dim;
}

static uint32_t fields_of(const tn_node *y)
{
    return y->in[0]->shape.cols / (uint32_t)dim_of(y);
}

static const tn_node *weights_of(const tn_node *y)
{
    return y->n_in > 1 ? y->in[1] : NULL;
}

static bool is_by_pair(const tn_node *y)
{
    const tn_node *w = weights_of(y);
    return w != NULL && w->shape.rows == y->shape.cols;
}

static bool is_shared(const tn_node *y)
{
    const tn_node *w = weights_of(y);
    return w != NULL && w->shape.rows == dim_of(y);
}

/* Moves on to the next run; one of n 0 comes before the first. Returns false after the last. */
static bool next_run(const tn_node *y, run *r)
{
    const uint32_t f = fields_of(y);
    if (r->n > 0) {
        r->at += r->n;
        r->j += r->n;
    } else {
        r->j = 1;
    }
    if (r->j == f) {
        r->i++;
        r->j = r->i + 1;
    }
    const bool by_pair = is_by_pair(y);
    r->n = by_pair ? 1 : f - r->j;
    r->w_row = is_shared(y) ? 0 : (by_pair ? r->at : r->i) * dim_of(y);
    return r->j < f;
}

static tn_shape bilinear_shape(const tn_node *y)
{
    const tn_shape x = y->in[0]->shape;
    const uint64_t dim = dim_of(y);
    const uint64_t f = x.cols / dim;
    const uint64_t cols = f * (f - 1) / 2 * dim;
    const tn_node *w = weights_of(y);
    bool fits = x.cols % dim == 0 && f > 1 && cols <= TN_COLS_MAX;
    fits = fits && (w == NULL || (w->shape.cols == dim &&
                                  (w->shape.rows == dim || w->shape.rows == (f - 1) * dim ||
                                   w->shape.rows == cols)));
    return fits ? (tn_shape){x.rows, (uint32_t)cols} : TN_MISFIT;
}

static size_t bilinear_state_bytes(const tn_node *y)
{
    const tn_node *w = weights_of(y);
    return w != NULL && y->graph->opts.train
               ? (size_t)w->shape.rows * w->shape.cols * sizeof(tn_real)
               : 0;
}

static uint32_t bilinear_tile(const tn_node *y, bool cols)
{
    return !cols ? TILE_ROWS : is_shared(y) ? TN_COLS_MAX : TILE_COLS;
}

/* Writes u of some rows to `to`. */
static void put_left(const tn_node *y, const run *p, tn_range rows, tn_product to)
{
    const tn_node *x = y->in[0];
    const tn_node *w = weights_of(y);
    const size_t dim = dim_of(y);
    const tn_mat v = {tn_val_row(x, rows.from) + p->i * dim, x->stride, false};
    const size_t n = rows.to - rows.from;
    if (w != NULL) {
        tn_gemm(&y->graph->products, (tn_dims){n, dim, dim}, v,
                (tn_mat){w->val + p->w_row * w->stride, w->stride, false}, to);
        return;
    }
    for (size_t r = 0; r < n; r++) {
        tn_vec_copy(dim, to.at + r * to.stride, v.at + r * v.stride, false);
    }
}

/* y = u * v for the pairs of a run; u is in the place of the last of them. */
TN_HOT static void multiply_pairs(tn_real *restrict y, const tn_real *restrict v, size_t n,
                                  size_t dim)
{
    const size_t last = (n - 1) * dim;
    for (size_t k = 0; k < last; k += dim) {
        for (size_t c = 0; c < dim; c++) {
            y[k + c] = y[last + c] * v[k + c];
        }
    }
    for (size_t c = 0; c < dim; c++) {
        y[last + c] *= v[last + c];
    }
}

static void bilinear_forward(tn_node *y, tn_range rows)
{
    const size_t dim = dim_of(y);
    for (run p = {0}; next_run(y, &p);) {
        const size_t last = (p.at + p.n - 1) * dim;
        put_left(y, &p, rows, (tn_product){tn_val_row(y, rows.from) + last, y->stride, false});
        for (size_t r = rows.from; r < rows.to; r++) {
            multiply_pairs(tn_val_row(y, r) + p.at * dim, tn_val_row(y->in[0], r) + p.j * dim, p.n,
                           dim);
        }
    }
}

/* du = sum of dy * v over the pairs of a run. */
TN_HOT static void sum_left(tn_real *restrict du, const tn_real *restrict dy,
                            const tn_real *restrict v, size_t n, size_t dim)
{
    for (size_t c = 0; c < dim; c++) {
        du[c] = dy[c] * v[c];
    }
    for (size_t k = dim; k < n * dim; k += dim) {
        for (size_t c = 0; c < dim; c++) {
            du[c] += dy[k + c] * v[k + c];
        }
    }
}

/* dv += dy * u for the pairs of a run. */
TN_HOT static void add_right(tn_real *restrict dv, const tn_real *restrict dy,
                             const tn_real *restrict u, size_t n, size_t dim)
{
    for (size_t k = 0; k < n * dim; k += dim) {
        for (size_t c = 0; c < dim; c++) {
            dv[k + c] += dy[k + c] * u[c];
        }
    }
}

/* Writes du of some rows side by side. */
static void put_left_grads(const tn_node *y, const run *p, tn_range rows, tn_real *du)
{
    const size_t dim = dim_of(y);
    for (size_t r = rows.from; r < rows.to; r++) {
        sum_left(du + (r - rows.from) * dim, tn_grad_row(y, r) + p->at * dim,
                 tn_val_row(y->in[0], r) + p->j * dim, p->n, dim);
    }
}

/* As many rows as have room. */
static tn_range first_rows(const tn_node *y, tn_range rows)
{
    const uint32_t most = (uint32_t)(SCRATCH / dim_of(y));
    return (tn_range){rows.from, rows.to - rows.from < most ? rows.to : rows.from + most};
}

static void run_backward(tn_node *y, const run *p, tn_range rows)
{
    const tn_node *x = y->in[0];
    const size_t dim = dim_of(y);
    const size_t n = rows.to - rows.from;
    tn_real u[SCRATCH];
    tn_real du[SCRATCH];
    put_left(y, p, rows, (tn_product){u, dim, false});
    put_left_grads(y, p, rows, du);
    for (size_t r = 0; r < n; r++) {
        add_right(tn_grad_row(x, rows.from + r) + p->j * dim,
                  tn_grad_row(y, rows.from + r) + p->at * dim, u + r * dim, p->n, dim);
    }
    const tn_product dv = {tn_grad_row(x, rows.from) + p->i * dim, x->stride, true};
    if (weights_of(y) != NULL) {
        const tn_real *turned = (const tn_real *)y->state + p->w_row * dim;
        tn_gemm(&y->graph->products, (tn_dims){n, dim, dim}, (tn_mat){du, dim, false},
                (tn_mat){turned, dim, false}, dv);
        return;
    }
    for (size_t r = 0; r < n; r++) {
        tn_vec_copy(dim, dv.at + r * dv.stride, du + r * dim, true);
    }
}

static void bilinear_backward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    for (size_t r = rows.from; r < rows.to && x->grad != NULL; r++) {
        (void)tn_grad_row_to_add(y, x, r);
    }
    while (x->grad != NULL && rows.from < rows.to) {
        const tn_range some = first_rows(y, rows);
        for (run p = {0}; next_run(y, &p);) {
            run_backward(y, &p, some);
        }
        rows.from = some.to;
    }
}

/* Returns whether a tile of columns has the matrix of this run as its own: that of its first
 * column; the only one of all runs is the first tile's. */
static bool has_matrix(const tn_node *y, const run *p, tn_range cols)
{
    const size_t first = is_shared(y) ? 0 : p->at * dim_of(y);
    return cols.from <= first && first < cols.to;
}

static void bilinear_transpose(tn_node *y, tn_range cols)
{
    const tn_node *w = weights_of(y);
    const size_t dim = dim_of(y);
    for (run p = {0}; w != NULL && y->in[0]->grad != NULL && next_run(y, &p);) {
        if (has_matrix(y, &p, cols) && (p.at == 0 || !is_shared(y))) {
            tn_transpose(dim, dim, (tn_mat){w->val + p.w_row * w->stride, w->stride, false},
                         (tn_product){(tn_real *)y->state + p.w_row * dim, dim, false});
        }
    }
}

/* dW += v^T du over all rows. */
static void run_weights(const tn_node *y, const run *p, bool add)
{
    const tn_node *x = y->in[0];
    const tn_node *w = weights_of(y);
    const size_t dim = dim_of(y);
    tn_real du[SCRATCH];
    for (tn_range rows = {0, y->shape.rows}; rows.from < rows.to;) {
        const tn_range some = first_rows(y, rows);
        put_left_grads(y, p, some, du);
        tn_gemm_at(&y->graph->products, (tn_dims){dim, dim, some.to - some.from},
                   (tn_mat){tn_val_row(x, some.from) + p->i * dim, x->stride, false},
                   (tn_mat){du, dim, false},
                   (tn_product){w->grad + p->w_row * w->stride, w->stride, add || some.from > 0});
        rows.from = some.to;
    }
}

static void bilinear_params(tn_node *y, tn_range cols)
{
    const tn_node *w = weights_of(y);
    for (run p = {0}; w != NULL && w->grad != NULL && next_run(y, &p);) {
        if (has_matrix(y, &p, cols)) {
            run_weights(y, &p, tn_adds(y, w) || (is_shared(y) && p.at > 0));
        }
    }
}

static double bilinear_flops(const tn_node *y)
{
    const double dim = (double)dim_of(y);
    const double lefts = is_by_pair(y) ? y->shape.cols : y->in[0]->shape.cols - dim;
    return y->shape.rows * (y->shape.cols + (y->n_in > 1 ? 2 * lefts * dim : 0));
}

/* Three vectors of 2, a matrix for each first slot. */
static tn_node *bilinear_example(tn_graph *g)
{
    tn_node *w = tn_param(g, NULL, NULL, (tn_shape){4, 2}, (tn_init){.kind = TN_INIT_CONSTANT});
    return tn_apply(g, &tn_op_bilinear, NULL, TN_IN(tn_input(g, NULL, 6, true), w),
                    &(tn_pairs_attr){2});
}

static const char *const params[] = {"W", NULL};

const tn_op tn_op_bilinear = {
    TN_OP_MEMBERS(bilinear, bilinear),
    .shape = bilinear_shape,
    .formula = "y_ij = (vi W) * vj for all pairs of fields, W their own or shared",
    .n_in = 1,
    .params = params,
    .n_optional = 1,
    TN_OP_ATTRS(attrs, tn_pairs_attr),
    .state_bytes = bilinear_state_bytes,
    .cols[TN_PREPARE] = bilinear_transpose,
    .cols[TN_BACKWARD_PARAMS] = bilinear_params,
    .tile = bilinear_tile,
    .flops = bilinear_flops,
    .example = {.build = bilinear_example},
};
