/* op_ffm.c - field-aware factorization machines (Juan 2016): ffm, ffm_within.
 *
 * A row of x holds f fields of f vectors of length dim; A[i,j] is the vector of field i for field
 * j, the values of the field folded into it:
 *
 *   ffm          y        = sum over i < j of <A[i,j], A[j,i]>
 *                dA[i,j] += dy A[j,i]        i != j
 *
 * ffm_within adds the pairs of values of one field, which meet by the vectors that they hold for
 * their own field. q has the sums of the values' squares (op_embed_squares.c):
 *
 *   ffm_within   y        = 1/2 sum_i (|A[i,i]|^2 - sum_c q[i,i]_c)
 *                dA[i,i] += dy A[i,i],  dq[i,i] -= dy / 2
 */
#include "nn/op/ops.h"
#include "nn/pooling/ffmloops.h"
#include "nn/vec/vec.h"

static const tn_ffm_attr *attr_of(const tn_node *y)
{
    return y->attr;
}

static tn_shape ffm_shape(const tn_node *y)
{
    const tn_node *x = y->in[0];
    return tn_ffm_fits(attr_of(y), x) ? (tn_shape){x->shape.rows, 1} : TN_MISFIT;
}

static void ffm_forward(tn_node *y, tn_range rows)
{
    const tn_ffm_attr *a = attr_of(y);
    const tn_real *field[TN_FFM_FIELDS_MAX];
    for (size_t r = rows.from; r < rows.to; r++) {
        for (uint32_t f = 0; f < a->fields; f++) {
            field[f] = tn_val_row(y->in[0], r) + (size_t)f * a->fields * a->dim;
        }
        *tn_val_row(y, r) = tn_ffm_pairs(&(tn_ffm_row){a->fields, a->dim, field});
    }
}

static void ffm_backward(tn_node *y, tn_range rows)
{
    const tn_ffm_attr *a = attr_of(y);
    const tn_node *x = y->in[0];
    const tn_real *field[TN_FFM_FIELDS_MAX];
    tn_real *dfield[TN_FFM_FIELDS_MAX];
    for (size_t r = rows.from; r < rows.to && x->grad != NULL; r++) {
        tn_real *dx = tn_grad_row_to_add(y, x, r);
        for (uint32_t f = 0; f < a->fields; f++) {
            field[f] = tn_val_row(x, r) + (size_t)f * a->fields * a->dim;
            dfield[f] = dx + (size_t)f * a->fields * a->dim;
        }
        tn_ffm_pairs_back(&(tn_ffm_row){a->fields, a->dim, field}, (tn_range){0, a->fields},
                          *tn_grad_row(y, r), dfield);
    }
}

static double ffm_flops(const tn_node *y)
{
    const tn_ffm_attr *a = attr_of(y);
    return (double)y->shape.rows * a->fields * (a->fields - 1) * a->dim;
}

const tn_op tn_op_ffm = {
    TN_OP_MEMBERS(ffm, ffm),
    .shape = ffm_shape,
    .example = {9 * 9 * 4, &(const tn_ffm_attr){9, 4}},
    .formula = "y = sum of <A[i,j], A[j,i]> over all pairs of fields",
    .n_in = 1,
    .attrs = tn_ffm_attrs,
    .attr_size = sizeof(tn_ffm_attr),
    .flops = ffm_flops,
};

static tn_shape within_shape(const tn_node *y)
{
    const tn_node *x = y->in[0];
    bool fits = tn_ffm_fits(attr_of(y), x) && y->in[1]->shape.cols == x->shape.cols;
    return fits ? (tn_shape){x->shape.rows, 1} : TN_MISFIT;
}

/* Where A[i,i] begins. */
static size_t own_block(const tn_ffm_attr *a, uint32_t i)
{
    return ((size_t)i * a->fields + i) * a->dim;
}

static void within_forward(tn_node *y, tn_range rows)
{
    const tn_ffm_attr *a = attr_of(y);
    for (size_t r = rows.from; r < rows.to; r++) {
        tn_real sum = 0;
        for (uint32_t i = 0; i < a->fields; i++) {
            const tn_real *own = tn_val_row(y->in[0], r) + own_block(a, i);
            sum += tn_vec_dot(a->dim, own, own) -
                   tn_vec_sum(a->dim, tn_val_row(y->in[1], r) + own_block(a, i));
        }
        *tn_val_row(y, r) = sum / 2;
    }
}

static void within_backward(tn_node *y, tn_range rows)
{
    const tn_ffm_attr *a = attr_of(y);
    const tn_node *x = y->in[0];
    const tn_node *q = y->in[1];
    for (size_t r = rows.from; r < rows.to; r++) {
        tn_real dy = *tn_grad_row(y, r);
        tn_real *dx = x->grad != NULL ? tn_grad_row_to_add(y, x, r) : NULL;
        tn_real *dq = q->grad != NULL ? tn_grad_row_to_add(y, q, r) : NULL;
        for (uint32_t i = 0; i < a->fields; i++) {
            size_t at = own_block(a, i);
            if (dx != NULL) {
                tn_vec_scale(a->dim, dx + at, tn_val_row(x, r) + at, dy, true);
            }
            if (dq != NULL) {
                tn_vec_shift(a->dim, dq + at, -dy / 2);
            }
        }
    }
}

static double within_flops(const tn_node *y)
{
    const tn_ffm_attr *a = attr_of(y);
    return 3.0 * y->shape.rows * a->fields * a->dim;
}

const tn_op tn_op_ffm_within = {
    TN_OP_MEMBERS(ffm_within, within),
    .shape = within_shape,
    .example = {3 * 3 * 2, &(const tn_ffm_attr){3, 2}},
    .formula = "y = sum of <x_i v_i, x_j v_j> over the pairs of values of one field",
    .n_in = 2,
    .attrs = tn_ffm_attrs,
    .attr_size = sizeof(tn_ffm_attr),
    .flops = within_flops,
};
