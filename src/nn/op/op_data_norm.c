/* op_data_norm.c - columns normalised by all rows that were seen so far: data_norm, and zscore,
 * which transforms inputs. What was seen is a constant to backward. Among peers the batch is the
 * joint one, whose parts are merged in rank order.
 *
 * data_norm: state per column: count n, mean, M2 (sum of squared deviations), in double.
 *
 *   training    rho = min(1, max_count / n);  n = rho n,  M2 = rho M2;  the batch is merged (Chan)
 *   forward     y   = gamma (x - mean) / sqrt(M2 / n + epsilon) + beta        n = 0: x^ = x
 *   backward    dx += gamma dy / sqrt(M2 / n + epsilon)
 *               dgamma += sum dy x^,  dbeta += sum dy
 *
 * It is the past that is scaled down, never the batch: else statistics fade once max_count is
 * reached.
 */
#include "base/keys/init.h"
#include "config/field.h"
#include "nn/graph/peer_column_stats.h"
#include "nn/op/norms.h"

#include <math.h>

static const tn_field data_norm_attrs[] = {
    TN_FIELD_F64(tn_data_norm_attr, epsilon, "1e-5", TN_EPSILON_MIN, 1, "",
                 "added to the variance"),
    TN_FIELD_F64(tn_data_norm_attr, max_count, "1e6", 0, 1e15, "rows", "rows remembered at most"),
    TN_FIELD_END,
};

enum { GAMMA = 1, BETA, SUMS };

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
        norm_piece(y, tn_norm_piece(cols, from));
    }
}

static void data_norm_backward_cols(tn_node *y, tn_range cols)
{
    tn_norm_backward_sums(y, cols, false);
}

static const char *const data_norm_params[] = {"gamma", "beta", "sums", NULL};

const tn_op tn_op_data_norm = {
    .name = "data_norm",
    .formula = "y = gamma (x - mean) / sqrt(M2 / n + epsilon) + beta, over all rows so far",
    .n_in = 1,
    .params = data_norm_params,
    .attrs = data_norm_attrs,
    .attr_size = sizeof(tn_data_norm_attr),
    .n_states = 1,
    .state_rows = 6,
    .shape = tn_same_shape,
    .state_bytes = tn_norm_state_bytes,
    .forward_cols = data_norm_forward_cols,
    .forward = tn_norm_forward,
    .forward_part = tn_moments_part,
    .backward_cols = data_norm_backward_cols,
    .backward = tn_norm_backward,
    .flops_each = 8,
    .example = {5, &(const tn_data_norm_attr){1e-5, 1e6}},
};

/* zscore: numeric columns by the mean and deviation of the rows before this batch.
 *
 *   forward     y = (x - mean) / max(s, 1e-12),  s^2 = M2 / n        n = 0: y = 0
 *   training    afterwards the batch's rows are added in order, until n reaches freeze_rows
 *
 * A transform of the input: it has no backward. Before any row was seen nothing is known of the
 * scale, and 0 is the mean.
 */
static const tn_field zscore_attrs[] = {
    TN_FIELD_F64(tn_zscore_attr, freeze_rows, "1e6", 0, 1e15, "rows", "rows that are added"),
    TN_FIELD_END,
};

static tn_wide add_rows(const tn_node *x, uint32_t col, tn_wide w, double freeze_rows)
{
    for (size_t r = 0; r < x->shape.rows && w.n < freeze_rows; r++) {
        double value = (double)tn_val_row(x, r)[col];
        double d = value - w.mean;
        w.n += 1;
        w.mean += d / w.n;
        w.m2 += d * (value - w.mean);
    }
    return w;
}

/* The rows of this batch that are added: those before the freeze_rows-th of all peers. */
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

/* The state after the batch. */
static tn_wide added(const tn_node *y, uint32_t col, tn_wide past, double freeze_rows)
{
    return tn_parts_of(y)->all != NULL ? tn_wide_merge(past, tn_moments_joint(y, col))
                                       : add_rows(y->in[0], col, past, freeze_rows);
}

static void zscore_forward_cols(tn_node *y, tn_range cols)
{
    const tn_node *sums = y->in[1];
    tn_norm_state s = tn_norm_state_of(y);
    double freeze = ((const tn_zscore_attr *)y->attr)->freeze_rows;
    for (uint32_t c = cols.from; c < cols.to; c++) {
        tn_wide w = tn_wide_get(sums->val, y->shape.cols, c);
        s.mean[c] = (tn_real)w.mean;
        s.rstd[c] = w.n > 0 ? (tn_real)(1 / fmax(sqrt(w.m2 / w.n), 1e-12)) : 0;
        if (tn_moves(y)) {
            tn_wide_put(sums->grad, y->shape.cols, c, added(y, c, w, freeze));
        }
    }
}

static void zscore_forward(tn_node *y, tn_range rows)
{
    tn_norm_state s = tn_norm_state_of(y);
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
    .attrs = zscore_attrs,
    .attr_size = sizeof(tn_zscore_attr),
    .n_states = 1,
    .state_rows = 6,
    .shape = tn_same_shape,
    .state_bytes = tn_norm_state_bytes,
    .forward_part = zscore_forward_part,
    .forward_cols = zscore_forward_cols,
    .forward = zscore_forward,
    .example = {3, &(const tn_zscore_attr){1e6}},
};
