/* space.h - the values that tnet-tune may give to options, and those of each trial.
 *
 *     tune:
 *       space:
 *         embedding.dim: [8, 16, 32]                        one of a list
 *         train.optimizer.lr: {log: [1e-4, 1e-2]}           a number, its logarithm uniform
 *         model.dropout: {range: [0, 0.5]}                  a number, uniform
 *         train.batch: {int: [512, 8192], log: true}        a whole number
 *
 * A trial's values are texts "key=value", as on the command line of tnet-train. They depend on the
 * seed and on the number of the trial alone. Trial 0 has none: it is the configuration as it is
 * written. Pure; any thread; all that is returned lives in the arena that was given.
 */
#pragma once

#include "config/values.h"

typedef struct tn_text tn_text; /* base/core/text.h */

typedef enum tn_space_kind { TN_RANGE_LIST, TN_RANGE_REAL, TN_RANGE_INT } tn_space_kind;

/* The values of one option. */
typedef struct tn_space_range {
    const char *key; /* "train.optimizer.lr" */
    tn_space_kind kind;
    bool log;
    double low, high; /* REAL, INT: both included */
    tn_strs values;   /* LIST: as YAML on one line */
} tn_space_range;

enum { TN_RANGES_MAX = 64, TN_TRIALS_MAX = 10000 };

typedef struct tn_space {
    uint32_t n;
    tn_space_range range[TN_RANGES_MAX];
} tn_space;

/* Reads the tree of tune.space; faults go to b->diag. */
void tn_space_read(tn_space *out, const tn_tree *tree, const tn_binder *b);

/* Returns how many combinations the lists have, at most TN_TRIALS_MAX + 1; 0 where a range is no
 * list. */
uint32_t tn_space_combinations(const tn_space *s);

/* Returns the values of a trial: drawn by seed and number, or, of a grid, the combination of that
 * number, of which the last key changes first. */
tn_strs tn_space_draw(const tn_space *s, uint64_t seed, uint32_t trial, tn_arena *arena);
tn_strs tn_space_combination(const tn_space *s, uint32_t trial, tn_arena *arena);

/* Appends the space as the search space of `optuna ask`: {"train.optimizer.lr":
 * {"name": "FloatDistribution", "attributes": {..}}}. Source: optuna 4, optuna.distributions. */
void tn_space_json(const tn_space *s, tn_text *out);
