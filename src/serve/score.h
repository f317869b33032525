/* score.h - scoring rows with an export: what libtnet, tnet-score and tnet-eval --export run.
 *
 *     tn_exported_model_open(&b, "export/001f..", &(tn_exported_model_opts){0}, err);
 *     tn_scorer_new(&s, b, err);                            one per thread
 *     tn_scorer_score(s, batch, logit, pctr, err);          batch: of b->schema
 *
 * The rows of the batch's keys are fetched from the dictionary into a small table of their own and
 * go through the same embedding operator and the same graph as in training, so pooling of empty
 * slots, repeated keys and keys without a row is the trainer's. After the largest batch a
 * scorer allocates nothing.
 */
#pragma once

#include "base/core/error.h"
#include "base/keys/tasks.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tn_batch tn_batch;                   /* io/rows/batch.h */
typedef struct tn_exported_model tn_exported_model; /* serve/exported_model.h */
typedef struct tn_rows tn_rows;                     /* io/rows/rows.h */

typedef struct tn_scorer tn_scorer;

/* Makes a scorer. `b` must outlive it. Rows go through the graph some hundred at a time. */
tn_status tn_scorer_new(tn_scorer **out, const tn_exported_model *b, tn_error *err) TN_MUST_USE;
void tn_scorer_free(tn_scorer *s); /* NULL is fine */

/* Places for the scores of each of several tasks: of clicks logits, given a click those of shares.
 * NULL: not wanted. */
typedef struct tn_task_columns {
    float *score[TN_TASKS_MAX];
    float *given[TN_TASKS_MAX];
} tn_task_columns;

/* From here on each call that scores n rows writes them to the first n places of these, too; lent
 * until the next call of this. NULL: none. Scores are calibrated, if the export says so; `given`
 * never is. */
void tn_scorer_set_columns(tn_scorer *s, const tn_task_columns *out);

/* Writes logit[batch->rows] and, unless NULL, pctr[batch->rows]; corrected for sampled negatives
 * and then, where the export has a calibration, both calibrated: pctr is sigmoid(logit). Of another
 * target than clicks both are the score. TN_E_CKPT: the dictionary is damaged (verify lazy); then
 * some may be written. */
tn_status tn_scorer_score(tn_scorer *s, const tn_batch *batch, float *logit, float *pctr,
                          tn_error *err) TN_MUST_USE;

/* Does the same for parsed rows of b->schema; `logit` may be NULL, too. */
tn_status tn_scorer_score_rows(tn_scorer *s, const tn_rows *rows, float *logit, float *pctr,
                               tn_error *err) TN_MUST_USE;

/* The part that rows have in common: the slots and numbers of b->schema that `row`, a block of one,
 * holds for all of them. */
typedef struct tn_shared_row {
    const tn_rows *row;
    const bool *slot, *numeric;
} tn_shared_row;

/* Does the same for rows that have the rest; their own values of those slots and numbers do not
 * count. TN_E_MEMORY may come from the graph for such rows, which is made by the first call. */
tn_status tn_scorer_score_many(tn_scorer *s, const tn_shared_row *common, const tn_rows *rows,
                               float *logit, float *pctr, tn_error *err) TN_MUST_USE;
