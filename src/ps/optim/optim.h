/* optim.h - the interface of optimizers: one rule for rows of the table and for dense weights.
 *
 * An optimizer is one constant tn_optim_<name>, in an optim_*.c, plus one row in
 * optims.def. The chain around it is the same for all (ps/optim/rule.c), per row segment or tile of
 * the dense vector:
 *
 *   g *= grad_scale;  g /= its norm where grad_normalize says so (rows);  g += l2 * w (not FTRL);
 *   value clip;  row clip (rows);  global clip;
 *   update();  L1 prox (not FTRL);  bounds
 *
 * The tests train every optimizer of the list on rows and on a dense vector. All functions are
 * pure: any thread.
 */
#pragma once

#include "base/core/compiler.h"
#include "config/values.h"
#include "ps/optim/schedule.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TN_ROWS_MAX = 64, TN_STATES_MAX = 4 };

/* One array of state that an optimizer keeps beside the weights. */
typedef struct tn_state {
    const char *name; /* "m", "v", "n", "z", "t" */
    bool per_row;     /* one 4-byte word per row instead of one per weight */
    bool count;       /* an unsigned count of updates (u32) instead of floats; implies per_row */
} tn_state;

/* Arguments of an update beside the weights. */
typedef struct tn_update {
    double lr;     /* resolved rate of this step: base * schedule * plateau */
    uint64_t t;    /* count of updates, this one included: the row's own if it has a count
                      state, else the global step; of the dense vector: its own */
    uint64_t step; /* global step, from 1 */
} tn_update;

/* Segments of rows that are laid out alike. */
typedef struct tn_row_run {
    uint32_t n; /* rows: at most TN_ROWS_MAX */
    uint32_t dim;
    float *const *w;
    const float *const *grad;
    const double *squares;         /* tn_square_sum of each gradient; NULL: not known */
    const uint32_t *counts;        /* t of each row; NULL: of the update */
    uint32_t state[TN_STATES_MAX]; /* array s of row i begins at w[i] + state[s] */
} tn_row_run;

/* Calls f with the length of a row as its last argument: common lengths as constants, so that its
 * loops unroll. */
#define TN_UNROLLED(f, dim, ...)                                                                   \
    ((dim) == 1    ? f(__VA_ARGS__, 1)                                                             \
     : (dim) == 8  ? f(__VA_ARGS__, 8)                                                             \
     : (dim) == 16 ? f(__VA_ARGS__, 16)                                                            \
     : (dim) == 32 ? f(__VA_ARGS__, 32)                                                            \
     : (dim) == 64 ? f(__VA_ARGS__, 64)                                                            \
                   : f(__VA_ARGS__, dim))

/* Every optimizer's options begin with these. */
typedef struct tn_rule_opts {
    double lr;
    double l1, l2;
    uint32_t l2_mode;            /* touched dense */
    uint32_t grad_scale;         /* none show sum */
    bool grad_normalize;         /* rows only */
    double clip_row, clip_value; /* NAN: train.clip */
    double dc;                   /* delay compensation, cluster/async/async_server.c; 0: none */
    tn_f64s bounds;              /* [low, high] or empty */
    tn_variant schedule;         /* read of the dense optimizer; drives rows as well */
} tn_rule_opts;

enum { TN_L2_TOUCHED, TN_L2_DENSE };
enum { TN_SCALE_NONE, TN_SCALE_SHOW, TN_SCALE_SUM };

typedef struct tn_optim {
    tn_choice choice; /* name, help, fields (those of tn_rule_opts that apply, then its own), size,
                       * and impl: this constant itself */
    bool own_l2;      /* FTRL: l1 and l2 act inside the rule only */

    /* Its state arrays: tn_optim_states asks `states` where they depend on options. */
    tn_state state[TN_STATES_MAX + 1]; /* up to one without a name */
    uint32_t (*states)(const void *opts, tn_state out[TN_STATES_MAX]); /* or NULL */

    /* State of fresh weights (FTRL: warm start from w). state[i] has n words, or 1 if per_row.
     * NULL: zeros. */
    void (*init)(const void *opts, size_t n, const float *w, float *const state[]);

    /* One update of n weights that belong together (a row's segment, a tile of the dense vector;
     * rowwise rules are for rows only, see `dense`). g is already scaled, regularised and clipped.
     * A count state is kept by the caller: read u->t. */
    void (*update)(const void *opts, const tn_update *u, size_t n, float *w, float *const state[],
                   const float *g);

    /* update() of every row, faster and with the same bits; NULL: update() is called row by row. */
    void (*update_rows)(const void *opts, const tn_update *u, const tn_row_run *rows);

    /* Decays n weights of a row outside the batch of a step, where l2_mode is dense, in place of
     * an update with g = l2 * w: no state changes. NULL: that update. */
    void (*decay)(const void *opts, const tn_update *u, size_t n, float *w);

    /* Changes options for w on x into those for w' = r w on x / r, which take steps of the same
     * effect; NULL: not known. */
    void (*scale)(void *opts, double r);

    /* NULL, or why these options cannot train dense weights; itself NULL: they always can. */
    const char *(*dense)(const void *opts);
} tn_optim;

