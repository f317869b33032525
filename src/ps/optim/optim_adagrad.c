/* optim_adagrad.c - Adagrad (Duchi 2011), per coordinate or with one sum per row, Paddle's, and one
 * whose sums fade.
 *
 *   per coordinate   n += g^2                 w -= lr g / (sqrt(n) + eps)
 *   rowwise          n += mean of g_j^2       the same with the row's n
 *   paddle           w -= lr g sqrt(n0 / (n0 + n)),  then n += g^2 (or the mean); n starts at 0
 *
 * adagrad_decay, for rows: every T steps n = max(rho n, n0), done when the row is next updated: it
 * keeps the number e of decays up to then, and n = max(rho^(floor(step / T) - e) n, n0).
 */
#include "config/field.h"
#include "ps/optim/optim.h"

#include <math.h>

typedef struct adagrad_opts {
    tn_rule_opts rule;
    bool rowwise, paddle;
    double n0, eps;
} adagrad_opts;

typedef struct row_rates {
    float lr, eps;
    float n0; /* 0 but for paddle */
} row_rates;

static double first_sum(const adagrad_opts *o)
{
    const double textbook = 0.1;
    const double paddle = 3;
    if (!isnan(o->n0)) {
        return o->n0;
    }
    return o->paddle ? paddle : textbook;
}

TN_DESCENT_ONE(adagrad_each, row_rates) // NOLINT(readability-non-const-parameter): as of all
{
    const row_rates c = *rates;
    (void)b;
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        a[i] += g[i] * g[i];
        w[i] -= c.lr * g[i] / (sqrtf(a[i]) + c.eps);
    }
}

TN_DESCENT(adagrad_each, row_rates)

TN_DESCENT_ONE(paddle_each, row_rates) // NOLINT(readability-non-const-parameter): as of all
{
    const row_rates c = *rates;
    (void)b;
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        w[i] -= c.lr * g[i] * sqrtf(c.n0 / (c.n0 + a[i]));
        a[i] += g[i] * g[i];
    }
}

TN_DESCENT(paddle_each, row_rates)

__attribute__((always_inline)) static inline void descend(const size_t n, float *restrict w,
                                                          const float *restrict g, float rate)
{
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        w[i] -= rate * g[i];
    }
}

/* One row; paddle's n0 or, as usual, eps. */
static inline void adagrad_one(float *restrict w, float *restrict sum, const float *restrict g,
                               const row_rates *rates, size_t n)
{
    float mean = (float)(tn_square_sum(n, g) / (double)n);
    float next = *sum + mean;
    float rate = rates->n0 > 0 ? rates->lr * sqrtf(rates->n0 / (rates->n0 + *sum))
                               : rates->lr / (sqrtf(next) + rates->eps);
    *sum = next;
    descend(n, w, g, rate);
}

TN_HOT static void adagrad_row(size_t n, float *restrict w, float *restrict sum,
                               const float *restrict g, const row_rates *rates)
{
    TN_UNROLLED(adagrad_one, n, w, sum, g, rates);
}

static inline float mean_square(const tn_row_run *rows, uint32_t i, const uint32_t dim)
{
    const double sum = rows->squares != NULL ? rows->squares[i] : tn_square_sum(dim, rows->grad[i]);
    return (float)(sum / (double)dim);
}

/* Steps of its own for mean squares, rates and weights, so that roots and quotients of many rows
 * are taken at once. The squares of one weight are its square. */
