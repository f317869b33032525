/* op_ffm.c - field-aware factorization machine (Juan 2016).
 *
 * A row of x holds f fields of f vectors of length dim; A[i,j] is the vector of field i for field
 * j, the values of the field folded into it:
 *
 *   forward     y        = sum over i < j of <A[i,j], A[j,i]>
 *   backward    dA[i,j] += dy A[j,i]        i != j
 */
#include "nn/op/ops.h"
#include "nn/pooling/ffmloops.h"

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
        if (!tn_adds(y, x)) {
            tn_clear(tn_grad_row(x, r), x->shape.cols);
        }
        for (uint32_t f = 0; f < a->fields; f++) {
            field[f] = tn_val_row(x, r) + (size_t)f * a->fields * a->dim;
            dfield[f] = tn_grad_row(x, r) + (size_t)f * a->fields * a->dim;
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

static tn_node *ffm_example(tn_graph *g)
{
    enum { FIELDS = 9, DIM = 4 };
    return tn_ffm(g, NULL, tn_input(g, NULL, FIELDS * FIELDS * DIM, true), FIELDS, DIM);
}

const tn_op tn_op_ffm = {
    .name = "ffm",
    .formula = "y = sum of <A[i,j], A[j,i]> over all pairs of fields",
    .n_in = 1,
    .attrs = tn_ffm_attrs,
    .attr_size = sizeof(tn_ffm_attr),
    .shape = ffm_shape,
    .forward = ffm_forward,
    .backward = ffm_backward,
    .flops = ffm_flops,
    .example = ffm_example,
};

tn_node *tn_ffm(tn_graph *g, const char *name, tn_node *x, uint32_t fields, uint32_t dim)
{
    return tn_apply(g, &tn_op_ffm, name, &x, 1, &(tn_ffm_attr){.fields = fields, .dim = dim});
}
