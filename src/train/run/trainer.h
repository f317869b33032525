/* trainer.h - a whole run: epochs, evaluations, checkpoints, early stop, the final test.
 *
 *     resume -> [ epoch: steps .. evaluate .. checkpoint ] .. -> the best again -> test -> summary
 *
 * Prints nothing: what a person sees goes line by line to the watch, what programs read to
 * metrics.jsonl and summary.json in the run directory. Belongs to the thread that calls it.
 */
#ifndef TN_TRAIN_TRAINER_H
#define TN_TRAIN_TRAINER_H

#include "train/report/report.h"
#include "train/step/model_plan.h"
#include "train/step/watch.h"

/* On failure *out is empty, and summary.json says why. Faults of the model go to b->diag. */
tn_status tn_train(const tn_model_plan *plan, const tn_run_text *text, const tn_watch *watch,
                   const tn_binder *b, tn_outcome *out, tn_error *err) TN_MUST_USE;

#endif