/* Rows of one weight each, side by side, so that their roots and quotients are taken at once. */
typedef struct tn_column {
    float w[TN_ROWS_MAX], a[TN_ROWS_MAX], b[TN_ROWS_MAX], g[TN_ROWS_MAX];
} tn_column;

static inline void tn_column_read(const tn_row_run *rows, tn_column *c)
{
    for (uint32_t i = 0; i < rows->n; i++) {
        const float *w = rows->w[i];
        c->w[i] = w[0];
        c->a[i] = w[rows->state[0]];
        c->b[i] = w[rows->state[1]];
        c->g[i] = rows->grad[i][0];
    }
}

/* Writes the weight last: a state that a rule has not got shares its place. */
static inline void tn_column_write(const tn_row_run *rows, const tn_column *c)
{
    for (uint32_t i = 0; i < rows->n; i++) {
        float *w = rows->w[i];
        w[rows->state[1]] = c->b[i];
        w[rows->state[0]] = c->a[i];
        w[0] = c->w[i];
    }
}

/* Two functions from an inline one, rule##_one(n, w, a, b, g, rates), with the first two states:
 * rule##_descend does the same, rule##_rows every row of a run. */
#define TN_DESCENT(rule, rates_type)                                                               \
    __attribute__((always_inline)) static inline void rule##_each(                                 \
        const tn_row_run *rows, const rates_type *rates, const uint32_t dim)                       \
    {                                                                                              \
        if (dim == 1) {                                                                            \
            tn_column c;                                                                           \
            tn_column_read(rows, &c);                                                              \
            rule##_one(rows->n, c.w, c.a, c.b, c.g, rates);                                        \
            tn_column_write(rows, &c);                                                             \
            return;                                                                                \
        }                                                                                          \
        for (uint32_t i = 0; i < rows->n; i++) {                                                   \
            float *w = rows->w[i];                                                                 \
            rule##_one(dim, w, w + rows->state[0], w + rows->state[1], rows->grad[i], rates);      \
        }                                                                                          \
    }                                                                                              \
    TN_HOT static void rule##_rows(const tn_row_run *rows, const rates_type *rates)                \
    {                                                                                              \
        TN_UNROLLED(rule##_each, rows->dim, rows, rates);                                          \
    }                                                                                              \
    TN_HOT static void rule##_descend(size_t n, float *w, float *const state[], const float *g,    \
                                      const rates_type *rates)                                     \
    {                                                                                              \
        rule##_one(n, w, state[0], state[1], g, rates);                                            \
    }

/* And rule##_update and rule##_update_rows, with the rates that rule##_rates(opts, u) gives. */
#define TN_DESCENT_UPDATES(rule, rates_type)                                                       \
    TN_DESCENT(rule, rates_type)                                                                   \
    static void rule##_update(const void *opts, const tn_update *u, size_t n, float *w,            \
                              float *const state[], const float *g)                                \
    {                                                                                              \
        const rates_type rates = rule##_rates(opts, u);                                            \
        rule##_descend(n, w, state, g, &rates);                                                    \
    }                                                                                              \
    static void rule##_update_rows(const void *opts, const tn_update *u, const tn_row_run *rows)   \
    {                                                                                              \
        const rates_type rates = rule##_rates(opts, u);                                            \
        rule##_rows(rows, &rates);                                                                 \
    }

/* How rule##_one is declared. */
#define TN_DESCENT_ONE(rule, rates_type)                                                           \
    __attribute__((always_inline)) static inline void rule##_one(                                  \
        const size_t n, float *restrict w, float *restrict a, float *restrict b,                   \
        const float *restrict g, const rates_type *restrict rates)

/* A sum of squares whose bits do not depend on the instruction set: eight lanes in double, element
 * i in lane i % 8, added in one fixed tree. */
enum { TN_SQUARE_LANES = 8 };

