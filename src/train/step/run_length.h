/* run_length.h - where a schedule that ends with the run ends.
 *
 * Before an epoch has been read its rows are counted or estimated (io/read/row_estimate.h); what
 * epochs take in truth is known behind the first. Nothing else goes into the number, so that a run
 * that goes on, and every rank of a group, has the same.
 */
#ifndef TN_TRAIN_RUN_LENGTH_H
#define TN_TRAIN_RUN_LENGTH_H

#include "train/step/model_plan.h"

/* The last step of a run that began its present epoch, `epoch`, at step `epoch_step` (0: not known,
 * or the first). TN_E_CONFIG: nobody can know. */
tn_status tn_run_end(const tn_blueprint *plan, uint32_t epoch, uint64_t epoch_step, uint64_t *out,
                     tn_error *err) TN_MUST_USE;

#endif
