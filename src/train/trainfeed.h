/* trainfeed.h - the reader of a pass over the training data, the same for every process of a run.
 */
#ifndef TN_TRAIN_TRAINFEED_H
#define TN_TRAIN_TRAINFEED_H

#include "train/feeder.h"

/* From `from` on, the worker's own parts; or those that `dealer`, which may be NULL, deals of that
 * epoch. On failure *out is NULL. */
tn_status tn_training_feeder(tn_feeder **out, const tn_worker *w, const tn_progress *from,
                             const tn_dealer *dealer, tn_error *err) TN_MUST_USE;

#endif
