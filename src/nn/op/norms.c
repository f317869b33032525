/* norms.c - columns brought to one mean and scale: batch_norm, dice, data_norm, zscore.
 *
 *     x^ = (x - mean) * rstd          per column, from a batch or from running values
 *
 * batch_norm: columns brought to mean 0 and variance 1 over the batch (Ioffe 2015).
 *
 *   forward     x^  = (x - mean) / sqrt(var + epsilon)
 *               y   = gamma x^ + beta
 *   backward    dx += gamma / sqrt(var + epsilon) (dy - mean(dy) - x^ mean(dy x^))
 *               dgamma += sum dy x^,  dbeta += sum dy
 *
 * Statistics take two passes in double. The running values, which evaluation uses, move towards the
 * batch's: r = decay r + (1 - decay) batch, the variance as var B / (B - 1) when `unbiased`.
 *
 * dice: an activation that bends where the data is (Zhou 2018).
 *
 *   forward     x^  = batch norm of x without scale and shift, p = sigmoid(x^)
 *               y   = x (a + (1 - a) p)
 *   backward    dx += dy (a + (1 - a) p) + rstd (u - mean(u) - x^ mean(u x^)),
 *                     u = dy (1 - a) x p (1 - p)
 *               da += sum dy x (1 - p)
 *
 * data_norm: columns normalised by all rows that were seen so far, which are a constant to
 * backward. State per column: count n, mean, M2 (sum of squared deviations), in double.
 *
 *   training    rho = min(1, max_count / n);  n = rho n,  M2 = rho M2;  the batch is merged (Chan)
 *   forward     y   = gamma (x - mean) / sqrt(M2 / n + epsilon) + beta        n = 0: x^ = x
 *   backward    dx += gamma dy / sqrt(M2 / n + epsilon)
 *               dgamma += sum dy x^,  dbeta += sum dy
 *
 * It is the past that is scaled down, never the batch: else statistics fade once max_count is
 * reached.
 *
 * zscore: numeric columns by the mean and deviation of the rows before this batch.
 *
 *   forward     y = (x - mean) / max(s, 1e-12),  s^2 = M2 / n        n = 0: y = 0
 *   training    afterwards the batch's rows are added in order, until n reaches freeze_rows
 *
 * A transform of the input: it has no backward. Before any row was seen nothing is known of the
 * scale, and 0 is the mean.
 *
 * Among peers the batch is the joint one: counts, means and sums of squared deviations are merged
 * in rank order (Chan 1979), as are the sums of the two means of backward.
 */
#include "nn/op/ops.h"

#include "base/core/compiler.h"
#include "config/field.h"
#include "nn/graph/peer_column_stats.h"
#include "nn/vec/vecmath.h"

#include <math.h>

/* Columns are worked on in pieces, so that sums in double fit the stack. */
enum { PIECE = 64 };

static tn_range piece_of(tn_range cols, uint32_t from)
{
    return (tn_range){from, cols.to - from < PIECE ? cols.to : from + PIECE};
}

/* Column vectors that a norm keeps between its passes, in self->state. */
typedef struct norm_state {
    tn_real *mean;
    tn_real *rstd;
    tn_real *mean_u;  /* mean of the gradient that flows back */
    tn_real *mean_ux; /* mean of that gradient times x^ */
} norm_state;

static size_t norm_state_bytes(const tn_node *self)
{
    return 4 * (size_t)self->shape.cols * sizeof(tn_real);
}

static norm_state state_of(const tn_node *self)
{
    tn_real *at = self->state;
    uint32_t n = self->shape.cols;
    return (norm_state){at, at + n, at + 2 * (size_t)n, at + 3 * (size_t)n};
}

/* ---- cumulative statistics, kept as pairs of a high and a low part ---- */

static double get_pair(const tn_real *sums, uint32_t cols, size_t at)
{
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
    return (tn_wide){get_pair(sums, cols, col), get_pair(sums, cols, 2 * (size_t)cols + col),
                     get_pair(sums, cols, 4 * (size_t)cols + col)};
}

void tn_wide_put(tn_real *sums, uint32_t cols, uint32_t col, tn_wide value)
{
    put_pair(sums, cols, col, value.n);
    put_pair(sums, cols, 2 * (size_t)cols + col, value.mean);
    put_pair(sums, cols, 4 * (size_t)cols + col, value.m2);
}

