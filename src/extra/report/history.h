/* history.h - figures of the page that show the run until now, from its metrics.jsonl.
 *
 *     "history":{"last":600,"marks":[{"class":"resumed","x":50,"tip":"resumed from ckpt-1 ..
 *                "note":"12 records of training, 2 evaluations. ..",
 *                "figures":[{"title":"loss","train":[[50,.52],..],"valid":[..]},..]}
 *     "history":{"note":"No history: runs/a/metrics.jsonl is not there .."}
 *
 * Records after a `start` replace earlier ones of a larger step, as docs/formats.md section 9
 * says. A figure has at most two points for each of 300 columns: the lowest and the highest value
 * of the records there, so no peak is lost, and the page stays small for any number
 * of records. Those take 48 bytes each while they are read. `last` is the end of the axis of steps,
 * a mark a line across all figures.
 */
#pragma once

#include "base/core/text.h"

/* Appends the member. `path`: metrics.jsonl; NULL: the model is of no run. `step` is that of the
 * evaluated model. *when: Unix seconds of the record of training at that step, or the last one
 * before; NAN: there is none. TN_E_IO: it cannot be read. */
tn_status tn_history_json(const char *path, uint64_t step, tn_text *out, double *when,
                          tn_error *err) TN_MUST_USE;
