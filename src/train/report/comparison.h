/* comparison.h - two models on the same rows (train/eval/compare.h), for people and for programs.
 *
 *     compared with   this     other    change       low      high  by
 *     auc         0.780123  0.771002  0.009121  0.008011  0.010231  DeLong
 *
 *     category   rows       auc     other   logloss     other    change       low      high
 *     68fd1e64   1201  0.751002  0.740110  0.440101  0.451200 -0.011099 -0.014002 -0.008196
 *
 * Of each slot of eval.slices the values whose log loss has moved (TN_COMPARE_MOVED), the largest
 * changes first. All functions need f->compare.
 */
#pragma once

#include "train/report/eval_result.h"

tn_status tn_comparison_text(const tn_eval_result *f, tn_text *out, tn_error *err) TN_MUST_USE;
/* ,"compare":{..}: for f->more. */
tn_status tn_comparison_json(const tn_eval_result *f, tn_text *out, tn_error *err) TN_MUST_USE;
/* Appends what the text has as members of an object of a page: the strings other and verdict, the
 * table of metrics, and moved, a list of {"note":"..","table":{..}} for each slot. */
tn_status tn_comparison_tables(const tn_eval_result *f, tn_text *out, tn_error *err) TN_MUST_USE;
