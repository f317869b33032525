/* op_softmax.c - a row as shares that sum to 1.
 *
 *   forward     a   = e^(s - max s) / sum        a row of -inf only: 0
 *   backward    ds += a (da - sum(a da))
 */
#include "nn/op/ops.h"
#include "nn/vec/vec.h"
#include "nn/vec/vecmath.h"

#include <math.h>

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

static double softmax_flops(const tn_node *a)
{
    return 25.0 * a->shape.rows * a->shape.cols;
}

static tn_node *softmax_example(tn_graph *g)
{
    return tn_softmax(g, NULL, tn_input(g, NULL, 5, true));
}

const tn_op tn_op_softmax = {
    .name = "softmax",
    .formula = "y = e^x / sum of the row",
    .n_in = 1,
    .shape = tn_same_shape,
    .forward = softmax_forward,
    .backward = softmax_backward,
    .flops = softmax_flops,
    .example = softmax_example,
};

tn_node *tn_softmax(tn_graph *g, const char *name, tn_node *x)
{
    return tn_apply(g, &tn_op_softmax, name, &x, 1, NULL);
}
