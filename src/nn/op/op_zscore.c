/* op_zscore.c - numeric columns by the mean and deviation of the rows before this batch.
 *
 *   forward     y = (x - mean) / max(s, 1e-12),  s^2 = M2 / n        n = 0: y = 0
 *   training    afterwards the batch's rows are added in order, until n reaches freeze_rows
 *
 * Among peers the rows count in the order of ranks, and the parts are merged in it.
 *
 * A transform of the input: it has no backward. Before any row was seen nothing is known of the
 * scale, and 0 is the mean.
 */
#include "nn/op/norms.h"

#include <math.h>

typedef struct zscore_attr {
    double freeze_rows;
} zscore_attr;

static const tn_field attrs[] = {
    TN_FIELD_F64(zscore_attr, freeze_rows, "1e6", 0, 1e15, "rows", "rows that are added"),
    TN_FIELD_END,
};

static tn_shape zscore_shape(const tn_node *y)
{
    tn_shape x = y->in[0]->shape;
    if (y->in[1]->shape.rows != 6 || y->in[1]->shape.cols != x.cols) {
        return TN_MISFIT;
    }
    return x;
}

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
    const double freeze = ((const zscore_attr *)y->attr)->freeze_rows;
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
    double freeze = ((const zscore_attr *)y->attr)->freeze_rows;
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

static tn_node *zscore_example(tn_graph *g)
{
    tn_node *sums = tn_running(g, NULL, NULL, (tn_shape){6, 3}, 0);
    return tn_zscore(g, NULL, tn_input(g, NULL, 3, false), sums, 1e6);
}

static const char *const params[] = {"sums", NULL};

const tn_op tn_op_zscore = {
    .name = "zscore",
    .formula = "y = (x - mean) / max(s, 1e-12), over the rows before the batch",
    .n_in = 1,
    .params = params,
    .attrs = attrs,
    .attr_size = sizeof(zscore_attr),
    .shape = zscore_shape,
    .state_bytes = tn_norm_state_bytes,
    .forward_part = zscore_forward_part,
    .forward_cols = zscore_forward_cols,
    .forward = zscore_forward,
    .example = zscore_example,
};

tn_node *tn_zscore(tn_graph *g, const char *name, tn_node *x, tn_node *sums, double freeze_rows)
{
    TN_ASSERT(sums->is_state);
    tn_node *in[] = {x, sums};
    return tn_apply(g, &tn_op_zscore, name, in, 2, &(zscore_attr){.freeze_rows = freeze_rows});
}
