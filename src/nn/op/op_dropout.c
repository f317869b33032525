/* op_dropout.c - entries set to 0 by chance, the rest scaled up (Srivastava 2014, inverted).
 *
 *   forward     y   = x m,  m = 0 with probability p, else 1 / (1 - p)
 *   backward    dx += dy m
 *
 * The chance is a function of (seed, node's name, step, row in the joint batch, column), so it
 * does not depend on threads or peers; two neighbours share one draw. Identity when not training.
 */
#include "config/field.h"
#include "nn/op/ops.h"

#include "base/core/compiler.h"
#include "base/math/rng.h"
#include "nn/vec/vec.h"

static const tn_field attrs[] = {
    TN_FIELD_F64(tn_dropout_attr, p, "0.5", 0, 0.999999, "", "probability to become 0"),
    TN_FIELD_END,
};

static double p_of(const tn_node *y)
{
    return ((const tn_dropout_attr *)y->attr)->p;
}

/* Returns one byte per entry: kept or not. */
static size_t dropout_state_bytes(const tn_node *y)
{
    return (size_t)tn_max_rows(y) * y->shape.cols;
}

static uint8_t *mask_row(const tn_node *y, size_t r)
{
    return (uint8_t *)y->state + r * y->shape.cols;
}

/* Pairs of entries from the even entry 2 * pair on. */
TN_HOT static void dropout_draw_pairs(size_t n, uint8_t *restrict mask, uint64_t stream,
                                      uint64_t pair, uint32_t limit)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t x = tn_draw(stream, pair + i);
        mask[2 * i] = (uint32_t)x >= limit;
        mask[2 * i + 1] = (uint32_t)(x >> 32) >= limit;
    }
}

static void draw_row(size_t n, uint8_t *mask, uint64_t stream, uint64_t first, uint32_t limit)
{
    if (n > 0 && first % 2 == 1) {
        *mask++ = (uint32_t)(tn_draw(stream, first >> 1) >> 32) >= limit;
        first++;
        n--;
    }
    dropout_draw_pairs(n / 2, mask, stream, first >> 1, limit);
    if (n % 2 == 1) {
        mask[n - 1] = (uint32_t)tn_draw(stream, (first + n - 1) >> 1) >= limit;
    }
}

TN_HOT static void dropout_put_masked(size_t n, tn_real *restrict y, const tn_real *restrict x,
                                      const uint8_t *restrict mask, tn_real scale)
{
    for (size_t i = 0; i < n; i++) {
        y[i] = x[i] * ((tn_real)mask[i] * scale);
    }
}

TN_HOT static void dropout_add_masked(size_t n, tn_real *restrict y, const tn_real *restrict x,
                                      const uint8_t *restrict mask, tn_real scale)
{
    for (size_t i = 0; i < n; i++) {
        y[i] += x[i] * ((tn_real)mask[i] * scale);
    }
}

static void dropout_forward(tn_node *y, tn_range rows)
{
    const tn_step_info *info = tn_info(y);
    uint32_t n = y->shape.cols;
    uint64_t stream = tn_stream3(info->seed, TN_RNG_DROPOUT, tn_name64(y->name), info->step);
    uint32_t limit = (uint32_t)(p_of(y) * 0x1p32);
    for (size_t r = rows.from; r < rows.to; r++) {
        if (!info->training) {
            tn_vec_copy(n, tn_val_row(y, r), tn_val_row(y->in[0], r), false);
            continue;
        }
        draw_row(n, mask_row(y, r), stream, (info->first_row + r) * n, limit);
        dropout_put_masked(n, tn_val_row(y, r), tn_val_row(y->in[0], r), mask_row(y, r),
                           (tn_real)(1 / (1 - p_of(y))));
    }
}

static void dropout_backward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    uint32_t n = y->shape.cols;
    tn_real scale = (tn_real)(1 / (1 - p_of(y)));
    for (size_t r = rows.from; r < rows.to && x->grad != NULL; r++) {
        if (tn_info(y)->training) {
            (tn_adds(y, x) ? dropout_add_masked : dropout_put_masked)(
                n, tn_grad_row(x, r), tn_grad_row(y, r), mask_row(y, r), scale);
        } else {
            tn_vec_copy(n, tn_grad_row(x, r), tn_grad_row(y, r), tn_adds(y, x));
        }
    }
}

const tn_op tn_op_dropout = {
    TN_OP_MEMBERS(dropout, dropout),
    .shape = tn_same_shape,
    .formula = "y = x m, m = 0 with probability p, else 1 / (1 - p)",
    .n_in = 1,
    TN_OP_ATTRS(attrs, tn_dropout_attr),
    .example = {.cols = 7, .attr = &(const tn_dropout_attr){0.3}},
    .state_bytes = dropout_state_bytes,
    .layout.trains_only = true,
};
