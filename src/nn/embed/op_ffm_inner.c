/* op_ffm_inner.c - inner products of the vectors that two fields hold for each other, a column for
 * each pair (ONN, Yang 2019).
 *
 * A row of x holds f fields of f vectors of length dim; A[i,j] is the vector of field i for field
 * j:
 *
 *   forward     y_ij     = <A[i,j], A[j,i]>            i < j: (0,1), (0,2) .. (1,2) ..
 *   backward    dA[i,j] += dy_ij A[j,i],  dA[j,i] += dy_ij A[i,j]
 *
 * Their sum is that of ffm.
 */
#include "config/field.h"
#include "nn/op/ops.h"

#include "base/core/compiler.h"
#include "base/keys/record.h"

static const tn_field attrs[] = {
    TN_FIELD_U32(tn_ffm_attr, fields, "2", 2, TN_FFM_FIELDS_MAX, "fields", "how many"),
    TN_FIELD_U32(tn_ffm_attr, dim, "4", 1, TN_DIM_MAX, "columns", "width of one vector"),
    TN_FIELD_END,
};

static const tn_ffm_attr *attr_of(const tn_node *y)
{
    return y->attr;
}

static tn_shape inner_shape(const tn_node *y)
{
    const uint32_t f = attr_of(y)->fields;
    const uint32_t pairs = f > 1 ? f * (f - 1) / 2 : 0;
    return pairs > 0 && tn_ffm_fits(attr_of(y), y->in[0]) ? (tn_shape){y->in[0]->shape.rows, pairs}
                                                          : TN_MISFIT;
}

TN_HOT static void ffm_inner_row(const tn_ffm_attr *a, const tn_real *restrict x,
                                 tn_real *restrict y)
{
    const size_t dim = a->dim;
    for (size_t i = 0; i < a->fields; i++) {
        for (size_t j = i + 1; j < a->fields; j++) {
            const tn_real *restrict u = x + (i * a->fields + j) * dim;
            const tn_real *restrict v = x + (j * a->fields + i) * dim;
            tn_real sum = 0;
#pragma omp simd reduction(+ : sum)
            for (size_t c = 0; c < dim; c++) {
                sum += u[c] * v[c];
            }
            *y++ = sum;
        }
    }
}

static void inner_forward(tn_node *y, tn_range rows)
{
    for (size_t r = rows.from; r < rows.to; r++) {
        ffm_inner_row(attr_of(y), tn_val_row(y->in[0], r), tn_val_row(y, r));
    }
}

TN_HOT static void ffm_inner_back(const tn_ffm_attr *a, const tn_real *restrict x,
                                  const tn_real *restrict dy, tn_real *restrict dx)
{
    const size_t dim = a->dim;
    for (size_t i = 0; i < a->fields; i++) {
        for (size_t j = i + 1; j < a->fields; j++, dy++) {
            const size_t u = (i * a->fields + j) * dim;
            const size_t v = (j * a->fields + i) * dim;
            for (size_t c = 0; c < dim; c++) {
                dx[u + c] += *dy * x[v + c];
                dx[v + c] += *dy * x[u + c];
            }
        }
    }
}

static void inner_backward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    for (size_t r = rows.from; r < rows.to && x->grad != NULL; r++) {
        ffm_inner_back(attr_of(y), tn_val_row(x, r), tn_grad_row(y, r),
                       tn_grad_row_to_add(y, x, r));
    }
}

static double inner_flops(const tn_node *y)
{
    return 2.0 * y->shape.rows * y->shape.cols * attr_of(y)->dim;
}

const tn_op tn_op_ffm_inner = {
    TN_OP_MEMBERS(ffm_inner, inner),
    .shape = inner_shape,
    .formula = "y_ij = <A[i,j], A[j,i]> for all pairs of fields",
    .n_in = 1,
    TN_OP_ATTRS(attrs, tn_ffm_attr),
    .flops = inner_flops,
    .example = {.cols = 18, .attr = &(const tn_ffm_attr){.fields = 3, .dim = 2}},
};
