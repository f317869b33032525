/* op_sequence_pool.c - one value of a row from those of its positions: sequence_softmax,
 * sequence_sum, sequence_pool.
 *
 *   sequence_softmax   y_p  = exp(x_p) / sum_q exp(x_q)          q: the positions of p's row
 *     backward         dx_p += y_p (dy_p - sum_q y_q dy_q)
 *   sequence_sum       y_r  = sum_p a_p h_p
 *     backward         da_p += dy_r h_p,  dh_p += a_p dy_r
 *   sequence_pool      y_r  = sum_p x_p, sum_p x_p / n, max_p x_p, or x_p of the last
 *     backward         dx_p += dy_r times 1, 1 / n, or 1 where p is the first largest, or the last
 *
 * A row without positions gives zeros.
 */
#include "nn/op/sequence.h"

#include "base/core/compiler.h"
#include "config/field.h"
#include "nn/vec/vec.h"
#include "nn/vec/vecmath.h"

/* ---- sequence_softmax ---- */

static tn_shape softmax_shape(const tn_node *y)
{
    const tn_node *x = y->in[0];
    return tn_has_positions(x) && x->shape.cols == 1 ? x->shape : TN_MISFIT;
}

static void softmax_forward(tn_node *y, tn_range rows)
{
    for (size_t r = rows.from; r < rows.to; r++) {
        const tn_range own = tn_positions_of(y, r);
        tn_real most = own.from < own.to ? *tn_val_row(y->in[0], own.from) : 0;
        tn_real sum = 0;
        for (size_t p = own.from; p < own.to; p++) {
            const tn_real x = *tn_val_row(y->in[0], p);
            most = x > most ? x : most;
        }
        for (size_t p = own.from; p < own.to; p++) {
            *tn_val_row(y, p) = tn_exp_of(*tn_val_row(y->in[0], p) - most);
            sum += *tn_val_row(y, p);
        }
        for (size_t p = own.from; p < own.to; p++) {
            *tn_val_row(y, p) /= sum;
        }
    }
}

static void softmax_backward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    for (size_t r = rows.from; r < rows.to && x->grad != NULL; r++) {
        const tn_range own = tn_positions_of(y, r);
        tn_real sum = 0;
        for (size_t p = own.from; p < own.to; p++) {
            sum += *tn_val_row(y, p) * *tn_grad_row(y, p);
        }
        for (size_t p = own.from; p < own.to; p++) {
            *tn_grad_row_to_add(y, x, p) += *tn_val_row(y, p) * (*tn_grad_row(y, p) - sum);
        }
    }
}

static tn_node *softmax_example(tn_graph *g)
{
    return tn_apply(g, &tn_op_sequence_softmax, NULL, TN_IN(tn_sequence_leaf(g, 1, 0)), NULL);
}

const tn_op tn_op_sequence_softmax = {
    TN_OP_MEMBERS(sequence_softmax, softmax),
    .formula = "y_p = exp(x_p) / sum of exp(x_q) over the row of p",
    .n_in = 1,
    .positions = tn_positions_of_first,
    .by_row = true,
    .shape = softmax_shape,
    .flops_each = 8,
    .example = {.build = softmax_example},
};

/* ---- sequence_sum ---- */

enum { A, H };

static tn_shape sum_shape(const tn_node *y)
{
    const tn_node *a = y->in[A];
    const tn_node *h = y->in[H];
    const bool fits = tn_has_positions(h) && tn_same_rows(a, h) && a->shape.cols == 1;
    return fits ? (tn_shape){tn_max_rows(y), h->shape.cols} : TN_MISFIT;
}

/* y += sum of a_p h_p; the weights are `a_stride` apart. */
TN_HOT static void sum_history(const tn_history_area *area, const tn_real *restrict a,
                               size_t a_stride, tn_real *restrict y)
{
    for (size_t p = 0; p < area->len; p++) {
        const tn_real *restrict h = area->h + p * area->h_stride;
        const tn_real by = a[p * a_stride];
        for (size_t c = 0; c < area->n; c++) {
            y[c] += by * h[c];
        }
    }
}

