/* op_prelu.c - leaky rectifier whose slope is trained, one per column (He 2015).
 *
 *   forward     y[r][j]   = x > 0 ? x : a[j] x
 *   backward    dx[r][j] += dy (x > 0 ? 1 : a[j])
 *               da[j]    += sum_r dy min(x, 0)
 */
#include "nn/op/ops.h"

#include "base/core/compiler.h"

TN_HOT static void prelu_forward_row(size_t n, tn_real *restrict y, const tn_real *restrict x,
                                     const tn_real *restrict a)
{
    for (size_t i = 0; i < n; i++) {
        tn_real below = a[i] * x[i];
        y[i] = x[i] > 0 ? x[i] : below;
    }
}

TN_HOT static void prelu_backward_row(size_t n, tn_real *restrict dx, const tn_real *restrict dy,
                                      const tn_real *restrict x, const tn_real *restrict a)
{
    for (size_t i = 0; i < n; i++) {
        tn_real slope = x[i] > 0 ? 1 : a[i];
        dx[i] += dy[i] * slope;
    }
}

TN_HOT static void prelu_slope_row(size_t n, tn_real *restrict da, const tn_real *restrict dy,
                                   const tn_real *restrict x)
{
    for (size_t i = 0; i < n; i++) {
        tn_real below = x[i] > 0 ? 0 : x[i];
        da[i] += dy[i] * below;
    }
}

static tn_shape prelu_shape(const tn_node *y)
{
    tn_shape a = y->in[1]->shape;
    return a.rows == 1 && a.cols == y->in[0]->shape.cols ? y->in[0]->shape : TN_MISFIT;
}

static void prelu_forward(tn_node *y, tn_range rows)
{
    for (size_t r = rows.from; r < rows.to; r++) {
        prelu_forward_row(y->shape.cols, tn_val_row(y, r), tn_val_row(y->in[0], r), y->in[1]->val);
    }
}

static void prelu_backward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    for (size_t r = rows.from; r < rows.to && x->grad != NULL; r++) {
        if (!tn_adds(y, x)) {
            tn_clear(tn_grad_row(x, r), y->shape.cols);
        }
        prelu_backward_row(y->shape.cols, tn_grad_row(x, r), tn_grad_row(y, r), tn_val_row(x, r),
                           y->in[1]->val);
    }
}

static void prelu_backward_params(tn_node *y, tn_range cols)
{
    const tn_node *x = y->in[0];
    const tn_node *a = y->in[1];
    size_t n = cols.to - cols.from;
    if (a->grad != NULL && !tn_adds(y, a)) {
        tn_clear(a->grad + cols.from, n);
    }
    for (size_t r = 0; r < y->shape.rows && a->grad != NULL; r++) {
        prelu_slope_row(n, a->grad + cols.from, tn_grad_row(y, r) + cols.from,
                        tn_val_row(x, r) + cols.from);
    }
}

static tn_node *prelu_example(tn_graph *g)
{
    tn_node *a = tn_param(g, NULL, NULL, (tn_shape){1, 5}, (tn_init){.kind = TN_INIT_CONSTANT});
    return tn_prelu(g, NULL, tn_input(g, NULL, 5, true), a);
}

static const char *const params[] = {"a", NULL};

const tn_op tn_op_prelu = {
    .name = "prelu",
    .formula = "y = x > 0 ? x : a x, a trained per column",
    .n_in = 1,
    .params = params,
    .shape = prelu_shape,
    .forward = prelu_forward,
    .backward = prelu_backward,
    .backward_params = prelu_backward_params,
    .example = prelu_example,
};

tn_node *tn_prelu(tn_graph *g, const char *name, tn_node *x, tn_node *a)
{
    return tn_apply(g, &tn_op_prelu, name, (tn_node *[]){x, a}, 2, NULL);
}
