/* op_mul.c - elementwise product; b may be one column, which then scales whole rows.
 *
 *   forward     y   = a * b
 *   backward    da += dy * b
 *               db += dy * a        summed over the row when b is one column
 */
#include "nn/op/ops.h"
#include "nn/vec/vec.h"

static tn_shape mul_shape(const tn_node *y)
{
    tn_shape a = y->in[0]->shape;
    tn_shape b = y->in[1]->shape;
    if (!(a.rows == b.rows && (a.cols == b.cols || b.cols == 1))) {
        return TN_MISFIT;
    }
    return a;
}

static bool is_broadcast(const tn_node *y)
{
    return y->in[1]->shape.cols != y->shape.cols;
}

static void mul_forward(tn_node *y, tn_range rows)
{
    for (size_t r = rows.from; r < rows.to; r++) {
        const tn_real *a = tn_val_row(y->in[0], r);
        const tn_real *b = tn_val_row(y->in[1], r);
        if (is_broadcast(y)) {
            tn_vec_scale(y->shape.cols, tn_val_row(y, r), a, *b, false);
        } else {
            tn_vec_mul(y->shape.cols, tn_val_row(y, r), a, b, false);
        }
    }
}

static void backward_broadcast(const tn_node *y, size_t r)
{
    const tn_node *a = y->in[0];
    const tn_node *b = y->in[1];
    const tn_real *dy = tn_grad_row(y, r);
    if (a->grad != NULL) {
        tn_vec_scale(y->shape.cols, tn_grad_row(a, r), dy, *tn_val_row(b, r), tn_adds(y, a));
    }
    if (b->grad != NULL) {
        tn_real *db = tn_grad_row(b, r);
        *db = (tn_adds(y, b) ? *db : 0) + tn_vec_dot(y->shape.cols, dy, tn_val_row(a, r));
    }
}

static void backward_equal(const tn_node *y, size_t r)
{
    for (uint32_t k = 0; k < 2; k++) {
        const tn_node *x = y->in[k];
        if (x->grad != NULL) {
            tn_vec_mul(y->shape.cols, tn_grad_row(x, r), tn_grad_row(y, r),
                       tn_val_row(y->in[1 - k], r), tn_adds(y, x));
        }
    }
}

static void mul_backward(tn_node *y, tn_range rows)
{
    for (size_t r = rows.from; r < rows.to; r++) {
        (is_broadcast(y) ? backward_broadcast : backward_equal)(y, r);
    }
}

static tn_node *mul_example(tn_graph *g)
{
    tn_node *a = tn_input(g, NULL, 5, true);
    tn_node *b = tn_mul(g, NULL, a, tn_input(g, NULL, 1, true));
    return tn_mul(g, NULL, b, tn_mul(g, NULL, a, a)); /* the last: one operand twice */
}

const tn_op tn_op_mul = {
    .name = "mul",
    .formula = "y = a * b, elementwise",
    .n_in = 2,
    .shape = mul_shape,
    .forward = mul_forward,
    .backward = mul_backward,
    .example = mul_example,
};

tn_node *tn_mul(tn_graph *g, const char *name, tn_node *a, tn_node *b)
{
    return tn_apply(g, &tn_op_mul, name, (tn_node *[]){a, b}, 2, NULL);
}