static tn_history_area area_of(const tn_node *y, tn_range own)
{
    const tn_node *h = y->in[H];
    return (tn_history_area){.len = own.to - own.from,
                             .n = y->shape.cols,
                             .h = tn_val_row(h, own.from),
                             .h_stride = h->stride,
                             .dh = h->grad != NULL ? tn_grad_row(h, own.from) : NULL,
                             .dh_stride = h->stride,
                             .add = tn_adds(y, h)};
}

static void sum_forward(tn_node *y, tn_range rows)
{
    const tn_node *a = y->in[A];
    for (size_t r = rows.from; r < rows.to; r++) {
        const tn_range own = tn_positions_of(y->in[H], r);
        const tn_history_area area = area_of(y, own);
        tn_clear(tn_val_row(y, r), y->shape.cols);
        sum_history(&area, tn_val_row(a, own.from), a->stride, tn_val_row(y, r));
    }
}

/* dh_p (+)= a_p dy */
TN_HOT static void spread_back(const tn_history_area *area, const tn_real *restrict a,
                               size_t a_stride, const tn_real *restrict dy)
{
    for (size_t p = 0; p < area->len; p++) {
        tn_real *restrict dh = area->dh + p * area->dh_stride;
        const tn_real by = a[p * a_stride];
        for (size_t c = 0; c < area->n; c++) {
            dh[c] = (area->add ? dh[c] : 0) + by * dy[c];
        }
    }
}

/* da_p += dy h_p */
TN_HOT static void weights_back(const tn_history_area *area, const tn_real *restrict dy,
                                tn_real *restrict da, size_t da_stride)
{
    for (size_t p = 0; p < area->len; p++) {
        const tn_real *restrict h = area->h + p * area->h_stride;
        tn_real sum = 0;
        tn_history_ahead(area, p);
#pragma omp simd reduction(+ : sum)
        for (size_t c = 0; c < area->n; c++) {
            sum += dy[c] * h[c];
        }
        da[p * da_stride] += sum;
    }
}

static void sum_backward(tn_node *y, tn_range rows)
{
    const tn_node *a = y->in[A];
    for (size_t r = rows.from; r < rows.to; r++) {
        const tn_range own = tn_positions_of(y->in[H], r);
        const tn_history_area area = area_of(y, own);
        for (size_t p = own.from; p < own.to && a->grad != NULL; p++) {
            (void)tn_grad_row_to_add(y, a, p);
        }
        if (a->grad != NULL) {
            weights_back(&area, tn_grad_row(y, r), tn_grad_row(a, own.from), a->stride);
        }
        if (area.dh != NULL) {
            spread_back(&area, tn_val_row(a, own.from), a->stride, tn_grad_row(y, r));
        }
    }
}

static tn_node *sum_example(tn_graph *g)
{
    return tn_apply(g, &tn_op_sequence_sum, NULL,
                    TN_IN(tn_sequence_leaf(g, 1, 0), tn_sequence_leaf(g, 4, 0)), NULL);
}

static double sum_flops(const tn_node *y)
{
    return 2.0 * y->in[H]->shape.rows * y->shape.cols;
}

const tn_op tn_op_sequence_sum = {
    TN_OP_MEMBERS(sequence_sum, sum),
    .formula = "y = sum of a_p h_p over the positions of the row",
    .n_in = 2,
    .positions = tn_positions_none,
    .by_row = true,
    .shape = sum_shape,
    .flops = sum_flops,
    .example = {.build = sum_example},
};

/* ---- sequence_pool ---- */

const char *const tn_sequence_pool_words[] = {"sum", "mean", "max", "last", NULL};

static const tn_field pool_attrs[] = {
    TN_FIELD_CHOICE(tn_sequence_pool_attr, kind, "mean", tn_sequence_pool_words,
                    "sum, mean or the largest of the positions, or the last one"),
    TN_FIELD_END,
};

static uint32_t kind_of(const tn_node *y)
{
    return ((const tn_sequence_pool_attr *)y->attr)->kind;
}

