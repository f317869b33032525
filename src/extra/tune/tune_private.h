/* tune_private.h - the state of tnet-tune; for tune.c and tune_run.c alone. */
#pragma once

#include "base/file/file.h"
#include "extra/tune/programs.h"
#include "extra/tune/space.h"
#include "extra/tune/tune.h"

typedef struct tn_metric tn_metric; /* metrics/metrics.h */

enum { TN_HALVING, TN_RANDOM, TN_GRID }; /* tune.method */

/* Section `tune` of a configuration. */
typedef struct tn_tune_section {
    const tn_tree *space;
    const char *goal;
    uint32_t method, trials, eta, parallel;
    uint64_t rows;
    double time;
} tn_tune_section;

extern const tn_field tn_section_tune[];
extern const char *const tn_tune_methods[]; /* the words of tune.method, NULL-terminated */

enum { TN_RUNGS_MAX = 14, TN_LAST_RUNG = TN_RUNGS_MAX };

typedef struct tn_trial {
    tn_strs values;
    uint64_t batch;
    uint32_t reached; /* rungs with a result */
    tn_tune_result result[TN_RUNGS_MAX];
} tn_trial;

/* A program works for a trial: it trains, or judges. */
typedef enum tn_trial_work { TN_NOTHING, TN_TRAINING, TN_JUDGING } tn_trial_work;
typedef struct tn_job {
    uint32_t trial, rung;
    tn_trial_work work;
    bool ended;
} tn_job;

struct tn_tune {
    tn_tune_opts opts;
    tn_setup *setup;
    tn_arena *arena;
    const tn_tune_section *section;
    const tn_metric *metric;
    const char *goal, *task; /* "valid.auc"; task NULL: the model has one */
    tn_space space;
    char dir[TN_PATH_SIZE];
    double rows; /* a whole run learns so many */
    uint32_t rungs, drawn, n, parallel, threads;
    tn_trial *trial[2 * TN_TRIALS_MAX]; /* n: those that were drawn, then those of tn_tune_try */
    tn_tune_journal *journal;
    tn_programs programs;
    tn_job *job; /* by id of a program */
    double until;
};

/* Returns what a trial reached in a rung, or, of TN_LAST_RUNG, in the last one that it came to;
 * NULL: nothing. */
const tn_tune_result *tn_trial_result(const tn_trial *one, uint32_t rung);
bool tn_trial_has_value(const tn_tune_result *r); /* NULL: false */

/* Sorts the numbers of the first n trials by what they reached in a rung, the best first, equals by
 * number; in the arena. */
uint32_t *tn_tune_order(const tn_tune *t, uint32_t n, uint32_t rung);

double tn_rung_share(const tn_tune *t,
                     uint32_t rung); /* a trial learns this part of t->rows in it */

/* Adds a trial, whose configuration it checks. TN_E_CONFIG. */
tn_status tn_tune_add(tn_tune *t, const tn_strs *values, tn_error *err) TN_MUST_USE;
