/* op_bias.c - the same row added to every row.
 *
 *   forward     y[r][j]   = x[r][j] + b[j]
 *   backward    dx[r][j] += dy[r][j]
 *               db[j]    += sum_r dy[r][j]        a tile of columns, rows in order
 */
#include "nn/op/ops.h"
#include "nn/vec/vec.h"

static tn_shape bias_shape(const tn_node *y)
{
    tn_shape x = y->in[0]->shape;
    tn_shape b = y->in[1]->shape;
    if (b.rows != 1 || b.cols != x.cols) {
        return TN_MISFIT;
    }
    return x;
}

static void bias_forward(tn_node *y, tn_range rows)
{
    for (size_t r = rows.from; r < rows.to; r++) {
        tn_vec_add(y->shape.cols, tn_val_row(y, r), tn_val_row(y->in[0], r), y->in[1]->val);
    }
}

static void bias_backward(tn_node *y, tn_range rows)
{
    tn_node *x = y->in[0];
    for (size_t r = rows.from; r < rows.to && x->grad != NULL; r++) {
        tn_vec_copy(y->shape.cols, tn_grad_row(x, r), tn_grad_row(y, r), tn_adds(y, x));
    }
}

static void bias_backward_params(tn_node *y, tn_range cols)
{
    const tn_node *b = y->in[1];
    for (size_t r = 0; r < y->shape.rows && b->grad != NULL; r++) {
        tn_vec_copy(cols.to - cols.from, b->grad + cols.from, tn_grad_row(y, r) + cols.from,
                    r > 0 || tn_adds(y, b));
    }
}

static tn_node *bias_example(tn_graph *g)
{
    tn_node *b = tn_param(g, NULL, NULL, (tn_shape){1, 5}, (tn_init){.kind = TN_INIT_CONSTANT});
    return tn_bias(g, NULL, tn_input(g, NULL, 5, true), b);
}

static const char *const params[] = {"b", NULL};

const tn_op tn_op_bias = {
    .name = "bias",
    .formula = "y = x + b",
    .n_in = 1,
    .params = params,
    .shape = bias_shape,
    .forward = bias_forward,
    .backward = bias_backward,
    .backward_params = bias_backward_params,
    .example = bias_example,
};

tn_node *tn_bias(tn_graph *g, const char *name, tn_node *x, tn_node *b)
{
    return tn_apply(g, &tn_op_bias, name, (tn_node *[]){x, b}, 2, NULL);
}
