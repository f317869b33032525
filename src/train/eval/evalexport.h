/* evalexport.h - an export judged as a service would use it: its own reading, its own scores.
 *
 * Rows are read by the schema that the export carries and scored by serve/score.h. Its scores are
 * corrected for sampled negatives already, so the metrics of `run` are taken as they are. In
 * tn_scores.graph is NULL: there is no node to fetch.
 */
#ifndef TN_TRAIN_EVALEXPORT_H
#define TN_TRAIN_EVALEXPORT_H

#include "serve/exported_model.h"
#include "train/eval/evaluate.h"

/* On failure *out is empty. */
tn_status tn_evaluate_export(const tn_bundle *b, const tn_run *run, const tn_eval_request *request,
                             tn_evaluation *out, tn_error *err) TN_MUST_USE;

#endif
