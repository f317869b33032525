/* task_predictions.h - the columns of a line of predictions (predict.h) for tasks after the first:
 *
 *     buy.label  buy.logit  buy.pctr  buy.given
 *     watch.label  watch.prediction
 *
 * `given` is that of a share: its probability given a click of the task that it is a share of. The
 * label is empty where the row does not count for the task, and where labels are not read.
 */
#pragma once

#include "train/eval/evaluate.h"

typedef struct tn_text tn_text; /* base/core/text.h */

void tn_task_prediction_head(tn_text *out, const tn_tasks *tasks);
/* Appends the columns of one row, each after a tab. Under the "C" locale. */
void tn_task_prediction_line(tn_text *out, const tn_tasks *tasks, const tn_scores *scores,
                             uint32_t row);
