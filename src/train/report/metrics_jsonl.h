/* metrics_jsonl.h - metrics.jsonl: what a run did, one JSON object per line (docs/formats.md
 * section 9).
 *
 *     tn_journal *j = NULL;
 *     TN_TRY(tn_journal_open(&j, "runs/a/metrics.jsonl", deterministic, err));
 *     TN_TRY(tn_journal_start(j, &at, &start, err));
 *     TN_TRY(tn_journal_train(j, &at, &train, err));
 *     TN_TRY(tn_journal_end(j, &at, &end, err));
 *
 * One write(2) per record. A run that goes on appends behind a `start` with resumed_from; readers
 * then drop earlier records of a larger step. What is not finite or not defined is null; strings
 * that are NULL are null. Members are only ever added. One thread.
 */
#ifndef TN_TRAIN_METRICS_JSONL_H
#define TN_TRAIN_METRICS_JSONL_H

#include "base/core/error.h"
#include "metrics/metrics.h"
#include "train/eval/sign_text.h"

typedef struct tn_journal tn_journal;

/* `deterministic`: losses have a twin loss_hex. */
tn_status tn_journal_open(tn_journal **out, const char *path, bool deterministic,
                          tn_error *err) TN_MUST_USE;
void tn_journal_close(tn_journal *j); /* NULL is fine */

/* Where the run stands; in every record, beside the time. */
typedef struct tn_journal_at {
    uint64_t step, samples;
    uint32_t epoch;
} tn_journal_at;

typedef struct tn_journal_start_record {
    const char *version, *config_hash;
    const char *resumed_from; /* name of a checkpoint; NULL: a fresh start */
    const char *cpu;
    uint64_t run_id, seed;
    uint32_t peers, threads;
} tn_journal_start_record;
tn_status tn_journal_start(tn_journal *j, const tn_journal_at *at, const tn_journal_start_record *r,
                           tn_error *err) TN_MUST_USE;

/* The window since the last one. */
typedef struct tn_journal_train_record {
    const tn_metrics *window; /* auc copc ctr pctr */
    double loss, lr, rows_per_s, grad_norm;
    double wait_read_ms, wait_pull_ms, wait_push_ms, compute_ms;
    uint64_t keys, rss_bytes, pulled_bytes, pushed_bytes, bad_records;
    uint64_t staleness_max;
} tn_journal_train_record;
tn_status tn_journal_train(tn_journal *j, const tn_journal_at *at, const tn_journal_train_record *r,
                           tn_error *err) TN_MUST_USE;

/* The metrics of one slot's values: the largest TN_JOURNAL_SLICES and "other". */
enum { TN_JOURNAL_SLICES = 100 };
typedef struct tn_journal_slices {
    const char *slot;
    tn_slices *slices;
    const tn_sign_words *words; /* NULL: not known */
    uint32_t place;             /* of the slot in them */
} tn_journal_slices;

typedef struct tn_journal_eval_record {
    const char *data; /* valid, test, or the path that was given */
    const tn_metrics *metrics;
    double loss; /* what training minimises */
    bool best;
    const char *const *more; /* names of metrics that are wanted besides the usual ones */
    uint32_t n_more;
    const tn_journal_slices *slices;
    uint32_t n_slices;
} tn_journal_eval_record;
tn_status tn_journal_eval(tn_journal *j, const tn_journal_at *at, const tn_journal_eval_record *r,
                          tn_error *err) TN_MUST_USE;

/* The members of such a record, without braces: what `tnet-eval --json` prints. */
tn_status tn_journal_eval_members(const tn_journal_at *at, const tn_journal_eval_record *r,
                                  bool deterministic, tn_text *out, tn_error *err) TN_MUST_USE;

typedef struct tn_journal_ckpt_record {
    const char *name;
    bool delta;
    uint64_t bytes, rows;
    double seconds, stall_ms;
} tn_journal_ckpt_record;
tn_status tn_journal_ckpt(tn_journal *j, const tn_journal_at *at, const tn_journal_ckpt_record *r,
                          tn_error *err) TN_MUST_USE;

typedef struct tn_journal_table_record {
    uint64_t created, admitted, expired, rows, bytes;
} tn_journal_table_record;
tn_status tn_journal_table(tn_journal *j, const tn_journal_at *at, const tn_journal_table_record *r,
                           tn_error *err) TN_MUST_USE;

/* level: error warn info debug */
tn_status tn_journal_event(tn_journal *j, const tn_journal_at *at, const char *level,
                           const char *text, tn_error *err) TN_MUST_USE;

/* status: ok stopped failed */
typedef struct tn_journal_end_record {
    const char *status;
    int exit_code;
    double seconds;
} tn_journal_end_record;
tn_status tn_journal_end(tn_journal *j, const tn_journal_at *at, const tn_journal_end_record *r,
                         tn_error *err) TN_MUST_USE;

#endif
