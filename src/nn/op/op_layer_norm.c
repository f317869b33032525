/* op_layer_norm.c - each row brought to mean 0 and variance 1 over its columns (Ba 2016).
 *
 *   forward     x^  = (x - mean) / sqrt(var + epsilon)        of the row; var over n
 *               y   = gamma x^ + beta
 *   backward    dx += rstd (u - mean(u) - x^ mean(u x^)),  u = gamma dy
 *               dgamma += sum dy x^,  dbeta += sum dy
 */
#include "config/field.h"
#include "nn/op/ops.h"

#include "base/core/compiler.h"

#include <math.h>

static const tn_field attrs[] = {
    TN_FIELD_F64(tn_layer_norm_attr, epsilon, "1e-5", TN_EPSILON_MIN, 1, "",
                 "added to the variance"),
    TN_FIELD_END,
};

/* State: mean and rstd of each row. */
typedef struct row_stat {
    tn_real mean, rstd;
} row_stat;

static size_t layer_norm_state_bytes(const tn_node *y)
{
    return (size_t)tn_max_rows(y) * sizeof(row_stat);
}

static row_stat *stat_of(const tn_node *y, size_t r)
{
    return (row_stat *)y->state + r;
}

TN_HOT static row_stat layer_norm_measure(size_t n, const tn_real *x, double epsilon)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t c = 0; c < n; c++) {
        sum += (double)x[c];
    }
    double mean = sum / (double)n;
    double square = 0;
#pragma omp simd reduction(+ : square)
    for (size_t c = 0; c < n; c++) {
        square += ((double)x[c] - mean) * ((double)x[c] - mean);
    }
    return (row_stat){(tn_real)mean, (tn_real)(1 / sqrt(square / (double)n + epsilon))};
}

static void layer_norm_forward(tn_node *y, tn_range rows)
{
    double epsilon = ((const tn_layer_norm_attr *)y->attr)->epsilon;
    uint32_t n = y->shape.cols;
    for (size_t r = rows.from; r < rows.to; r++) {
        const tn_real *x = tn_val_row(y->in[0], r);
        row_stat s = layer_norm_measure(n, x, epsilon);
        *stat_of(y, r) = s;
        for (uint32_t c = 0; c < n; c++) {
            tn_val_row(y, r)[c] = y->in[1]->val[c] * ((x[c] - s.mean) * s.rstd) + y->in[2]->val[c];
        }
    }
}

typedef struct row_in {
    const tn_real *restrict x;
    const tn_real *restrict dy;
    const tn_real *restrict gamma;
    row_stat s;
} row_in;

TN_HOT static void layer_norm_backward_row(size_t n, tn_real *restrict dx, row_in p)
{
    double u_sum = 0;
    double ux_sum = 0;
#pragma omp simd reduction(+ : u_sum, ux_sum)
    for (size_t c = 0; c < n; c++) {
        tn_real u = p.gamma[c] * p.dy[c];
        u_sum += (double)u;
        ux_sum += (double)(u * ((p.x[c] - p.s.mean) * p.s.rstd));
    }
    tn_real mean_u = (tn_real)(u_sum / (double)n);
    tn_real mean_ux = (tn_real)(ux_sum / (double)n);
    for (size_t c = 0; c < n; c++) {
        tn_real xhat = (p.x[c] - p.s.mean) * p.s.rstd;
        dx[c] += p.s.rstd * (p.gamma[c] * p.dy[c] - mean_u - xhat * mean_ux);
    }
}

static void layer_norm_backward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    for (size_t r = rows.from; r < rows.to && x->grad != NULL; r++) {
        row_in p = {tn_val_row(x, r), tn_grad_row(y, r), y->in[1]->val, *stat_of(y, r)};
        layer_norm_backward_row(y->shape.cols, tn_grad_row_to_add(y, x, r), p);
    }
}

static void layer_norm_backward_params(tn_node *y, tn_range cols)
{
    for (uint32_t c = cols.from; c < cols.to; c++) {
        double dgamma = 0;
        double dbeta = 0;
        for (size_t r = 0; r < y->shape.rows; r++) {
            row_stat s = *stat_of(y, r);
            tn_real dy = tn_grad_row(y, r)[c];
            dgamma += (double)(dy * ((tn_val_row(y->in[0], r)[c] - s.mean) * s.rstd));
            dbeta += (double)dy;
        }
        tn_add_param_grad(y, y->in[1], c, (tn_real)dgamma);
        tn_add_param_grad(y, y->in[2], c, (tn_real)dbeta);
    }
}

static const char *const params[] = {"gamma", "beta", NULL};

const tn_op tn_op_layer_norm = {
    TN_OP_MEMBERS(layer_norm, layer_norm),
    .shape = tn_same_shape,
    .example = {.cols = 5, .attr = &(const tn_layer_norm_attr){1e-5}},
    .formula = "y = gamma (x - mean) / sqrt(var + epsilon) + beta, over the row",
    .n_in = 1,
    .params = params,
    TN_OP_ATTRS(attrs, tn_layer_norm_attr),
    .state_bytes = layer_norm_state_bytes,
    .cols[TN_BACKWARD_PARAMS] = layer_norm_backward_params,
    .flops_each = 8,
};
