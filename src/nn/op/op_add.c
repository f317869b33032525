/* op_add.c - elementwise sum of two or more.
 *
 *   forward     y   = a + b + ..        left to right
 *   backward    da += dy,  db += dy, ..
 */
#include "nn/op/activations.h"
#include "nn/op/ops.h"
#include "nn/vec/vec.h"

static tn_shape add_shape(const tn_node *y)
{
    tn_shape a = y->in[0]->shape;
    for (uint32_t k = 1; k < y->n_in; k++) {
        tn_shape b = y->in[k]->shape;
        if (a.rows != b.rows || a.cols != b.cols) {
            return TN_MISFIT;
        }
    }
    return a;
}

static void add_forward(tn_node *y, tn_range rows)
{
    for (size_t r = rows.from; r < rows.to; r++) {
        for (uint32_t k = 0; k < y->n_in; k++) {
            tn_vec_copy(y->shape.cols, tn_val_row(y, r), tn_val_row(y->in[k], r), k > 0);
        }
    }
}

static void add_backward(tn_node *y, tn_range rows)
{
    for (uint32_t k = 0; k < y->n_in; k++) {
        const tn_node *x = y->in[k];
        for (size_t r = rows.from; r < rows.to && x->grad != NULL; r++) {
            tn_vec_copy(y->shape.cols, tn_grad_row(x, r), tn_grad_row(y, r), tn_adds(y, x));
        }
    }
}

static double add_flops(const tn_node *y)
{
    return (double)(y->n_in - 1) * y->shape.rows * y->shape.cols;
}

static tn_node *add_example(tn_graph *g)
{
    tn_node *in[] = {tn_input(g, NULL, 5, true), tn_input(g, NULL, 5, true),
                     tn_input(g, NULL, 5, true)};
    return tn_add(g, NULL, in, 3);
}

const tn_op tn_op_add = {
    .name = "add",
    .formula = "y = a + b + ..",
    .n_in = TN_ANY,
    .shape = add_shape,
    .forward = add_forward,
    .backward = add_backward,
    .flops = add_flops,
    .example = add_example,
};

tn_node *tn_add(tn_graph *g, const char *name, tn_node *const *in, uint32_t n)
{
    return tn_apply(g, &tn_op_add, name, in, n, NULL);
}