static inline double tn_lanes_sum(const double lane[TN_SQUARE_LANES])
{
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) +
           ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

static inline double tn_square_sum(size_t n, const float *x)
{
    double lane[TN_SQUARE_LANES] = {0};
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
#pragma omp simd
        for (size_t k = 0; k < 8; k++) {
            lane[k] += (double)x[i + k] * (double)x[i + k];
        }
    }
    for (size_t k = 0; i + k < n; k++) {
        lane[k] += (double)x[i + k] * (double)x[i + k];
    }
    return tn_lanes_sum(lane);
}

#define TN_OPTIM(name) extern const tn_optim tn_optim_##name;
#include "ps/optim/optims.def"
#undef TN_OPTIM

extern const tn_optim *const tn_all_optims[];     /* NULL-terminated, in the order of optims.def */
extern const tn_choice *const tn_optim_choices[]; /* &tn_optim_<name>.choice, for option tables */

/* Its state arrays under these options, at most TN_STATES_MAX; and their first values. */
uint32_t tn_optim_states(const tn_optim *optim, const void *opts, tn_state out[TN_STATES_MAX]);
void tn_optim_init(const tn_optim *optim, const void *opts, size_t n, const float *w,
                   float *const state[]);

/* ---- the rows of an option table that are the same for all ----
 *
 *     static const tn_field sgd_fields[] = {
 *         TN_RULE_LR("0.01"), TN_RULE_USUAL, TN_FIELD_END,
 *     };
 *
 * The short form `optimizer: 0.1` sets the first row.
 */

extern const char *const tn_l2_modes[];    /* in the order of TN_L2_* */
extern const char *const tn_grad_scales[]; /* in the order of TN_SCALE_* */

#define TN_RULE_LR(fallback) TN_FIELD_F64(tn_rule_opts, lr, fallback, 0, 1e6, "", "learning rate")
#define TN_RULE_L1                                                                                 \
    TN_FIELD_F64(tn_rule_opts, l1, "0", 0, 1e6, "", "L1 penalty: weights shrink towards 0")
#define TN_RULE_L2                                                                                 \
    TN_FIELD_F64(tn_rule_opts, l2, "0", 0, 1e6, "", "L2 penalty: l2 * w is added to the gradient")
#define TN_RULE_REACH(penalty)                                                                     \
    TN_FIELD_CHOICE(tn_rule_opts, l2_mode, "touched", tn_l2_modes,                                 \
                    "rows that " penalty " reaches: those of the batch, or all at every step")
#define TN_RULE_L2_MODE TN_RULE_REACH("l2")

/* Members of optimizer `id`: its struct id_opts with the table id_fields; and id_update with
 * id_update_rows. */
#define TN_OPTIM_MEMBERS(id, help_)                                                                \
    .choice = {#id, help_, id##_fields, sizeof(id##_opts), &tn_optim_##id}
#define TN_OPTIM_UPDATES(id) .update = id##_update, .update_rows = id##_update_rows

/* Options of the chain around every rule. */
#define TN_RULE_CHAIN                                                                              \
    TN_FIELD_CHOICE(tn_rule_opts, grad_scale, "none", tn_grad_scales,                              \
                    "gradient of a row: as it is, per occurrence, or of the summed loss"),         \
        TN_FIELD_BOOL(tn_rule_opts, grad_normalize, "false",                                       \
                      "gradient of a row divided by its norm, unless that is 1e-5 or less"),       \
        TN_FIELD_F64(tn_rule_opts, clip_row, "~", 0, 1e30, "",                                     \
                     "largest norm of a row's gradient; default: train.clip.row"),                 \
        TN_FIELD_F64(tn_rule_opts, clip_value, "~", 0, 1e30, "",                                   \
                     "largest size of a gradient's entry; default: train.clip.value"),             \
        TN_FIELD_F64S(tn_rule_opts, bounds, "~", -1e30, 1e30,                                      \
                      "lowest and highest value of a weight"),                                     \
        TN_FIELD_F64(tn_rule_opts, dc, "0", 0, 1e6, "",                                            \
                     "delay compensation of late gradients where cluster.staleness is not 0; "     \
                     "0.04 is usual"),                                                             \
        TN_FIELD_VARIANT(tn_rule_opts, schedule, "~", tn_schedule_choices,                         \
                         "learning rate over the steps; the dense optimizer's drives rows too")

#define TN_RULE_USUAL TN_RULE_L1, TN_RULE_L2, TN_RULE_L2_MODE, TN_RULE_CHAIN
