/* activations.c - elementwise activations: their loops and operators.
 *
 *   relu         y = max(x, 0)                                 y' = x > 0 ? 1 : 0
 *   leaky_relu   y = x > 0 ? x : a x                           y' = x > 0 ? 1 : a
 *   sigmoid      y = 1 / (1 + e^-x)                            y' = y (1 - y)
 *   tanh         y = tanh x                                    y' = 1 - y^2
 *   softplus     y = ln(1 + e^x)                               y' = sigmoid(x)
 *   gelu         y = x Phi(x)                                  y' = Phi(x) + x phi(x)
 *   gelu_tanh    y = x/2 (1 + tanh(sqrt(2/pi) (x + .044715 x^3)))      y' by the product rule
 *   exp          y = e^x, x cut at 88.7                        y' = y
 *   log          y = ln x; 0 and less make no number, which stops the run    y' = 1 / x
 *   square       y = x x                                       y' = 2 x
 *   sqrt         y = sqrt x; below 0 no number, which stops the run     y' = 1 / (2 y); at 0: 0
 *   abs          y = |x|                                       y' = sign x; at 0: 0
 *   silu         y = x sigmoid(x)                              y' = s + x s (1 - s), s = sigmoid(x)
 *
 *   backward     dx += dy y'
 *
 *   prelu        y = x > 0 ? x : a x, a trained per column (He 2015)
 *                dx += dy (x > 0 ? 1 : a),   da += sum_r dy min(x, 0)
 */
#include "base/core/compiler.h"
#include "base/keys/init.h"
#include "config/field.h"
#include "nn/op/ops.h"
#include "nn/vec/vec.h"
#include "nn/vec/vecmath.h"

#include <math.h>

#ifdef TN_REAL_DOUBLE
#define SIMD /* libm's functions do not vectorise */
#define ROOT(x) sqrt(x)
#else
#define SIMD _Pragma("omp simd")
#define ROOT(x) sqrtf(x)
#endif

