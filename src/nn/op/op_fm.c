/* op_fm.c - pairs of slot vectors: fm, bi_interaction, fm_values, inner, outer.
 *
 * A row of x holds f vectors of length dim, one per field; s = v1 + .. + vf:
 *
 *   fm               y     = 1/2 (|s|^2 - sum_i |v_i|^2)           (Rendle 2010)
 *                    dv_i += dy (s - v_i)
 *   bi_interaction   y_c   = 1/2 (s_c^2 - sum_i v_ic^2)            column by column (NFM, He 2017)
 *                    dv_i += dy * (s - v_i)
 *   fm_values        y     = 1/2 sum_c (s_c^2 - sum_i q_ic)        over values (libFM)
 *                    dx_i += dy s,  dq_i -= dy / 2
 *   inner            y_ij  = <v_i, v_j>, i < j                     (0,1), (0,2) .. (PNN, Qu 2016)
 *                    dv_i += sum_j dy_ij v_j
 *   outer            P     = s^T s, by rows; the sum of v_i^T v_j over all i and j (PNN, Qu 2016)
 *                    dv_i += s (dP + dP^T)
 *
 * For fm_values a vector of x is a sum over the values of a field, and q holds the sums of their
 * squares, so that pairs within a field count. Where every field has one value, q = x^2 and y is
 * that of fm to the bit.
 */
#include "config/field.h"
#include "nn/op/ops.h"

#include "base/core/compiler.h"
#include "base/keys/record.h"
#include "nn/vec/vec.h"

static const tn_field attrs[] = {
    TN_FIELD_U32(tn_pairs_attr, dim, "8", 1, TN_DIM_MAX, "columns", "width of one field's vector"),
    TN_FIELD_END,
};

static uint32_t dim_of(const tn_node *y)
{
    return ((const tn_pairs_attr *)y->attr)->dim;
}

static double pairs_flops(const tn_node *y)
{
    return 3.0 * y->in[0]->shape.rows * y->in[0]->shape.cols;
}

/* Calls f with the length of a vector as its last argument: common lengths as constants, so that
 * its loops unroll. */
#define UNROLLED(f, dim, ...)                                                                      \
    ((dim) == 8 ? f(__VA_ARGS__, 8) : (dim) == 16 ? f(__VA_ARGS__, 16) : f(__VA_ARGS__, dim))

#define ALWAYS_INLINE __attribute__((always_inline)) static inline

ALWAYS_INLINE void tally(const tn_real *restrict row, uint32_t cols, tn_real *restrict sum,
                         tn_real *restrict squares, const uint32_t dim)
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

/* Adds up sum and squares of the fields, field after field. */
TN_HOT static void fm_tally(const tn_real *restrict row, uint32_t cols, uint32_t dim,
                            tn_real *restrict sum, tn_real *restrict squares)
{
    UNROLLED(tally, dim, row, cols, sum, squares);
}

/* out[c] := sum over fields. */
static void sum_fields(const tn_real *row, uint32_t cols, uint32_t dim, tn_real *out)
{
    tn_vec_copy(dim, out, row, false);
    for (uint32_t f = dim; f < cols; f += dim) {
        tn_vec_copy(dim, out, row + f, true);
    }
}

/* Sum and squares of one example: the squares of x, or those of fm_values. */
static void tally_row(const tn_node *y, size_t row, tn_real *sum, tn_real *squares)
{
    const tn_real *x = tn_val_row(y->in[0], row);
    uint32_t cols = y->in[0]->shape.cols;
    if (y->n_in == 1) {
        fm_tally(x, cols, dim_of(y), sum, squares);
    } else {
        sum_fields(x, cols, dim_of(y), sum);
        sum_fields(tn_val_row(y->in[1], row), cols, dim_of(y), squares);
    }
}

static tn_shape pairs_shape(const tn_node *y)
{
    tn_shape x = y->in[0]->shape;
    bool fits = x.cols % dim_of(y) == 0 && (y->n_in == 1 || y->in[1]->shape.cols == x.cols);
    return fits ? (tn_shape){x.rows, 1} : TN_MISFIT;
}

static tn_shape columns_shape(const tn_node *y)
{
    tn_shape s = pairs_shape(y);
    return s.cols == 1 ? (tn_shape){s.rows, dim_of(y)} : s;
}

