/* op_losses.c - losses of single rows, from the feed's labels. z is the score, y the label.
 *
 *                      l                                      dl / dz
 *     focal            y f(z, a) + (1 - y) f(-z, 1 - a)       y f'(z, a) - (1 - y) f'(-z, 1 - a)
 *       f(m, a)        a q^g sp(-m), q = sigmoid(-m)          -a q^g (g (1 - q) sp(-m) + q)
 *     hinge            max(0, m), m = 1 - s z, s = 2 y - 1    -s [m > 0]
 *     squared_hinge    max(0, m)^2                            -2 s max(0, m)
 *     mse              e^2, e = z - y                         2 e
 *     mae              |e|                                    sign e
 *     huber            e^2 / 2, beyond d: d (|e| - d / 2)     e within +-d
 *
 * Lin 2017 has focal for y of 0 and 1; between them it is the mean of both. q^g is e^(-g sp(m)): no
 * logarithm of a probability anywhere.
 */
#include "config/field.h"
#include "nn/op/ops.h"
#include "nn/vec/vecmath.h"

typedef struct row_loss {
    tn_real l, dz;
} row_loss;

typedef row_loss loss_fn(const tn_loss_attr *a, tn_real z, tn_real y);

static tn_shape loss_shape(const tn_node *l)
{
    return l->in[0]->shape.cols == 1 ? l->in[0]->shape : TN_MISFIT;
}

static inline void losses(tn_node *l, tn_range rows, loss_fn *of)
{
    const tn_real *label = tn_feed_of(l)->label;
    for (size_t r = rows.from; r < rows.to; r++) {
        *tn_val_row(l, r) = label == NULL ? 0 : of(l->attr, *tn_val_row(l->in[0], r), label[r]).l;
    }
}

static inline void slopes(tn_node *l, tn_range rows, loss_fn *of)
{
    const tn_real *label = tn_feed_of(l)->label;
    const tn_node *z = l->in[0];
    TN_ASSERT(label != NULL);
    for (size_t r = rows.from; r < rows.to && z->grad != NULL; r++) {
        tn_real dz = *tn_grad_row(l, r) * of(l->attr, *tn_val_row(z, r), label[r]).dz;
        tn_real *at = tn_grad_row(z, r);
        *at = tn_adds(l, z) ? *at + dz : dz;
    }
}

/* The passes of a function of one row, and the members of its operator. */
#define ROW_PASSES(id)                                                                             \
    static void id##_forward(tn_node *l, tn_range rows)                                            \
    {                                                                                              \
        losses(l, rows, of_##id);                                                                  \
    }                                                                                              \
    static void id##_backward(tn_node *l, tn_range rows)                                           \
    {                                                                                              \
        slopes(l, rows, of_##id);                                                                  \
    }
#define ROW_MEMBERS(id) TN_OP_MEMBERS(id, id), .shape = loss_shape, .n_in = 1, .is_loss = true

/* ---- of classes ---- */

static row_loss focal_side(tn_real gamma, tn_real share, tn_real m)
{
    const tn_real tail = tn_log1p_of(tn_exp_of(-tn_abs_of(m)));
    const tn_real up = (m > 0 ? m : 0) + tail;    /* sp(m) */
    const tn_real down = (m < 0 ? -m : 0) + tail; /* sp(-m) */
    const tn_real factor = share * tn_exp_of(-gamma * up);
    const tn_real slope = gamma * tn_sigmoid_of(m) * down + tn_sigmoid_of(-m);
    return (row_loss){factor * down, -factor * slope};
}

static row_loss of_focal(const tn_loss_attr *a, tn_real z, tn_real y)
{
    const tn_real gamma = (tn_real)a->gamma;
    const row_loss none = {0, 0};
    const row_loss click = y > 0 ? focal_side(gamma, (tn_real)a->alpha, z) : none;
    const row_loss other = y < 1 ? focal_side(gamma, (tn_real)(1 - a->alpha), -z) : none;
    return (row_loss){y * click.l + (1 - y) * other.l, y * click.dz - (1 - y) * other.dz};
}

static row_loss of_hinge(const tn_loss_attr *a, tn_real z, tn_real y)
{
    (void)a;
    const tn_real s = 2 * y - 1;
    const tn_real m = 1 - s * z;
    return m > 0 ? (row_loss){m, -s} : (row_loss){0, 0};
}

static row_loss of_squared_hinge(const tn_loss_attr *a, tn_real z, tn_real y)
{
    const row_loss h = of_hinge(a, z, y);
    return (row_loss){h.l * h.l, 2 * h.l * h.dz};
}

static const tn_field focal_attrs[] = {
    TN_FIELD_F64(tn_loss_attr, gamma, "2", 0, 100, "", "how little rows that are known count"),
    TN_FIELD_F64(tn_loss_attr, alpha, "0.25", 0, 1, "", "share of clicks; 1 - alpha of others"),
    TN_FIELD_END,
};

ROW_PASSES(focal)
const tn_op tn_op_focal = {
    ROW_MEMBERS(focal),
    .example = {.cols = 1, .attr = &(const tn_loss_attr){.gamma = 2, .alpha = 0.25}},
    TN_OP_ATTRS(focal_attrs, tn_loss_attr),
    .formula = "l = a_t (1 - p_t)^g sp(-s z)",
    .flops_each = 90,
};

ROW_PASSES(hinge)
const tn_op tn_op_hinge = {ROW_MEMBERS(hinge), .example = {.cols = 1},
                           .formula = "l = max(0, 1 - s z)", .flops_each = 4};

ROW_PASSES(squared_hinge)
const tn_op tn_op_squared_hinge = {ROW_MEMBERS(squared_hinge), .example = {.cols = 1},
                                   .formula = "l = max(0, 1 - s z)^2", .flops_each = 5};

/* ---- of numbers ---- */

static row_loss of_mse(const tn_loss_attr *a, tn_real z, tn_real y)
{
    (void)a;
    const tn_real e = z - y;
    return (row_loss){e * e, 2 * e};
}

static row_loss of_mae(const tn_loss_attr *a, tn_real z, tn_real y)
{
    (void)a;
    const tn_real e = z - y;
    return (row_loss){tn_abs_of(e), (tn_real)((e > 0) - (e < 0))};
}

static row_loss of_huber(const tn_loss_attr *a, tn_real z, tn_real y)
{
    const tn_real d = (tn_real)a->delta;
    const tn_real e = z - y;
    const tn_real size = tn_abs_of(e);
    return size <= d ? (row_loss){e * e / 2, e} : (row_loss){d * (size - d / 2), e > 0 ? d : -d};
}

static const tn_field huber_attrs[] = {
    TN_FIELD_F64(tn_loss_attr, delta, "1", 1e-9, 1e9, "", "errors beyond it count linearly"),
    TN_FIELD_END,
};

ROW_PASSES(mse)
const tn_op tn_op_mse = {ROW_MEMBERS(mse), .example = {.cols = 1}, .formula = "l = (z - y)^2",
                         .flops_each = 3};

ROW_PASSES(mae)
const tn_op tn_op_mae = {ROW_MEMBERS(mae), .example = {.cols = 1}, .formula = "l = |z - y|",
                         .flops_each = 2};

ROW_PASSES(huber)
const tn_op tn_op_huber = {
    ROW_MEMBERS(huber),
    .example = {.cols = 1, .attr = &(const tn_loss_attr){.delta = 0.5}},
    TN_OP_ATTRS(huber_attrs, tn_loss_attr),
    .formula = "l = (z - y)^2 / 2, linear beyond d",
    .flops_each = 5,
};
