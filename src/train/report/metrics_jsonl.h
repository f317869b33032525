/* metrics_jsonl.h - metrics.jsonl: what a run did, one JSON object per line (docs/formats.md
 * section 9).
 *
 *     tn_journal j = {0};
 *     TN_TRY(tn_journal_open(&j, "runs/a/metrics.jsonl", err));
 *     tn_text *t = tn_journal_begin(&j, "event", &at);
 *     tn_json_str(t, "level", "warn");
 *     TN_TRY(tn_journal_end(&j, err));
 *
 * One write(2) per record. A run that goes on appends behind a `start` with resumed_from; readers
 * then drop earlier records of a larger step. What is not finite or not defined is null; strings
 * that are NULL are null. Members are only ever added. One thread.
 */
#pragma once

#include "base/core/text.h"
#include "base/file/file.h"
#include "config/values.h"
#include "metrics/metrics.h"

typedef struct tn_journal {
    tn_appender *file;            /* owned; NULL: log.jsonl is off */
    tn_text line;                 /* of the record that is written */
    struct tn_tensorboard *board; /* lent: sees each record; NULL: none */
} tn_journal;

tn_status tn_journal_open(tn_journal *j, const char *path, tn_error *err) TN_MUST_USE;
void tn_journal_close(tn_journal *j);

/* Where the run stands; in every record, beside the time. */
typedef struct tn_journal_at {
    uint64_t step, samples;
    uint32_t epoch;
} tn_journal_at;

/* Opens a record; the caller adds its members to the text, which is lent until the end. */
tn_text *tn_journal_begin(tn_journal *j, const char *kind, const tn_journal_at *at);
tn_status tn_journal_end(tn_journal *j, tn_error *err) TN_MUST_USE;

/* Whether the file at `path` has the record of a day that was learned at this step or later. */
bool tn_journal_has_day(const char *path, const char *day, uint64_t step);

/* The brace and the members that every record begins with, for one that is written elsewhere. */
void tn_journal_head(tn_text *t, const char *kind, const tn_journal_at *at);

/* "loss"; `hex`: and its twin loss_hex, whose bits survive whatever reads the decimal one. */
void tn_journal_loss(tn_text *t, double loss, bool hex);

/* The usual metrics, and behind them those of `more` that are none of them. */
void tn_journal_metrics(tn_text *t, const tn_metrics *m, const tn_strs *usual, const tn_strs *more);
