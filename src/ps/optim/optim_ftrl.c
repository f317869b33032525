/* optim_ftrl.c - FTRL-proximal (McMahan 2013, algorithm 1), per coordinate.
 *
 *   s = (sqrt(n + g^2) - sqrt(n)) / alpha,  z += g - s w,  n += g^2
 *   w = 0 if |z| <= l1, else -(z - sign(z) l1) / ((beta + sqrt(n)) / alpha + l2)
 *
 * The difference of roots is 0 in float at n = 1e6, g = .01, so s is computed as
 * g^2 / (alpha (sqrt(n + g^2) + sqrt(n))). Fresh weights that are not 0 are kept by a warm start:
 * n = 0, z = -w (beta / alpha + l2) - sign(w) l1. With beta = l2 = 0 a gradient whose square is 0
 * in float moves z and leaves w.
 *
 * group_ftrl zeroes whole rows (Yue 2021); z and n as above, s_i = soft(z_i, l1), d weights in the
 * row:
 *
 *   |s| <= l21 sqrt(d): the row is 0
 *   else w_i = -(1 - l21 sqrt(d) / |s|) s_i / ((beta + sqrt(n_i)) / alpha + l2)
 *
 * With `rowwise` all weights of a row share n += mean of g_j^2, and w is the exact minimiser.
 */
#include "base/core/compiler.h"
#include "base/keys/record.h"
#include "config/field.h"
#include "ps/optim/optim.h"

#include <math.h>

typedef struct ftrl_opts {
    tn_rule_opts rule;
    double alpha, beta;
} ftrl_opts;

enum { STATE_Z, STATE_N };

typedef struct factors {
    float alpha, beta, l1, l2;
} factors;

static factors factors_of(const tn_rule_opts *o, double alpha, double beta)
{
    return (factors){(float)alpha, (float)beta, (float)o->l1, (float)o->l2};
}

TN_DESCENT_ONE(ftrl, factors)
{
    const factors c = *rates;
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        float square = g[i] * g[i];
        float root = sqrtf(b[i] + square);
        float roots = c.alpha * (root + sqrtf(b[i]));
        float s = roots > 0 ? square / roots : 0;
        float zi = a[i] + (g[i] - s * w[i]);
        float shrunk = zi - copysignf(c.l1, zi);
        float rate = (c.beta + root) / c.alpha + c.l2;
        float next = -shrunk / rate;
        a[i] = zi;
        b[i] += square;
        next = fabsf(zi) <= c.l1 ? 0 : next;
        w[i] = rate > 0 ? next : w[i];
    }
}

static factors ftrl_rates(const void *opts, const tn_update *u)
{
    (void)u; /* alpha is no learning rate: schedules do not reach it */
    const ftrl_opts *o = opts;
    return factors_of(&o->rule, o->alpha, o->beta);
}

TN_DESCENT_UPDATES(ftrl, factors)

static void ftrl_init(const void *opts, size_t n, const float *w, float *const state[])
{
    const ftrl_opts *o = opts;
    factors c = factors_of(&o->rule, o->alpha, o->beta);
    for (size_t i = 0; i < n; i++) {
        float z = -w[i] * (c.beta / c.alpha + c.l2) - copysignf(c.l1, w[i]);
        state[STATE_Z][i] = w[i] != 0 ? z : 0;
        state[STATE_N][i] = 0;
    }
}

static const tn_field ftrl_fields[] = {
    TN_FIELD_F64(ftrl_opts, alpha, "0.05", 1e-9, 1e6, "", "size of the steps"),
    TN_FIELD_F64(ftrl_opts, beta, "1", 0, 1e6, "", "damps the first steps"),
    TN_RULE_L1,
    TN_RULE_L2,
    TN_RULE_CHAIN,
    TN_FIELD_END,
};

const tn_optim tn_optim_ftrl = {
    TN_OPTIM_MEMBERS(ftrl, "follow the regularised leader, sparse weights (McMahan 2013)"),
    TN_OPTIM_UPDATES(ftrl),
    .own_l2 = true,
    .state = {[STATE_Z] = {.name = "z"}, [STATE_N] = {.name = "n"}},
    .init = ftrl_init,
};

/* ---- group_ftrl ---- */

typedef struct group_ftrl_opts {
    tn_rule_opts rule;
    double alpha, beta, l21;
    bool rowwise;
} group_ftrl_opts;

typedef struct group_rates {
    factors c;
    double l21;
    bool rowwise;
} group_rates;

/* A weight before its row's norm is known. */
typedef struct gathered {
    float z, soft, rate;
} gathered;

/* z += g - s w for a sum n that grows by `square`, and soft(z, l1). */
static inline gathered gather(const factors *c, float z, float w, float g, float n, float square)
{
    const float root = sqrtf(n + square);
    const float roots = c->alpha * (root + sqrtf(n));
    const float s = roots > 0 ? square / roots : 0;
    const float next = z + (g - s * w);
    const float shrunk = next - copysignf(c->l1, next);
    const float rate = (c->beta + root) / c->alpha + c->l2;
    return (gathered){next, fabsf(next) <= c->l1 ? 0 : shrunk, rate};
}

/* The factor of a row of n weights with this squared norm. */
static inline float kept(double norm2, size_t n, double l21)
{
    const double penalty = l21 * sqrt((double)n);
    const double norm = sqrt(norm2);
    const double part = 1 - penalty / norm;
    return (float)(norm > penalty ? part : 0);
}

/* The weight of soft(z, l1); 0 where nothing was learned yet. */
static inline float solved(float soft, float keep, float rate)
{
    const float next = -keep * soft / rate;
    return rate > 0 ? next : 0;
}

typedef struct group_weights {
    float *w, *z, *sum, *rate;
    const float *g;
} group_weights;

