/* optim_adam.c - Adam (Kingma 2015).
 *
 *   m = b1 m + (1 - b1) g,  v = b2 v + (1 - b2) g^2
 *   w -= lr / (1 - b1^t) * m / (sqrt(v / (1 - b2^t)) + eps)
 *
 * Rows are lazy: only those of the batch move. t is the row's own count of updates (`bias: row`),
 * the global step (PyTorch's SparseAdam) or nothing (TensorNet: the first step is 3.16 lr).
 */
#include "base/core/compiler.h"
#include "ps/optim/adam.h"

#include <math.h>
#include <string.h>

enum { BIAS_ROW, BIAS_GLOBAL, BIAS_NONE };
enum { STATE_M, STATE_V, STATE_T };

const char *const tn_adam_biases[] = {"row", "global", "none", NULL};

extern const tn_optim tn_optim_adam;

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

uint32_t tn_adam_states(const void *opts, tn_state out[TN_STATES_MAX])
{
    const tn_adam_opts *o = opts;
    out[STATE_M] = (tn_state){.name = "m"};
    out[STATE_V] = (tn_state){.name = "v"};
    out[STATE_T] = (tn_state){.name = "t", .per_row = true, .count = true};
    return o->bias == BIAS_ROW ? STATE_T + 1 : STATE_T;
}

void tn_adam_init(const void *opts, size_t n, const float *w, float *const state[])
{
    (void)opts;
    (void)w;
    memset(state[STATE_M], 0, n * sizeof(float));
    memset(state[STATE_V], 0, n * sizeof(float));
}

void tn_adam_update(const void *opts, const tn_update *u, size_t n, float *w, float *const state[],
                    const float *g)
{
    const tn_adam_opts *o = opts;
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

static const tn_field adam_fields[] = {
    TN_RULE_LR("1e-3"), TN_ADAM_FIELDS, TN_RULE_L1,   TN_RULE_L2,
    TN_RULE_L2_MODE,    TN_RULE_CHAIN,  TN_FIELD_END,
};

const tn_optim tn_optim_adam = {
    .choice = {"adam", "steps by running mean and variance (Kingma 2015)", adam_fields,
               sizeof(tn_adam_opts), &tn_optim_adam},
    .states = tn_adam_states,
    .init = tn_adam_init,
    .update = tn_adam_update,
};
