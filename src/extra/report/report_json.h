/* report_json.h - the numbers of the page of an evaluation as one JSON object.
 *
 *     title facts metrics | curve reliability scores deciles | compare | slices | history | config
 *
 * They are made from the metrics alone (metrics/calibration.h), so they are as many for any number
 * of rows. What is not defined is null; a part that does not fit the loss, or the labels, is left
 * out. The page (report.html) draws them; programs read tnet-eval --json, which is documented.
 */
#pragma once

#include "train/report/eval_result.h"

/* `config`: the resolved configuration as text; NULL: none. */
tn_status tn_report_json(const tn_eval_result *f, const char *config, tn_text *out,
                         tn_error *err) TN_MUST_USE;
