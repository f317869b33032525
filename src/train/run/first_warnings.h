/* first_warnings.h - what a run is warned of before its first step. */
#pragma once

#include "base/core/error.h"

typedef struct tn_model_plan tn_model_plan; /* train/step/model_plan.h */
typedef struct tn_report tn_report;         /* train/report/report.h */
typedef struct tn_run_state tn_run_state;   /* train/checkpoint/run_state.h */

/* Tells of counts that a second pass knows by heart, of rows of data.valid that are trained on
 * (`trained` says which; "": none), and of labels that come in order. */
tn_status tn_warn_first(const tn_model_plan *plan, const char *trained, tn_report *report,
                        const tn_run_state *state, tn_error *err) TN_MUST_USE;
