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
#include "base/core/compiler.h"
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

TN_HOT static void adam_descend(size_t n, float *restrict w, float *restrict m, float *restrict v,
                                const float *restrict g, const factors *restrict f)
{
    factors c = *f;
    for (size_t i = 0; i < n; i++) {
        m[i] = c.keep_m * m[i] + c.add_m * g[i];
        v[i] = c.keep_v * v[i] + c.add_v * g[i] * g[i];
        w[i] -= c.rate * m[i] / (sqrtf(v[i]) * c.root + c.eps);
    }
}

static uint32_t adam_states(const void *opts, tn_state out[TN_STATES_MAX])
{
    const adam_opts *o = opts;
    out[STATE_M] = (tn_state){.name = "m"};
    out[STATE_V] = (tn_state){.name = "v"};
    out[STATE_T] = (tn_state){.name = "t", .per_row = true, .count = true};
    return o->bias == BIAS_ROW ? STATE_T + 1 : STATE_T;
}

static void adam_update(const void *opts, const tn_update *u, size_t n, float *w,
                        float *const state[], const float *g)
{
    const adam_opts *o = opts;
    uint64_t t = o->bias == BIAS_GLOBAL ? u->step : u->t;
    bool none = o->bias == BIAS_NONE;
    double c1 = none ? 1 : correction(o->beta1, t);
    double c2 = none ? 1 : correction(o->beta2, t);
    factors f = {
        .rate = (float)(u->lr / c1),
        .root = (float)(1 / sqrt(c2)),
        .keep_m = (float)o->beta1,
        .add_m = (float)(1 - o->beta1),
        .keep_v = (float)o->beta2,
        .add_v = (float)(1 - o->beta2),
        .eps = (float)o->eps,
    };
    adam_descend(n, w, state[STATE_M], state[STATE_V], g, &f);
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
    .states = adam_states,
};

/* ---- AdamW ---- */

typedef struct adamw_opts {
    adam_opts adam;
    double wd;
} adamw_opts;

TN_HOT static void adamw_scale(size_t n, float *w, float factor)
{
    for (size_t i = 0; i < n; i++) {
        w[i] *= factor;
    }
}

static void adamw_update(const void *opts, const tn_update *u, size_t n, float *w,
                         float *const state[], const float *g)
{
    const adamw_opts *o = opts;
    adamw_scale(n, w, (float)(1 - u->lr * o->wd));
    adam_update(&o->adam, u, n, w, state, g);
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
    .states = adam_states,
};
