/* lifecycle_preview.h - what rules of leaving would keep of a checkpoint, and what the model is
 * worth then.
 *
 * Rows leave the worker's table by the sweep of training (ps/table/table.h), on the day of the
 * checkpoint. Rules are looked at one by one, each with some usual values, from the mildest to the
 * strictest, then what the configuration says. Nothing on disk changes; the worker has lost rows
 * afterwards. What is gone is gone as after an expiry: keys without a row read as embedding.missing
 * says. One thread, beside the worker's team.
 */
#pragma once

#include "base/core/text.h"
#include "train/eval/evaluate.h"

/* Adds tables to `out`, a line for each share group. `path`: as of tn_checkpoint_load, read once
 * for each rule; request->paths NULL: nothing is evaluated, and the tables say so. */
tn_status tn_lifecycle_preview(tn_worker *w, const char *path, const tn_eval_request *request,
                               tn_text *out, tn_error *err) TN_MUST_USE;