static bool is_by_column(const tn_node *y)
{
    return y->op->shape == columns_shape;
}

/* No loop over pairs is needed (Rendle 2010, lemma 3.1). */
static void pairs_forward(tn_node *y, tn_range rows)
{
    const bool by_column = is_by_column(y);
    uint32_t dim = dim_of(y);
    tn_real sum[TN_DIM_MAX];
    tn_real column[TN_DIM_MAX];
    for (size_t r = rows.from; r < rows.to; r++) {
        // cppcheck-suppress legacyUninitvar; tally_row fills it
        tn_real *pairs = by_column ? tn_val_row(y, r) : column;
        tally_row(y, r, sum, pairs);
        for (uint32_t c = 0; c < dim; c++) {
            pairs[c] = (sum[c] * sum[c] - pairs[c]) / 2;
        }
        if (!by_column) {
            *tn_val_row(y, r) = tn_vec_sum(dim, pairs);
        }
    }
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
    UNROLLED(back, dim, dv, p, cols);
}

/* dv_f (+)= d * (sum - v_f), elementwise. */
static void pairs_backward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    uint32_t dim = dim_of(y);
    tn_real sum[TN_DIM_MAX];
    tn_real squares[TN_DIM_MAX];
    tn_real same[TN_DIM_MAX];
    for (size_t r = rows.from; r < rows.to && x->grad != NULL; r++) {
        const tn_real *d = is_by_column(y) ? tn_grad_row(y, r) : same;
        for (uint32_t c = 0; c < dim && d == same; c++) {
            same[c] = *tn_grad_row(y, r);
        }
        tally_row(y, r, sum, squares);
        fm_back(tn_grad_row_to_add(y, x, r), (back_row){tn_val_row(x, r), d, sum}, x->shape.cols,
                dim);
    }
}

static void values_backward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    const tn_node *q = y->in[1];
    uint32_t dim = dim_of(y);
    tn_real sum[TN_DIM_MAX];
    for (size_t r = rows.from; r < rows.to; r++) {
        tn_real dy = *tn_grad_row(y, r);
        if (x->grad != NULL) {
            sum_fields(tn_val_row(x, r), x->shape.cols, dim, sum);
        }
        for (uint32_t f = 0; f < x->shape.cols && x->grad != NULL; f += dim) {
            tn_vec_scale(dim, tn_grad_row(x, r) + f, sum, dy, tn_adds(y, x));
        }
        if (q->grad != NULL) {
            tn_vec_shift(q->shape.cols, tn_grad_row_to_add(y, q, r), -dy / 2);
        }
    }
}

/* Members that the operators have in common. */
#define PAIRS(cols_, dim_)                                                                         \
    .attrs = attrs, .attr_size = sizeof(tn_pairs_attr),                                            \
    .example = {.cols = (cols_), .attr = &(const tn_pairs_attr){dim_}}

const tn_op tn_op_fm = {
    TN_OP_MEMBERS(fm, pairs),
    PAIRS(12, 4),
    .formula = "y = sum of <vi, vj> over all pairs of fields",
    .n_in = 1,
    .shape = pairs_shape,
    .flops = pairs_flops,
};

const tn_op tn_op_bi_interaction = {
    TN_OP_MEMBERS(bi_interaction, pairs),
    PAIRS(12, 4),
    .formula = "y = sum of vi * vj over all pairs of fields",
    .n_in = 1,
    .shape = columns_shape,
    .flops = pairs_flops,
};

const tn_op tn_op_fm_values = {
    .name = "fm_values",
    PAIRS(12, 4),
    .formula = "y = sum of <x_i v_i, x_j v_j> over all pairs of values",
    .n_in = 2,
    .shape = pairs_shape,
    .forward = pairs_forward,
    .backward = values_backward,
    .flops = pairs_flops,
};

/* ---- inner ---- */

static tn_shape inner_shape(const tn_node *y)
{
    tn_shape x = y->in[0]->shape;
    uint64_t f = x.cols / dim_of(y);
    uint64_t pairs = f * (f - 1) / 2;
    bool fits = x.cols % dim_of(y) == 0 && pairs > 0 && pairs <= TN_COLS_MAX;
    return fits ? (tn_shape){x.rows, (uint32_t)pairs} : TN_MISFIT;
}

