/* norms.c - moments of columns, the passes that norms share, cumulative statistics; batch_norm. */
#include "nn/op/norms.h"

#include "base/core/compiler.h"
#include "base/keys/init.h"
#include "config/field.h"
#include "nn/graph/peer_column_stats.h"
#include "nn/vec/vec.h"

#include <math.h>

void tn_moments(const tn_node *x, tn_range cols, double *mean, double *var)
{
    size_t n = cols.to - cols.from;
    uint32_t rows = x->shape.rows;
    TN_ASSERT(n <= TN_NORM_PIECE && rows > 0);
    memset(mean, 0, n * sizeof *mean);
    memset(var, 0, n * sizeof *var);
    for (size_t r = 0; r < rows; r++) {
        tn_vec_tally(n, mean, tn_val_row(x, r) + cols.from);
    }
    for (size_t c = 0; c < n; c++) {
        mean[c] /= rows;
    }
    for (size_t r = 0; r < rows; r++) {
        tn_vec_tally_square(n, var, tn_val_row(x, r) + cols.from, mean);
    }
    for (size_t c = 0; c < n; c++) {
        var[c] /= rows;
    }
}

void tn_moments_part(tn_node *self, tn_range cols)
{
    const double rows = self->shape.rows;
    double mean[TN_NORM_PIECE] = {0};
    double var[TN_NORM_PIECE] = {0};
    for (uint32_t from = cols.from; from < cols.to; from += TN_NORM_PIECE) {
        const tn_range piece = tn_norm_piece(cols, from);
        if (rows > 0) {
            tn_moments(self->in[0], piece, mean, var);
        }
        for (uint32_t c = piece.from; c < piece.to; c++) {
            tn_part_put(self, c, rows, mean[c - from], var[c - from] * rows);
        }
    }
}

tn_wide tn_moments_joint(const tn_node *self, uint32_t col)
{
    tn_wide joint = {0};
    for (uint32_t p = 0; p < tn_parts_of(self)->n; p++) {
        const tn_part part = tn_part_get(self, p, col);
        const tn_wide w = {part.count, part.a, part.b};
        joint = joint.n > 0 ? tn_wide_merge(joint, w) : w;
    }
    return joint;
}

size_t tn_norm_state_bytes(const tn_node *self)
{
    return 4 * (size_t)self->shape.cols * sizeof(tn_real);
}

tn_norm_state tn_norm_state_of(const tn_node *self)
{
    tn_real *at = self->state;
    uint32_t n = self->shape.cols;
    return (tn_norm_state){at, at + n, at + 2 * (size_t)n, at + 3 * (size_t)n};
}

/* The running value after a batch that says `batch`. */
static void move(tn_node *running, uint32_t col, double batch, double decay)
{
    running->grad[col] = (tn_real)(decay * (double)running->val[col] + (1 - decay) * batch);
}

/* Of the batch, or of the joint one; returns its rows. */
static double moments_of(const tn_node *self, tn_range cols, double *mean, double *var)
{
    double rows = self->shape.rows;
    if (tn_parts_of(self)->all == NULL) {
        tn_moments(self->in[0], cols, mean, var);
        return rows;
    }
    for (uint32_t c = cols.from; c < cols.to; c++) {
        const tn_wide joint = tn_moments_joint(self, c);
        rows = joint.n;
        mean[c - cols.from] = joint.mean;
        var[c - cols.from] = rows > 0 ? joint.m2 / rows : 0;
    }
    return rows;
}

static void norm_piece(tn_node *self, tn_range cols, tn_node *const running[2],
                       const tn_norm_rule *rule)
{
    tn_norm_state s = tn_norm_state_of(self);
    double mean[TN_NORM_PIECE];
    double var[TN_NORM_PIECE];
    double rows = moments_of(self, cols, mean, var);
    for (uint32_t c = cols.from; c < cols.to; c++) {
        double m = mean[c - cols.from];
        double v = var[c - cols.from];
        s.mean[c] = (tn_real)m;
        s.rstd[c] = (tn_real)(1 / sqrt(v + rule->epsilon));
        if (tn_moves(self)) {
            move(running[0], c, m, rule->decay);
            move(running[1], c, rule->unbiased && rows > 1 ? v * rows / (rows - 1) : v,
                 rule->decay);
        }
    }
}

