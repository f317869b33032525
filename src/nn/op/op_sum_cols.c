/* op_sum_cols.c - sum of each row.
 *
 *   forward     y[r]      = sum_j x[r][j]
 *   backward    dx[r][j] += dy[r]
 */
#include "nn/op/ops.h"
#include "nn/vec/vec.h"

static tn_shape sum_shape(const tn_node *y)
{
    return (tn_shape){y->in[0]->shape.rows, 1};
}

static void sum_forward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    for (size_t r = rows.from; r < rows.to; r++) {
        *tn_val_row(y, r) = tn_vec_sum(x->shape.cols, tn_val_row(x, r));
    }
}

static void sum_backward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    for (size_t r = rows.from; r < rows.to && x->grad != NULL; r++) {
        if (!tn_adds(y, x)) {
            tn_clear(tn_grad_row(x, r), x->shape.cols);
        }
        tn_vec_shift(x->shape.cols, tn_grad_row(x, r), *tn_grad_row(y, r));
    }
}

static double sum_flops(const tn_node *y)
{
    return (double)y->shape.rows * y->in[0]->shape.cols;
}

static tn_node *sum_example(tn_graph *g)
{
    return tn_sum_cols(g, NULL, tn_input(g, NULL, 6, true));
}

const tn_op tn_op_sum_cols = {
    .name = "sum_cols",
    .formula = "y = sum of the row",
    .n_in = 1,
    .shape = sum_shape,
    .forward = sum_forward,
    .backward = sum_backward,
    .flops = sum_flops,
    .example = sum_example,
};

tn_node *tn_sum_cols(tn_graph *g, const char *name, tn_node *x)
{
    return tn_apply(g, &tn_op_sum_cols, name, &x, 1, NULL);
}
