/* op_columns.c - columns of matrices: concat, slice, sum_cols, sum_groups, max_groups, softmax; and
 * those that come from nowhere: numeric, constant.
 *
 *   concat     y = [a b ..]                    da += the columns of dy that a has, ..
 *   slice      y = x[first .. first + cols)    dx's columns += dy
 *   sum_cols   y[r] = sum_j x[r][j]            dx[r][j] += dy[r]
 *   sum_groups y[r][g] = sum over the columns g dim .. (g + 1) dim of x    dx += dy of the group
 *   max_groups y[r][g] = the largest of these    dx += dy of the group, in the first such column
 *   softmax    a = e^(x - max x) / sum, by rows    dx += a (da - sum(a da));  a row of -inf only: 0
 *   numeric    y[r] = numeric[r] of the feed, from column `first` on
 *   constant   y[r][j] = value
 *
 * Concat and slice are layouts, not copies. Operands of a concat are placed inside y when the graph
 * is finished; only one that already lives elsewhere (in another concat, or twice in this one) is
 * copied. A slice is placed inside x.
 */
#include "config/field.h"
#include "nn/graph/embed.h"
#include "nn/op/ops.h"
#include "nn/vec/vec.h"
#include "nn/vec/vecmath.h"

#include <math.h>

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

static double no_flops(const tn_node *y)
{
    (void)y;
    return 0;
}

static tn_node *concat_example(tn_graph *g)
{
    tn_node *a = tn_input(g, NULL, 3, true);
    tn_node *b = tn_input(g, NULL, 2, true);
    tn_node *both = tn_apply(g, &tn_op_concat, NULL, TN_IN(a, b), NULL);
    return tn_apply(g, &tn_op_concat, NULL, TN_IN(b, both, a, tn_input(g, NULL, 1, false)), NULL);
}

const tn_op tn_op_concat = {
    TN_OP_MEMBERS(concat, concat),
    .shape = concat_shape,
    .example = {.build = concat_example},
    .formula = "y = [a b ..]",
    .n_in = TN_ANY,
    .layout.joins = true,
    .flops = no_flops,
};

static const tn_field slice_attrs[] = {
    TN_FIELD_U32(tn_slice_attr, first, "0", 0, UINT32_MAX, "columns", "where it begins"),
    TN_FIELD_U32(tn_slice_attr, cols, "1", 1, UINT32_MAX, "columns", "how many"),
    TN_FIELD_END,
};

static const tn_slice_attr *slice_of(const tn_node *y)
{
    return y->attr;
}

static uint32_t slice_part(const tn_node *y)
{
    return slice_of(y)->first;
}

static tn_shape slice_shape(const tn_node *y)
{
    tn_shape x = y->in[0]->shape;
    if (slice_of(y)->first > x.cols || slice_of(y)->cols > x.cols - slice_of(y)->first) {
        return TN_MISFIT;
    }
    return (tn_shape){x.rows, slice_of(y)->cols};
}

static void slice_forward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    size_t first = slice_of(y)->first;
    for (size_t r = rows.from; r < rows.to && y->val != x->val + first; r++) {
        tn_vec_copy(y->shape.cols, tn_val_row(y, r), tn_val_row(x, r) + first, false);
    }
}

static void slice_backward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    size_t first = slice_of(y)->first;
    bool placed = x->grad == NULL || y->grad == x->grad + first;
    for (size_t r = rows.from; r < rows.to && !placed; r++) {
        tn_real *dx = tn_grad_row(x, r);
        if (!tn_adds(y, x)) {
            tn_clear(dx, x->shape.cols);
        }
        tn_vec_copy(y->shape.cols, dx + first, tn_grad_row(y, r), true);
    }
}

const tn_op tn_op_slice = {
    TN_OP_MEMBERS(slice, slice),
    .shape = slice_shape,
    .example = {.cols = 6, .attr = &(const tn_slice_attr){.first = 2, .cols = 3}},
    .formula = "y = columns first .. first + cols of x",
    .n_in = 1,
    TN_OP_ATTRS(slice_attrs, tn_slice_attr),
    .layout.part = slice_part,
    .flops = no_flops,
};

static void sum_forward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    for (size_t r = rows.from; r < rows.to; r++) {
        *tn_val_row(y, r) = tn_vec_sum(x->shape.cols, tn_val_row(x, r));
    }
}

