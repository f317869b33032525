/* report.h - all that a run reports: the bar, lines, records (metrics_jsonl.h), summary.json. */
#pragma once

#include "ps/table/table.h"
#include "train/eval/evaluate.h"
#include "train/report/metrics_jsonl.h"
#include "train/report/window_totals.h"

typedef struct tn_begun tn_begun; /* train/begin/begun.h */
typedef struct tn_memory_cap tn_memory_cap;
typedef struct tn_run_state tn_run_state;
typedef struct tn_run_text tn_run_text;
typedef struct tn_saved tn_saved; /* train/checkpoint/checkpoint.h */
typedef struct tn_watch tn_watch;

/* The outcome of a run. */
typedef struct tn_outcome {
    uint64_t steps, samples;
    double seconds;
    double loss;               /* mean of the last epoch */
    tn_evaluation valid, test; /* metrics NULL when there was none */
} tn_outcome;

void tn_outcome_done(tn_outcome *t);

typedef struct tn_report tn_report;

typedef struct tn_report_opts {
    const tn_model_plan *plan;
    const tn_run_text *text;
    const tn_watch *watch;
    const tn_worker *worker;
    const char *dir;
    const tn_ranks *ranks; /* the others of the run; NULL: none */
    uint64_t run_id;
    const tn_memory_cap *memory;
    const tn_begun *begun;  /* origin of the first weights; its table is empty: there is none */
    tn_run_record_fn *hear; /* gets each record (metrics_jsonl.h); NULL: nobody does */
    void *arg;
} tn_report_opts;

tn_status tn_report_open(tn_report **out, const tn_report_opts *opts, tn_error *err) TN_MUST_USE;
void tn_report_close(tn_report *r); /* NULL is fine */

/* Returns the metrics to which the scores of each step are added, beside the call below; lent. */
tn_metrics *tn_report_scores(tn_report *r);

/* One step. Draws and records when it is time. */
typedef struct tn_report_step {
    tn_window_step window;
    const tn_run_state *state;
    double took_s;     /* alone: the whole step, waiting and metrics included; among peers 0 */
    double epoch_done; /* share of this epoch, 0 .. 1; NAN: not known */
    double done;       /* share of the run, 0 .. 1; NAN: not known */
    tn_reader *reader; /* for counts */
} tn_report_step;
tn_status tn_report_step_done(tn_report *r, const tn_report_step *step, tn_error *err) TN_MUST_USE;

typedef struct tn_report_eval {
    const char *data; /* valid, test */
    const tn_evaluation *result;
    const tn_run_state *state;
    uint64_t step; /* steps of the model, which may be an earlier one than that of state */
    bool best;
} tn_report_eval;
tn_status tn_report_eval_done(tn_report *r, const tn_report_eval *eval, tn_error *err) TN_MUST_USE;
/* A day is learned to its end, in all its epochs. */
typedef struct tn_report_day {
    const char *day; /* 2026-11-07 */
    const tn_run_state *state;
    const tn_metrics *train; /* progressive, of the last epoch */
    const tn_saved *saved;   /* the checkpoint that has it; NULL: none could be written */
    uint32_t epochs;
} tn_report_day;
tn_status tn_report_day_done(tn_report *r, const tn_report_day *day, tn_error *err) TN_MUST_USE;

/* `state` is that of now, perhaps some steps later. People read of one a minute, and of those that
 * they asked for. */
tn_status tn_report_saved(tn_report *r, const tn_saved *saved, const tn_run_state *state,
                          bool asked, tn_error *err) TN_MUST_USE;

/* Rows that left at the end of an epoch or a day: a line for people if there are any, and a `sweep`
 * record. groups: of all ranks. */
typedef struct tn_report_sweep {
    uint32_t day;
    tn_group_rows *groups; /* one per group of the layout */
    uint64_t aged;         /* filters of this rank's partitions that had to age */
    double seconds;
    const tn_run_state *state;
} tn_report_sweep;
tn_status tn_report_swept(tn_report *r, const tn_report_sweep *swept, tn_error *err) TN_MUST_USE;

/* Whether a warning has said that the run diverges. */
bool tn_report_told_diverging(const tn_report *r);

/* A line for people and an `event` record. */
tn_status tn_report_event(tn_report *r, const tn_run_state *state, const char *level,
                          const char *text, tn_error *err) TN_MUST_USE;

/* The window that is open is recorded, the summary written. */
typedef struct tn_report_end {
    const char *status; /* ok stopped failed */
    tn_status result;
    const char *message; /* NULL: none */
    const tn_run_state *state;
    const tn_outcome *trained;
    const tn_met *met;       /* records of epoch `epoch` that this process has read */
    uint32_t epoch;          /* the last epoch */
    const tn_metrics *train; /* progressive, of the last epoch; NULL: none */
    const tn_saved *saved;   /* NULL: none */
    uint64_t reassigned;     /* parts of the data that another rank went on with */
} tn_report_end;
tn_status tn_report_finish(tn_report *r, const tn_report_end *end, tn_error *err) TN_MUST_USE;
