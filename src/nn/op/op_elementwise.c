/* op_elementwise.c - sums and products, element by element: add, mul, scale, bias.
 *
 *   add      y = a + b + ..     da += dy, db += dy, ..         left to right
 *   mul      y = a * b          da += dy * b, db += dy * a     b may have fewer columns: each then
 *                                                              scales a.cols / b.cols neighbours,
 *                                                              one column whole rows; db sums
 *   scale    y = by x + plus    dx += by dy
 *   bias     y = x + b          dx += dy, db += sum_r dy       one row b added to every row; a tile
 *                                                              of columns, rows in order
 */
#include "config/field.h"
#include "nn/op/ops.h"
#include "nn/vec/vec.h"

static tn_shape mul_shape(const tn_node *y)
{
    tn_shape a = y->in[0]->shape;
    tn_shape b = y->in[1]->shape;
    return a.rows == b.rows && a.cols % b.cols == 0 ? a : TN_MISFIT;
}

/* Columns of a that one column of b scales. */
static uint32_t group_of(const tn_node *y)
{
    return y->shape.cols / y->in[1]->shape.cols;
}

static void mul_forward(tn_node *y, tn_range rows)
{
    for (size_t r = rows.from; r < rows.to; r++) {
        const tn_real *a = tn_val_row(y->in[0], r);
        const tn_real *b = tn_val_row(y->in[1], r);
        const uint32_t group = group_of(y);
        if (group == 1) {
            tn_vec_mul(y->shape.cols, tn_val_row(y, r), a, b, false);
        }
        for (uint32_t c = 0; c < y->shape.cols && group > 1; c += group) {
            tn_vec_scale(group, tn_val_row(y, r) + c, a + c, *b++, false);
        }
    }
}

static void backward_groups(const tn_node *y, size_t r)
{
    const tn_node *a = y->in[0];
    const tn_node *b = y->in[1];
    const tn_real *dy = tn_grad_row(y, r);
    const uint32_t n = group_of(y);
    for (uint32_t g = 0; g < b->shape.cols && a->grad != NULL; g++) {
        tn_vec_scale(n, tn_grad_row(a, r) + (size_t)g * n, dy + (size_t)g * n, tn_val_row(b, r)[g],
                     tn_adds(y, a));
    }
    for (uint32_t g = 0; g < b->shape.cols && b->grad != NULL; g++) {
        tn_real *db = tn_grad_row(b, r) + g;
        *db = (tn_adds(y, b) ? *db : 0) +
              tn_vec_dot(n, dy + (size_t)g * n, tn_val_row(a, r) + (size_t)g * n);
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
        (group_of(y) > 1 ? backward_groups : backward_equal)(y, r);
    }
}

static tn_node *mul_example(tn_graph *g)
{
    tn_node *a = tn_input(g, NULL, 6, true);
    tn_node *b = tn_apply(g, &tn_op_mul, NULL, TN_IN(a, tn_input(g, NULL, 1, true)), NULL);
    b = tn_apply(g, &tn_op_mul, NULL, TN_IN(b, tn_input(g, NULL, 3, true)), NULL);
    return tn_apply(g, &tn_op_mul, NULL, TN_IN(b, tn_apply(g, &tn_op_mul, NULL, TN_IN(a, a), NULL)),
                    NULL); /* the last: one operand twice */
}

const tn_op tn_op_mul = {
    TN_OP_MEMBERS(mul, mul),
    .shape = mul_shape,
    .example = {.build = mul_example},
    .formula = "y = a * b, elementwise; or each column of b times some of a",
    .n_in = 2,
};

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

const tn_op tn_op_add = {
    .name = "add",
    .formula = "y = a + b + ..",
    .n_in = TN_ANY,
    .shape = tn_same_shape,
    .forward = add_forward,
    .backward = add_backward,
    .flops = add_flops,
    .example = {.cols = 5},
};

static const tn_field scale_attrs[] = {
    TN_FIELD_F64(tn_scale_attr, by, "1", -1e30, 1e30, "", "factor"),
    TN_FIELD_F64(tn_scale_attr, plus, "0", -1e30, 1e30, "", "summand"),
    TN_FIELD_END,
};

static const tn_scale_attr *scale_of(const tn_node *y)
{
    return y->attr;
}

static void scale_forward(tn_node *y, tn_range rows)
{
    for (size_t r = rows.from; r < rows.to; r++) {
        tn_vec_scale(y->shape.cols, tn_val_row(y, r), tn_val_row(y->in[0], r),
                     (tn_real)scale_of(y)->by, false);
        tn_vec_shift(y->shape.cols, tn_val_row(y, r), (tn_real)scale_of(y)->plus);
    }
}

static void scale_backward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    for (size_t r = rows.from; r < rows.to && x->grad != NULL; r++) {
        tn_vec_scale(y->shape.cols, tn_grad_row(x, r), tn_grad_row(y, r), (tn_real)scale_of(y)->by,
                     tn_adds(y, x));
    }
}

const tn_op tn_op_scale = {
    TN_OP_MEMBERS(scale, scale),
    .formula = "y = by x + plus",
    .n_in = 1,
    TN_OP_ATTRS(scale_attrs, tn_scale_attr),
    .example = {.cols = 5, .attr = &(const tn_scale_attr){.by = -1.5, .plus = 0.25}},
    .shape = tn_same_shape,
};

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

static const char *const bias_params[] = {"b", NULL};

const tn_op tn_op_bias = {
    TN_OP_MEMBERS(bias, bias),
    .shape = tn_same_shape,
    .example = {.cols = 5},
    .formula = "y = x + b",
    .n_in = 1,
    .params = bias_params,
    .cols[TN_BACKWARD_PARAMS] = bias_backward_params,
};