static void sum_backward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    for (size_t r = rows.from; r < rows.to && x->grad != NULL; r++) {
        tn_vec_shift(x->shape.cols, tn_grad_row_to_add(y, x, r), *tn_grad_row(y, r));
    }
}

static double sum_flops(const tn_node *y)
{
    return (double)y->shape.rows * y->in[0]->shape.cols;
}

const tn_op tn_op_sum_cols = {
    TN_OP_MEMBERS(sum_cols, sum),
    .shape = tn_column_shape,
    .example = {.cols = 6},
    .formula = "y = sum of the row",
    .n_in = 1,
    .flops = sum_flops,
};

static const tn_field groups_attrs[] = {
    TN_FIELD_U32(tn_pairs_attr, dim, "8", 1, TN_COLS_MAX, "columns", "of one group"),
    TN_FIELD_END,
};

static uint32_t dim_of(const tn_node *y)
{
    return ((const tn_pairs_attr *)y->attr)->dim;
}

static tn_shape groups_shape(const tn_node *y)
{
    tn_shape x = y->in[0]->shape;
    return x.cols % dim_of(y) == 0 ? (tn_shape){x.rows, x.cols / dim_of(y)} : TN_MISFIT;
}

static void groups_forward(tn_node *y, tn_range rows)
{
    const size_t dim = dim_of(y);
    for (size_t r = rows.from; r < rows.to; r++) {
        for (size_t g = 0; g < y->shape.cols; g++) {
            tn_val_row(y, r)[g] = tn_vec_sum(dim, tn_val_row(y->in[0], r) + g * dim);
        }
    }
}

static void groups_backward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    const size_t dim = dim_of(y);
    for (size_t r = rows.from; r < rows.to && x->grad != NULL; r++) {
        tn_real *dx = tn_grad_row_to_add(y, x, r);
        for (size_t g = 0; g < y->shape.cols; g++) {
            tn_vec_shift(dim, dx + g * dim, tn_grad_row(y, r)[g]);
        }
    }
}

const tn_op tn_op_sum_groups = {
    TN_OP_MEMBERS(sum_groups, groups),
    .shape = groups_shape,
    .example = {.cols = 6, .attr = &(const tn_pairs_attr){3}},
    .formula = "y = sums of neighbouring columns, dim of them each",
    .n_in = 1,
    TN_OP_ATTRS(groups_attrs, tn_pairs_attr),
    .flops = sum_flops,
};

/* Returns the largest value; one that is not a number stays so and is seen in the loss. */
static tn_real largest(size_t n, const tn_real *x)
{
    tn_real top = x[0];
    for (size_t i = 1; i < n; i++) {
        top = x[i] > top || isnan(x[i]) ? x[i] : top;
    }
    return top;
}

static void max_forward(tn_node *y, tn_range rows)
{
    const size_t dim = dim_of(y);
    for (size_t r = rows.from; r < rows.to; r++) {
        for (size_t g = 0; g < y->shape.cols; g++) {
            tn_val_row(y, r)[g] = largest(dim, tn_val_row(y->in[0], r) + g * dim);
        }
    }
}

static void max_backward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    const size_t dim = dim_of(y);
    for (size_t r = rows.from; r < rows.to && x->grad != NULL; r++) {
        tn_real *dx = tn_grad_row_to_add(y, x, r);
        const tn_real *val = tn_val_row(x, r);
        for (size_t g = 0; g < y->shape.cols; g++) {
            size_t first = g * dim;
            while (first + 1 < (g + 1) * dim && val[first] < tn_val_row(y, r)[g]) {
                first++;
            }
            dx[first] += tn_grad_row(y, r)[g];
        }
    }
}

const tn_op tn_op_max_groups = {
    TN_OP_MEMBERS(max_groups, max),
    .shape = groups_shape,
    .example = {.cols = 6, .attr = &(const tn_pairs_attr){3}},
    .formula = "y = the largest of neighbouring columns, dim of them each",
    .n_in = 1,
    TN_OP_ATTRS(groups_attrs, tn_pairs_attr),
    .flops = sum_flops,
};