static tn_wide merge(tn_wide a, tn_wide b) /* Chan 1979 */
{
    double n = a.n + b.n;
    if (!(n > 0)) {
        return a;
    }
    double d = b.mean - a.mean;
    return (tn_wide){n, a.mean + d * b.n / n, a.m2 + b.m2 + d * d * a.n * b.n / n};
}

/* ---- moments of columns ---- */

/* Adds up columns of one row after the other. */
TN_HOT static void vec_tally(size_t n, double *restrict total, const tn_real *restrict x)
{
    for (size_t i = 0; i < n; i++) {
        total[i] += (double)x[i];
    }
}

TN_HOT static void vec_tally_square(size_t n, double *restrict total, const tn_real *restrict x,
                                    const double *restrict mean)
{
    for (size_t i = 0; i < n; i++) {
        double d = (double)x[i] - mean[i];
        total[i] += d * d;
    }
}

/* Computes mean and population variance of columns `cols` (at most a piece) in two passes. */
static void find_moments_of_rows(const tn_node *x, tn_range cols, double *mean, double *var)
{
    size_t n = cols.to - cols.from;
    uint32_t rows = x->shape.rows;
    TN_ASSERT(n <= PIECE && rows > 0);
    memset(mean, 0, n * sizeof *mean);
    memset(var, 0, n * sizeof *var);
    for (size_t r = 0; r < rows; r++) {
        vec_tally(n, mean, tn_val_row(x, r) + cols.from);
    }
    for (size_t c = 0; c < n; c++) {
        mean[c] /= rows;
    }
    for (size_t r = 0; r < rows; r++) {
        vec_tally_square(n, var, tn_val_row(x, r) + cols.from, mean);
    }
    for (size_t c = 0; c < n; c++) {
        var[c] /= rows;
    }
}

/* Adds up x, and (x - mean)^2, of a few rows. */
TN_HOT static void few_tally(const tn_act_area *p, tn_real *restrict total)
{
    for (size_t r = 0; r < p->rows; r++) {
        const tn_real *restrict x = p->x + r * p->x_stride;
        for (size_t i = 0; i < p->cols; i++) {
            total[i] += x[i];
        }
    }
}

TN_HOT static void few_tally_square(const tn_act_area *p, const tn_real *restrict mean,
                                    tn_real *restrict total)
{
    for (size_t r = 0; r < p->rows; r++) {
        const tn_real *restrict x = p->x + r * p->x_stride;
        for (size_t i = 0; i < p->cols; i++) {
            total[i] += (x[i] - mean[i]) * (x[i] - mean[i]);
        }
    }
}

/* The mean and the sum of squared deviations of a few rows, which need no doubles. */
typedef struct few_moments {
    double mean[PIECE], m2[PIECE];
} few_moments;

static void find_moments_few(const tn_node *x, tn_range rows, tn_range cols, few_moments *out)
{
    const size_t n = cols.to - cols.from;
    const tn_real by = 1 / (tn_real)(rows.to - rows.from);
    const tn_act_area area = {.rows = rows.to - rows.from,
                              .cols = n,
                              .x = tn_val_row(x, rows.from) + cols.from,
                              .x_stride = x->stride};
    tn_real centre[PIECE] = {0};
    tn_real square[PIECE] = {0};
    few_tally(&area, centre);
    for (size_t c = 0; c < n; c++) {
        centre[c] *= by;
    }
    few_tally_square(&area, centre, square);
    for (size_t c = 0; c < n; c++) {
        out->mean[c] = (double)centre[c];
        out->m2[c] = (double)square[c];
    }
}

/* Adds the moments of `m` rows to those of n before them (Chan 1979). */
TN_HOT static void merge_moments(size_t cols, double n, double m, double *restrict mean,
                                 double *restrict m2, const few_moments *restrict next)
{
    for (size_t c = 0; c < cols; c++) {
        const double d = next->mean[c] - mean[c];
        mean[c] += d * (m / (n + m));
        m2[c] += next->m2[c] + d * d * (n * m / (n + m));
    }
}

/* Does the same for the positions of a sequence. A batch has many, so a few at a time stay in cache
 * between the two passes; one of empty histories has none. */
