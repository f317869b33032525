/* op_fm.c - second-order terms of factorization machines: fm, bi_interaction, fm_values.
 *
 * A row of x holds f vectors of length dim, one per field; s = v1 + .. + vf:
 *
 *   fm               y     = 1/2 (|s|^2 - sum_i |v_i|^2)           (Rendle 2010)
 *                    dv_i += dy (s - v_i)
 *   bi_interaction   y_c   = 1/2 (s_c^2 - sum_i v_ic^2)            column by column (NFM, He 2017)
 *                    dv_i += dy * (s - v_i)
 *   fm_values        y     = 1/2 sum_c (s_c^2 - sum_i q_ic)        over values (libFM)
 *                    dx_i += dy s,  dq_i -= dy / 2
 *
 * For fm_values a vector of x is a sum over the values of a field, and q holds the sums of their
 * squares, so that pairs within a field count. Where every field has one value, q = x^2 and y is
 * that of fm to the bit.
 */
#include "base/keys/record.h"
#include "nn/op/ops.h"
#include "nn/pooling/fmloops.h"
#include "nn/vec/vec.h"

static tn_shape fm_shape(const tn_node *y)
{
    tn_shape x = y->in[0]->shape;
    if (x.cols % tn_fm_dim(y) != 0) {
        return TN_MISFIT;
    }
    return (tn_shape){x.rows, 1};
}

static void fm_forward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    uint32_t dim = tn_fm_dim(y);
    tn_real sum[TN_DIM_MAX];
    tn_real pairs[TN_DIM_MAX];
    for (size_t r = rows.from; r < rows.to; r++) {
        tn_fm_pairs(tn_val_row(x, r), x->shape.cols, dim, sum, pairs);
        *tn_val_row(y, r) = tn_vec_sum(dim, pairs);
    }
}

static void fm_backward(tn_node *y, tn_range rows)
{
    uint32_t dim = tn_fm_dim(y);
    tn_real d[TN_DIM_MAX];
    for (size_t r = rows.from; r < rows.to && y->in[0]->grad != NULL; r++) {
        for (uint32_t c = 0; c < dim; c++) {
            d[c] = *tn_grad_row(y, r);
        }
        tn_fm_pairs_back(y, r, d);
    }
}

static tn_node *fm_example(tn_graph *g)
{
    return tn_fm(g, NULL, tn_input(g, NULL, 3 * 4, true), 4);
}

const tn_op tn_op_fm = {
    .name = "fm",
    .formula = "y = sum of <vi, vj> over all pairs of fields",
    .n_in = 1,
    .attrs = tn_fm_attrs,
    .attr_size = sizeof(tn_fm_attr),
    .shape = fm_shape,
    .forward = fm_forward,
    .backward = fm_backward,
    .flops = tn_fm_flops,
    .example = fm_example,
};

tn_node *tn_fm(tn_graph *g, const char *name, tn_node *x, uint32_t dim)
{
    TN_ASSERT(dim > 0 && dim <= TN_DIM_MAX);
    return tn_apply(g, &tn_op_fm, name, &x, 1, &(tn_fm_attr){.dim = dim});
}

static tn_shape bi_shape(const tn_node *y)
{
    tn_shape x = y->in[0]->shape;
    if (x.cols % tn_fm_dim(y) != 0) {
        return TN_MISFIT;
    }
    return (tn_shape){x.rows, tn_fm_dim(y)};
}

static void bi_forward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    tn_real sum[TN_DIM_MAX];
    for (size_t r = rows.from; r < rows.to; r++) {
        tn_fm_pairs(tn_val_row(x, r), x->shape.cols, tn_fm_dim(y), sum, tn_val_row(y, r));
    }
}

static void bi_backward(tn_node *y, tn_range rows)
{
    for (size_t r = rows.from; r < rows.to && y->in[0]->grad != NULL; r++) {
        tn_fm_pairs_back(y, r, tn_grad_row(y, r));
    }
}

static tn_node *bi_example(tn_graph *g)
{
    return tn_bi_interaction(g, NULL, tn_input(g, NULL, 3 * 4, true), 4);
}