__attribute__((always_inline)) static inline void
adagrad_together(const tn_row_run *rows, const row_rates *rates, const uint32_t dim)
{
    float sum[TN_ROWS_MAX];
    float mean[TN_ROWS_MAX];
    float rate[TN_ROWS_MAX];
    for (uint32_t i = 0; i < rows->n; i++) {
        const float *g = rows->grad[i];
        mean[i] = dim == 1 ? *g * *g : mean_square(rows, i, dim);
        sum[i] = rows->w[i][rows->state[0]];
    }
    if (rates->n0 > 0) {
        for (uint32_t i = 0; i < rows->n; i++) {
            rate[i] = rates->lr * sqrtf(rates->n0 / (rates->n0 + sum[i]));
        }
    } else {
        for (uint32_t i = 0; i < rows->n; i++) {
            rate[i] = rates->lr / (sqrtf(sum[i] + mean[i]) + rates->eps);
        }
    }
    for (uint32_t i = 0; i < rows->n; i++) {
        rows->w[i][rows->state[0]] = sum[i] + mean[i];
        descend(dim, rows->w[i], rows->grad[i], rate[i]);
    }
}

TN_HOT static void adagrad_rows(const tn_row_run *rows, const row_rates *rates)
{
    TN_UNROLLED(adagrad_together, rows->dim, rows, rates);
}

static uint32_t adagrad_states(const void *opts, tn_state out[TN_STATES_MAX])
{
    const adagrad_opts *o = opts;
    out[0] = (tn_state){.name = "n", .per_row = o->rowwise};
    return 1;
}

static void adagrad_init(const void *opts, size_t n, const float *w, float *const state[])
{
    (void)w;
    const adagrad_opts *o = opts;
    float first = o->paddle ? 0 : (float)first_sum(o);
    for (size_t i = 0; i < (o->rowwise ? 1 : n); i++) {
        state[0][i] = first;
    }
}

static row_rates rates_of(const adagrad_opts *o, const tn_update *u)
{
    return (row_rates){(float)u->lr, (float)o->eps, o->paddle ? (float)first_sum(o) : 0};
}

static void adagrad_update(const void *opts, const tn_update *u, size_t n, float *w,
                           float *const state[], const float *g)
{
    const adagrad_opts *o = opts;
    const row_rates rates = rates_of(o, u);
    if (o->rowwise) {
        adagrad_row(n, w, state[0], g, &rates);
    } else {
        (o->paddle ? paddle_each_descend : adagrad_each_descend)(n, w, state, g, &rates);
    }
}

static void adagrad_update_rows(const void *opts, const tn_update *u, const tn_row_run *rows)
{
    const adagrad_opts *o = opts;
    const row_rates rates = rates_of(o, u);
    if (o->rowwise) {
        adagrad_rows(rows, &rates);
    } else {
        (o->paddle ? paddle_each_rows : adagrad_each_rows)(rows, &rates);
    }
}

/* Gradients are r times as large, and weights are to be 1/r of what they were. */
static void adagrad_scale(void *opts, double r)
{
    adagrad_opts *o = opts;
    o->n0 = first_sum(o) * r * r;
    o->rule.lr /= r;
    o->rule.l2 *= r * r;
    o->eps *= r;
}

static const char *adagrad_dense(const void *opts)
{
    const adagrad_opts *o = opts;
    return o->rowwise ? "`rowwise` is for rows; dense weights have a sum each" : NULL;
}

static const tn_field adagrad_fields[] = {
    TN_RULE_LR("0.05"),
    TN_FIELD_BOOL(adagrad_opts, rowwise, "false", "one sum per row: the mean of its squares"),
    TN_FIELD_BOOL(adagrad_opts, paddle, "false", "lr * sqrt(n0 / (n0 + n)), n starts at 0"),
    TN_FIELD_F64(adagrad_opts, n0, "~", 1e-30, 1e30, "", "first sum; default: 0.1, paddle 3"),
    TN_FIELD_F64(adagrad_opts, eps, "1e-8", 0, 1, "", "added to the root of the sum"),
    TN_RULE_USUAL,
    TN_FIELD_END,
};

const tn_optim tn_optim_adagrad = {
    TN_OPTIM_MEMBERS(adagrad, "steps shrink with the sum of squared gradients (Duchi 2011)"),
    TN_OPTIM_UPDATES(adagrad),
    .states = adagrad_states,
    .init = adagrad_init,
    .scale = adagrad_scale,
    .dense = adagrad_dense,
};

