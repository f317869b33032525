/* score_collector.h - scores turned into metrics, slices and whatever the request's sink makes of
 * them, whoever scored: a worker (evaluate.c) or an export (evalexport.c).
 */
#ifndef TN_TRAIN_SCORE_COLLECTOR_H
#define TN_TRAIN_SCORE_COLLECTOR_H

#include "train/eval/evaluate.h"

typedef struct tn_judging {
    const tn_run *run;
    const tn_schema *schema; /* of the batches */
    const tn_eval_request *request;
    double sampling;    /* share of negatives kept, where scores are not corrected for it */
    tn_evaluation *out; /* the caller's */
    struct slicer *slicer;
    double began;
} tn_judging;

/* The first five members are set. Then add for each batch, and end, whatever happened. */
tn_status tn_judging_begin(tn_judging *j, tn_error *err) TN_MUST_USE;
tn_status tn_judging_add(tn_judging *j, const tn_scores *scores, tn_error *err) TN_MUST_USE;
/* After a failure *j->out is empty. */
void tn_judging_end(tn_judging *j, tn_status status);

tn_reader_opts tn_judging_reader(const tn_judging *j);

#endif
