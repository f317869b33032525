/* op_cin.c - a layer of the compressed interaction network (xDeepFM, Lian 2018).
 *
 * A row of x0 holds m slot vectors of length dim, one of x h maps of that length, y has u of them:
 *
 *   forward     z_ij  = x_i * x0_j                      column by column; row i m + j of z
 *               y_k   = sum_ij W_ij,k z_ij + b_k        W [h m, u], b may be missing
 *   backward    dz    = W dy
 *               dx_i += sum_j dz_ij * x0_j,  dx0_j += sum_i dz_ij * x_i
 *               dW   += z dy^T,  db_k += sum of dy_k
 *
 * The three sums are matrix products over all columns of a block of rows at once. Neither z nor dz,
 * which are h times as large as x0, is ever in memory as a whole: a block of at most N columns and
 * of DEPTH rows of z is made, multiplied, and forgotten.
 *
 *     block    columns d of row r | columns d of row r + 1 | ..     N of them
 */
#include "nn/graph/graphcore.h"

#include "base/core/compiler.h"
#include "base/keys/init.h"
#include "base/keys/record.h"
#include "config/field.h"
#include "nn/gemm/gemm.h"
#include "nn/op/ops.h"
#include "nn/vec/vec.h"

enum { N = 128, DEPTH = 128, UNITS = 128, TILE_ROWS = 64, TILE_UNITS = 32 };

static const tn_field attrs[] = {
    TN_FIELD_U32(tn_pairs_attr, dim, "8", 1, TN_DIM_MAX, "columns", "width of one field's vector"),
    TN_FIELD_END,
};

/* Rows and columns of each vector that are worked on at once. */
typedef struct block {
    tn_range rows;
    size_t d, cols; /* columns d .. d + cols of a vector */
} block;

static size_t dim_of(const tn_node *y)
{
    return ((const tn_pairs_attr *)y->attr)->dim;
}

static uint32_t units_of(const tn_node *y)
{
    return y->in[2]->shape.cols;
}

