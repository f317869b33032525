/* gemm.c - see gemm.h: products of one column or one term, and what all others are handed to. */
#include "nn/gemm/gemm.h"

#include "nn/gemm/gemm_backends.h"
#include "nn/vec/vec.h"

/* One column: a dot product per row. */
static void one_column(tn_dims d, tn_mat a, const tn_real *x, tn_product c)
{
    for (size_t i = 0; i < d.m; i++) {
        tn_real y = tn_vec_dot(d.k, a.at + i * a.stride, x);
        c.at[i * c.stride] = c.add ? c.at[i * c.stride] + y : y;
    }
}

void tn_gemm(const tn_products *by, tn_dims d, tn_mat a, tn_mat b, tn_product c)
{
    TN_ASSERT(d.k > 0 && c.stride >= d.n && a.stride >= d.k && b.stride >= d.n);
    if (d.n == 1 && b.stride == 1) {
        one_column(d, a, b.at, c);
    } else if (d.k == 1) { /* an outer product: row i is a_i times b */
        for (size_t i = 0; i < d.m; i++) {
            tn_vec_scale(d.n, c.at + i * c.stride, b.at, a.at[i * a.stride], c.add);
        }
    } else {
        by->multiply(by, &(tn_factors){d, a, b, c, false});
    }
}

void tn_gemm_at(const tn_products *by, tn_dims d, tn_mat a, tn_mat b, tn_product c)
{
    TN_ASSERT(d.k > 0 && c.stride >= d.n && a.stride >= d.m && b.stride >= d.n);
    if (d.n == 1 && c.stride == 1) { /* a sum of rows of a, weighted by b, in order */
        for (size_t r = 0; r < d.k; r++) {
            tn_vec_scale(d.m, c.at, a.at + r * a.stride, b.at[r * b.stride], c.add || r > 0);
        }
    } else {
        by->multiply(by, &(tn_factors){d, a, b, c, true});
    }
}

static void transpose_slowly(size_t m, size_t n, tn_mat from, tn_product to)
{
    for (size_t j = 0; j < n; j++) {
        tn_real *row = to.at + j * to.stride;
        for (size_t i = 0; i < m; i++) {
            row[i] = from.at[i * from.stride + j];
        }
    }
}

void tn_transpose(size_t m, size_t n, tn_mat from, tn_product to)
{
    enum { SIDE = 8 };
    const tn_kernels *kernels = tn_kernels_find();
    size_t rows = kernels == NULL ? 0 : m / SIDE * SIDE;
    size_t cols = kernels == NULL ? 0 : n / SIDE * SIDE;
    for (size_t j = 0; j < cols; j += SIDE) {
        for (size_t i = 0; i < rows; i += SIDE) {
            kernels->transpose(from.at + i * from.stride + j, from.stride,
                               to.at + j * to.stride + i, to.stride);
        }
    }
    tn_mat right = {from.at + cols, from.stride, false};
    tn_mat below = {from.at + rows * from.stride, from.stride, false};
    transpose_slowly(m, n - cols, right, (tn_product){to.at + cols * to.stride, to.stride, false});
    transpose_slowly(m - rows, cols, below, (tn_product){to.at + rows, to.stride, false});
}
