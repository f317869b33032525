/* eval_result.h - what an evaluation found, for people and for programs.
 *
 *     tn_eval_result f = {.data = "test", .run = &run, .schema = schema, .result = &evaluation};
 *     tn_eval_result_intervals(&f);                       with eval.auc: exact
 *     TN_TRY(tn_eval_result_text(&f, &text, err));        tables: metrics, then slices
 *     TN_TRY(tn_eval_result_json(&f, &text, err));        one line, members of an `eval` record
 *
 * Pages of it are the rows of train/report/eval_pages.h. Everything is lent.
 */
#pragma once

#include "metrics/intervals.h"
#include "metrics/slices.h"
#include "train/eval/calibrate.h"
#include "train/eval/importance.h"
#include "train/eval/sign_text.h"
#include "train/report/compare_kind.h"
#include "train/report/metrics_jsonl.h"
#include "train/report/text_tables.h"

struct tn_eval_result {
    const char *data; /* test, valid, or the paths that were given */
    const tn_run *run;
    const char *task;            /* one of several; NULL: all that there is */
    const tn_schema *schema;     /* says how values of a slot read */
    const tn_evaluation *result; /* with metrics */
    const char *source;          /* "runs/a/ckpt-3", "export/001f.." */
    const char *journal;         /* metrics.jsonl of its run, which may not be there; NULL: none */
    const char *model_id;        /* an export's; NULL: none */
    const char *config_hash;     /* hash of the configuration; NULL: not known */
    tn_journal_at at;            /* position up to which the model was trained */
    const tn_sign_words *words;  /* words of the slices' hashes; NULL: not looked for */
    bool has_intervals;
    tn_interval delong, bootstrap;   /* intervals of the AUC; NAN: not defined */
    const tn_compare *compare;       /* ended; NULL: one model alone */
    const tn_compare_kind *with;     /* kind of `compare`; NULL: this build has none */
    const char *more;                /* members of the JSON object, after a comma; NULL: none */
    const tn_importance *importance; /* by slot; NULL: not asked for */
    const tn_calibrate *calibrate;   /* committed; NULL: nothing was fitted */
};

/* Fills the intervals when the metrics keep every row (eval.auc: exact); else nothing. */
void tn_eval_result_intervals(tn_eval_result *f);

/* Makes what was found of task k, as of a run that has it alone, with intervals of its own; of one
 * label a copy. `run` is room, and must live as long as *out. */
void tn_eval_result_of_task(const tn_eval_result *f, uint32_t k, tn_run *run, tn_eval_result *out);

/* A member of an object: value, low, high and variance. */
void tn_eval_result_interval(tn_text *out, const char *name, const tn_interval *i);

tn_status tn_eval_result_text(const tn_eval_result *f, tn_text *out, tn_error *err) TN_MUST_USE;
tn_status tn_eval_result_json(const tn_eval_result *f, tn_text *out, tn_error *err) TN_MUST_USE;

/* Columns of a table of metrics. */
typedef struct tn_result_columns {
    tn_arena *names; /* keeps the texts of headings */
    uint32_t n;
    tn_result of[TN_RESULTS_MAX];
} tn_result_columns;

/* Adds the columns of an evaluation, one for each task: "valid", or "valid.buy", with `note` after
 * it. */
void tn_eval_result_columns(const tn_run *run, const char *data, const char *note,
                            const tn_evaluation *e, tn_result_columns *out);

/* Appends what an evaluation found of each task, as members of its JSON object: "buy":{"auc":..};
 * nothing where there is one label. */
void tn_eval_result_tasks_json(const tn_run *run, const tn_evaluation *e, tn_text *out);

/* The members of an `eval` record of metrics.jsonl; of `f`: data, run, result and words. */
tn_status tn_eval_result_members(const tn_eval_result *f, bool best, tn_text *out,
                                 tn_error *err) TN_MUST_USE;

/* Appends by what an evaluation is calibrated, and its figures before: "calibrated by platt (raw:
 * logloss 0.228740, copc 0.978000)", or members of an object; nothing if it is not. */
void tn_eval_result_calibrated(const tn_evaluation *e, tn_text *out);
void tn_eval_result_calibrated_json(const tn_evaluation *e, tn_text *out);

enum { TN_EVAL_SLICES = 100 }; /* values of a slot in it; all others are left out */

/* The largest `max` values of slot i of eval.slices; then "other" (metrics/slices.h), when anything
 * is in it. `out` holds max + 1. */
typedef struct tn_slice_cut {
    uint32_t n;      /* in `out` */
    uint32_t hidden; /* values that are not there, nor in "other" */
} tn_slice_cut;
tn_status tn_eval_result_slices(const tn_eval_result *f, uint32_t i, uint32_t max, tn_slice *out,
                                tn_slice_cut *cut, tn_error *err) TN_MUST_USE;

/* A value of slot i of eval.slices as a person writes it; "other" for the rest. A hash whose
 * word is not known: 16 hex digits. */
void tn_eval_result_value(const tn_eval_result *f, uint32_t i, const tn_slice *slice, tn_text *out);

/* A table of n slices of slot i, with all digits or six; to be ended by the caller. */
tn_sheet tn_eval_result_sheet(const tn_eval_result *f, uint32_t i, const tn_slice *slice,
                              uint32_t n, bool full);
