/* op_data_norm.c - columns normalised by all that was seen so far, which is a constant to backward.
 *
 * State per column: count n, mean, M2 (sum of squared deviations), in double.
 *
 *   training    rho = min(1, max_count / n);  n = rho n,  M2 = rho M2;  the batch is merged (Chan)
 *   forward     y   = gamma (x - mean) / sqrt(M2 / n + epsilon) + beta        n = 0: x^ = x
 *   backward    dx += gamma dy / sqrt(M2 / n + epsilon)
 *               dgamma += sum dy x^,  dbeta += sum dy
 *
 * Among peers the batch is the joint one, whose parts are merged in rank order first.
 *
 * It is the past that is scaled down, never the batch: else statistics fade once max_count is
 * reached.
 */
#include "nn/op/norms.h"

#include <math.h>

static const tn_field attrs[] = {
    TN_FIELD_F64(tn_data_norm_attr, epsilon, "1e-5", TN_EPSILON_MIN, 1, "",
                 "added to the variance"),
    TN_FIELD_F64(tn_data_norm_attr, max_count, "1e6", 0, 1e15, "rows", "rows remembered at most"),
    TN_FIELD_END,
};

enum { GAMMA = 1, BETA, SUMS };

static tn_shape data_norm_shape(const tn_node *y)
{
    tn_shape x = y->in[0]->shape;
    if (y->in[GAMMA]->shape.cols != x.cols || y->in[BETA]->shape.cols != x.cols ||
        y->in[GAMMA]->shape.rows != 1 || y->in[BETA]->shape.rows != 1) {
        return TN_MISFIT;
    }
    if (y->in[SUMS]->shape.rows != 6 || y->in[SUMS]->shape.cols != x.cols) {
        return TN_MISFIT;
    }
    return x;
}

static tn_wide merged(tn_wide past, tn_wide batch, double max_count)
{
    double rho = past.n > max_count ? max_count / past.n : 1;
    past.n *= rho;
    past.m2 *= rho;
    return tn_wide_merge(past, batch);
}

static void norm_piece(tn_node *y, tn_range cols)
{
    const tn_data_norm_attr *a = y->attr;
    const tn_node *sums = y->in[SUMS];
    tn_norm_state s = tn_norm_state_of(y);
    double mean[TN_NORM_PIECE];
    double var[TN_NORM_PIECE];
    double rows = y->shape.rows;
    bool moves = tn_moves(y);
    bool joint = tn_parts_of(y)->all != NULL;
    if (moves && !joint) {
        tn_moments(y->in[0], cols, mean, var);
    }
    for (uint32_t c = cols.from; c < cols.to; c++) {
        tn_wide w = tn_wide_get(sums->val, y->shape.cols, c);
        if (moves) {
            uint32_t i = c - cols.from;
            tn_wide batch =
                joint ? tn_moments_joint(y, c) : (tn_wide){rows, mean[i], var[i] * rows};
            w = merged(w, batch, a->max_count);
            tn_wide_put(sums->grad, y->shape.cols, c, w);
        }
        s.mean[c] = w.n > 0 ? (tn_real)w.mean : 0;
        s.rstd[c] = w.n > 0 ? (tn_real)(1 / sqrt(w.m2 / w.n + a->epsilon)) : 1;
    }
}

static void data_norm_forward_cols(tn_node *y, tn_range cols)
{
    for (uint32_t from = cols.from; from < cols.to; from += TN_NORM_PIECE) {
        uint32_t to = cols.to - from < TN_NORM_PIECE ? cols.to : from + TN_NORM_PIECE;
        norm_piece(y, (tn_range){from, to});
    }
}

static void data_norm_forward(tn_node *y, tn_range rows)
{
    for (size_t r = rows.from; r < rows.to; r++) {
        tn_norm_forward_row(y, r);
    }
}

static void data_norm_backward_cols(tn_node *y, tn_range cols)
{
    tn_norm_backward_sums(y, cols, false);
}

static void data_norm_backward(tn_node *y, tn_range rows)
{
    for (size_t r = rows.from; r < rows.to && y->in[0]->grad != NULL; r++) {
        tn_norm_backward_row(y, r);
    }
}

static double data_norm_flops(const tn_node *y)
{
    return 8.0 * y->shape.rows * y->shape.cols;
}

static tn_node *data_norm_example(tn_graph *g)
{
    tn_init init = {.kind = TN_INIT_CONSTANT, .a = 1};
    tn_node *weights[] = {tn_param(g, NULL, NULL, (tn_shape){1, 5}, init),
                          tn_param(g, NULL, NULL, (tn_shape){1, 5}, init),
                          tn_running(g, NULL, NULL, (tn_shape){6, 5}, 0)};
    return tn_data_norm(g, NULL, tn_input(g, NULL, 5, true), weights, NULL);
}

static const char *const params[] = {"gamma", "beta", "sums", NULL};

const tn_op tn_op_data_norm = {
    .name = "data_norm",
    .formula = "y = gamma (x - mean) / sqrt(M2 / n + epsilon) + beta, over all rows so far",
    .n_in = 1,
    .params = params,
    .attrs = attrs,
    .attr_size = sizeof(tn_data_norm_attr),
    .shape = data_norm_shape,
    .state_bytes = tn_norm_state_bytes,
    .forward_cols = data_norm_forward_cols,
    .forward = data_norm_forward,
    .forward_part = tn_moments_part,
    .backward_cols = data_norm_backward_cols,
    .backward = data_norm_backward,
    .flops = data_norm_flops,
    .example = data_norm_example,
};

tn_node *tn_data_norm(tn_graph *g, const char *name, tn_node *x, tn_node *const param[3],
                      const tn_data_norm_attr *attr)
{
    static const tn_data_norm_attr usual = {.epsilon = 1e-5, .max_count = 1e6};
    TN_ASSERT(param[2]->is_state);
    tn_node *in[] = {x, param[0], param[1], param[2]};
    return tn_apply(g, &tn_op_data_norm, name, in, 4, attr == NULL ? &usual : attr);
}
