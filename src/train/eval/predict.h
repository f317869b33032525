/* predict.h - every score to a file.
 *
 *     id      label  weight  logit        pctr                    tabs; floats %.9g
 *     17      1      1       -2.30258509  0.0909090909            in the order of the records
 *     0:4096  0      1       ..                                   no record id: source:byte offset
 *
 * Targets (base/keys/target.h) other than clicks have one column in place of logit and pctr:
 * `prediction` of numbers, else `score`. Those of further tasks follow (task_predictions.h). With
 * data.group a column `group` comes last: the number, or the 16 hex digits of a word's hash.
 *
 * A path may be a URI that is written to (io/source/remote.h): then files are written below
 * $TMPDIR, else /tmp, into tnet-<uid>, and sent when all are complete.
 *
 * One file per source of data: the first has the name that was asked for, the others have their
 * number before the ending (pred.tsv, pred.1.tsv, pred.2.tsv). A stream (base/file/output_file.h)
 * takes all sources under one head. With `label: none` the column label is empty. Files appear when
 * all of them are complete. Logit and pctr are corrected for sampled negatives. The sinks are for
 * tn_evaluate, with want_ids.
 */
#pragma once

#include "base/file/output_file.h"
#include "train/eval/evaluate.h"

/* Appends the id of a record: its own, or source:byte offset. */
void tn_record_id(const tn_batch *batch, uint32_t row, tn_text *out);

/* Append the first line, and one line for each row of a batch, by its scores. */
void tn_prediction_head(tn_text *out, tn_target target, const tn_tasks *tasks, bool grouped);
void tn_prediction_lines(tn_text *out, const tn_schema *schema, const tn_tasks *tasks,
                         const tn_scores *scores);

typedef struct tn_predictions tn_predictions;

typedef struct tn_predictions_opts {
    const char *path;        /* copied */
    double sampling;         /* data.negative_sampling: 1 changes nothing */
    const tn_schema *schema; /* its target, and whether data.group gets a column; NULL: clicks */
    const tn_inputs *inputs; /* NULL: none; must outlive the predictions */
    const atomic_bool *stop; /* NULL: never; must outlive the predictions */
    const char *secrets;     /* data.secrets, of a URI; may be NULL */
} tn_predictions_opts;

/* Whether a URI can be written to, without asking anybody: TN_E_CONFIG. */
tn_status tn_predictions_check_uri(const char *uri, const char *secrets, tn_error *err) TN_MUST_USE;

/* TN_E_USAGE; of a URI TN_E_CONFIG, TN_E_IO. */
tn_status tn_predictions_open(tn_predictions **out, const tn_predictions_opts *opts,
                              tn_error *err) TN_MUST_USE;
tn_status tn_predictions_sink(void *predictions, const tn_scores *scores, tn_error *err);
tn_status tn_predictions_commit(tn_predictions *p, tn_error *err) TN_MUST_USE; /* frees p */
void tn_predictions_abandon(tn_predictions *p); /* leaves nothing; NULL is fine */
