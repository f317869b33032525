/* op_square.c - each number times itself: the operator of the recipe's test.
 *
 *   forward     y   = x x
 *   backward    dx += 2 x dy
 */
#include "nn/op/ops.h"

static void square_forward(tn_node *y, tn_range rows)
{
    for (size_t r = rows.from; r < rows.to; r++) {
        const tn_real *x = tn_val_row(y->in[0], r);
        tn_real *out = tn_val_row(y, r);
        for (uint32_t c = 0; c < y->shape.cols; c++) {
            out[c] = x[c] * x[c];
        }
    }
}

static void square_backward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    const bool adds = tn_adds(y, x);
    for (size_t r = rows.from; r < rows.to && x->grad != NULL; r++) {
        const tn_real *val = tn_val_row(x, r);
        const tn_real *dy = tn_grad_row(y, r);
        tn_real *dx = tn_grad_row(x, r);
        for (uint32_t c = 0; c < y->shape.cols; c++) {
            dx[c] = (adds ? dx[c] : 0) + 2 * val[c] * dy[c];
        }
    }
}

const tn_op tn_op_square = {
    .name = "square",
    .formula = "y = x x",
    .n_in = 1,
    .shape = tn_same_shape,
    .forward = square_forward,
    .backward = square_backward,
    .example = {.cols = 5},
};
