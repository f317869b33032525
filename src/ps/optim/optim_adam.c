/* optim_adam.c - Adam (Kingma 2015), and AdamW (Loshchilov 2019).
 *
 *   m = b1 m + (1 - b1) g,  v = b2 v + (1 - b2) g^2
 *   w -= lr / (1 - b1^t) * m / (sqrt(v / (1 - b2^t)) + eps)
 *
 * Rows are lazy: only those of the batch move. t is the row's own count of updates (`bias: row`),
 * the global step (PyTorch's SparseAdam) or nothing (TensorNet: the first step is 3.16 lr).
 *
 * AdamW: w *= 1 - lr wd, then Adam; no l2. l2_mode says whether rows outside the batch decay; their
 * means and counts stay as they are then.
 */
#include "config/field.h"
#include "ps/optim/optim.h"

#include <math.h>
#include <string.h>

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
    float shrink; /* factor of weights, before all else; 1: none */
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

enum { KNOWN_RATES = 512, KNOWN_ROOTS = 4096 };

/* Keeps what a thread has computed for the first pair of betas that it met, since rows have small
 * counts, the same ones again and again; 0: not yet. */
typedef struct corrections {
    double beta1, beta2;
    double lr; /* the rates' */
    float rate[KNOWN_RATES];
    float root[KNOWN_ROOTS];
} corrections;

/* NULL: of other betas. */
static corrections *corrections_of(const adam_opts *o, double lr)
{
    static _Thread_local corrections known;
    if (known.beta2 == 0) {
        known.beta1 = o->beta1;
        known.beta2 = o->beta2;
    }
    if (known.lr != lr) {
        memset(known.rate, 0, sizeof known.rate);
        known.lr = lr;
    }
    return known.beta1 == o->beta1 && known.beta2 == o->beta2 ? &known : NULL;
}

static void correct(const adam_opts *o, double lr, uint64_t t, float *rate, float *root)
{
    corrections *known = corrections_of(o, lr);
    *root = known != NULL && t < KNOWN_ROOTS ? known->root[t] : 0;
    *root = *root != 0 ? *root : (float)(1 / sqrt(correction(o->beta2, t)));
    *rate = (float)(lr / correction(o->beta1, t));
    if (known != NULL && t < KNOWN_RATES) {
        known->rate[t] = *rate;
    }
    if (known != NULL && t < KNOWN_ROOTS) {
        known->root[t] = *root;
    }
}

/* Makes the rates of n rows with these counts. */
static void correct_rows(const adam_opts *o, double lr, uint32_t n, const uint32_t *counts,
                         float *rate, float *root)
{
    const corrections *known = corrections_of(o, lr);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t t = counts[i];
        if (known != NULL && t < KNOWN_RATES && known->rate[t] != 0) {
            rate[i] = known->rate[t];
            root[i] = known->root[t];
        } else {
            correct(o, lr, t, &rate[i], &root[i]);
        }
    }
}

static inline void adam_weight(const factors *c, float g, float *w, float *m, float *v)
{
    *m = c->keep_m * *m + c->add_m * g;
    *v = c->keep_v * *v + c->add_v * g * g;
    *w = *w * c->shrink - c->rate * *m / (sqrtf(*v) * c->root + c->eps);
}

TN_DESCENT_ONE(adam, factors)
{
    const factors c = *rates;
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        adam_weight(&c, g[i], &w[i], &a[i], &b[i]);
    }
}

TN_HOT static void adam_descend(size_t n, float *w, float *const state[], const float *g,
                                const factors *f)
{
    adam_one(n, w, state[STATE_M], state[STATE_V], g, f);
}

/* Rows whose counts differ: *f but for their rates and roots. */
typedef struct own_factors {
    factors all;
    float rate[TN_ROWS_MAX], root[TN_ROWS_MAX];
} own_factors;

static inline void adam_column(const tn_row_run *rows, const own_factors *f)
{
    tn_column x;
    tn_column_read(rows, &x);
#pragma omp simd
    for (uint32_t i = 0; i < rows->n; i++) {
        factors own = f->all;
        own.rate = f->rate[i];
        own.root = f->root[i];
        adam_weight(&own, x.g[i], &x.w[i], &x.a[i], &x.b[i]);
    }
    tn_column_write(rows, &x);
}

__attribute__((always_inline)) static inline void
adam_each(const tn_row_run *rows, const own_factors *f, const uint32_t dim)
{
    if (dim == 1) {
        adam_column(rows, f);
        return;
    }
    factors own = f->all;
    for (uint32_t i = 0; i < rows->n; i++) {
        float *w = rows->w[i];
        own.rate = f->rate[i];
        own.root = f->root[i];
        adam_one(dim, w, w + rows->state[STATE_M], w + rows->state[STATE_V], rows->grad[i], &own);
    }
}

TN_HOT static void adam_rows(const tn_row_run *rows, const own_factors *f)
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
        correct(o, lr, t, &f.rate, &f.root);
    }
    return f;
}

/* The numbers that all weights of an update share. */
static factors factors_at(const adam_opts *o, const tn_update *u, double wd)
{
    return factors_of(o, u->lr, o->bias == BIAS_GLOBAL ? u->step : u->t, wd);
}

static void update_rows(const adam_opts *o, const tn_update *u, double wd, const tn_row_run *rows)
{
    own_factors f = {.all = factors_at(o, u, wd)};
    if (o->bias == BIAS_ROW) {
        correct_rows(o, u->lr, rows->n, rows->counts, f.rate, f.root);
    }
    for (uint32_t i = 0; i < rows->n && o->bias != BIAS_ROW; i++) {
        f.rate[i] = f.all.rate;
        f.root[i] = f.all.root;
    }
    adam_rows(rows, &f);
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

TN_HOT static void adamw_decay(const void *opts, const tn_update *u, size_t n, float *w)
{
    const adamw_opts *o = opts;
    const float shrink = (float)(1 - u->lr * o->wd);
    for (size_t i = 0; i < n; i++) {
        w[i] *= shrink;
    }
}

static const tn_field adamw_fields[] = {
    TN_RULE_LR("1e-3"),
    ADAM_FIELDS,
    TN_FIELD_F64(adamw_opts, wd, "0.01", 0, 1e3, "", "weight decay: w shrinks by lr * wd a step"),
    TN_RULE_L1,
    TN_RULE_REACH("wd"),
    TN_RULE_CHAIN,
    TN_FIELD_END,
};

const tn_optim tn_optim_adamw = {
    TN_OPTIM_MEMBERS(adamw, "Adam with decoupled weight decay (Loshchilov 2019)"),
    TN_OPTIM_UPDATES(adamw),
    .states = adam_states,
    .decay = adamw_decay,
};