void tn_norm_batch(tn_node *self, tn_range cols, tn_node *const running[2],
                   const tn_norm_rule *rule)
{
    tn_norm_state s = tn_norm_state_of(self);
    if (!tn_info(self)->training) {
        for (uint32_t c = cols.from; c < cols.to; c++) {
            s.mean[c] = running[0]->val[c];
            s.rstd[c] = (tn_real)(1 / sqrt((double)running[1]->val[c] + rule->epsilon));
        }
        return;
    }
    for (uint32_t from = cols.from; from < cols.to; from += TN_NORM_PIECE) {
        norm_piece(self, tn_norm_piece(cols, from), running, rule);
    }
}

/* Pointers of one row or one piece of columns. */
typedef struct norm_row {
    const tn_real *restrict x;
    const tn_real *restrict mean;
    const tn_real *restrict rstd;
    const tn_real *restrict gamma;
} norm_row;

TN_HOT static void norm_forward_row(size_t n, tn_real *restrict y, norm_row p,
                                    const tn_real *restrict beta)
{
    for (size_t c = 0; c < n; c++) {
        y[c] = p.gamma[c] * ((p.x[c] - p.mean[c]) * p.rstd[c]) + beta[c];
    }
}

static norm_row row_of(const tn_node *self, size_t row)
{
    tn_norm_state s = tn_norm_state_of(self);
    return (norm_row){tn_val_row(self->in[0], row), s.mean, s.rstd, self->in[1]->val};
}

void tn_norm_forward(tn_node *self, tn_range rows)
{
    for (size_t r = rows.from; r < rows.to; r++) {
        norm_forward_row(self->shape.cols, tn_val_row(self, r), row_of(self, r), self->in[2]->val);
    }
}

TN_HOT static void norm_backward_row(size_t n, tn_real *restrict dx, const tn_real *restrict dy,
                                     norm_row p, const tn_real *restrict mean_u)
{
    const tn_real *restrict mean_ux = mean_u + n;
    for (size_t c = 0; c < n; c++) {
        tn_real xhat = (p.x[c] - p.mean[c]) * p.rstd[c];
        dx[c] += p.gamma[c] * p.rstd[c] * (dy[c] - mean_u[c] - xhat * mean_ux[c]);
    }
}

void tn_norm_backward(tn_node *self, tn_range rows)
{
    const tn_node *x = self->in[0];
    for (size_t r = rows.from; r < rows.to && x->grad != NULL; r++) {
        norm_backward_row(self->shape.cols, tn_grad_row_to_add(self, x, r), tn_grad_row(self, r),
                          row_of(self, r), tn_norm_state_of(self).mean_u);
    }
}

TN_HOT static void norm_tally_row(size_t n, double *restrict sum_u, double *restrict sum_ux,
                                  const tn_real *restrict u, norm_row p)
{
    for (size_t c = 0; c < n; c++) {
        tn_real xhat = (p.x[c] - p.mean[c]) * p.rstd[c];
        sum_u[c] += (double)u[c];
        sum_ux[c] += (double)u[c] * (double)xhat;
    }
}

typedef enum backward_kind { CONSTANT, OF_BATCH, PART } backward_kind;

static void sums_piece(tn_node *self, tn_range cols, backward_kind kind)
{
    tn_norm_state s = tn_norm_state_of(self);
    double u[TN_NORM_PIECE] = {0};
    double ux[TN_NORM_PIECE] = {0};
    size_t n = cols.to - cols.from;
    double rows = self->shape.rows;
    for (size_t r = 0; r < self->shape.rows; r++) {
        norm_row p = {tn_val_row(self->in[0], r) + cols.from, s.mean + cols.from,
                      s.rstd + cols.from, NULL};
        norm_tally_row(n, u, ux, tn_grad_row(self, r) + cols.from, p);
    }
    for (uint32_t c = cols.from; c < cols.to; c++) {
        double sum_u = u[c - cols.from];
        double sum_ux = ux[c - cols.from];
        if (kind == PART) {
            tn_part_put(self, c, rows, sum_u, sum_ux);
        } else {
            s.mean_u[c] = kind == OF_BATCH ? (tn_real)(sum_u / rows) : 0;
            s.mean_ux[c] = kind == OF_BATCH ? (tn_real)(sum_ux / rows) : 0;
        }
        tn_add_param_grad(self, self->in[1], c, (tn_real)sum_ux);
        tn_add_param_grad(self, self->in[2], c, (tn_real)sum_u);
    }
}

