/* op_batch_norm.c - columns brought to mean 0 and variance 1 over the batch (Ioffe 2015).
 *
 *   forward     x^  = (x - mean) / sqrt(var + epsilon)
 *               y   = gamma x^ + beta
 *   backward    dx += gamma / sqrt(var + epsilon) (dy - mean(dy) - x^ mean(dy x^))
 *               dgamma += sum dy x^,  dbeta += sum dy
 *
 * Statistics take two passes in double. The running values, which evaluation uses, move towards the
 * batch's: r = decay r + (1 - decay) batch, the variance as var B / (B - 1) when `unbiased`.
 * Among peers all of these are of the joint batch: counts, means and sums of squared deviations are
 * merged in rank order (Chan 1979), as are the sums behind the two means of backward.
 */
#include "nn/op/norms.h"

#include <math.h>

static const tn_field attrs[] = {
    TN_FIELD_F64(tn_batch_norm_attr, epsilon, "1e-5", TN_EPSILON_MIN, 1, "",
                 "added to the variance"),
    TN_FIELD_F64(tn_batch_norm_attr, decay, "0.9", 0, 1, "", "share of the running value kept"),
    TN_FIELD_BOOL(tn_batch_norm_attr, unbiased, "true", "running variance over B - 1"),
    TN_FIELD_END,
};

enum { GAMMA = 1, BETA, MEAN, VAR };

static const tn_batch_norm_attr *attr_of(const tn_node *y)
{
    return y->attr;
}

static tn_shape batch_norm_shape(const tn_node *y)
{
    tn_shape x = y->in[0]->shape;
    for (uint32_t k = GAMMA; k < y->n_in; k++) {
        if (y->in[k]->shape.rows != 1 || y->in[k]->shape.cols != x.cols) {
            return TN_MISFIT;
        }
    }
    return x;
}

static void batch_norm_forward_cols(tn_node *y, tn_range cols)
{
    const tn_batch_norm_attr *a = attr_of(y);
    tn_norm_batch(y, cols, &y->in[MEAN], &(tn_norm_rule){a->epsilon, a->decay, a->unbiased});
}

static void batch_norm_forward(tn_node *y, tn_range rows)
{
    for (size_t r = rows.from; r < rows.to; r++) {
        tn_norm_forward_row(y, r);
    }
}

static void batch_norm_backward_cols(tn_node *y, tn_range cols)
{
    if (tn_parts_of(y)->all != NULL) {
        tn_norm_joint_means(y, cols);
    } else {
        tn_norm_backward_sums(y, cols, tn_info(y)->training);
    }
}

static void batch_norm_backward(tn_node *y, tn_range rows)
{
    for (size_t r = rows.from; r < rows.to && y->in[0]->grad != NULL; r++) {
        tn_norm_backward_row(y, r);
    }
}

static void batch_norm_affine(const tn_node *y, tn_real *scale, tn_real *shift)
{
    for (uint32_t c = 0; c < y->shape.cols; c++) {
        double s =
            (double)y->in[GAMMA]->val[c] / sqrt((double)y->in[VAR]->val[c] + attr_of(y)->epsilon);
        scale[c] = (tn_real)s;
        shift[c] = (tn_real)((double)y->in[BETA]->val[c] - s * (double)y->in[MEAN]->val[c]);
    }
}

static double batch_norm_flops(const tn_node *y)
{
    return 8.0 * y->shape.rows * y->shape.cols;
}

static tn_node *batch_norm_example(tn_graph *g)
{
    tn_shape s = {1, 5};
    tn_init init = {.kind = TN_INIT_CONSTANT, .a = 1};
    tn_node *weights[] = {tn_param(g, NULL, NULL, s, init), tn_param(g, NULL, NULL, s, init),
                          tn_running(g, NULL, NULL, s, 0), tn_running(g, NULL, NULL, s, 1)};
    return tn_batch_norm(g, NULL, tn_input(g, NULL, 5, true), weights, NULL);
}

static const char *const params[] = {"gamma", "beta", "mean", "var", NULL};

const tn_op tn_op_batch_norm = {
    .name = "batch_norm",
    .formula = "y = gamma (x - mean) / sqrt(var + epsilon) + beta",
    .n_in = 1,
    .params = params,
    .attrs = attrs,
    .attr_size = sizeof(tn_batch_norm_attr),
    .shape = batch_norm_shape,
    .state_bytes = tn_norm_state_bytes,
    .forward_cols = batch_norm_forward_cols,
    .forward = batch_norm_forward,
    .forward_part = tn_moments_part,
    .backward_part = tn_norm_backward_part,
    .backward_cols = batch_norm_backward_cols,
    .backward = batch_norm_backward,
    .affine = batch_norm_affine,
    .flops = batch_norm_flops,
    .example = batch_norm_example,
};

tn_node *tn_batch_norm(tn_graph *g, const char *name, tn_node *x, tn_node *const param[4],
                       const tn_batch_norm_attr *attr)
{
    static const tn_batch_norm_attr usual = {.epsilon = 1e-5, .decay = 0.9, .unbiased = true};
    TN_ASSERT(param[2]->is_state && param[3]->is_state);
    tn_node *in[] = {x, param[0], param[1], param[2], param[3]};
    return tn_apply(g, &tn_op_batch_norm, name, in, 5, attr == NULL ? &usual : attr);
}