/* w := soft(z, l1), with the rates that solve them. */
__attribute__((always_inline)) static inline void gather_all(const size_t n, const group_weights *x,
                                                             const factors *f, const bool rowwise)
{
    const factors c = *f;
    const float before = rowwise ? *x->sum : 0;
    const float mean = rowwise ? (float)(tn_square_sum(n, x->g) / (double)n) : 0;
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        const float square = rowwise ? mean : x->g[i] * x->g[i];
        const float old = rowwise ? before : x->sum[i];
        const gathered y = gather(&c, x->z[i], x->w[i], x->g[i], old, square);
        x->z[i] = y.z;
        x->w[i] = y.soft;
        x->rate[i] = y.rate;
        if (!rowwise) {
            x->sum[i] = old + square;
        }
    }
    if (rowwise) {
        *x->sum = before + mean;
    }
}

TN_DESCENT_ONE(group, group_rates) // NOLINT(readability-non-const-parameter): as of all
{
    float rate[TN_DIM_MAX];
    const group_weights x = {w, a, b, rate, g};
    if (rates->rowwise) {
        gather_all(n, &x, &rates->c, true);
    } else {
        gather_all(n, &x, &rates->c, false);
    }
    const float keep = kept(tn_square_sum(n, w), n, rates->l21);
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        w[i] = solved(w[i], keep, rate[i]);
    }
}

TN_HOT static void group_descend(size_t n, float *w, float *const state[], const float *g,
                                 const group_rates *rates)
{
    group_one(n, w, state[STATE_Z], state[STATE_N], g, rates);
}

/* Rows of one weight each, whose norm is its size. */
static inline void group_column(const tn_row_run *rows, const group_rates *rates)
{
    tn_column x;
    float rate[TN_ROWS_MAX];
    tn_column_read(rows, &x);
    gather_all(rows->n, &(group_weights){x.w, x.a, x.b, rate, x.g}, &rates->c, false);
#pragma omp simd
    for (uint32_t i = 0; i < rows->n; i++) {
        const float keep = kept((double)x.w[i] * (double)x.w[i], 1, rates->l21);
        x.w[i] = solved(x.w[i], keep, rate[i]);
    }
    tn_column_write(rows, &x);
}

__attribute__((always_inline)) static inline void
group_together(const tn_row_run *rows, const group_rates *rates, const uint32_t dim)
{
    if (dim == 1) {
        group_column(rows, rates);
        return;
    }
    for (uint32_t i = 0; i < rows->n; i++) {
        float *w = rows->w[i];
        group_one(dim, w, w + rows->state[STATE_Z], w + rows->state[STATE_N], rows->grad[i], rates);
    }
}

TN_HOT static void group_rows(const tn_row_run *rows, const group_rates *rates)
{
    TN_UNROLLED(group_together, rows->dim, rows, rates);
}

static uint32_t group_ftrl_states(const void *opts, tn_state out[TN_STATES_MAX])
{
    const group_ftrl_opts *o = opts;
    out[STATE_Z] = (tn_state){.name = "z"};
    out[STATE_N] = (tn_state){.name = "n", .per_row = o->rowwise};
    return 2;
}

/* The warm start solves the rule for z: |w| + penalty scales soft(z), n = 0. */
static void group_ftrl_init(const void *opts, size_t n, const float *w, float *const state[])
{
    const group_ftrl_opts *o = opts;
    double rate = o->beta / o->alpha + o->rule.l2;
    double norm = sqrt(tn_square_sum(n, w));
    double group = norm > 0 ? o->l21 * sqrt((double)n) / norm : 0;
    for (size_t i = 0; i < n; i++) {
        double wi = (double)w[i];
        double z = -wi * (rate + group) - copysign(o->rule.l1, wi);
        state[STATE_Z][i] = wi != 0 ? (float)z : 0;
    }
    for (size_t i = 0; i < (o->rowwise ? 1 : n); i++) {
        state[STATE_N][i] = 0;
    }
}

static group_rates group_rates_of(const group_ftrl_opts *o)
{
    return (group_rates){factors_of(&o->rule, o->alpha, o->beta), o->l21, o->rowwise};
}

static void group_ftrl_update(const void *opts, const tn_update *u, size_t n, float *w,
                              float *const state[], const float *g)
{
    (void)u;
    const group_rates rates = group_rates_of(opts);
    group_descend(n, w, state, g, &rates);
}

static void group_ftrl_update_rows(const void *opts, const tn_update *u, const tn_row_run *rows)
{
    (void)u;
    const group_rates rates = group_rates_of(opts);
    group_rows(rows, &rates);
}

static const char *group_ftrl_dense(const void *opts)
{
    (void)opts;
    return "its groups are rows; use ftrl";
}

static const tn_field group_ftrl_fields[] = {
    TN_FIELD_F64(group_ftrl_opts, alpha, "0.05", 1e-9, 1e6, "", "size of the steps"),
    TN_FIELD_F64(group_ftrl_opts, beta, "1", 0, 1e6, "", "damps the first steps"),
    TN_FIELD_F64(group_ftrl_opts, l21, "0", 0, 1e6, "", "penalty of a row's norm"),
    TN_FIELD_BOOL(group_ftrl_opts, rowwise, "false", "one sum of squares per row"),
    TN_RULE_L1,
    TN_RULE_L2,
    TN_RULE_CHAIN,
    TN_FIELD_END,
};

const tn_optim tn_optim_group_ftrl = {
    TN_OPTIM_MEMBERS(group_ftrl, "FTRL that can zero a whole row (Yue 2021)"),
    TN_OPTIM_UPDATES(group_ftrl),
    .own_l2 = true,
    .states = group_ftrl_states,
    .init = group_ftrl_init,
    .dense = group_ftrl_dense,
};
