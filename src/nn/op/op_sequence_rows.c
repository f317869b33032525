/* op_sequence_rows.c - positions with a value of their row, and with one for their place in it:
 * sequence_mul, sequence_append, sequence_positions.
 *
 *   sequence_mul        y_p  = h_p t_r                      p: each position of row r
 *     backward          dh_p += dy_p t_r,  dt_r += sum_p dy_p h_p
 *   sequence_append     y    = h_1 .. h_n t                 of each row
 *   sequence_positions  y_p  = x_p + T[k]                   k = 0 for the last of its row, 1 before
 *     backward          dx_p += dy_p,  dT[k] += sum dy_p
 *
 * Positions count from the end: what was clicked last has one vector, however long the history is.
 */
#include "nn/op/sequence.h"

#include "base/core/compiler.h"
#include "base/keys/init.h"
#include "nn/vec/vec.h"

enum { H, T };

static tn_shape pair_shape(const tn_node *y)
{
    const tn_node *h = y->in[H];
    const tn_node *t = y->in[T];
    const bool fits = tn_has_positions(h) && !tn_has_positions(t) && h->shape.cols == t->shape.cols;
    return fits ? (tn_shape){tn_max_rows(y), h->shape.cols} : TN_MISFIT;
}

static tn_node *pair_example(tn_graph *g, const tn_op *op)
{
    return tn_apply(g, op, NULL, TN_IN(tn_sequence_leaf(g, 4, 0), tn_input(g, NULL, 4, true)),
                    NULL);
}

/* ---- sequence_mul ---- */

TN_HOT static void mul_history(const tn_history_area *a, const tn_real *restrict t,
                               tn_real *restrict y, size_t y_stride)
{
    for (size_t p = 0; p < a->len; p++) {
        const tn_real *restrict h = a->h + p * a->h_stride;
        for (size_t c = 0; c < a->n; c++) {
            y[p * y_stride + c] = h[c] * t[c];
        }
    }
}

static void mul_forward(tn_node *y, tn_range rows)
{
    const tn_node *h = y->in[H];
    for (size_t r = rows.from; r < rows.to; r++) {
        const tn_range own = tn_positions_of(y, r);
        const tn_history_area area = {.len = own.to - own.from,
                                      .n = y->shape.cols,
                                      .h = tn_val_row(h, own.from),
                                      .h_stride = h->stride};
        mul_history(&area, tn_val_row(y->in[T], r), tn_val_row(y, own.from), y->stride);
    }
}

/* dh (+)= dy t */
TN_HOT static void mul_history_back(const tn_history_area *a, const tn_real *restrict t)
{
    for (size_t p = 0; p < a->len; p++) {
        const tn_real *restrict dy = a->dy + p * a->dy_stride;
        tn_real *restrict dh = a->dh + p * a->dh_stride;
        for (size_t c = 0; c < a->n; c++) {
            dh[c] = (a->add ? dh[c] : 0) + dy[c] * t[c];
        }
    }
}

/* dt += dy h, of all positions */
TN_HOT static void mul_target_back(const tn_history_area *a, tn_real *restrict dt)
{
    for (size_t p = 0; p < a->len; p++) {
        const tn_real *restrict dy = a->dy + p * a->dy_stride;
        const tn_real *restrict h = a->h + p * a->h_stride;
        for (size_t c = 0; c < a->n; c++) {
            dt[c] += dy[c] * h[c];
        }
    }
}

/* The positions of row r with their gradients. */
static tn_history_area area_of(const tn_node *y, size_t r)
{
    const tn_node *h = y->in[H];
    const tn_range own = tn_positions_of(y, r);
    return (tn_history_area){.len = own.to - own.from,
                             .n = y->shape.cols,
                             .h = tn_val_row(h, own.from),
                             .h_stride = h->stride,
                             .dy = tn_grad_row(y, own.from),
                             .dy_stride = y->stride,
                             .dh = h->grad != NULL ? tn_grad_row(h, own.from) : NULL,
                             .dh_stride = h->stride,
                             .add = tn_adds(y, h)};
}

static void mul_backward(tn_node *y, tn_range rows)
{
    const tn_node *t = y->in[T];
    for (size_t r = rows.from; r < rows.to; r++) {
        const tn_history_area area = area_of(y, r);
        if (t->grad != NULL) {
            mul_target_back(&area, tn_grad_row_to_add(y, t, r));
        }
        if (area.dh != NULL) {
            mul_history_back(&area, tn_val_row(t, r));
        }
    }
}

static tn_node *mul_example(tn_graph *g)
{
    return pair_example(g, &tn_op_sequence_mul);
}

const tn_op tn_op_sequence_mul = {
    TN_OP_MEMBERS(sequence_mul, mul),
    .formula = "y_p = h_p * t of the row of p",
    .n_in = 2,
    .positions = tn_positions_of_first,
    .by_row = true,
    .shape = pair_shape,
    .example = {.build = mul_example},
};

/* ---- sequence_append ---- */

