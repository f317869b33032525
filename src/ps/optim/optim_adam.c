/* optim_adam.c - Adam (Kingma 2015), and AdamW (Loshchilov 2019).
 *
 *   m = b1 m + (1 - b1) g,  v = b2 v + (1 - b2) g^2
 *   w -= lr / (1 - b1^t) * m / (sqrt(v / (1 - b2^t)) + eps)
 *
 * Rows are lazy: only those of the batch move. t is the row's own count of updates (`bias: row`),
 * the global step (PyTorch's SparseAdam) or nothing (TensorNet: the first step is 3.16 lr).
 *
 * AdamW: w *= 1 - lr wd, then Adam; no l2. Rows decay when touched.
 */
#include "config/field.h"
#include "ps/optim/optim.h"

#include <math.h>

typedef struct adam_opts {
    tn_rule_opts rule;
    double beta1, beta2, eps;
    uint32_t bias; /* row global none */
} adam_opts;

enum { BIAS_ROW, BIAS_GLOBAL, BIAS_NONE };
enum { STATE_M, STATE_V, STATE_T };

static const char *const adam_biases[] = {"row", "global", "none", NULL};

typedef struct factors {
    float rate; /* lr / (1 - b1^t) */
    float root; /* 1 / sqrt(1 - b2^t) */
    float keep_m, add_m;
    float keep_v, add_v;
    float eps;
    float shrink; /* of weights, before all else; 1: none */
} factors;

/* 1 - b^t, exactly 1 as soon as b^t is below the last bit of a double. */
static double correction(double b, uint64_t t)
{
    const double below_last_bit = 37; /* e^-37 < 2^-53 */
    if ((double)t * (1 - b) > below_last_bit) {
        return 1;
    }
    double power = 1;
    double square = b;
    for (uint64_t left = t; left != 0; left >>= 1) {
        power = (left & 1) != 0 ? power * square : power;
        square *= square;
    }
    return 1 - power;
}

/* What a thread has computed for the first pair of betas that it met: rows have small counts, the
 * same ones again and again. 0: not yet. */
typedef struct corrections {
    double beta1, beta2;
    double first[512];
    float root[4096];
} corrections;

static void correct(const adam_opts *o, double lr, uint64_t t, factors *f)
{
    static _Thread_local corrections known;
    const uint64_t n_first = sizeof known.first / sizeof *known.first;
    const uint64_t n_root = sizeof known.root / sizeof *known.root;
    if (known.beta2 == 0) {
        known.beta1 = o->beta1;
        known.beta2 = o->beta2;
    }
    const bool same = known.beta1 == o->beta1 && known.beta2 == o->beta2;
    const double first = same && t < n_first ? known.first[t] : 0;
    const float root = same && t < n_root ? known.root[t] : 0;
    const double c1 = first != 0 ? first : correction(o->beta1, t);
    f->rate = (float)(lr / c1);
    f->root = root != 0 ? root : (float)(1 / sqrt(correction(o->beta2, t)));
    if (same && t < n_first) {
        known.first[t] = c1;
    }
    if (same && t < n_root) {
        known.root[t] = f->root;
    }
}

TN_DESCENT_ONE(adam, factors)
{
    const factors c = *rates;
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        a[i] = c.keep_m * a[i] + c.add_m * g[i];
        b[i] = c.keep_v * b[i] + c.add_v * g[i] * g[i];
        w[i] = w[i] * c.shrink - c.rate * a[i] / (sqrtf(b[i]) * c.root + c.eps);
    }
}

TN_HOT static void adam_descend(size_t n, float *w, float *const state[], const float *g,
                                const factors *f)
{
    adam_one(n, w, state[STATE_M], state[STATE_V], g, f);
}

/* f: of each row. */
__attribute__((always_inline)) static inline void adam_each(const tn_row_run *rows,
                                                            const factors *f, const uint32_t dim)
{
    for (uint32_t i = 0; i < rows->n; i++) {
        float *w = rows->w[i];
        adam_one(dim, w, w + rows->state[STATE_M], w + rows->state[STATE_V], rows->grad[i], &f[i]);
    }
}

TN_HOT static void adam_rows(const tn_row_run *rows, const factors *f)
{
    TN_UNROLLED(adam_each, rows->dim, rows, f);
}