static void softmax_row(uint32_t n, tn_real *a, const tn_real *s)
{
    tn_real top = s[0];
    for (uint32_t c = 1; c < n; c++) {
        top = s[c] > top ? s[c] : top;
    }
    if (isinf(top) && top < 0) {
        tn_clear(a, n);
        return;
    }
    tn_real sum = 0;
    for (uint32_t c = 0; c < n; c++) {
        a[c] = tn_exp_of(s[c] - top);
        sum += a[c];
    }
    for (uint32_t c = 0; c < n; c++) {
        a[c] /= sum;
    }
}

static void softmax_forward(tn_node *a, tn_range rows)
{
    for (size_t r = rows.from; r < rows.to; r++) {
        softmax_row(a->shape.cols, tn_val_row(a, r), tn_val_row(a->in[0], r));
    }
}

static void softmax_backward(tn_node *a, tn_range rows)
{
    const tn_node *s = a->in[0];
    for (size_t r = rows.from; r < rows.to && s->grad != NULL; r++) {
        const tn_real *share = tn_val_row(a, r);
        const tn_real *da = tn_grad_row(a, r);
        tn_real *ds = tn_grad_row(s, r);
        tn_real mean = tn_vec_dot(a->shape.cols, share, da);
        for (uint32_t c = 0; c < a->shape.cols; c++) {
            ds[c] = (tn_adds(a, s) ? ds[c] : 0) + share[c] * (da[c] - mean);
        }
    }
}

const tn_op tn_op_softmax = {
    TN_OP_MEMBERS(softmax, softmax),
    .formula = "y = e^x / sum of the row",
    .n_in = 1,
    .shape = tn_same_shape,
    .flops_each = 25,
    .example = {.cols = 5},
};

static const tn_field numeric_attrs[] = {
    TN_FIELD_U32(tn_numeric_attr, cols, "1", 1, 1e6, "columns", "numeric columns of the data"),
    TN_FIELD_U32(tn_numeric_attr, first, "0", 0, 1e6, "", "the first of them"),
    TN_FIELD_U32(tn_numeric_attr, of, "0", 0, 1e6, "columns", "that the data have; 0: these"),
    TN_FIELD_END,
};

static tn_shape numeric_shape(const tn_node *y)
{
    return (tn_shape){tn_max_rows(y), ((const tn_numeric_attr *)y->attr)->cols};
}

static void numeric_forward(tn_node *y, tn_range rows)
{
    const tn_real *from = tn_feed_of(y)->numeric;
    const tn_numeric_attr *attr = y->attr;
    const size_t stride = attr->of > 0 ? attr->of : attr->cols;
    TN_ASSERT(from != NULL && attr->first + attr->cols <= stride);
    from += rows.from * stride + attr->first;
    for (size_t r = rows.from; r < rows.to; r++, from += stride) {
        tn_vec_copy(y->shape.cols, tn_val_row(y, r), from, false);
    }
}

const tn_op tn_op_numeric = {
    .name = "numeric",
    .formula = "y = the numeric columns of the batch",
    .n_in = 0,
    TN_OP_ATTRS(numeric_attrs, tn_numeric_attr),
    .example = {.attr = &(const tn_numeric_attr){.cols = 3}},
    .shape = numeric_shape,
    .forward = numeric_forward,
    .flops = no_flops,
};

static const tn_field constant_attrs[] = {
    TN_FIELD_F64(tn_constant_attr, value, "0", -1e30, 1e30, "", "of all columns"),
    TN_FIELD_U32(tn_constant_attr, cols, "1", 1, TN_COLS_MAX, "columns", "how many"),
    TN_FIELD_END,
};

static const tn_constant_attr *constant_of(const tn_node *y)
{
    return y->attr;
}

static tn_shape constant_shape(const tn_node *y)
{
    return (tn_shape){tn_max_rows(y), constant_of(y)->cols};
}

static void constant_forward(tn_node *y, tn_range rows)
{
    for (size_t r = rows.from; r < rows.to; r++) {
        tn_clear(tn_val_row(y, r), y->shape.cols);
        tn_vec_shift(y->shape.cols, tn_val_row(y, r), (tn_real)constant_of(y)->value);
    }
}

const tn_op tn_op_constant = {
    .name = "constant",
    .formula = "y = value, in each column",
    .n_in = 0,
    TN_OP_ATTRS(constant_attrs, tn_constant_attr),
    .example = {.attr = &(const tn_constant_attr){.value = -0.5, .cols = 3}},
    .shape = constant_shape,
    .forward = constant_forward,
    .flops = no_flops,
};
