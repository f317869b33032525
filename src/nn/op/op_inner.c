/* op_inner.c - inner products of all pairs of vectors (PNN, Qu 2016).
 *
 * A row of x holds f vectors of length dim; pairs run (0,1), (0,2) .. (1,2) ..:
 *
 *   forward     y_ij  = <vi, vj>                i < j
 *   backward    dvi  += sum_j dy_ij vj          over all j != i
 */
#include "nn/op/ops.h"
#include "nn/vec/vec.h"

#include "base/core/compiler.h"
#include "base/keys/record.h"
#include "nn/pooling/fmloops.h"

static tn_shape inner_shape(const tn_node *y)
{
    tn_shape x = y->in[0]->shape;
    uint64_t f = x.cols / tn_fm_dim(y);
    uint64_t pairs = f * (f - 1) / 2;
    if (x.cols % tn_fm_dim(y) != 0 || pairs == 0 || pairs > TN_COLS_MAX) {
        return TN_MISFIT;
    }
    return (tn_shape){x.rows, (uint32_t)pairs};
}

/* One example's products; dim is known to the compiler where it is 8 or 16. */
__attribute__((always_inline)) static inline void products(const tn_real *restrict x, uint32_t n,
                                                           const uint32_t dim, tn_real *restrict y)
{
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = i + 1; j < n; j++) {
            tn_real sum = 0;
#pragma omp simd reduction(+ : sum)
            for (uint32_t c = 0; c < dim; c++) {
                sum += x[(size_t)i * dim + c] * x[(size_t)j * dim + c];
            }
            *y++ = sum;
        }
    }
}

enum { D8 = 8, D16 = 16 };

TN_HOT static void inner_row(const tn_real *x, uint32_t n, uint32_t dim, tn_real *y)
{
    switch (dim) {
    case D8:
        products(x, n, D8, y);
        break;
    case D16:
        products(x, n, D16, y);
        break;
    default:
        products(x, n, dim, y);
        break;
    }
}

static void inner_forward(tn_node *y, tn_range rows)
{
    uint32_t dim = tn_fm_dim(y);
    uint32_t n = y->in[0]->shape.cols / dim;
    for (size_t r = rows.from; r < rows.to; r++) {
        inner_row(tn_val_row(y->in[0], r), n, dim, tn_val_row(y, r));
    }
}

typedef struct back_row {
    const tn_real *x;
    const tn_real *dy;
    tn_real *dx;
} back_row;

__attribute__((always_inline)) static inline void back(const back_row *p, uint32_t n,
                                                       const uint32_t dim)
{
    const tn_real *dy = p->dy;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = i + 1; j < n; j++, dy++) {
            const tn_real *restrict vi = p->x + (size_t)i * dim;
            const tn_real *restrict vj = p->x + (size_t)j * dim;
            tn_real *restrict di = p->dx + (size_t)i * dim;
            tn_real *restrict dj = p->dx + (size_t)j * dim;
#pragma omp simd
            for (uint32_t c = 0; c < dim; c++) {
                di[c] += *dy * vj[c];
                dj[c] += *dy * vi[c];
            }
        }
    }
}

TN_HOT static void inner_back_row(const back_row *p, uint32_t n, uint32_t dim)
{
    switch (dim) {
    case D8:
        back(p, n, D8);
        break;
    case D16:
        back(p, n, D16);
        break;
    default:
        back(p, n, dim);
        break;
    }
}

static void inner_backward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    uint32_t dim = tn_fm_dim(y);
    for (size_t r = rows.from; r < rows.to && x->grad != NULL; r++) {
        if (!tn_adds(y, x)) {
            tn_clear(tn_grad_row(x, r), x->shape.cols);
        }
        back_row p = {tn_val_row(x, r), tn_grad_row(y, r), tn_grad_row(x, r)};
        inner_back_row(&p, x->shape.cols / dim, dim);
    }
}

static double inner_flops(const tn_node *y)
{
    return 2.0 * y->shape.rows * y->shape.cols * tn_fm_dim(y);
}

static tn_node *inner_example(tn_graph *g)
{
    return tn_inner(g, NULL, tn_input(g, NULL, 4 * 3, true), 3);
}

const tn_op tn_op_inner = {
    .name = "inner",
    .formula = "y_ij = <vi, vj> for all pairs of fields",
    .n_in = 1,
    .attrs = tn_fm_attrs,
    .attr_size = sizeof(tn_fm_attr),
    .shape = inner_shape,
    .forward = inner_forward,
    .backward = inner_backward,
    .flops = inner_flops,
    .example = inner_example,
};

tn_node *tn_inner(tn_graph *g, const char *name, tn_node *x, uint32_t dim)
{
    TN_ASSERT(dim > 0 && dim <= TN_DIM_MAX);
    return tn_apply(g, &tn_op_inner, name, &x, 1, &(tn_fm_attr){.dim = dim});
}