/* Defines two loops per activation; the formulas may use `x`, `y` and `a`. */
#define ACT_LOOPS(name, y_of_x, slope_of_it)                                                       \
    TN_HOT static void act_##name##_forward(const tn_act_area *t)                                  \
    {                                                                                              \
        const tn_real a = t->a;                                                                    \
        (void)a;                                                                                   \
        for (size_t r = 0; r < t->rows; r++) {                                                     \
            const tn_real *x_row = t->x + r * t->x_stride;                                         \
            tn_real *y_row = t->y + r * t->y_stride;                                               \
            SIMD for (size_t i = 0; i < t->cols; i++)                                              \
            {                                                                                      \
                tn_real x = x_row[i];                                                              \
                y_row[i] = (y_of_x);                                                               \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    TN_HOT static void act_##name##_slope(const tn_act_area *t)                                    \
    {                                                                                              \
        const tn_real a = t->a;                                                                    \
        const tn_real *from = t->x != NULL ? t->x : t->y;                                          \
        const size_t stride = t->x != NULL ? t->x_stride : t->y_stride;                            \
        (void)a;                                                                                   \
        for (size_t r = 0; r < t->rows; r++) {                                                     \
            const tn_real *x_row = from + r * stride;                                              \
            const tn_real *y_row = t->y + r * t->y_stride;                                         \
            tn_real *d_row = t->d + r * t->d_stride;                                               \
            SIMD for (size_t i = 0; i < t->cols; i++)                                              \
            {                                                                                      \
                tn_real x = x_row[i];                                                              \
                tn_real y = y_row[i];                                                              \
                (void)x;                                                                           \
                (void)y;                                                                           \
                d_row[i] *= (slope_of_it);                                                         \
            }                                                                                      \
        }                                                                                          \
    }

/* x/sqrt(2), and the density of the standard normal. */
#define ROOT_HALF ((tn_real)0.70710678118654752440)
#define DENSITY(x) ((tn_real)0.39894228040143267794 * tn_exp_of(-(x) * (x) / 2))

/* sqrt(2/pi) (x + .044715 x^3) */
#define TANH_ARGUMENT(x)                                                                           \
    ((tn_real)0.79788456080286535588 * ((x) + (tn_real)0.044715 * (x) * (x) * (x)))
#define TANH_SLOPE(x) ((tn_real)0.79788456080286535588 * (1 + 3 * (tn_real)0.044715 * (x) * (x)))

static inline tn_real gelu_tanh_slope_of(tn_real x)
{
    tn_real t = tn_tanh_of(TANH_ARGUMENT(x));
    return (1 + t) / 2 + x / 2 * (1 - t * t) * TANH_SLOPE(x);
}

static inline tn_real silu_slope_of(tn_real x)
{
    tn_real s = tn_sigmoid_of(x);
    return s + x * s * (1 - s);
}

/* Asked this way around, what is not a number stays so and is seen in the loss. */
ACT_LOOPS(relu, x<0 ? 0 : x, y> 0 ? (tn_real)1 : 0)
ACT_LOOPS(leaky_relu, x > 0 ? x : a * x, x > 0 ? (tn_real)1 : a)
ACT_LOOPS(sigmoid, tn_sigmoid_of(x), y *(1 - y))
ACT_LOOPS(tanh, tn_tanh_of(x), 1 - y * y)
ACT_LOOPS(softplus, tn_softplus_of(x), tn_sigmoid_of(x)) /* 1 - e^-y would lose the small ones */
ACT_LOOPS(gelu, x / 2 * tn_erfc_of(-x * ROOT_HALF), tn_erfc_of(-x *ROOT_HALF) / 2 + x * DENSITY(x))
ACT_LOOPS(gelu_tanh, x / 2 * (1 + tn_tanh_of(TANH_ARGUMENT(x))), gelu_tanh_slope_of(x))
ACT_LOOPS(silu, x *tn_sigmoid_of(x), silu_slope_of(x))

ACT_LOOPS(exp, tn_exp_of(x), y)
ACT_LOOPS(log, tn_log_of(x), 1 / x)
ACT_LOOPS(square, x *x, 2 * x)
ACT_LOOPS(sqrt, ROOT(x), y > 0 ? 1 / (2 * y) : 0)
ACT_LOOPS(abs, x<0 ? -x : x, x> 0 ? (tn_real)1 : x < 0 ? (tn_real)-1 : 0)

static tn_real slope_of(const tn_node *y)
{
    return y->attr == NULL ? 0 : (tn_real)((const tn_act_attr *)y->attr)->slope;
}

static tn_act_area area_of(const tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    return (tn_act_area){.rows = rows.to - rows.from,
                         .cols = y->shape.cols,
                         .x = tn_val_row(x, rows.from),
                         .y = tn_val_row(y, rows.from),
                         .x_stride = x->stride,
                         .y_stride = y->stride,
                         .a = slope_of(y)};
}

static void act_forward(tn_node *y, tn_range rows)
{
    tn_act_area area = area_of(y, rows);
    y->op->act->forward(&area);
}

enum { CHUNK = 256 };

/* dx += dy y', a piece at a time, since the slope multiplies in place. */
static void add_slope(const tn_node *y, uint32_t r)
{
    tn_real piece[CHUNK];
    tn_act_area row = area_of(y, (tn_range){r, r + 1});
    for (uint32_t c = 0; c < y->shape.cols; c += CHUNK) {
        tn_act_area part = row;
        part.cols = y->shape.cols - c < CHUNK ? y->shape.cols - c : CHUNK;
        part.x += c;
        part.y += c;
        part.d = piece;
        tn_vec_copy(part.cols, piece, tn_grad_row(y, r) + c, false);
        y->op->act->slope(&part);
        tn_vec_copy(part.cols, tn_grad_row(y->in[0], r) + c, piece, true);
    }
}

static void act_backward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    if (x->grad == NULL) {
        return;
    }
    for (uint32_t r = rows.from; r < rows.to; r++) {
        if (tn_adds(y, x)) {
            add_slope(y, r);
        } else {
            tn_vec_copy(y->shape.cols, tn_grad_row(x, r), tn_grad_row(y, r), false);
        }
    }
    if (!tn_adds(y, x)) {
        tn_act_area area = area_of(y, rows);
        area.d = tn_grad_row(x, rows.from);
        area.d_stride = x->stride;
        y->op->act->slope(&area);
    }
}

static const tn_act_attr leaky = {.slope = 0.01}; /* the usual one */

/* Members that the operators have in common. */
#define ACTIVATION_OF(id)                                                                          \
    .name = #id, .n_in = 1, .act = &(const tn_act){act_##id##_forward, act_##id##_slope},          \
    .shape = tn_same_shape, .forward = act_forward, .backward = act_backward
#define ACTIVATION(id) ACTIVATION_OF(id), .example = {.cols = 7, .attr = &leaky}

const tn_op tn_op_relu = {ACTIVATION(relu), .formula = "y = max(x, 0)"};
const tn_op tn_op_sigmoid = {ACTIVATION(sigmoid), .formula = "y = 1 / (1 + e^-x)"};
const tn_op tn_op_tanh = {ACTIVATION(tanh), .formula = "y = tanh x"};
const tn_op tn_op_softplus = {ACTIVATION(softplus), .formula = "y = ln(1 + e^x)"};
const tn_op tn_op_gelu = {ACTIVATION(gelu), .formula = "y = x Phi(x)"};
const tn_op tn_op_gelu_tanh = {
    ACTIVATION(gelu_tanh),
    .formula = "y = x/2 (1 + tanh(sqrt(2/pi) (x + .044715 x^3)))",
};
const tn_op tn_op_silu = {ACTIVATION(silu), .formula = "y = x sigmoid(x)"};

const tn_op tn_op_exp = {ACTIVATION(exp), .formula = "y = e^x"};

const tn_op tn_op_square = {ACTIVATION(square), .formula = "y = x x"};
const tn_op tn_op_abs = {ACTIVATION(abs), .formula = "y = |x|"};

/* Applies it to e^x + 1/2: leaves of examples may be negative. */
static tn_node *of_positive(tn_graph *g, const char *activation)
{
    tn_node *x = tn_activate(g, NULL, tn_input(g, NULL, 7, true), "exp");
    x = tn_apply(g, &tn_op_scale, NULL, TN_IN(x), &(tn_scale_attr){.by = 1, .plus = 0.5});
    return tn_activate(g, NULL, x, activation);
}

static tn_node *log_example(tn_graph *g)
{
    return of_positive(g, "log");
}

static tn_node *sqrt_example(tn_graph *g)
{
    return of_positive(g, "sqrt");
}

const tn_op tn_op_log = {ACTIVATION_OF(log), .formula = "y = ln x",
                         .example = {.build = log_example}};
const tn_op tn_op_sqrt = {ACTIVATION_OF(sqrt), .formula = "y = sqrt x",
                          .example = {.build = sqrt_example}};

/* The slope is positive, so that y has the sign of x: a dense layer keeps y only. */
static const tn_field leaky_relu_attrs[] = {
    TN_FIELD_F64(tn_act_attr, slope, "0.01", 1e-30, 1e6, "", "factor below 0"),
    TN_FIELD_END,
};

const tn_op tn_op_leaky_relu = {
    ACTIVATION(leaky_relu),
    .formula = "y = x > 0 ? x : a x",
    TN_OP_ATTRS(leaky_relu_attrs, tn_act_attr),
};

tn_node *tn_activate(tn_graph *g, const char *name, tn_node *x, const char *activation)
{
    const tn_op *op = tn_op_find(activation);
    if (op == NULL || op->act == NULL) {
        return NULL;
    }
    return tn_apply(g, op, name, &x, 1, &leaky);
}

/* ---- prelu ---- */

TN_HOT static void prelu_forward_row(size_t n, tn_real *restrict y, const tn_real *restrict x,
                                     const tn_real *restrict a)
{
    for (size_t i = 0; i < n; i++) {
        tn_real below = a[i] * x[i];
        y[i] = x[i] > 0 ? x[i] : below;
    }
}

TN_HOT static void prelu_backward_row(size_t n, tn_real *restrict dx, const tn_real *restrict dy,
                                      const tn_real *restrict x, const tn_real *restrict a)
{
    for (size_t i = 0; i < n; i++) {
        tn_real slope = x[i] > 0 ? 1 : a[i];
        dx[i] += dy[i] * slope;
    }
}

TN_HOT static void prelu_slope_row(size_t n, tn_real *restrict da, const tn_real *restrict dy,
                                   const tn_real *restrict x)
{
    for (size_t i = 0; i < n; i++) {
        tn_real below = x[i] > 0 ? 0 : x[i];
        da[i] += dy[i] * below;
    }
}

static void prelu_forward(tn_node *y, tn_range rows)
{
    for (size_t r = rows.from; r < rows.to; r++) {
        prelu_forward_row(y->shape.cols, tn_val_row(y, r), tn_val_row(y->in[0], r), y->in[1]->val);
    }
}

static void prelu_backward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    for (size_t r = rows.from; r < rows.to && x->grad != NULL; r++) {
        prelu_backward_row(y->shape.cols, tn_grad_row_to_add(y, x, r), tn_grad_row(y, r),
                           tn_val_row(x, r), y->in[1]->val);
    }
}

static void prelu_backward_params(tn_node *y, tn_range cols)
{
    const tn_node *x = y->in[0];
    const tn_node *a = y->in[1];
    size_t n = cols.to - cols.from;
    if (a->grad != NULL && !tn_adds(y, a)) {
        tn_clear(a->grad + cols.from, n);
    }
    for (size_t r = 0; r < y->shape.rows && a->grad != NULL; r++) {
        prelu_slope_row(n, a->grad + cols.from, tn_grad_row(y, r) + cols.from,
                        tn_val_row(x, r) + cols.from);
    }
}

static const char *const params[] = {"a", NULL};

const tn_op tn_op_prelu = {
    TN_OP_MEMBERS(prelu, prelu),
    .shape = tn_same_shape,
    .example = {.cols = 5},
    .formula = "y = x > 0 ? x : a x, a trained per column",
    .n_in = 1,
    .params = params,
    .cols[TN_BACKWARD_PARAMS] = prelu_backward_params,
};