/* ---- adagrad_decay ---- */

typedef struct adagrad_decay_opts {
    adagrad_opts adagrad;
    uint64_t every;
    double rho;
} adagrad_decay_opts;

enum { STATE_N, STATE_E };

static uint32_t adagrad_decay_states(const void *opts, tn_state out[TN_STATES_MAX])
{
    (void)adagrad_states(opts, out);
    out[STATE_E] = (tn_state){.name = "e", .per_row = true};
    return STATE_E + 1;
}

/* A fresh row has no sum that could fade below n0, so its count of decays may begin anywhere. */
static void adagrad_decay_init(const void *opts, size_t n, const float *w, float *const state[])
{
    adagrad_init(opts, n, w, state);
    *state[STATE_E] = 0;
}

static double power_of(double base, uint64_t exponent)
{
    double power = 1;
    for (double square = base; exponent != 0 && power > 0; exponent >>= 1) {
        power = (exponent & 1) != 0 ? power * square : power;
        square *= square;
    }
    return power;
}

/* Makes up for the decays of a row's sums since its last update. */
static void decay(const adagrad_decay_opts *o, float now, size_t n, float *sum, float *decays)
{
    const float first = (float)first_sum(&o->adagrad);
    const double keep = power_of(o->rho, (uint64_t)(now - *decays));
    for (size_t i = 0; i < (o->adagrad.rowwise ? 1 : n); i++) {
        const float less = (float)(keep * (double)sum[i]);
        sum[i] = less > first ? less : first;
    }
    *decays = now;
}

/* Decays up to a step; a float counts 16 million of them. */
static float decays_until(const adagrad_decay_opts *o, uint64_t step)
{
    const uint64_t decays = step / o->every;
    return (float)decays;
}

static void adagrad_decay_update(const void *opts, const tn_update *u, size_t n, float *w,
                                 float *const state[], const float *g)
{
    const float now = decays_until(opts, u->step);
    if (*state[STATE_E] < now) {
        decay(opts, now, n, state[STATE_N], state[STATE_E]);
    }
    adagrad_update(opts, u, n, w, state, g);
}

static void adagrad_decay_update_rows(const void *opts, const tn_update *u, const tn_row_run *rows)
{
    const float now = decays_until(opts, u->step);
    for (uint32_t i = 0; i < rows->n; i++) {
        float *w = rows->w[i];
        if (w[rows->state[STATE_E]] < now) {
            decay(opts, now, rows->dim, w + rows->state[STATE_N], w + rows->state[STATE_E]);
        }
    }
    adagrad_update_rows(opts, u, rows);
}

static const char *adagrad_decay_dense(const void *opts)
{
    (void)opts;
    return "sums of rows fade; use adagrad or rmsprop";
}

static const tn_field adagrad_decay_fields[] = {
    TN_RULE_LR("0.05"),
    TN_FIELD_BOOL(adagrad_opts, rowwise, "false", "one sum per row: the mean of its squares"),
    TN_FIELD_F64(adagrad_opts, n0, "0.1", 1e-30, 1e30, "", "first sum, and the least one"),
    TN_FIELD_F64(adagrad_opts, eps, "1e-8", 0, 1, "", "added to the root of the sum"),
    TN_FIELD_U64(adagrad_decay_opts, every, "100000", 1, 1e15, "steps", "steps between two decays"),
    TN_FIELD_F64(adagrad_decay_opts, rho, "0.9", 0, 1, "", "factor of the sums at a decay"),
    TN_RULE_USUAL,
    TN_FIELD_END,
};

const tn_optim tn_optim_adagrad_decay = {
    TN_OPTIM_MEMBERS(adagrad_decay, "Adagrad whose sums shrink every so many steps"),
    TN_OPTIM_UPDATES(adagrad_decay),
    .states = adagrad_decay_states,
    .init = adagrad_decay_init,
    .dense = adagrad_decay_dense,
};