static void find_moments_of_positions(const tn_node *x, tn_range cols, double *mean, double *var)
{
    enum { FEW = 32 };
    const uint32_t rows = x->shape.rows;
    const size_t n = cols.to - cols.from;
    memset(mean, 0, n * sizeof *mean);
    memset(var, 0, n * sizeof *var);
    for (uint32_t from = 0; from < rows; from += FEW) {
        few_moments next;
        const tn_range few = {from, rows - from < FEW ? rows : from + FEW};
        find_moments_few(x, few, cols, &next);
        merge_moments(n, from, few.to - from, mean, var, &next);
    }
    for (size_t c = 0; c < n && rows > 0; c++) {
        var[c] /= rows;
    }
}

static void find_moments(const tn_node *x, tn_range cols, double *mean, double *var)
{
    if (x->positions.max_len > 0) {
        find_moments_of_positions(x, cols, mean, var);
    } else {
        find_moments_of_rows(x, cols, mean, var);
    }
}

/* Among peers: a part pass that brings count, mean and sum of squared deviations of this batch's
 * columns; and what all parts of one column make. */
static void moments_part(tn_node *self, tn_range cols)
{
    const double rows = self->shape.rows;
    double mean[PIECE] = {0};
    double var[PIECE] = {0};
    for (uint32_t from = cols.from; from < cols.to; from += PIECE) {
        const tn_range piece = piece_of(cols, from);
        if (rows > 0) {
            find_moments(self->in[0], piece, mean, var);
        }
        for (uint32_t c = piece.from; c < piece.to; c++) {
            tn_part_put(self, c, rows, mean[c - from], var[c - from] * rows);
        }
    }
}

static tn_wide joint_moments(const tn_node *self, uint32_t col)
{
    tn_wide joint = {0};
    for (uint32_t p = 0; p < tn_parts_of(self)->n; p++) {
        const tn_part part = tn_part_get(self, p, col);
        const tn_wide w = {part.count, part.a, part.b};
        joint = joint.n > 0 ? merge(joint, w) : w;
    }
    return joint;
}

/* Computes moments of the batch, or of the joint one; returns its rows. */
static double moments_of(const tn_node *self, tn_range cols, double *mean, double *var)
{
    double rows = self->shape.rows;
    if (tn_parts_of(self)->all == NULL) {
        find_moments(self->in[0], cols, mean, var);
        return rows;
    }
    for (uint32_t c = cols.from; c < cols.to; c++) {
        const tn_wide joint = joint_moments(self, c);
        rows = joint.n;
        mean[c - cols.from] = joint.mean;
        var[c - cols.from] = rows > 0 ? joint.m2 / rows : 0;
    }
    return rows;
}

/* ---- batch_norm, dice: mean and rstd ---- */

static const char *const dice_params[] = {"alpha", "mean", "var", NULL};

static bool is_dice(const tn_node *self)
{
    return self->op->params == dice_params;
}

static tn_batch_norm_attr rule_of(const tn_node *self)
{
    static const tn_batch_norm_attr dice = {.epsilon = 1e-8, .decay = 0.9, .unbiased = true};
    return is_dice(self) ? dice : *(const tn_batch_norm_attr *)self->attr;
}

/* Moves the running value by the value of a batch. */
static void move(tn_node *running, uint32_t col, double batch, double decay)
{
    running->grad[col] = (tn_real)(decay * (double)running->val[col] + (1 - decay) * batch);
}

static void batch_piece(tn_node *self, tn_range cols, tn_node *const running[2])
{
    norm_state s = state_of(self);
    const tn_batch_norm_attr rule = rule_of(self);
    double mean[PIECE];
    double var[PIECE];
    double rows = moments_of(self, cols, mean, var);
    for (uint32_t c = cols.from; c < cols.to; c++) {
        double m = mean[c - cols.from];
        double v = var[c - cols.from];
        s.mean[c] = (tn_real)m;
        s.rstd[c] = (tn_real)(1 / sqrt(v + rule.epsilon));
        if (tn_moves(self) && rows > 0) {
            move(running[0], c, m, rule.decay);
            move(running[1], c, rule.unbiased && rows > 1 ? v * rows / (rows - 1) : v, rule.decay);
        }
    }
}

