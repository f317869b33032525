/* leader_eval.h - what evaluations need of leader.c; for leader_eval.c only.
 */
#ifndef TN_TRAIN_LEADER_EVAL_H
#define TN_TRAIN_LEADER_EVAL_H

#include "train/peers/leader.h"

/* The others begin to score. `how`: what a tn_order_note of an evaluation says. */
tn_status tn_lead_begin_evaluation(tn_lead *l, const char *data, uint64_t how,
                                   tn_error *err) TN_MUST_USE;

/* Rank 0 is done, and waits until all are. What they counted is added to `own`, and, where rows
 * stayed with them (`adds_up`), their metrics. */
tn_status tn_lead_end_evaluation(tn_lead *l, tn_evaluation *own, bool adds_up,
                                 tn_error *err) TN_MUST_USE;

/* `more` of tn_scoremerge_opts; `lead` is the tn_lead. */
tn_status tn_lead_more_rows(void *lead, uint32_t other, tn_text *out, tn_error *err) TN_MUST_USE;

tn_worker *tn_lead_worker(const tn_lead *l);
uint32_t tn_lead_ranks(const tn_lead *l);

#endif
