/* generate.h - synthetic clicks whose truth is known.
 *
 * A world is planted by a seed: weights for every id, a bias, a model. Row i of
 * it is a pure function of (seed, i): any order, any thread, any range, always
 * the same example. Its label is a coin thrown with the planted probability
 *
 *     lr     p = sigmoid(bias + sum of weights)
 *     fm     p = sigmoid(bias + sum of weights + pairs of slot vectors, pooled by sum)
 *     deep   p = sigmoid(bias + sum of weights + a hidden layer of tanh over the slot vectors)
 *     attention   p = sigmoid(bias + sum of weights + something similar was clicked lately)
 *
 * so nothing predicts better than p itself, and what p reaches (the Bayes AUC and logloss) is the
 * mark for a trainer. TNet's lr and fm models hold the planted ones exactly. Scales are set so that
 * the logit has the asked standard deviation and the clicks the asked rate.
 *
 * Days: row i is of day i / day_rows, counted from 0. Each day the share `drift` of the ids of each
 * slot leaves for ever, and ids never seen before take over their popularity, with weights of their
 * own: place k of a slot holds on day d its id number
 *
 *     g(k, d) = floor(drift d + u_k)     u_k uniform in [0, 1), by slot and place
 *     id = k + ids g                     below 2^32 where it is written as eight hex digits
 *
 * so an id lives 1 / drift days, and rows of any day can be drawn alone. Words, hours and numbers
 * stay. Scales and bias are those of day 0; the rate of a later day differs with its ids. The
 * oracle knows the weight of an id on the day it appears, what no trainer does: a trainer that
 * learns day by day stays below it by what it has not yet seen of new ids, however many rows it
 * has.
 *
 * Streams (docs/numerics.md section 5, purpose 8): second word what for, third which.
 */
#pragma once

#include "base/core/error.h"
#include "config/values.h"
#include "extra/synth/purchases.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tn_arena tn_arena; /* base/core/arena.h */
typedef struct tn_team tn_team;   /* base/thread/team.h */
typedef struct tn_zipf tn_zipf;   /* extra/synth/zipf.h */

typedef enum tn_gen_model { TN_GEN_LR, TN_GEN_FM, TN_GEN_DEEP, TN_GEN_ATTENTION } tn_gen_model;
typedef enum tn_gen_preset {
    TN_GEN_PLAIN,
    TN_GEN_CRITEO,
    TN_GEN_MOVIES,
    TN_GEN_HISTORIES /* extra/synth/histories.h */
} tn_gen_preset;

typedef struct tn_gen_opts {
    uint32_t preset; /* tn_gen_preset */
    uint32_t model;  /* tn_gen_model */
    uint64_t rows;
    uint64_t first_row;
    uint64_t seed;
    uint32_t slots; /* this and the next five: preset `plain` only */
    uint32_t ids;
    uint32_t multi;
    uint32_t values_max;
    uint32_t numeric;
    double missing;
    double zipf;
    double rate;
    double spread;
    double interaction;
    double buy;       /* share of clicks that are purchases; 0: there are none */
    double selection; /* correlation of the two logits */
    double drift;
    uint64_t day_rows; /* rows of a day; 0: all are of day 0 */
    uint32_t days;     /* so many of rows / days; 0: day_rows says */
    uint32_t dim;
    bool truth;
} tn_gen_opts;

extern const tn_field tn_gen_fields[];
extern const char *const tn_gen_presets[]; /* by tn_gen_preset and tn_gen_model */
extern const char *const tn_gen_models[];

typedef enum tn_gen_kind {
    TN_GEN_ID,     /* sign = first_sign + id */
    TN_GEN_SMALL,  /* the same, type int: hours */
    TN_GEN_HEX,    /* eight hex digits, a bijection of the id */
    TN_GEN_STR,    /* one of `words` */
    TN_GEN_COUNT,  /* a whole number with a heavy tail, used by its ln2 bucket */
    TN_GEN_NUMBER, /* a real, used as it is or by its logarithm */
} tn_gen_kind;

