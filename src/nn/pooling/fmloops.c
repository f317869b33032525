/* fmloops.c - sums over pairs of vectors, and their gradients. They need no loop over pairs (Rendle
 * 2010, lemma 3.1): sum_{f<g} v_f v_g = 1/2 ((sum_f v_f)^2 - sum_f v_f^2), column by column. */
#include "nn/pooling/fmloops.h"

#include "base/core/compiler.h"
#include "base/keys/record.h"
#include "nn/vec/vec.h"

const tn_field tn_fm_attrs[] = {
    TN_FIELD_U32(tn_fm_attr, dim, "8", 1, TN_DIM_MAX, "columns", "width of one field's vector"),
    TN_FIELD_END,
};

uint32_t tn_fm_dim(const tn_node *y)
{
    return ((const tn_fm_attr *)y->attr)->dim;
}

double tn_fm_flops(const tn_node *y)
{
    return 3.0 * y->in[0]->shape.rows * y->in[0]->shape.cols;
}

enum { D8 = 8, D16 = 16 }; /* lengths that the compiler shall know: they unroll */

#define ALWAYS_INLINE __attribute__((always_inline)) static inline

ALWAYS_INLINE void tally(const tn_real *restrict row, uint32_t cols, const uint32_t dim,
                         tn_real *restrict sum, tn_real *restrict squares)
{
    for (uint32_t c = 0; c < dim; c++) {
        sum[c] = row[c];
        squares[c] = row[c] * row[c];
    }
    for (uint32_t f = dim; f < cols; f += dim) {
        for (uint32_t c = 0; c < dim; c++) {
            sum[c] += row[f + c];
            squares[c] += row[f + c] * row[f + c];
        }
    }
}

/* sum and squares of the fields, field after field. */
TN_HOT static void fm_tally(const tn_real *restrict row, uint32_t cols, uint32_t dim,
                            tn_real *restrict sum, tn_real *restrict squares)
{
    switch (dim) {
    case D8:
        tally(row, cols, D8, sum, squares);
        break;
    case D16:
        tally(row, cols, D16, sum, squares);
        break;
    default:
        tally(row, cols, dim, sum, squares);
        break;
    }
}

static void halve(uint32_t dim, const tn_real *sum, tn_real *squares)
{
    for (uint32_t c = 0; c < dim; c++) {
        squares[c] = (sum[c] * sum[c] - squares[c]) / 2;
    }
}

void tn_fm_pairs(const tn_real *row, uint32_t cols, uint32_t dim, tn_real *sum, tn_real *out)
{
    fm_tally(row, cols, dim, sum, out);
    halve(dim, sum, out);
}

tn_real tn_fm_pairs_of(uint32_t dim, const tn_real *sum, tn_real *squares)
{
    halve(dim, sum, squares);
    return tn_vec_sum(dim, squares);
}

typedef struct back_row {
    const tn_real *restrict v;
    const tn_real *restrict d;
    const tn_real *restrict sum;
} back_row;

ALWAYS_INLINE void back(tn_real *restrict dv, back_row p, uint32_t cols, const uint32_t dim)
{
    for (uint32_t f = 0; f < cols; f += dim) {
        for (uint32_t c = 0; c < dim; c++) {
            dv[f + c] += p.d[c] * (p.sum[c] - p.v[f + c]);
        }
    }
}

TN_HOT static void fm_back(tn_real *restrict dv, back_row p, uint32_t cols, uint32_t dim)
{
    switch (dim) {
    case D8:
        back(dv, p, cols, D8);
        break;
    case D16:
        back(dv, p, cols, D16);
        break;
    default:
        back(dv, p, cols, dim);
        break;
    }
}

void tn_fm_pairs_back(const tn_node *y, size_t row, const tn_real *d)
{
    const tn_node *x = y->in[0];
    uint32_t dim = tn_fm_dim(y);
    tn_real sum[TN_DIM_MAX];
    tn_real squares[TN_DIM_MAX];
    if (!tn_adds(y, x)) {
        tn_clear(tn_grad_row(x, row), x->shape.cols);
    }
    fm_tally(tn_val_row(x, row), x->shape.cols, dim, sum, squares);
    fm_back(tn_grad_row(x, row), (back_row){tn_val_row(x, row), d, sum}, x->shape.cols, dim);
}
