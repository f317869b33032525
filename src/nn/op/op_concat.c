/* op_concat.c - matrices side by side.
 *
 *   forward     y   = [a b ..]
 *   backward    da += the columns of dy that a has, ..
 *
 * A layout, not a copy: operands are placed inside y when the graph is finished. Only one that
 * already lives elsewhere (in another concat, or twice in this one) is copied.
 */
#include "nn/op/ops.h"
#include "nn/vec/vec.h"

static tn_shape concat_shape(const tn_node *y)
{
    tn_shape s = y->in[0]->shape;
    for (uint32_t k = 1; k < y->n_in; k++) {
        if (!(y->in[k]->shape.rows == s.rows && y->in[k]->shape.cols <= UINT32_MAX - s.cols)) {
            return TN_MISFIT;
        }
        s.cols += y->in[k]->shape.cols;
    }
    return s;
}

static void concat_forward(tn_node *y, tn_range rows)
{
    size_t col = 0;
    for (uint32_t k = 0; k < y->n_in; k++) {
        const tn_node *x = y->in[k];
        bool placed = x->val == y->val + col;
        for (size_t r = rows.from; r < rows.to && !placed; r++) {
            tn_vec_copy(x->shape.cols, tn_val_row(y, r) + col, tn_val_row(x, r), false);
        }
        col += x->shape.cols;
    }
}

static void concat_backward(tn_node *y, tn_range rows)
{
    size_t col = 0;
    for (uint32_t k = 0; k < y->n_in; k++) {
        const tn_node *x = y->in[k];
        bool placed = x->grad == NULL || x->grad == y->grad + col;
        for (size_t r = rows.from; r < rows.to && !placed; r++) {
            tn_vec_copy(x->shape.cols, tn_grad_row(x, r), tn_grad_row(y, r) + col, tn_adds(y, x));
        }
        col += x->shape.cols;
    }
}

static double concat_flops(const tn_node *y)
{
    (void)y;
    return 0;
}

static tn_node *concat_example(tn_graph *g)
{
    tn_node *a = tn_input(g, NULL, 3, true);
    tn_node *b = tn_input(g, NULL, 2, true);
    tn_node *both = tn_concat(g, NULL, (tn_node *[]){a, b}, 2);
    return tn_concat(g, NULL, (tn_node *[]){b, both, a, tn_input(g, NULL, 1, false)}, 4);
}

const tn_op tn_op_concat = {
    .name = "concat",
    .formula = "y = [a b ..]",
    .n_in = TN_ANY,
    .shape = concat_shape,
    .forward = concat_forward,
    .backward = concat_backward,
    .joins = true,
    .flops = concat_flops,
    .example = concat_example,
};

tn_node *tn_concat(tn_graph *g, const char *name, tn_node *const *in, uint32_t n)
{
    return tn_apply(g, &tn_op_concat, name, in, n, NULL);
}
