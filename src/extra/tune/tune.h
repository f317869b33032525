/* tune.h - which values of options make the better model: trials, rungs, results.
 *
 * A trial is a run of tnet-train with values of its own, in a folder of its own. With `halving`
 * (successive halving; Jamieson and Talwalkar 2016) all trials learn a small share of the rows,
 * the best third goes on to three times as many, and so on, until the last ones learn all:
 *
 *     rung 0   27 trials   1/27 of the rows          eta 3: a third goes on
 *     rung 1    9 trials   1/9
 *     rung 2    3 trials   1/3
 *     rung 3    1 trial    the whole run
 *
 * A trial that goes on resumes its run (tnet-train --pause): it ends with the bits of a run in one
 * go. What is chosen depends on data, configuration and seed, not on how many run side by side.
 *
 *     runs/NAME/tune/journal.jsonl     what was found (tune_journal.h)
 *     runs/NAME/tune/trial-7/          the run of trial 7
 *     runs/NAME/tune/tune.html         a page of all trials
 *
 * One thread, the main one of a program.
 */
#pragma once

#include "extra/tune/tune_journal.h"
#include "train/job/setup.h"

typedef struct tn_text tn_text; /* base/core/text.h */
typedef struct tn_tune tn_tune;

/* One start of tnet-tune. */
typedef struct tn_tune_opts {
    const char *folder;      /* has tnet-train and tnet-eval */
    const char *config;      /* the file of the configuration */
    tn_strs overrides;       /* the words "key=value" after it */
    const char *const *env;  /* as in tn_setup_in */
    bool fresh;              /* begins anew, and keeps an earlier folder as tune-earlier-<n> */
    const atomic_bool *stop; /* ends the trials, which are saved */
} tn_tune_opts;

/* Reads section `tune` of a loaded setup, and checks every trial's configuration. TN_E_CONFIG: see
 * s->diag, or the message. On failure *out is NULL. `s` must outlive it. */
tn_status tn_tune_open(tn_tune **out, tn_setup *s, const tn_tune_opts *o,
                       tn_error *err) TN_MUST_USE;

/* Takes the folder and reads the journal, before all that follows. `reads`: a folder that is not
 * there is not made, and has no results. */
tn_status tn_tune_begin(tn_tune *t, bool reads, tn_error *err) TN_MUST_USE;

/* Runs all trials that the journal has not. TN_E_STOPPED: *stop turned true; the same again goes
 * on. *timed_out: tune.time is over, and some trials are left. Trials that fail are left out. */
tn_status tn_tune_run(tn_tune *t, bool *timed_out, tn_error *err) TN_MUST_USE;

/* Runs one more trial, from its beginning to its end, with the values of a JSON object, as `optuna
 * ask` gives them: {"train.optimizer.lr": 0.003, "embedding.dim": "16"}. */
tn_status tn_tune_try(tn_tune *t, const char *json, double *value, tn_error *err) TN_MUST_USE;

/* Returns the best trial, among those that came furthest; UINT32_MAX: none has a value. */
uint32_t tn_tune_best(const tn_tune *t);
tn_strs tn_tune_values(const tn_tune *t, uint32_t trial); /* "key=value" */
const char *tn_tune_folder(const tn_tune *t, uint32_t trial, tn_text *out);

/* Appends a table of the trials, the best first: goal, share of the rows, values. */
void tn_tune_text(const tn_tune *t, tn_text *out);
/* Writes the same as a page, with a picture of parallel coordinates, to tune.html of the folder. */
tn_status tn_tune_page_write(const tn_tune *t, tn_error *err) TN_MUST_USE;
void tn_tune_space_json(const tn_tune *t, tn_text *out); /* tn_space_json */
void tn_tune_close(tn_tune *t);                          /* NULL is fine */
