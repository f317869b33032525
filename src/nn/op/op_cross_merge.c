/* op_cross_merge.c - the end of a cross layer of the second kind (Wang 2021).
 *
 * h comes from x by matmul and bias, or by two of them for low rank:
 *
 *   forward     y    = x0 * h + x
 *   backward    dx0 += dy * h,  dh += dy * x0,  dx += dy
 */
#include "nn/op/ops.h"
#include "nn/vec/vec.h"

enum { X0, H, X };

static tn_shape merge_shape(const tn_node *y)
{
    tn_shape x = y->in[X]->shape;
    if (y->in[X0]->shape.cols != x.cols || y->in[H]->shape.cols != x.cols) {
        return TN_MISFIT;
    }
    return x;
}

static void merge_forward(tn_node *y, tn_range rows)
{
    uint32_t n = y->shape.cols;
    for (size_t r = rows.from; r < rows.to; r++) {
        tn_vec_copy(n, tn_val_row(y, r), tn_val_row(y->in[X], r), false);
        tn_vec_mul(n, tn_val_row(y, r), tn_val_row(y->in[X0], r), tn_val_row(y->in[H], r), true);
    }
}

static void merge_backward(tn_node *y, tn_range rows)
{
    const tn_node *x0 = y->in[X0];
    const tn_node *h = y->in[H];
    const tn_node *x = y->in[X];
    uint32_t n = y->shape.cols;
    for (size_t r = rows.from; r < rows.to; r++) {
        const tn_real *dy = tn_grad_row(y, r);
        if (x0->grad != NULL) {
            tn_vec_mul(n, tn_grad_row(x0, r), dy, tn_val_row(h, r), tn_adds(y, x0));
        }
        if (h->grad != NULL) {
            tn_vec_mul(n, tn_grad_row(h, r), dy, tn_val_row(x0, r), tn_adds(y, h));
        }
        if (x->grad != NULL) {
            tn_vec_copy(n, tn_grad_row(x, r), dy, tn_adds(y, x));
        }
    }
}

static double merge_flops(const tn_node *y)
{
    return 2.0 * y->shape.rows * y->shape.cols;
}

static tn_node *merge_example(tn_graph *g)
{
    tn_node *x0 = tn_input(g, NULL, 5, true);
    tn_node *h = tn_input(g, NULL, 5, true);
    return tn_cross_merge(g, NULL, x0, h, tn_cross_merge(g, NULL, x0, h, x0));
}

const tn_op tn_op_cross_merge = {
    .name = "cross_merge",
    .formula = "y = x0 * h + x",
    .n_in = 3,
    .shape = merge_shape,
    .forward = merge_forward,
    .backward = merge_backward,
    .flops = merge_flops,
    .example = merge_example,
};

tn_node *tn_cross_merge(tn_graph *g, const char *name, tn_node *x0, tn_node *h, tn_node *x)
{
    return tn_apply(g, &tn_op_cross_merge, name, (tn_node *[]){x0, h, x}, 3, NULL);
}
