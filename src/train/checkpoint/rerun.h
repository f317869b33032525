/* rerun.h - compares a run with the one that left its checkpoint: what differs, and is it finished?
 *
 *     run 'a' is finished (epoch 1 of 1, step 15); 1 option differs: data.train; nothing trained
 *     goes on from ckpt-2 (epoch 1 of 3, step 8); 1 option differs: train.optimizer.lr
 *
 * Only what shapes a model counts: not where files lie, what is shown, how many threads there are.
 */
#pragma once

#include "base/core/error.h"
#include "base/core/text.h"

typedef struct tn_model_plan tn_model_plan;
typedef struct tn_run_state tn_run_state;
typedef struct tn_run_text tn_run_text;

typedef struct tn_rerun {
    const tn_model_plan *plan;
    const tn_run_text *text;
    const tn_run_state *state; /* with its past */
    const char *name;          /* name of the checkpoint */
    bool patience_over;        /* no evaluation was better for long */
} tn_rerun;

/* Writes the sentence for people into `out`. TN_E_CONFIG: the run is finished, and was another. */
tn_status tn_rerun_tell(const tn_rerun *r, tn_text *out, tn_error *err) TN_MUST_USE;
