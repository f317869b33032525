/* op_slice.c - some columns of a matrix.
 *
 *   forward     y   = x[first .. first + cols)
 *   backward    dx's columns += dy
 *
 * A layout, not a copy: y is placed inside x when the graph is finished.
 */
#include "nn/op/ops.h"
#include "nn/vec/vec.h"

typedef struct slice_attr {
    uint32_t first;
    uint32_t cols;
} slice_attr;

static const tn_field attrs[] = {
    TN_FIELD_U32(slice_attr, first, "0", 0, UINT32_MAX, "columns", "where it begins"),
    TN_FIELD_U32(slice_attr, cols, "1", 1, UINT32_MAX, "columns", "how many"),
    TN_FIELD_END,
};

static const slice_attr *attr_of(const tn_node *y)
{
    return y->attr;
}

static uint32_t slice_part(const tn_node *y)
{
    return attr_of(y)->first;
}

static tn_shape slice_shape(const tn_node *y)
{
    tn_shape x = y->in[0]->shape;
    if (attr_of(y)->first > x.cols || attr_of(y)->cols > x.cols - attr_of(y)->first) {
        return TN_MISFIT;
    }
    return (tn_shape){x.rows, attr_of(y)->cols};
}

static void slice_forward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    size_t first = attr_of(y)->first;
    for (size_t r = rows.from; r < rows.to && y->val != x->val + first; r++) {
        tn_vec_copy(y->shape.cols, tn_val_row(y, r), tn_val_row(x, r) + first, false);
    }
}

static void slice_backward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    size_t first = attr_of(y)->first;
    bool placed = x->grad == NULL || y->grad == x->grad + first;
    for (size_t r = rows.from; r < rows.to && !placed; r++) {
        tn_real *dx = tn_grad_row(x, r);
        if (!tn_adds(y, x)) {
            tn_clear(dx, x->shape.cols);
        }
        tn_vec_copy(y->shape.cols, dx + first, tn_grad_row(y, r), true);
    }
}

static double slice_flops(const tn_node *y)
{
    (void)y;
    return 0;
}

static tn_node *slice_example(tn_graph *g)
{
    return tn_slice(g, NULL, tn_input(g, NULL, 6, true), 2, 3);
}

const tn_op tn_op_slice = {
    .name = "slice",
    .formula = "y = columns first .. first + cols of x",
    .n_in = 1,
    .attrs = attrs,
    .attr_size = sizeof(slice_attr),
    .shape = slice_shape,
    .forward = slice_forward,
    .backward = slice_backward,
    .part = slice_part,
    .flops = slice_flops,
    .example = slice_example,
};

tn_node *tn_slice(tn_graph *g, const char *name, tn_node *x, uint32_t first, uint32_t cols)
{
    TN_ASSERT(cols > 0);
    return tn_apply(g, &tn_op_slice, name, &x, 1, &(slice_attr){.first = first, .cols = cols});
}
