/* trainer.h - a whole run: epochs, evaluations, checkpoints, early stop, the final test.
 *
 *     resume -> [ epoch: steps .. evaluate .. checkpoint ] .. -> the best again -> test -> summary
 *
 * The trainer makes steps and epochs; the rest is done by the modules of the run (module.h). It
 * prints nothing: what a person sees goes line by line to the watch, what programs read to
 * metrics.jsonl and summary.json in the run directory. Belongs to the thread that calls it.
 */
#pragma once

#include "base/core/error.h"

typedef struct tn_binder tn_binder;
typedef struct tn_model_plan tn_model_plan;
typedef struct tn_outcome tn_outcome; /* train/report/report.h */
typedef struct tn_run_text tn_run_text;
typedef struct tn_watch tn_watch;

/* On failure *out is empty, and summary.json says why. Faults of the model go to b->diag. */
tn_status tn_train(const tn_model_plan *plan, const tn_run_text *text, const tn_watch *watch,
                   const tn_binder *b, tn_outcome *out, tn_error *err) TN_MUST_USE;