static size_t width(const block *b)
{
    return (b->rows.to - b->rows.from) * b->cols;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Moves on to the next block of `rows`; a block of no columns comes before the first. Returns false
 * after the last. */
static bool next_block(const tn_node *y, tn_range rows, block *b)
{
    const size_t dim = dim_of(y);
    const size_t cols = smaller(dim, N);
    TN_ASSERT(cols > 0);
    if (b->cols == 0) {
        b->rows.to = rows.from;
        b->d = dim;
    } else {
        b->d += b->cols;
    }
    if (b->d == dim) {
        b->d = 0;
        b->rows.from = b->rows.to;
        b->rows.to += (uint32_t)smaller(N / cols, rows.to - b->rows.from);
    }
    b->cols = smaller(cols, dim - b->d);
    return b->rows.from < rows.to;
}

static tn_shape cin_shape(const tn_node *y)
{
    const tn_shape x0 = y->in[0]->shape;
    const tn_shape x = y->in[1]->shape;
    const tn_shape w = y->in[2]->shape;
    const uint64_t dim = dim_of(y);
    bool fits = x0.cols % dim == 0 && x.cols % dim == 0 && x0.rows == x.rows;
    fits = fits && w.rows == x.cols / dim * (x0.cols / dim) && w.cols * dim <= TN_COLS_MAX;
    fits = fits && (y->n_in < 4 || (y->in[3]->shape.rows == 1 && y->in[3]->shape.cols == w.cols));
    return fits ? (tn_shape){x0.rows, w.cols * (uint32_t)dim} : TN_MISFIT;
}

static uint32_t cin_tile(const tn_node *y, bool cols)
{
    return cols ? TILE_UNITS * (uint32_t)dim_of(y) : TILE_ROWS;
}

/* Vectors of a block's first row: x_i or x0_j, and the floats to the next row. */
typedef struct strip {
    tn_real *at;
    size_t stride;
} strip;

static strip strip_of(const tn_node *n, tn_real *matrix, const block *b, size_t vector, size_t dim)
{
    return (strip){matrix + b->rows.from * (size_t)n->stride + vector * dim + b->d, n->stride};
}

/* z = a * v, row by row of the batch, side by side. */
TN_HOT static void multiply(tn_real *restrict z, strip a, strip v, size_t rows, size_t cols)
{
    for (size_t r = 0; r < rows; r++) {
        const tn_real *restrict ar = a.at + r * a.stride;
        const tn_real *restrict vr = v.at + r * v.stride;
        for (size_t c = 0; c < cols; c++) {
            z[r * cols + c] = ar[c] * vr[c];
        }
    }
}

/* d += dz * v. */
TN_HOT static void add_product(strip d, const tn_real *restrict dz, strip v, size_t rows,
                               size_t cols)
{
    for (size_t r = 0; r < rows; r++) {
        tn_real *restrict dr = d.at + r * d.stride;
        const tn_real *restrict vr = v.at + r * v.stride;
        for (size_t c = 0; c < cols; c++) {
            dr[c] += dz[r * cols + c] * vr[c];
        }
    }
}

/* Makes rows `from` .. `from` + n of z. */
static void put_products(const tn_node *y, const block *b, size_t from, size_t n, tn_real *z)
{
    const tn_node *x0 = y->in[0];
    const tn_node *x = y->in[1];
    const size_t dim = dim_of(y);
    const size_t m = x0->shape.cols / dim;
    for (size_t p = 0; p < n; p++) {
        multiply(z + p * N, strip_of(x, x->val, b, (from + p) / m, dim),
                 strip_of(x0, x0->val, b, (from + p) % m, dim), b->rows.to - b->rows.from, b->cols);
    }
}

/* Copies maps `from` .. `from` + n of y, val or grad, to rows of a block, or back. */
static void copy_maps(const tn_node *y, tn_real *matrix, const block *b, tn_range units,
                      tn_real *rows, bool back)
{
    for (size_t k = units.from; k < units.to; k++) {
        const strip s = strip_of(y, matrix, b, k, dim_of(y));
        tn_real *row = rows + (k - units.from) * N;
        for (size_t r = 0; r < b->rows.to - b->rows.from; r++) {
            tn_vec_copy(b->cols, back ? s.at + r * s.stride : row + r * b->cols,
                        back ? row + r * b->cols : s.at + r * s.stride, false);
        }
    }
}

/* The next UNITS of y, or those that are left. */
static tn_range some_units(const tn_node *y, uint32_t from)
{
    return (tn_range){from, (uint32_t)smaller(from + UNITS, units_of(y))};
}

static void forward_units(tn_node *y, const block *b, tn_range units)
{
    _Alignas(64) tn_real z[DEPTH * N];
    _Alignas(64) tn_real maps[UNITS * N];
    const tn_node *w = y->in[2];
    const size_t n_units = units.to - units.from;
    for (size_t p = 0; p < w->shape.rows; p += DEPTH) {
        const size_t depth = smaller(DEPTH, w->shape.rows - p);
        put_products(y, b, p, depth, z);
        tn_gemm_at(&y->graph->products, (tn_dims){n_units, width(b), depth},
                   (tn_mat){w->val + p * w->stride + units.from, w->stride, false},
                   (tn_mat){z, N, true}, (tn_product){maps, N, p > 0});
    }
    for (size_t k = 0; k < n_units && y->n_in > 3; k++) {
        tn_vec_shift(width(b), maps + k * N, y->in[3]->val[units.from + k]);
    }
    copy_maps(y, y->val, b, units, maps, true);
}

static void cin_forward(tn_node *y, tn_range rows)
{
    for (block b = {0}; next_block(y, rows, &b);) {
        for (uint32_t u = 0; u < units_of(y); u += UNITS) {
            forward_units(y, &b, some_units(y, u));
        }
    }
}

/* Adds rows `from` .. `from` + n of dz to the gradients of what they were made of. */
static void add_products(const tn_node *y, const block *b, size_t from, size_t n, const tn_real *dz)
{
    const tn_node *x0 = y->in[0];
    const tn_node *x = y->in[1];
    const size_t dim = dim_of(y);
    const size_t m = x0->shape.cols / dim;
    const size_t rows = b->rows.to - b->rows.from;
    for (size_t p = 0; p < n; p++) {
        const size_t i = (from + p) / m;
        const size_t j = (from + p) % m;
        if (x->grad != NULL) {
            add_product(strip_of(x, x->grad, b, i, dim), dz + p * N,
                        strip_of(x0, x0->val, b, j, dim), rows, b->cols);
        }
        if (x0->grad != NULL) {
            add_product(strip_of(x0, x0->grad, b, j, dim), dz + p * N,
                        strip_of(x, x->val, b, i, dim), rows, b->cols);
        }
    }
}

static void backward_products(const tn_node *y, const block *b, size_t from, size_t n)
{
    _Alignas(64) tn_real dz[DEPTH * N];
    _Alignas(64) tn_real maps[UNITS * N];
    const tn_node *w = y->in[2];
    TN_ASSERT(units_of(y) > 0);
    for (uint32_t u = 0; u < units_of(y); u += UNITS) {
        const tn_range units = some_units(y, u);
        copy_maps(y, y->grad, b, units, maps, false);
        tn_gemm(&y->graph->products, (tn_dims){n, width(b), units.to - u},
                (tn_mat){w->val + from * w->stride + u, w->stride, false}, (tn_mat){maps, N, true},
                (tn_product){dz, N, u > 0});
    }
    add_products(y, b, from, n, dz);
}

static void cin_backward(tn_node *y, tn_range rows)
{
    const size_t depth = y->in[2]->shape.rows;
    for (uint32_t k = 0; k < 2; k++) {
        for (size_t r = rows.from; r < rows.to && y->in[k]->grad != NULL; r++) {
            (void)tn_grad_row_to_add(y, y->in[k], r);
        }
    }
    bool wanted = y->in[0]->grad != NULL || y->in[1]->grad != NULL;
    for (block b = {0}; wanted && next_block(y, rows, &b);) {
        for (size_t p = 0; p < depth; p += DEPTH) {
            backward_products(y, &b, p, smaller(DEPTH, depth - p));
        }
    }
}

/* dW += z dy^T of a block; the first one of a step assigns it where `add` is false. */
static void add_weights(const tn_node *y, const block *b, tn_range units, bool add)
{
    _Alignas(64) tn_real z[DEPTH * N];
    _Alignas(64) tn_real maps[TILE_UNITS * N];
    _Alignas(64) tn_real turned[N * TILE_UNITS];
    const tn_node *w = y->in[2];
    const size_t n_units = units.to - units.from;
    copy_maps(y, y->grad, b, units, maps, false);
    tn_transpose(n_units, width(b), (tn_mat){maps, N, false},
                 (tn_product){turned, TILE_UNITS, false});
    for (size_t p = 0; p < w->shape.rows; p += DEPTH) {
        const size_t depth = smaller(DEPTH, w->shape.rows - p);
        put_products(y, b, p, depth, z);
        tn_gemm(&y->graph->products, (tn_dims){depth, n_units, width(b)}, (tn_mat){z, N, false},
                (tn_mat){turned, TILE_UNITS, true},
                (tn_product){w->grad + p * w->stride + units.from, w->stride, add});
    }
}

static void add_biases(const tn_node *y, tn_range units)
{
    const tn_node *b = y->in[3];
    const size_t dim = dim_of(y);
    for (uint32_t k = units.from; k < units.to; k++) {
        tn_real sum = 0;
        for (size_t r = 0; r < y->shape.rows; r++) {
            sum += tn_vec_sum(dim, tn_grad_row(y, r) + k * dim);
        }
        tn_add_param_grad(y, b, k, sum);
    }
}

/* Columns of the weights: those units whose first column is in `cols`. */
static void cin_params(tn_node *y, tn_range cols)
{
    const uint32_t dim = (uint32_t)dim_of(y);
    const tn_node *w = y->in[2];
    const uint32_t end = (cols.to + dim - 1) / dim;
    tn_range units = {(cols.from + dim - 1) / dim, 0};
    for (; units.from < end; units.from = units.to) {
        units.to = (uint32_t)smaller(units.from + TILE_UNITS, end);
        bool add = tn_adds(y, w);
        for (block b = {0}; w->grad != NULL && next_block(y, (tn_range){0, y->shape.rows}, &b);) {
            add_weights(y, &b, units, add);
            add = true;
        }
        if (y->n_in > 3) {
            add_biases(y, units);
        }
    }
}

static double cin_flops(const tn_node *y)
{
    const double depth = y->in[2]->shape.rows;
    return y->shape.rows * (2.0 * depth * y->shape.cols + depth * (double)dim_of(y));
}

/* Three vectors of 2, two maps, four maps of them. */
static tn_node *cin_example(tn_graph *g)
{
    const tn_init zero = {.kind = TN_INIT_CONSTANT};
    tn_node *wb[] = {tn_param(g, NULL, NULL, (tn_shape){6, 4}, zero),
                     tn_param(g, NULL, NULL, (tn_shape){1, 4}, zero)};
    return tn_apply(g, &tn_op_cin, NULL,
                    TN_IN(tn_input(g, NULL, 6, true), tn_input(g, NULL, 4, true), wb[0], wb[1]),
                    &(tn_pairs_attr){2});
}

static const char *const params[] = {"W", "b", NULL};

const tn_op tn_op_cin = {
    TN_OP_MEMBERS(cin, cin),
    .shape = cin_shape,
    .formula = "y_k = sum of W_ij,k x_i * x0_j over all i and j, + b_k",
    .n_in = 2,
    .params = params,
    .n_optional = 1,
    TN_OP_ATTRS(attrs, tn_pairs_attr),
    .cols[TN_BACKWARD_PARAMS] = cin_params,
    .tile = cin_tile,
    .flops = cin_flops,
    .example = {.build = cin_example},
};