static tn_shape pool_shape(const tn_node *y)
{
    const tn_node *x = y->in[0];
    return tn_has_positions(x) ? (tn_shape){tn_max_rows(y), x->shape.cols} : TN_MISFIT;
}

/* Returns the positions that a sum or mean takes, or the last one. */
static tn_range taken(const tn_node *y, size_t r)
{
    tn_range own = tn_positions_of(y->in[0], r);
    if (kind_of(y) == TN_SEQUENCE_LAST && own.to > own.from) {
        own.from = own.to - 1;
    }
    return own;
}

static tn_real factor_of(const tn_node *y, tn_range own)
{
    return kind_of(y) == TN_SEQUENCE_MEAN && own.to > own.from ? 1 / (tn_real)(own.to - own.from)
                                                               : 1;
}

static void keep_largest(size_t n, tn_real *restrict y, const tn_real *restrict x)
{
    for (size_t c = 0; c < n; c++) {
        y[c] = x[c] > y[c] ? x[c] : y[c];
    }
}

static void pool_forward(tn_node *y, tn_range rows)
{
    const size_t n = y->shape.cols;
    for (size_t r = rows.from; r < rows.to; r++) {
        const tn_range own = taken(y, r);
        tn_real *out = tn_val_row(y, r);
        tn_clear(out, n);
        for (size_t p = own.from; p < own.to; p++) {
            const tn_real *x = tn_val_row(y->in[0], p);
            if (kind_of(y) == TN_SEQUENCE_MAX && p > own.from) {
                keep_largest(n, out, x);
            } else {
                tn_vec_scale(n, out, x, factor_of(y, own), true);
            }
        }
    }
}

/* Adds the gradient of each column to the first position that has the maximum. */
static void add_to_largest(const tn_node *y, size_t r, tn_range own)
{
    const tn_node *x = y->in[0];
    for (uint32_t c = 0; c < y->shape.cols; c++) {
        size_t p = own.from;
        while (p + 1 < own.to && tn_val_row(x, p)[c] < tn_val_row(y, r)[c]) {
            p++;
        }
        if (p < own.to) {
            tn_grad_row(x, p)[c] += tn_grad_row(y, r)[c];
        }
    }
}

static void pool_backward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    for (size_t r = rows.from; r < rows.to && x->grad != NULL; r++) {
        const tn_range all = tn_positions_of(x, r);
        const tn_range own = taken(y, r);
        for (size_t p = all.from; p < all.to; p++) {
            tn_real *dx = tn_grad_row_to_add(y, x, p);
            if (kind_of(y) != TN_SEQUENCE_MAX && p >= own.from) {
                tn_vec_scale(y->shape.cols, dx, tn_grad_row(y, r), factor_of(y, own), true);
            }
        }
        if (kind_of(y) == TN_SEQUENCE_MAX) {
            add_to_largest(y, r, own);
        }
    }
}

/* All kinds, one after the other. */
static tn_node *pool_example(tn_graph *g)
{
    tn_node *x = tn_sequence_leaf(g, 3, 0);
    tn_node *y = NULL;
    static const uint32_t kinds[] = {TN_SEQUENCE_SUM, TN_SEQUENCE_MEAN, TN_SEQUENCE_LAST,
                                     TN_SEQUENCE_MAX};
    for (uint32_t k = 0; k < 4; k++) {
        x = y == NULL ? x : tn_apply(g, &tn_op_sequence_mul, NULL, TN_IN(x, y), NULL);
        y = tn_apply(g, &tn_op_sequence_pool, NULL, TN_IN(x), &(tn_sequence_pool_attr){kinds[k]});
    }
    return y;
}

const tn_op tn_op_sequence_pool = {
    TN_OP_MEMBERS(sequence_pool, pool),
    TN_OP_ATTRS(pool_attrs, tn_sequence_pool_attr),
    .formula = "y = sum, mean or max of x_p over the positions of the row, or the last x_p",
    .n_in = 1,
    .positions = tn_positions_none,
    .by_row = true,
    .shape = pool_shape,
    .example = {.build = pool_example},
};
