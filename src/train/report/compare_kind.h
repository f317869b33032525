/* compare_kind.h - another model's scores beside those of an evaluation, row by row: two models on
 * the same rows.
 *
 *     TN_TRY(kind->open(&c, "runs/b", err));
 *     TN_TRY(kind->read(c, "b.tsv", err));           its predictions (predict.h), or
 *     .. evaluate by it, with a sink that calls kind->add ..
 *     TN_TRY(kind->begin(c, run, schema, err));
 *     .. evaluate, with a sink that calls kind->add ..
 *     TN_TRY(kind->end(c, &evaluation, err));
 *     kind->drop(c);
 *
 * Rows are the same when they come in the same order with the same labels: the n-th of one is the
 * n-th of the other. What differs is refused. Clicks only, with eval.auc exact. The row of
 * train/job/compare_kinds.def, at most one, is of src/extra. One thread.
 */
#pragma once

#include "base/core/error.h"

typedef struct tn_compare tn_compare;
typedef struct tn_eval_result tn_eval_result; /* train/report/eval_result.h */
typedef struct tn_evaluation tn_evaluation;   /* train/eval/evaluate.h */
typedef struct tn_metrics tn_metrics;         /* metrics/metrics.h */
typedef struct tn_run tn_run;                 /* train/config/run.h */
typedef struct tn_schema tn_schema;           /* io/schema/schema.h */
typedef struct tn_scores tn_scores;           /* train/eval/evaluate.h */
typedef struct tn_text tn_text;               /* base/core/text.h */

typedef struct tn_compare_kind {
    tn_status (*open)(tn_compare **out, const char *name, tn_error *err); /* `name` is lent */
    void (*drop)(tn_compare *c);                                          /* NULL is fine */
    /* Takes a file of predictions; lines that are its head once more, of files put together, are
     * passed over. TN_E_DATA: it is none, or damaged. */
    tn_status (*read)(tn_compare *c, const char *path, tn_error *err);
    /* `run` and `schema` are those of the evaluation, and must outlive `c`. */
    tn_status (*begin)(tn_compare *c, const tn_run *run, const tn_schema *schema, tn_error *err);
    /* Takes scores, before `begin` the other's. `shift` is added to a logit: the correction of
     * sampled negatives. TN_E_DATA: a label differs, or the other has fewer rows. */
    tn_status (*add)(tn_compare *c, const tn_scores *scores, double shift, tn_error *err);
    /* TN_E_DATA: the other has more rows. */
    tn_status (*end)(tn_compare *c, const tn_evaluation *of, tn_error *err);

    const tn_metrics *(*other)(const tn_compare *c); /* metrics of the other */
    /* Append what f->compare found: tables for people; ,"compare":{..} for f->more; or members of
     * an object of a page: the strings other and verdict, the table of metrics, and moved, a list
     * of {"note":"..","table":{..}} for each slot. */
    tn_status (*text)(const tn_eval_result *f, tn_text *out, tn_error *err);
    tn_status (*json)(const tn_eval_result *f, tn_text *out, tn_error *err);
    tn_status (*tables)(const tn_eval_result *f, tn_text *out, tn_error *err);
} tn_compare_kind;
