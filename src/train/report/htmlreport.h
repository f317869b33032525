/* htmlreport.h - an evaluation as one HTML page that stands alone: no script, no font, no picture
 * from elsewhere.
 *
 *     facts | metrics | ROC, precision-recall, reliability, scores
 *     deciles | comparison | slices | training | configuration
 */
#pragma once

#include "train/report/eval_result.h"

/* Appends the page. `config`: the resolved configuration as text; NULL: none. */
tn_status tn_html_report(const tn_eval_result *f, const char *config, tn_text *out,
                         tn_error *err) TN_MUST_USE;

/* The same into a file that is replaced as a whole. */
tn_status tn_html_report_write(const tn_eval_result *f, const char *config, const char *path,
                               tn_error *err) TN_MUST_USE;
