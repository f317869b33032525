/* activations.c - see activations.h: y and y' of every elementwise activation (numerics section 2).
 */
#include "nn/op/activations.h"

#include "base/core/compiler.h"
#include "base/core/error.h"
#include "nn/vec/vec.h"
#include "nn/vec/vecmath.h"

#ifdef TN_REAL_DOUBLE
#define TN_SIMD /* libm's functions do not vectorise */
#else
#define TN_SIMD _Pragma("omp simd")
#endif

/* Two loops per activation; `x`, `y` and `a` may stand in the formulas. */
#define TN_ACT_LOOPS(name, y_of_x, slope_of_it)                                                    \
    TN_HOT static void act_##name##_forward(const tn_act_area *t)                                  \
    {                                                                                              \
        const tn_real a = t->a;                                                                    \
        (void)a;                                                                                   \
        for (size_t r = 0; r < t->rows; r++) {                                                     \
            const tn_real *x_row = t->x + r * t->x_stride;                                         \
            tn_real *y_row = t->y + r * t->y_stride;                                               \
            TN_SIMD for (size_t i = 0; i < t->cols; i++)                                           \
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
            TN_SIMD for (size_t i = 0; i < t->cols; i++)                                           \
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
TN_ACT_LOOPS(relu, x<0 ? 0 : x, y> 0 ? (tn_real)1 : 0)
TN_ACT_LOOPS(leaky, x > 0 ? x : a * x, x > 0 ? (tn_real)1 : a)
TN_ACT_LOOPS(sigmoid, tn_sigmoid_of(x), y *(1 - y))
TN_ACT_LOOPS(tanh, tn_tanh_of(x), 1 - y * y)
TN_ACT_LOOPS(softplus, tn_softplus_of(x), tn_sigmoid_of(x))
TN_ACT_LOOPS(gelu, x / 2 * tn_erfc_of(-x * ROOT_HALF),
             tn_erfc_of(-x *ROOT_HALF) / 2 + x * DENSITY(x))
TN_ACT_LOOPS(gelu_tanh, x / 2 * (1 + tn_tanh_of(TANH_ARGUMENT(x))), gelu_tanh_slope_of(x))
TN_ACT_LOOPS(silu, x *tn_sigmoid_of(x), silu_slope_of(x))

#define TN_ACT(id, loops, reads_y)                                                                 \
    const tn_act tn_act_##id = {.name = #id,                                                       \
                                .by_y = (reads_y),                                                 \
                                .forward = act_##loops##_forward,                                  \
                                .slope = act_##loops##_slope}

TN_ACT(relu, relu, true);
TN_ACT(leaky_relu, leaky, true); /* slope > 0, so y has the sign of x */
TN_ACT(sigmoid, sigmoid, true);
TN_ACT(tanh, tanh, true);
TN_ACT(softplus, softplus, false); /* 1 - e^-y would lose the small ones */
TN_ACT(gelu, gelu, false);
TN_ACT(gelu_tanh, gelu_tanh, false);
TN_ACT(silu, silu, false);

tn_shape tn_same_shape(const tn_node *y)
{
    return y->in[0]->shape;
}

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

void tn_act_forward(tn_node *y, tn_range rows)
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

void tn_act_backward(tn_node *y, tn_range rows)
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
