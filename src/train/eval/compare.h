/* compare.h - another model's scores beside those of an evaluation, row by row.
 *
 *     TN_TRY(tn_compare_open(&c, "runs/b", err));
 *     TN_TRY(tn_compare_read(c, "b.tsv", err));          its predictions (predict.h), or ..
 *     .. tn_evaluate with a sink that calls tn_compare_take ..      .. those of a model
 *     TN_TRY(tn_compare_begin(c, run, schema, err));
 *     .. tn_evaluate with a sink that calls tn_compare_sink ..
 *     TN_TRY(tn_compare_end(c, &evaluation, err));       c->other, c->change, c->auc, ..
 *     tn_compare_free(c);
 *
 * Rows are the same when they come in the same order with the same labels: the n-th of one is the
 * n-th of the other. What differs is refused. Clicks only, with eval.auc exact. Memory: 8 bytes a
 * row for the other's scores, and 24 for the rows of its metrics, beside the evaluation's own 24.
 * One thread.
 */
#pragma once

#include "metrics/intervals.h"
#include "train/eval/evaluate.h"

typedef struct tn_compare {
    const char *name;    /* name of the other; lent */
    tn_evaluation other; /* its metrics and slices; the slices are those of the evaluation */
    /* Metrics and slices, as of target number, of what a row's log loss changes by, this model less
     * the other: prediction_mean is the mean change, mse the mean square of it. */
    tn_evaluation change;
    tn_interval auc;          /* AUC of this less that of the other, by DeLong */
    double p;                 /* his test that there is no difference */
    tn_interval auc_draws;    /* change of AUC by paired bootstrap */
    tn_interval logloss;      /* change of log loss by paired bootstrap */
    struct compare_state *at; /* owned */
} tn_compare;

tn_status tn_compare_open(tn_compare **out, const char *name, tn_error *err) TN_MUST_USE;
void tn_compare_free(tn_compare *c); /* NULL is fine */

/* Takes a file of predictions; lines that are its head once more, of files put together, are passed
 * over. TN_E_DATA: it is none, or damaged. */
tn_status tn_compare_read(tn_compare *c, const char *path, tn_error *err) TN_MUST_USE;
/* Takes scores of a model. `shift` is added to a logit: the correction of sampled negatives. */
tn_status tn_compare_take(tn_compare *c, const tn_scores *scores, double shift,
                          tn_error *err) TN_MUST_USE;

/* `run` and `schema` are those of the evaluation, and must outlive `c`. */
tn_status tn_compare_begin(tn_compare *c, const tn_run *run, const tn_schema *schema,
                           tn_error *err) TN_MUST_USE;
/* TN_E_DATA: a label differs, or the other has fewer rows; in tn_compare_end: more. */
tn_status tn_compare_sink(tn_compare *c, const tn_scores *scores, double shift,
                          tn_error *err) TN_MUST_USE;
tn_status tn_compare_end(tn_compare *c, const tn_evaluation *of, tn_error *err) TN_MUST_USE;

/* A slice whose mean change is beyond this many standard errors has moved: 3, which chance does to
 * one slice in 370. */
#define TN_COMPARE_MOVED 3.0

/* The mean change of log loss in a slice of c->change, with its .95 interval by its standard error;
 * NAN below two rows. Weights count in the mean only. */
tn_interval tn_compare_change(const tn_metrics *of);
