/* compare.h - what a comparison of two models holds (train/report/compare_kind.h).
 *
 * Memory: 8 bytes a row for the other's scores, and 24 for the rows of its metrics, beside the
 * evaluation's own 24.
 */
#pragma once

#include "metrics/intervals.h"
#include "train/eval/evaluate.h"
#include "train/report/compare_kind.h"

struct tn_compare {
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
};

tn_status tn_compare_open(tn_compare **out, const char *name, tn_error *err) TN_MUST_USE;
void tn_compare_free(tn_compare *c);
tn_status tn_compare_read(tn_compare *c, const char *path, tn_error *err) TN_MUST_USE;
tn_status tn_compare_begin(tn_compare *c, const tn_run *run, const tn_schema *schema,
                           tn_error *err) TN_MUST_USE;
tn_status tn_compare_add(tn_compare *c, const tn_scores *scores, double shift,
                         tn_error *err) TN_MUST_USE;
tn_status tn_compare_end(tn_compare *c, const tn_evaluation *of, tn_error *err) TN_MUST_USE;

/* A slice whose mean change is beyond this many standard errors has moved: 3, which chance does to
 * one slice in 370. */
#define TN_COMPARE_MOVED 3.0

/* The mean change of log loss in a slice of c->change, with its .95 interval by its standard error;
 * NAN below two rows. Weights count in the mean only. */
tn_interval tn_compare_change(const tn_metrics *of);
