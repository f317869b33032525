/* op_fm_values.c - second-order term over all pairs of values, those of one slot among them
 * (libFM).
 *
 * A row of x holds f sums of values, each of length dim; q the sums of the values' squares; s = sum
 * of the f vectors of x:
 *
 *   forward     y     = 1/2 sum_c (s_c^2 - sum_i q_ic)
 *   backward    dx_i += dy s,  dq_i -= dy / 2
 *
 * Where every slot has one value, q = x^2 and y is that of op_fm.c to the bit.
 */
#include "nn/op/ops.h"
#include "nn/pooling/fmloops.h"
#include "nn/vec/vec.h"

#include "base/keys/record.h"

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