static tn_positions append_positions(const tn_node *y)
{
    tn_positions p = y->in[H]->positions;
    p.extra = 1;
    return p;
}

static tn_shape append_shape(const tn_node *y)
{
    return y->in[H]->positions.extra == 0 ? pair_shape(y) : TN_MISFIT;
}

static void append_forward(tn_node *y, tn_range rows)
{
    for (size_t r = rows.from; r < rows.to; r++) {
        const tn_range from = tn_positions_of(y->in[H], r);
        size_t to = tn_positions_of(y, r).from;
        for (size_t p = from.from; p < from.to; p++, to++) {
            tn_vec_copy(y->shape.cols, tn_val_row(y, to), tn_val_row(y->in[H], p), false);
        }
        tn_vec_copy(y->shape.cols, tn_val_row(y, to), tn_val_row(y->in[T], r), false);
    }
}

static void append_backward(tn_node *y, tn_range rows)
{
    const tn_node *h = y->in[H];
    const tn_node *t = y->in[T];
    for (size_t r = rows.from; r < rows.to; r++) {
        const tn_range to = tn_positions_of(h, r);
        const tn_range from = tn_positions_of(y, r);
        for (size_t p = to.from; p < to.to && h->grad != NULL; p++) {
            tn_vec_copy(y->shape.cols, tn_grad_row(h, p), tn_grad_row(y, from.from + (p - to.from)),
                        tn_adds(y, h));
        }
        if (t->grad != NULL) {
            tn_vec_copy(y->shape.cols, tn_grad_row(t, r), tn_grad_row(y, from.to - (size_t)1),
                        tn_adds(y, t));
        }
    }
}

static tn_node *append_example(tn_graph *g)
{
    return pair_example(g, &tn_op_sequence_append);
}

const tn_op tn_op_sequence_append = {
    TN_OP_MEMBERS(sequence_append, append),
    .formula = "y = h of each position of the row, then t",
    .n_in = 2,
    .positions = append_positions,
    .by_row = true,
    .shape = append_shape,
    .example = {.build = append_example},
};

/* ---- sequence_positions ---- */

enum { X, TABLE };

static tn_shape positions_shape(const tn_node *y)
{
    const tn_node *x = y->in[X];
    const tn_shape table = y->in[TABLE]->shape;
    const bool fits = tn_has_positions(x) && table.cols == x->shape.cols &&
                      table.rows == x->positions.max_len + x->positions.extra;
    return fits ? x->shape : TN_MISFIT;
}

static void positions_forward(tn_node *y, tn_range rows)
{
    const tn_node *table = y->in[TABLE];
    for (size_t r = rows.from; r < rows.to; r++) {
        const tn_range own = tn_positions_of(y, r);
        for (size_t p = own.from; p < own.to; p++) {
            tn_vec_add(y->shape.cols, tn_val_row(y, p), tn_val_row(y->in[X], p),
                       tn_val_row(table, own.to - p - 1));
        }
    }
}

static void positions_backward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[X];
    for (size_t r = rows.from; r < rows.to && x->grad != NULL; r++) {
        const tn_range own = tn_positions_of(y, r);
        for (size_t p = own.from; p < own.to; p++) {
            tn_vec_copy(y->shape.cols, tn_grad_row(x, p), tn_grad_row(y, p), tn_adds(y, x));
        }
    }
}

static void positions_backward_params(tn_node *y, tn_range cols)
{
    const tn_node *table = y->in[TABLE];
    const size_t n = cols.to - cols.from;
    if (table->grad == NULL) {
        return;
    }
    for (size_t k = 0; k < table->shape.rows && !tn_adds(y, table); k++) {
        tn_clear(tn_grad_row(table, k) + cols.from, n);
    }
    for (size_t r = 0; r < tn_feed_of(y)->rows; r++) {
        const tn_range own = tn_positions_of(y, r);
        for (size_t p = own.from; p < own.to; p++) {
            tn_vec_copy(n, tn_grad_row(table, own.to - p - 1) + cols.from,
                        tn_grad_row(y, p) + cols.from, true);
        }
    }
}

static tn_node *positions_example(tn_graph *g)
{
    tn_node *table = tn_param(g, NULL, NULL, (tn_shape){4, 5}, (tn_init){.kind = TN_INIT_CONSTANT});
    return tn_apply(g, &tn_op_sequence_positions, NULL, TN_IN(tn_sequence_leaf(g, 5, 1), table),
                    NULL);
}

static const char *const positions_params[] = {"T", NULL};

const tn_op tn_op_sequence_positions = {
    TN_OP_MEMBERS(sequence_positions, positions),
    .formula = "y_p = x_p + T[k], p the k-th of its row from the end",
    .n_in = 1,
    .params = positions_params,
    .positions = tn_positions_of_first,
    .by_row = true,
    .shape = positions_shape,
    .cols[TN_BACKWARD_PARAMS] = positions_backward_params,
    .example = {.build = positions_example},
};