typedef struct tn_gen_slot {
    const char *name;
    uint64_t ids;             /* COUNT: buckets; NUMBER: 0 */
    uint64_t first_sign;      /* ID */
    const char *const *words; /* STR: ids of them */
    double missing;           /* share of rows without any */
    double centre;            /* COUNT: mean of ln v; NUMBER with `log`: likewise */
    double width;             /* its deviation */
    const char *pair; /* a list of a history: the slot that it is paired with; it has no weights */
    tn_gen_kind kind;
    uint32_t values_max; /* 1 .. values_max values in a row */
    int32_t least;       /* COUNT: the smallest value */
    bool log;            /* NUMBER: enters the logit as sign(x) ln(1 + |x|) */
} tn_gen_slot;

/* Whether ids of the slot come and go. */
static inline bool tn_gen_drifts(const tn_gen_slot *slot)
{
    return slot->kind == TN_GEN_ID || slot->kind == TN_GEN_HEX;
}

/* The planted truth. */
typedef struct tn_gen_truth {
    double bias;
    double linear; /* factor of the unit weights */
    double mixed;  /* factor of the pairs, or of the hidden layer; 0 for lr */
    double rate;   /* mean p of the sample that the bias was found on */
} tn_gen_truth;

/* Read-only once it is made. */
typedef struct tn_generator {
    tn_gen_opts opts;
    uint32_t n_slots;
    const tn_gen_slot *slot;
    uint32_t values_max; /* in a row, all slots together */
    uint64_t *weights;   /* n_slots: stream of the slot's weights */
    uint64_t *bought;    /* n_slots: stream of its weights for purchases */
    uint64_t *phases;    /* n_slots: stream of its u_k; what drifts */
    tn_gen_truth truth;
    tn_gen_purchases purchases;
    void (*show)(uint64_t done, uint64_t rows); /* gets how far the rows are; NULL: nobody asks */
    /* for generate.c */
    tn_arena *arena;
    tn_zipf **law;  /* n_slots; NULL for COUNT and NUMBER */
    double *hidden; /* deep: units x (n_slots * dim + 1), the last one outgoing */
} tn_generator;

/* `opts` is copied; opts->day_rows of the copy is what days have made it. TN_E_CONFIG: options that
 * contradict each other. On failure *out is NULL. A copy of *out with another range of rows
 * (first_row, rows) is the same world, as long as *out lives. */
tn_status tn_generator_new(tn_generator **out, const tn_gen_opts *opts, tn_team *team,
                           tn_error *err) TN_MUST_USE;
void tn_generator_free(tn_generator *g); /* NULL is fine */

/* The day of a row. */
uint64_t tn_gen_day(const tn_generator *g, uint64_t index);
/* Ids that a slot has had up to the end of the last row's day: all are below. */
uint64_t tn_gen_ids_ever(const tn_generator *g, uint32_t slot);

/* One example; arrays are the caller's, one row for each thread. */
typedef struct tn_gen_row {
    bool click, buy; /* buy: a purchase, only with a click */
    double logit, p;
    double buy_logit; /* logit of a purchase given a click */
    uint64_t day;
    uint32_t *first; /* n_slots + 1: values of slot s are id[first[s]] .. id[first[s + 1] - 1] */
    uint64_t *id;    /* COUNT: the bucket */
    double *number;  /* n_slots: COUNT and NUMBER; NAN where there is none */
    double *scratch; /* for generate.c */
} tn_gen_row;

tn_status tn_gen_row_init(tn_gen_row *row, const tn_generator *g, tn_error *err) TN_MUST_USE;
void tn_gen_row_done(tn_gen_row *row);
void tn_gen_row_draw(tn_gen_row *row, const tn_generator *g, uint64_t index);
