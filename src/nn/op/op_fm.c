/* op_fm.c - second-order factorization-machine term (Rendle 2010).
 *
 * A row of x holds f field vectors of length dim, x = [v1 .. vf]; s = v1 + .. + vf:
 *
 *   forward     y    = 1/2 sum_c (s_c^2 - sum_i v_ic^2)        all pairs <vi,vj>, i < j
 *   backward    dvi += dy (s - vi)
 */
#include "nn/op/ops.h"
#include "nn/pooling/fmloops.h"
#include "nn/vec/vec.h"

#include "base/keys/record.h"

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