/* One example's products. */
ALWAYS_INLINE void products(const tn_real *restrict x, uint32_t n, tn_real *restrict y,
                            const uint32_t dim)
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

TN_HOT static void inner_row(const tn_real *x, uint32_t n, uint32_t dim, tn_real *y)
{
    UNROLLED(products, dim, x, n, y);
}

static void inner_forward(tn_node *y, tn_range rows)
{
    uint32_t dim = dim_of(y);
    uint32_t n = y->in[0]->shape.cols / dim;
    for (size_t r = rows.from; r < rows.to; r++) {
        inner_row(tn_val_row(y->in[0], r), n, dim, tn_val_row(y, r));
    }
}

typedef struct inner_rows {
    const tn_real *x;
    const tn_real *dy;
    tn_real *dx;
} inner_rows;

ALWAYS_INLINE void inner_back(const inner_rows *p, uint32_t n, const uint32_t dim)
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

TN_HOT static void inner_back_row(const inner_rows *p, uint32_t n, uint32_t dim)
{
    UNROLLED(inner_back, dim, p, n);
}

static void inner_backward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    uint32_t dim = dim_of(y);
    for (size_t r = rows.from; r < rows.to && x->grad != NULL; r++) {
        inner_rows p = {tn_val_row(x, r), tn_grad_row(y, r), tn_grad_row_to_add(y, x, r)};
        inner_back_row(&p, x->shape.cols / dim, dim);
    }
}

static double inner_flops(const tn_node *y)
{
    return 2.0 * y->shape.rows * y->shape.cols * dim_of(y);
}

const tn_op tn_op_inner = {
    TN_OP_MEMBERS(inner, inner),
    PAIRS(12, 3),
    .shape = inner_shape,
    .formula = "y_ij = <vi, vj> for all pairs of fields",
    .n_in = 1,
    .flops = inner_flops,
};

/* ---- outer ---- */

static tn_shape outer_shape(const tn_node *y)
{
    tn_shape x = y->in[0]->shape;
    uint64_t cols = (uint64_t)dim_of(y) * dim_of(y);
    return x.cols % dim_of(y) == 0 && cols <= TN_COLS_MAX ? (tn_shape){x.rows, (uint32_t)cols}
                                                          : TN_MISFIT;
}

static void outer_forward(tn_node *y, tn_range rows)
{
    const size_t dim = dim_of(y);
    tn_real sum[TN_DIM_MAX];
    for (size_t r = rows.from; r < rows.to; r++) {
        sum_fields(tn_val_row(y->in[0], r), y->in[0]->shape.cols, dim_of(y), sum);
        for (size_t c = 0; c < dim; c++) {
            tn_vec_scale(dim, tn_val_row(y, r) + c * dim, sum, sum[c], false);
        }
    }
}

static void outer_backward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    const size_t dim = dim_of(y);
    tn_real sum[TN_DIM_MAX];
    tn_real ds[TN_DIM_MAX];
    for (size_t r = rows.from; r < rows.to && x->grad != NULL; r++) {
        const tn_real *dp = tn_grad_row(y, r);
        sum_fields(tn_val_row(x, r), x->shape.cols, dim_of(y), sum);
        for (size_t c = 0; c < dim; c++) {
            ds[c] = tn_vec_dot(dim, dp + c * dim, sum);
        }
        for (size_t c = 0; c < dim; c++) {
            tn_vec_scale(dim, ds, dp + c * dim, sum[c], true);
        }
        for (size_t f = 0; f < x->shape.cols; f += dim) {
            tn_vec_copy(dim, tn_grad_row(x, r) + f, ds, tn_adds(y, x));
        }
    }
}

static double outer_flops(const tn_node *y)
{
    return (double)y->shape.rows * (y->in[0]->shape.cols + y->shape.cols);
}

const tn_op tn_op_outer = {
    TN_OP_MEMBERS(outer, outer),
    PAIRS(12, 3),
    .shape = outer_shape,
    .formula = "y = s^T s, s the sum of all fields",
    .n_in = 1,
    .flops = outer_flops,
};