static void batch_running(const tn_node *self, tn_range cols, tn_real *mean, tn_real *rstd)
{
    tn_node *const *running = self->in + self->n_in - 2;
    for (uint32_t c = cols.from; c < cols.to; c++) {
        mean[c] = running[0]->val[c];
        rstd[c] = (tn_real)(1 / sqrt((double)running[1]->val[c] + rule_of(self).epsilon));
    }
}

/* Normalizes by statistics of the batch when training, and then moves the running values; else by
 * these. */
static void batch_forward_cols(tn_node *self, tn_range cols)
{
    norm_state s = state_of(self);
    if (!tn_info(self)->training) {
        batch_running(self, cols, s.mean, s.rstd);
        return;
    }
    for (uint32_t from = cols.from; from < cols.to; from += PIECE) {
        batch_piece(self, piece_of(cols, from), self->in + self->n_in - 2);
    }
}

/* ---- row passes ---- */

/* Pointers of one row or one piece of columns. */
typedef struct norm_row {
    const tn_real *restrict x;
    const tn_real *restrict mean;
    const tn_real *restrict rstd;
    const tn_real *restrict gamma; /* alpha of dice */
} norm_row;

static norm_row row_of(const tn_node *self, size_t row, size_t from)
{
    norm_state s = state_of(self);
    return (norm_row){tn_val_row(self->in[0], row) + from, s.mean + from, s.rstd + from,
                      self->in[1]->val + from};
}

TN_HOT static void norm_forward_row(size_t n, tn_real *restrict y, norm_row p,
                                    const tn_real *restrict beta)
{
    for (size_t c = 0; c < n; c++) {
        y[c] = p.gamma[c] * ((p.x[c] - p.mean[c]) * p.rstd[c]) + beta[c];
    }
}

/* Some rows and columns of a dice, which one loop goes over: of positions there are many, and their
 * rows are short. */
typedef struct dice_area {
    size_t rows, n;
    const tn_real *restrict x;
    const tn_real *restrict dy;
    tn_real *restrict out; /* y, or dx */
    size_t x_stride, dy_stride, out_stride;
    const tn_real *restrict mean;
    const tn_real *restrict rstd;
    const tn_real *restrict alpha;
    bool add; /* to dx; else it is assigned */
} dice_area;

static dice_area dice_area_of(const tn_node *self, tn_range rows, tn_range cols)
{
    const norm_state s = state_of(self);
    const tn_node *x = self->in[0];
    const tn_real *dy = self->grad != NULL ? tn_grad_row(self, rows.from) + cols.from : NULL;
    return (dice_area){.rows = rows.to - rows.from,
                       .n = cols.to - cols.from,
                       .x = tn_val_row(x, rows.from) + cols.from,
                       .dy = dy,
                       .x_stride = x->stride,
                       .dy_stride = self->stride,
                       .mean = s.mean + cols.from,
                       .rstd = s.rstd + cols.from,
                       .alpha = self->in[1]->val + cols.from};
}

/* The sigmoid with one division, which is most of its time; of its bits the last may differ. */
static inline tn_real share_of(tn_real x)
{
    const tn_real e = tn_exp_of(-tn_abs_of(x));
    const tn_real s = 1 / (1 + e);
    return x < 0 ? e * s : s;
}

TN_HOT static void dice_forward_rows(const dice_area *p)
{
    const tn_real *restrict mean = p->mean;
    const tn_real *restrict rstd = p->rstd;
    const tn_real *restrict alpha = p->alpha;
    const size_t n = p->n;
    for (size_t r = 0; r < p->rows; r++) {
        const tn_real *restrict x = p->x + r * p->x_stride;
        tn_real *restrict y = p->out + r * p->out_stride;
        for (size_t c = 0; c < n; c++) {
            tn_real share = share_of((x[c] - mean[c]) * rstd[c]);
            y[c] = x[c] * (alpha[c] + (1 - alpha[c]) * share);
        }
    }
}

static void dice_forward(tn_node *self, tn_range rows)
{
    dice_area area = dice_area_of(self, rows, (tn_range){0, self->shape.cols});
    area.out = tn_val_row(self, rows.from);
    area.out_stride = self->stride;
    dice_forward_rows(&area);
}

