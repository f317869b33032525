/* epoch_reader.h - opens the reader of an epoch, the same way for every process of a run. */
#ifndef TN_TRAIN_EPOCH_READER_H
#define TN_TRAIN_EPOCH_READER_H

#include "train/peers/part_dealer.h"
#include "train/step/step_prefetch.h"

/* The worker's own parts of the epoch of *from, from there on. Where a run goes on: from `stand`
 * on, when that is within this epoch, and is empty behind it. Alone, behind another that was, *from
 * becomes the place; else *dealer knows which parts are left for this worker, and is closed behind
 * the feeder. NULL: there is none. On request: by rank 0, whose *dealer has the ledger of all. On
 * failure *out and *dealer are NULL. */
tn_status tn_training_feeder(tn_feeder **out, const tn_worker *w, tn_progress *from,
                             tn_data_stand *stand, tn_partdealer **dealer,
                             tn_error *err) TN_MUST_USE;

/* Whether rank 0 deals the parts of an epoch as they are asked for. At staleness 0 they are dealt
 * by rule, so that arrival decides nothing. */
bool tn_deals_on_request(const tn_worker *w);

/* What the first rows hold that the worker would read by rule (tn_reader_prior), for where parts
 * are dealt on request: who gets which is not known before, and there may be fewer than ranks. They
 * are read once more later. */
tn_status tn_first_rows(const tn_worker *w, uint32_t epoch, tn_prior *out,
                        tn_error *err) TN_MUST_USE;

typedef struct tn_dealt_epoch {
    uint32_t epoch, cut_for; /* as in tn_reader_opts */
} tn_dealt_epoch;

/* Where a run goes on within the epoch its parts are those of the checkpoint. */
tn_dealt_epoch tn_dealt_epoch_of(const tn_worker *w, uint32_t epoch, const tn_data_stand *stand);

/* The parts that `dealer` says, of one epoch. On failure *out is NULL. */
tn_status tn_dealt_feeder(tn_feeder **out, const tn_worker *w, const tn_dealt_epoch *of,
                          const tn_dealer *dealer, tn_error *err) TN_MUST_USE;

/* What the schedule of train.optimizer makes of every learning rate after `step` steps. `end`:
 * where it ends, when that is with the run (train/step/run_length.h). */
double tn_learning_rate_factor(const tn_run *run, uint64_t step, uint64_t end);

#endif