void tn_norm_backward_sums(tn_node *self, tn_range cols, bool of_batch)
{
    for (uint32_t from = cols.from; from < cols.to; from += TN_NORM_PIECE) {
        sums_piece(self, tn_norm_piece(cols, from), of_batch ? OF_BATCH : CONSTANT);
    }
}

/* Among peers: dgamma and dbeta of this batch, and its part of mean_u and mean_ux. */
static void norm_backward_part(tn_node *self, tn_range cols)
{
    for (uint32_t from = cols.from; from < cols.to; from += TN_NORM_PIECE) {
        sums_piece(self, tn_norm_piece(cols, from), PART);
    }
}

void tn_norm_joint_means(const tn_node *self, tn_range cols)
{
    tn_norm_state s = tn_norm_state_of(self);
    for (uint32_t c = cols.from; c < cols.to; c++) {
        tn_part sum = {0};
        for (uint32_t p = 0; p < tn_parts_of(self)->n; p++) {
            const tn_part part = tn_part_get(self, p, c);
            sum.count += part.count;
            sum.a += part.a;
            sum.b += part.b;
        }
        s.mean_u[c] = sum.count > 0 ? (tn_real)(sum.a / sum.count) : 0;
        s.mean_ux[c] = sum.count > 0 ? (tn_real)(sum.b / sum.count) : 0;
    }
}

static double get_pair(const tn_real *sums, uint32_t cols, uint32_t col, uint32_t pair)
{
    size_t at = 2 * (size_t)pair * cols + col;
    return (double)sums[at] + (double)sums[at + cols];
}

static void put_pair(tn_real *sums, uint32_t cols, size_t at, double value)
{
    tn_real high = (tn_real)value;
    sums[at] = high;
    sums[at + cols] = (tn_real)(value - (double)high);
}

tn_wide tn_wide_get(const tn_real *sums, uint32_t cols, uint32_t col)
{
    return (tn_wide){get_pair(sums, cols, col, 0), get_pair(sums, cols, col, 1),
                     get_pair(sums, cols, col, 2)};
}

void tn_wide_put(tn_real *sums, uint32_t cols, uint32_t col, tn_wide value)
{
    put_pair(sums, cols, col, value.n);
    put_pair(sums, cols, 2 * (size_t)cols + col, value.mean);
    put_pair(sums, cols, 4 * (size_t)cols + col, value.m2);
}

tn_wide tn_wide_merge(tn_wide a, tn_wide b)
{
    double n = a.n + b.n;
    if (!(n > 0)) {
        return a;
    }
    double d = b.mean - a.mean;
    return (tn_wide){n, a.mean + d * b.n / n, a.m2 + b.m2 + d * d * a.n * b.n / n};
}

/* ---- batch_norm ---- */

/* batch_norm: columns brought to mean 0 and variance 1 over the batch (Ioffe 2015).
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

static void batch_norm_forward_cols(tn_node *y, tn_range cols)
{
    const tn_batch_norm_attr *a = attr_of(y);
    tn_norm_batch(y, cols, &y->in[MEAN], &(tn_norm_rule){a->epsilon, a->decay, a->unbiased});
}

static void batch_norm_backward_cols(tn_node *y, tn_range cols)
{
    if (tn_parts_of(y)->all != NULL) {
        tn_norm_joint_means(y, cols);
    } else {
        tn_norm_backward_sums(y, cols, tn_info(y)->training);
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

static const char *const params[] = {"gamma", "beta", "mean", "var", NULL};

const tn_op tn_op_batch_norm = {
    .name = "batch_norm",
    .formula = "y = gamma (x - mean) / sqrt(var + epsilon) + beta",
    .n_in = 1,
    .params = params,
    .attrs = attrs,
    .attr_size = sizeof(tn_batch_norm_attr),
    .n_states = 2,
    .shape = tn_same_shape,
    .state_bytes = tn_norm_state_bytes,
    .forward_cols = batch_norm_forward_cols,
    .forward = tn_norm_forward,
    .forward_part = tn_moments_part,
    .backward_part = norm_backward_part,
    .backward_cols = batch_norm_backward_cols,
    .backward = tn_norm_backward,
    .affine = batch_norm_affine,
    .flops_each = 8,
    .example = {5, &(const tn_batch_norm_attr){1e-5, 0.9, true}},
};
