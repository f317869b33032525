/* op_cube.c - the third power of each number: the operator of the recipe's test.
 *
 *   forward     y   = x x x
 *   backward    dx += 3 x x dy
 */
#include "nn/op/ops.h"

static void cube_forward(tn_node *y, tn_range rows)
{
    for (size_t r = rows.from; r < rows.to; r++) {
        const tn_real *x = tn_val_row(y->in[0], r);
        tn_real *out = tn_val_row(y, r);
        for (uint32_t c = 0; c < y->shape.cols; c++) {
            out[c] = x[c] * x[c] * x[c];
        }
    }
}

static void cube_backward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    const bool adds = tn_adds(y, x);
    for (size_t r = rows.from; r < rows.to && x->grad != NULL; r++) {
        const tn_real *val = tn_val_row(x, r);
        const tn_real *dy = tn_grad_row(y, r);
        tn_real *dx = tn_grad_row(x, r);
        for (uint32_t c = 0; c < y->shape.cols; c++) {
            dx[c] = (adds ? dx[c] : 0) + 3 * val[c] * val[c] * dy[c];
        }
    }
}

const tn_op tn_op_cube = {
    .name = "cube",
    .formula = "y = x x x",
    .n_in = 1,
    .shape = tn_same_shape,
    .forward = cube_forward,
    .backward = cube_backward,
    .example = {.cols = 5},
};
