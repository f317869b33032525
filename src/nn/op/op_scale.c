/* op_scale.c - times a constant, plus a constant.
 *
 *   forward     y   = by x + plus
 *   backward    dx += by dy
 */
#include "nn/op/activations.h"
#include "nn/op/ops.h"
#include "nn/vec/vec.h"

typedef struct scale_attr {
    double by;
    double plus;
} scale_attr;

static const tn_field attrs[] = {
    TN_FIELD_F64(scale_attr, by, "1", -1e30, 1e30, "", "factor"),
    TN_FIELD_F64(scale_attr, plus, "0", -1e30, 1e30, "", "summand"),
    TN_FIELD_END,
};

static const scale_attr *attr_of(const tn_node *y)
{
    return y->attr;
}

static void scale_forward(tn_node *y, tn_range rows)
{
    for (size_t r = rows.from; r < rows.to; r++) {
        tn_vec_scale(y->shape.cols, tn_val_row(y, r), tn_val_row(y->in[0], r),
                     (tn_real)attr_of(y)->by, false);
        tn_vec_shift(y->shape.cols, tn_val_row(y, r), (tn_real)attr_of(y)->plus);
    }
}

static void scale_backward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    for (size_t r = rows.from; r < rows.to && x->grad != NULL; r++) {
        tn_vec_scale(y->shape.cols, tn_grad_row(x, r), tn_grad_row(y, r), (tn_real)attr_of(y)->by,
                     tn_adds(y, x));
    }
}

static tn_node *scale_example(tn_graph *g)
{
    return tn_scale(g, NULL, tn_input(g, NULL, 5, true), -1.5, 0.25);
}

const tn_op tn_op_scale = {
    .name = "scale",
    .formula = "y = by x + plus",
    .n_in = 1,
    .attrs = attrs,
    .attr_size = sizeof(scale_attr),
    .shape = tn_same_shape,
    .forward = scale_forward,
    .backward = scale_backward,
    .example = scale_example,
};

tn_node *tn_scale(tn_graph *g, const char *name, tn_node *x, double by, double plus)
{
    return tn_apply(g, &tn_op_scale, name, &x, 1, &(scale_attr){.by = by, .plus = plus});
}
