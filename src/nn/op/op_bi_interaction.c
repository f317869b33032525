/* op_bi_interaction.c - the pairs of fm, column by column, not summed (He 2017, NFM).
 *
 *   forward     y_c   = 1/2 (s_c^2 - sum_i v_ic^2),  s = v1 + .. + vf
 *   backward    dv_i += dy * (s - v_i)
 */
#include "nn/op/ops.h"
#include "nn/pooling/fmloops.h"

#include "base/keys/record.h"

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
