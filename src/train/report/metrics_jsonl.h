/* metrics_jsonl.h - metrics.jsonl: what a run did, one JSON object per line (docs/formats.md
 * section 9).
 *
 *     tn_journal j = {0};
 *     TN_TRY(tn_journal_open(&j, "runs/a/metrics.jsonl", err));
 *     tn_text *t = tn_journal_begin(&j, "event", &at);
 *     tn_json_str(t, "level", "warn");
 *     TN_TRY(tn_journal_end(&j, err));
 *
 * One write(2) per record. A run that goes on appends after a `start` with resumed_from; readers
 * then drop earlier records of a larger step. What is not finite or not defined is null; strings
 * that are NULL are null. Members are only ever added. One thread.
 */
#pragma once

#include "base/core/text.h"
#include "base/file/file.h"
#include "config/values.h"
#include "metrics/metrics.h"

/* A record as its listeners get it, lent for the call. */
typedef struct tn_run_record {
    const char *kind;          /* train, eval, day, ckpt, table, sweep, event, end */
    const tn_text *line;       /* all of it: a line of JSON */
    uint64_t step;             /* steps of the run */
    const char *data;          /* eval: what was scored, else NULL */
    const tn_metrics *metrics; /* eval: how, else NULL */
    bool well;                 /* end: the run has ended as it should */
} tn_run_record;

typedef tn_status tn_run_record_fn(void *arg, const tn_run_record *record, tn_error *err);

typedef struct tn_journal {
    tn_appender *file;      /* owned; NULL: nothing is written */
    tn_run_record_fn *hear; /* gets each record that is written; NULL: nobody listens */
    void *arg;
    tn_text line;         /* text of the present record */
    tn_run_record record; /* the same */
} tn_journal;

tn_status tn_journal_open(tn_journal *j, const char *path, tn_error *err) TN_MUST_USE;
void tn_journal_close(tn_journal *j);

/* The position of the run, which is in every record beside the time. */
typedef struct tn_journal_at {
    uint64_t step, samples;
    uint32_t epoch;
} tn_journal_at;

/* Opens a record; the caller adds its members to the text, which is lent until the end, and may
 * set those of j->record. */
tn_text *tn_journal_begin(tn_journal *j, const char *kind, const tn_journal_at *at);
tn_status tn_journal_end(tn_journal *j, tn_error *err) TN_MUST_USE;

/* Whether the file at `path` has the record of a day that was learned at this step or later. */
bool tn_journal_has_day(const char *path, const char *day, uint64_t step);

/* The brace and the members that every record begins with, for one that is written elsewhere. */
void tn_journal_head(tn_text *t, const char *kind, const tn_journal_at *at);

/* "loss"; `hex`: and its twin loss_hex, whose bits survive whatever reads the decimal one. */
void tn_journal_loss(tn_text *t, double loss, bool hex);

/* Writes the usual metrics, and after them those of `more` that are not among them. */
void tn_journal_metrics(tn_text *t, const tn_metrics *m, const tn_strs *usual, const tn_strs *more);