const tn_op tn_op_bi_interaction = {
    .name = "bi_interaction",
    .formula = "y = sum of vi * vj over all pairs of fields",
    .n_in = 1,
    .attrs = tn_fm_attrs,
    .attr_size = sizeof(tn_fm_attr),
    .shape = bi_shape,
    .forward = bi_forward,
    .backward = bi_backward,
    .flops = tn_fm_flops,
    .example = bi_example,
};

tn_node *tn_bi_interaction(tn_graph *g, const char *name, tn_node *x, uint32_t dim)
{
    TN_ASSERT(dim > 0 && dim <= TN_DIM_MAX);
    return tn_apply(g, &tn_op_bi_interaction, name, &x, 1, &(tn_fm_attr){.dim = dim});
}

static tn_shape values_shape(const tn_node *y)
{
    tn_shape x = y->in[0]->shape;
    if (x.cols % tn_fm_dim(y) != 0 || y->in[1]->shape.cols != x.cols) {
        return TN_MISFIT;
    }
    return (tn_shape){x.rows, 1};
}

/* out[c] := sum over fields. */
static void sum_fields(const tn_real *row, uint32_t cols, uint32_t dim, tn_real *out)
{
    tn_vec_copy(dim, out, row, false);
    for (uint32_t f = dim; f < cols; f += dim) {
        tn_vec_copy(dim, out, row + f, true);
    }
}

static void values_forward(tn_node *y, tn_range rows)
{
    uint32_t cols = y->in[0]->shape.cols;
    uint32_t dim = tn_fm_dim(y);
    tn_real sum[TN_DIM_MAX];
    tn_real squares[TN_DIM_MAX];
    for (size_t r = rows.from; r < rows.to; r++) {
        sum_fields(tn_val_row(y->in[0], r), cols, dim, sum);
        sum_fields(tn_val_row(y->in[1], r), cols, dim, squares);
        for (uint32_t c = 0; c < dim; c++) {
            sum[c] = (sum[c] * sum[c] - squares[c]) / 2;
        }
        *tn_val_row(y, r) = tn_vec_sum(dim, sum);
    }
}

static void back_row(const tn_node *y, size_t r)
{
    const tn_node *x = y->in[0];
    const tn_node *q = y->in[1];
    tn_real dy = *tn_grad_row(y, r);
    uint32_t dim = tn_fm_dim(y);
    if (x->grad != NULL) {
        tn_real sum[TN_DIM_MAX];
        sum_fields(tn_val_row(x, r), x->shape.cols, dim, sum);
        for (uint32_t f = 0; f < x->shape.cols; f += dim) {
            tn_vec_scale(dim, tn_grad_row(x, r) + f, sum, dy, tn_adds(y, x));
        }
    }
    if (q->grad != NULL) {
        if (!tn_adds(y, q)) {
            tn_clear(tn_grad_row(q, r), q->shape.cols);
        }
        tn_vec_shift(q->shape.cols, tn_grad_row(q, r), -dy / 2);
    }
}

static void values_backward(tn_node *y, tn_range rows)
{
    for (size_t r = rows.from; r < rows.to; r++) {
        back_row(y, r);
    }
}

static tn_node *values_example(tn_graph *g)
{
    tn_node *x = tn_input(g, NULL, 3 * 4, true);
    return tn_fm_values(g, NULL, (tn_node *[]){x, tn_input(g, NULL, 3 * 4, true)}, 4);
}

const tn_op tn_op_fm_values = {
    .name = "fm_values",
    .formula = "y = sum of <x_i v_i, x_j v_j> over all pairs of values",
    .n_in = 2,
    .attrs = tn_fm_attrs,
    .attr_size = sizeof(tn_fm_attr),
    .shape = values_shape,
    .forward = values_forward,
    .backward = values_backward,
    .flops = tn_fm_flops,
    .example = values_example,
};

tn_node *tn_fm_values(tn_graph *g, const char *name, tn_node *const x_squares[2], uint32_t dim)
{
    TN_ASSERT(dim > 0 && dim <= TN_DIM_MAX);
    return tn_apply(g, &tn_op_fm_values, name, x_squares, 2, &(tn_fm_attr){.dim = dim});
}