static void norm_forward(tn_node *self, tn_range rows)
{
    for (size_t r = rows.from; r < rows.to; r++) {
        norm_forward_row(self->shape.cols, tn_val_row(self, r), row_of(self, r, 0),
                         self->in[2]->val);
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

TN_HOT static void dice_backward_rows(const dice_area *p, const tn_real *restrict mean_u,
                                      const tn_real *restrict mean_ux)
{
    TN_ASSERT(p->dy != NULL);
    const tn_real *restrict mean = p->mean;
    const tn_real *restrict rstd = p->rstd;
    const tn_real *restrict alpha = p->alpha;
    const size_t n = p->n;
    for (size_t r = 0; r < p->rows; r++) {
        const tn_real *restrict x = p->x + r * p->x_stride;
        const tn_real *restrict dy = p->dy + r * p->dy_stride;
        tn_real *restrict dx = p->out + r * p->out_stride;
        if (!p->add) {
            tn_clear(dx, n);
        }
        for (size_t c = 0; c < n; c++) {
            const tn_real a = alpha[c];
            tn_real xhat = (x[c] - mean[c]) * rstd[c];
            tn_real share = share_of(xhat);
            tn_real u = dy[c] * (1 - a) * x[c] * share * (1 - share);
            dx[c] += dy[c] * (a + (1 - a) * share) + rstd[c] * (u - mean_u[c] - xhat * mean_ux[c]);
        }
    }
}

static void dice_backward(tn_node *self, tn_range rows)
{
    const tn_node *x = self->in[0];
    const norm_state s = state_of(self);
    if (x->grad != NULL) {
        dice_area area = dice_area_of(self, rows, (tn_range){0, self->shape.cols});
        area.out = tn_grad_row(x, rows.from);
        area.out_stride = x->stride;
        area.add = tn_adds(self, x);
        dice_backward_rows(&area, s.mean_u, s.mean_ux);
    }
}

static void norm_backward(tn_node *self, tn_range rows)
{
    const tn_node *x = self->in[0];
    for (size_t r = rows.from; r < rows.to && x->grad != NULL; r++) {
        norm_backward_row(self->shape.cols, tn_grad_row_to_add(self, x, r), tn_grad_row(self, r),
                          row_of(self, r, 0), state_of(self).mean_u);
    }
}

/* ---- sums over the batch that backward needs ---- */

typedef struct norm_sums {
    double u[PIECE], ux[PIECE], alpha[PIECE];
} norm_sums;

TN_HOT static void norm_tally_row(size_t n, norm_sums *restrict sums, const tn_real *restrict u,
                                  norm_row p)
{
    for (size_t c = 0; c < n; c++) {
        tn_real xhat = (p.x[c] - p.mean[c]) * p.rstd[c];
        sums->u[c] += (double)u[c];
        sums->ux[c] += (double)u[c] * (double)xhat;
    }
}

/* Sums of a few rows, which are added to those in double. */
typedef struct dice_part {
    tn_real u[PIECE], ux[PIECE], alpha[PIECE];
} dice_part;

TN_HOT static void dice_tally_rows(const dice_area *p, dice_part *restrict sums)
{
    TN_ASSERT(p->dy != NULL);
    const tn_real *restrict mean = p->mean;
    const tn_real *restrict rstd = p->rstd;
    const tn_real *restrict alpha = p->alpha;
    const size_t n = p->n;
    for (size_t r = 0; r < p->rows; r++) {
        const tn_real *restrict x = p->x + r * p->x_stride;
        const tn_real *restrict dy = p->dy + r * p->dy_stride;
        for (size_t c = 0; c < n; c++) {
            tn_real xhat = (x[c] - mean[c]) * rstd[c];
            tn_real share = share_of(xhat);
            tn_real u = dy[c] * (1 - alpha[c]) * x[c] * share * (1 - share);
            sums->u[c] += u;
            sums->ux[c] += u * xhat;
            sums->alpha[c] += dy[c] * x[c] * (1 - share);
        }
    }
}

static void dice_tally(const tn_node *self, tn_range cols, norm_sums *sums)
{
    enum { FEW = 16 };
    const uint32_t rows = self->shape.rows;
    for (uint32_t from = 0; from < rows; from += FEW) {
        const tn_range few = {from, rows - from < FEW ? rows : from + FEW};
        const dice_area area = dice_area_of(self, few, cols);
        dice_part part = {.u = {0}};
        dice_tally_rows(&area, &part);
        for (size_t c = 0; c < area.n; c++) {
            sums->u[c] += (double)part.u[c];
            sums->ux[c] += (double)part.ux[c];
            sums->alpha[c] += (double)part.alpha[c];
        }
    }
}

typedef enum backward_kind { CONSTANT, OF_BATCH, PART } backward_kind;

static void sums_piece(tn_node *self, tn_range cols, backward_kind kind)
{
    norm_state s = state_of(self);
    norm_sums sums = {.u = {0}};
    double rows = self->shape.rows;
    if (is_dice(self)) {
        dice_tally(self, cols, &sums);
    }
    for (size_t r = 0; r < self->shape.rows && !is_dice(self); r++) {
        norm_tally_row(cols.to - cols.from, &sums, tn_grad_row(self, r) + cols.from,
                       row_of(self, r, cols.from));
    }
    for (uint32_t c = cols.from; c < cols.to; c++) {
        double u = sums.u[c - cols.from];
        double ux = sums.ux[c - cols.from];
        if (kind == PART) {
            tn_part_put(self, c, rows, u, ux);
        } else {
            s.mean_u[c] = kind == OF_BATCH && rows > 0 ? (tn_real)(u / rows) : 0;
            s.mean_ux[c] = kind == OF_BATCH && rows > 0 ? (tn_real)(ux / rows) : 0;
        }
        if (is_dice(self)) {
            tn_add_param_grad(self, self->in[1], c, (tn_real)sums.alpha[c - cols.from]);
        } else {
            tn_add_param_grad(self, self->in[1], c, (tn_real)ux);
            tn_add_param_grad(self, self->in[2], c, (tn_real)u);
        }
    }
}

/* Gradients of the parameters; and mean_u and mean_ux, or this batch's part of them. */
static void backward_sums(tn_node *self, tn_range cols, backward_kind kind)
{
    for (uint32_t from = cols.from; from < cols.to; from += PIECE) {
        sums_piece(self, piece_of(cols, from), kind);
    }
}

static void batch_backward_part(tn_node *self, tn_range cols)
{
    backward_sums(self, cols, PART);
}

static void batch_backward_cols(tn_node *self, tn_range cols)
{
    if (tn_parts_of(self)->all == NULL) {
        backward_sums(self, cols, tn_info(self)->training ? OF_BATCH : CONSTANT);
        return;
    }
    norm_state s = state_of(self);
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

static void batch_norm_affine(const tn_node *y, tn_real *scale, tn_real *shift)
{
    tn_node *const *p = y->in + 1; /* gamma, beta, mean, var */
    for (uint32_t c = 0; c < y->shape.cols; c++) {
        double s = (double)p[0]->val[c] / sqrt((double)p[3]->val[c] + rule_of(y).epsilon);
        scale[c] = (tn_real)s;
        shift[c] = (tn_real)((double)p[1]->val[c] - s * (double)p[2]->val[c]);
    }
}

static const tn_field batch_norm_attrs[] = {
    TN_FIELD_F64(tn_batch_norm_attr, epsilon, "1e-5", TN_EPSILON_MIN, 1, "",
                 "added to the variance"),
    TN_FIELD_F64(tn_batch_norm_attr, decay, "0.9", 0, 1, "", "share of the running value kept"),
    TN_FIELD_BOOL(tn_batch_norm_attr, unbiased, "true", "running variance over B - 1"),
    TN_FIELD_END,
};

static const char *const batch_norm_params[] = {"gamma", "beta", "mean", "var", NULL};

/* Members that the two have in common. */
#define OF_THE_BATCH(f)                                                                            \
    .n_in = 1, .norm.n_states = 2, .shape = tn_same_shape, .state_bytes = norm_state_bytes,        \
    .cols[TN_FORWARD_COLS] = batch_forward_cols, .forward = f##_forward,                           \
    .cols[TN_FORWARD_PART] = moments_part, .cols[TN_BACKWARD_PART] = batch_backward_part,          \
    .cols[TN_BACKWARD_COLS] = batch_backward_cols, .backward = f##_backward,                       \
    .norm.running = batch_running

const tn_op tn_op_batch_norm = {
    .name = "batch_norm",
    OF_THE_BATCH(norm),
    .formula = "y = gamma (x - mean) / sqrt(var + epsilon) + beta",
    .params = batch_norm_params,
    TN_OP_ATTRS(batch_norm_attrs, tn_batch_norm_attr),
    .norm.affine = batch_norm_affine,
    .flops_each = 8,
    .example = {.cols = 5, .attr = &(const tn_batch_norm_attr){1e-5, 0.9, true}},
};

const tn_op tn_op_dice = {
    .name = "dice",
    OF_THE_BATCH(dice),
    .formula = "y = x (a + (1 - a) sigmoid(x^)), x^ normalised over the batch",
    .params = dice_params,
    .flops_each = 20,
    .example = {.cols = 5},
};

/* ---- data_norm ---- */

static const tn_field data_norm_attrs[] = {
    TN_FIELD_F64(tn_data_norm_attr, epsilon, "1e-5", TN_EPSILON_MIN, 1, "",
                 "added to the variance"),
    TN_FIELD_F64(tn_data_norm_attr, max_count, "1e6", 0, 1e15, "rows", "rows remembered at most"),
    TN_FIELD_END,
};

static tn_wide merged(tn_wide past, tn_wide batch, double max_count)
{
    double rho = past.n > max_count ? max_count / past.n : 1;
    past.n *= rho;
    past.m2 *= rho;
    return merge(past, batch);
}

static void data_scale(const tn_node *y, tn_wide w, tn_real *mean, tn_real *rstd)
{
    const tn_data_norm_attr *a = y->attr;
    *mean = w.n > 0 ? (tn_real)w.mean : 0;
    *rstd = w.n > 0 ? (tn_real)(1 / sqrt(w.m2 / w.n + a->epsilon)) : 1;
}

static void data_running(const tn_node *y, tn_range cols, tn_real *mean, tn_real *rstd)
{
    for (uint32_t c = cols.from; c < cols.to; c++) {
        data_scale(y, tn_wide_get(y->in[3]->val, y->shape.cols, c), &mean[c], &rstd[c]);
    }
}

/* With the batch, which moves the sums. */
static void data_piece(tn_node *y, tn_range cols)
{
    const tn_data_norm_attr *a = y->attr;
    const tn_node *sums = y->in[3];
    norm_state s = state_of(y);
    double mean[PIECE];
    double var[PIECE];
    double rows = y->shape.rows;
    bool joint = tn_parts_of(y)->all != NULL;
    if (!joint) {
        find_moments(y->in[0], cols, mean, var);
    }
    for (uint32_t c = cols.from; c < cols.to; c++) {
        uint32_t i = c - cols.from;
        tn_wide batch = joint ? joint_moments(y, c) : (tn_wide){rows, mean[i], var[i] * rows};
        tn_wide w = merged(tn_wide_get(sums->val, y->shape.cols, c), batch, a->max_count);
        tn_wide_put(sums->grad, y->shape.cols, c, w);
        data_scale(y, w, &s.mean[c], &s.rstd[c]);
    }
}

static void data_norm_forward_cols(tn_node *y, tn_range cols)
{
    norm_state s = state_of(y);
    if (!tn_moves(y)) {
        data_running(y, cols, s.mean, s.rstd);
        return;
    }
    for (uint32_t from = cols.from; from < cols.to; from += PIECE) {
        data_piece(y, piece_of(cols, from));
    }
}

static void data_norm_backward_cols(tn_node *y, tn_range cols)
{
    backward_sums(y, cols, CONSTANT);
}

static const char *const data_norm_params[] = {"gamma", "beta", "sums", NULL};

const tn_op tn_op_data_norm = {
    .name = "data_norm",
    .formula = "y = gamma (x - mean) / sqrt(M2 / n + epsilon) + beta, over all rows so far",
    .n_in = 1,
    .params = data_norm_params,
    TN_OP_ATTRS(data_norm_attrs, tn_data_norm_attr),
    .norm.n_states = 1,
    .norm.state_rows = 6,
    .shape = tn_same_shape,
    .state_bytes = norm_state_bytes,
    .cols[TN_FORWARD_COLS] = data_norm_forward_cols,
    .forward = norm_forward,
    .cols[TN_FORWARD_PART] = moments_part,
    .cols[TN_BACKWARD_COLS] = data_norm_backward_cols,
    .backward = norm_backward,
    .norm.running = data_running,
    .flops_each = 8,
    .example = {.cols = 5, .attr = &(const tn_data_norm_attr){1e-5, 1e6}},
};

/* ---- zscore ---- */

static const tn_field zscore_attrs[] = {
    TN_FIELD_F64(tn_zscore_attr, freeze_rows, "1e6", 0, 1e15, "rows", "rows that are added"),
    TN_FIELD_END,
};

static tn_wide add_rows(const tn_node *x, uint32_t col, tn_wide w, double freeze_rows)
{
    const size_t end = (size_t)x->shape.rows * x->stride;
    for (size_t i = col; i < end && w.n < freeze_rows; i += x->stride) {
        double value = (double)x->val[i];
        double d = value - w.mean;
        w.n += 1;
        w.mean += d / w.n;
        w.m2 += d * (value - w.mean);
    }
    return w;
}

/* Brings the rows of this batch that are added: those before the freeze_rows-th of all peers. */
static void zscore_forward_part(tn_node *y, tn_range cols)
{
    const double freeze = ((const tn_zscore_attr *)y->attr)->freeze_rows;
    const double before = (double)tn_info(y)->first_row;
    for (uint32_t c = cols.from; c < cols.to; c++) {
        const tn_wide past = tn_wide_get(y->in[1]->val, y->shape.cols, c);
        const tn_wide w = add_rows(y->in[0], c, (tn_wide){0}, freeze - past.n - before);
        tn_part_put(y, c, w.n, w.mean, w.m2);
    }
}

/* Returns the state after the batch. */
static tn_wide added(const tn_node *y, uint32_t col, tn_wide past, double freeze_rows)
{
    return tn_parts_of(y)->all != NULL ? merge(past, joint_moments(y, col))
                                       : add_rows(y->in[0], col, past, freeze_rows);
}

static tn_real zscore_by(tn_wide w)
{
    return w.n > 0 ? (tn_real)(1 / fmax(sqrt(w.m2 / w.n), 1e-12)) : 0;
}

static void zscore_running(const tn_node *y, tn_range cols, tn_real *mean, tn_real *rstd)
{
    for (uint32_t c = cols.from; c < cols.to; c++) {
        const tn_wide w = tn_wide_get(y->in[1]->val, y->shape.cols, c);
        mean[c] = (tn_real)w.mean;
        rstd[c] = zscore_by(w);
    }
}

static void zscore_forward_cols(tn_node *y, tn_range cols)
{
    const tn_node *sums = y->in[1];
    norm_state s = state_of(y);
    double freeze = ((const tn_zscore_attr *)y->attr)->freeze_rows;
    for (uint32_t c = cols.from; c < cols.to; c++) {
        const tn_wide past = tn_wide_get(sums->val, y->shape.cols, c);
        s.mean[c] = (tn_real)past.mean;
        s.rstd[c] = zscore_by(past);
        if (tn_moves(y)) {
            tn_wide_put(sums->grad, y->shape.cols, c, added(y, c, past, freeze));
        }
    }
}

static void zscore_forward(tn_node *y, tn_range rows)
{
    norm_state s = state_of(y);
    for (size_t r = rows.from; r < rows.to; r++) {
        const tn_real *x = tn_val_row(y->in[0], r);
        for (uint32_t c = 0; c < y->shape.cols; c++) {
            tn_val_row(y, r)[c] = (x[c] - s.mean[c]) * s.rstd[c];
        }
    }
}

static const char *const zscore_params[] = {"sums", NULL};

const tn_op tn_op_zscore = {
    .name = "zscore",
    .formula = "y = (x - mean) / max(s, 1e-12), over the rows before the batch",
    .n_in = 1,
    .params = zscore_params,
    TN_OP_ATTRS(zscore_attrs, tn_zscore_attr),
    .norm.n_states = 1,
    .norm.state_rows = 6,
    .shape = tn_same_shape,
    .state_bytes = norm_state_bytes,
    .cols[TN_FORWARD_PART] = zscore_forward_part,
    .cols[TN_FORWARD_COLS] = zscore_forward_cols,
    .forward = zscore_forward,
    .norm.running = zscore_running,
    .example = {.cols = 3, .attr = &(const tn_zscore_attr){1e6}},
};