static uint32_t adam_states(const void *opts, tn_state out[TN_STATES_MAX])
{
    const adam_opts *o = opts;
    out[STATE_M] = (tn_state){.name = "m"};
    out[STATE_V] = (tn_state){.name = "v"};
    out[STATE_T] = (tn_state){.name = "t", .per_row = true, .count = true};
    return o->bias == BIAS_ROW ? STATE_T + 1 : STATE_T;
}

static factors factors_of(const adam_opts *o, double lr, uint64_t t, double wd)
{
    factors f = {
        .rate = (float)lr,
        .root = 1,
        .keep_m = (float)o->beta1,
        .add_m = (float)(1 - o->beta1),
        .keep_v = (float)o->beta2,
        .add_v = (float)(1 - o->beta2),
        .eps = (float)o->eps,
        .shrink = (float)(1 - lr * wd),
    };
    if (o->bias != BIAS_NONE) {
        correct(o, lr, t, &f);
    }
    return f;
}

/* Of all weights that are updated at once. */
static factors factors_at(const adam_opts *o, const tn_update *u, double wd)
{
    return factors_of(o, u->lr, o->bias == BIAS_GLOBAL ? u->step : u->t, wd);
}

static void update_rows(const adam_opts *o, const tn_update *u, double wd, const tn_row_run *rows)
{
    factors f[TN_ROWS_MAX];
    f[0] = factors_at(o, u, wd);
    for (uint32_t i = 0; i < rows->n; i++) {
        f[i] = f[0];
        if (o->bias == BIAS_ROW) {
            correct(o, u->lr, rows->counts[i], &f[i]);
        }
    }
    adam_rows(rows, f);
}

static void adam_update(const void *opts, const tn_update *u, size_t n, float *w,
                        float *const state[], const float *g)
{
    const factors f = factors_at(opts, u, 0);
    adam_descend(n, w, state, g, &f);
}

static void adam_update_rows(const void *opts, const tn_update *u, const tn_row_run *rows)
{
    update_rows(opts, u, 0, rows);
}

/* Rows of the option tables of both. */
#define ADAM_FIELDS                                                                                \
    TN_FIELD_F64(adam_opts, beta1, "0.9", 0, 0.999999, "", "share of the old mean"),               \
        TN_FIELD_F64(adam_opts, beta2, "0.999", 0, 0.9999999, "", "share of the old variance"),    \
        TN_FIELD_F64(adam_opts, eps, "1e-8", 1e-15, 1, "", "added to the root"),                   \
        TN_FIELD_CHOICE(adam_opts, bias, "row", adam_biases,                                       \
                        "count that corrects the first steps of a row: its own, the step, none")

static const tn_field adam_fields[] = {
    TN_RULE_LR("1e-3"),
    ADAM_FIELDS,
    TN_RULE_USUAL,
    TN_FIELD_END,
};

const tn_optim tn_optim_adam = {
    TN_OPTIM_MEMBERS(adam, "steps by running mean and variance (Kingma 2015)"),
    TN_OPTIM_UPDATES(adam),
    .states = adam_states,
};

/* ---- AdamW ---- */

typedef struct adamw_opts {
    adam_opts adam;
    double wd;
} adamw_opts;

static void adamw_update(const void *opts, const tn_update *u, size_t n, float *w,
                         float *const state[], const float *g)
{
    const adamw_opts *o = opts;
    const factors f = factors_at(&o->adam, u, o->wd);
    adam_descend(n, w, state, g, &f);
}

static void adamw_update_rows(const void *opts, const tn_update *u, const tn_row_run *rows)
{
    const adamw_opts *o = opts;
    update_rows(&o->adam, u, o->wd, rows);
}

static const tn_field adamw_fields[] = {
    TN_RULE_LR("1e-3"),
    ADAM_FIELDS,
    TN_FIELD_F64(adamw_opts, wd, "0.01", 0, 1e3, "", "weight decay: w shrinks by lr * wd a step"),
    TN_RULE_L1,
    TN_RULE_CHAIN,
    TN_FIELD_END,
};

const tn_optim tn_optim_adamw = {
    TN_OPTIM_MEMBERS(adamw, "Adam with decoupled weight decay (Loshchilov 2019)"),
    TN_OPTIM_UPDATES(adamw),
    .states = adam_states,
};
