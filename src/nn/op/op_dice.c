/* op_dice.c - an activation that bends where the data is (Zhou 2018).
 *
 *   forward     x^  = batch norm of x without scale and shift, p = sigmoid(x^)
 *               y   = x (a + (1 - a) p)
 *   backward    dx += dy (a + (1 - a) p) + rstd (u - mean(u) - x^ mean(u x^)),
 *                     u = dy (1 - a) x p (1 - p)
 *               da += sum dy x (1 - p)
 */
#include "base/keys/init.h"
#include "nn/graph/peer_column_stats.h"
#include "nn/op/norms.h"
#include "nn/vec/vecmath.h"

#include "base/core/compiler.h"

#include <math.h>

enum { ALPHA = 1, MEAN, VAR };

static void dice_forward_cols(tn_node *y, tn_range cols)
{
    static const tn_norm_rule rule = {.epsilon = 1e-8, .decay = 0.9, .unbiased = true};
    tn_norm_batch(y, cols, &y->in[MEAN], &rule);
}

/* One row or a piece of it. */
typedef struct dice_row {
    const tn_real *restrict x;
    const tn_real *restrict alpha;
    tn_norm_state s;
} dice_row;

TN_HOT static void dice_forward_row(size_t n, tn_real *restrict y, const dice_row *row)
{
    const tn_real *restrict x = row->x;
    const tn_real *restrict a = row->alpha;
    const tn_real *restrict mean = row->s.mean;
    const tn_real *restrict rstd = row->s.rstd;
    for (size_t c = 0; c < n; c++) {
        tn_real p = tn_sigmoid_of((x[c] - mean[c]) * rstd[c]);
        y[c] = x[c] * (a[c] + (1 - a[c]) * p);
    }
}

static dice_row row_of(const tn_node *y, size_t r, size_t from)
{
    tn_norm_state s = tn_norm_state_of(y);
    s.mean += from;
    s.rstd += from;
    return (dice_row){tn_val_row(y->in[0], r) + from, y->in[ALPHA]->val + from, s};
}

static void dice_forward(tn_node *y, tn_range rows)
{
    for (size_t r = rows.from; r < rows.to; r++) {
        dice_row row = row_of(y, r, 0);
        dice_forward_row(y->shape.cols, tn_val_row(y, r), &row);
    }
}

typedef struct dice_sums {
    double u[TN_NORM_PIECE], ux[TN_NORM_PIECE], alpha[TN_NORM_PIECE];
} dice_sums;

TN_HOT static void dice_tally_row(size_t n, dice_sums *restrict sums, const tn_real *restrict dy,
                                  const dice_row *row)
{
    const tn_real *restrict x = row->x;
    const tn_real *restrict a = row->alpha;
    const tn_real *restrict mean = row->s.mean;
    const tn_real *restrict rstd = row->s.rstd;
    for (size_t c = 0; c < n; c++) {
        tn_real xhat = (x[c] - mean[c]) * rstd[c];
        tn_real p = tn_sigmoid_of(xhat);
        tn_real u = dy[c] * (1 - a[c]) * x[c] * p * (1 - p);
        sums->u[c] += (double)u;
        sums->ux[c] += (double)(u * xhat);
        sums->alpha[c] += (double)(dy[c] * x[c] * (1 - p));
    }
}

static void sums_piece(const tn_node *y, tn_range cols, bool part)
{
    tn_norm_state s = tn_norm_state_of(y);
    dice_sums sums = {.u = {0}};
    double rows = tn_info(y)->training ? y->shape.rows : HUGE_VAL;
    for (size_t r = 0; r < y->shape.rows; r++) {
        dice_row row = row_of(y, r, cols.from);
        dice_tally_row(cols.to - cols.from, &sums, tn_grad_row(y, r) + cols.from, &row);
    }
    for (uint32_t c = cols.from; c < cols.to; c++) {
        const double u = sums.u[c - cols.from];
        const double ux = sums.ux[c - cols.from];
        if (part) {
            tn_part_put(y, c, rows, u, ux);
        } else {
            s.mean_u[c] = (tn_real)(u / rows); /* 0 with running values */
            s.mean_ux[c] = (tn_real)(ux / rows);
        }
        tn_add_param_grad(y, y->in[ALPHA], c, (tn_real)sums.alpha[c - cols.from]);
    }
}

static void backward_sums(const tn_node *y, tn_range cols, bool part)
{
    for (uint32_t from = cols.from; from < cols.to; from += TN_NORM_PIECE) {
        sums_piece(y, tn_norm_piece(cols, from), part);
    }
}

static void dice_backward_part(tn_node *y, tn_range cols)
{
    backward_sums(y, cols, true);
}

static void dice_backward_cols(tn_node *y, tn_range cols)
{
    if (tn_parts_of(y)->all != NULL) {
        tn_norm_joint_means(y, cols);
    } else {
        backward_sums(y, cols, false);
    }
}

TN_HOT static void dice_backward_row(size_t n, tn_real *restrict dx, const tn_real *restrict dy,
                                     const dice_row *row)
{
    const tn_real *restrict x = row->x;
    const tn_real *restrict a = row->alpha;
    const tn_norm_state s = row->s;
    for (size_t c = 0; c < n; c++) {
        tn_real xhat = (x[c] - s.mean[c]) * s.rstd[c];
        tn_real p = tn_sigmoid_of(xhat);
        tn_real u = dy[c] * (1 - a[c]) * x[c] * p * (1 - p);
        dx[c] +=
            dy[c] * (a[c] + (1 - a[c]) * p) + s.rstd[c] * (u - s.mean_u[c] - xhat * s.mean_ux[c]);
    }
}

static void dice_backward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    for (size_t r = rows.from; r < rows.to && x->grad != NULL; r++) {
        dice_row row = row_of(y, r, 0);
        dice_backward_row(y->shape.cols, tn_grad_row_to_add(y, x, r), tn_grad_row(y, r), &row);
    }
}

static const char *const params[] = {"alpha", "mean", "var", NULL};

const tn_op tn_op_dice = {
    TN_OP_MEMBERS(dice, dice),
    .shape = tn_same_shape,
    .n_states = 2,
    .example = {5},
    .formula = "y = x (a + (1 - a) sigmoid(x^)), x^ normalised over the batch",
    .n_in = 1,
    .params = params,
    .state_bytes = tn_norm_state_bytes,
    .forward_cols = dice_forward_cols,
    .forward_part = tn_moments_part,
    .backward_part = dice_backward_part,
    .backward_cols = dice_backward_cols,
    .flops_each = 20,
};
