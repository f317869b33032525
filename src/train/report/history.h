/* history.h - what a run did until now, from its metrics.jsonl, as figures of the report.
 *
 *     loss, AUC of training and validation | learning rate | rows per second        over the steps
 *
 * Records behind a `start` replace earlier ones of a larger step, as docs/formats.md section 9
 * says; where a run was resumed, and where the evaluated model stands, is a line. A figure has at
 * most two points for each column of its pixels: the lowest and the highest value of the records
 * there, so nothing that stands out is lost, and the page stays small for any number of records.
 * Those take 40 bytes each while they are read.
 */
#pragma once

#include "base/core/text.h"

/* Adds the section. `path`: metrics.jsonl; NULL: the model is of no run. When it is not there, or
 * holds nothing, the section says so. `step`: of the evaluated model. *when: Unix seconds of the
 * record of training at that step, or the last one before; NAN: there is none. TN_E_IO: it cannot
 * be read. */
tn_status tn_history_html(const char *path, uint64_t step, tn_text *out, double *when,
                          tn_error *err) TN_MUST_USE;
