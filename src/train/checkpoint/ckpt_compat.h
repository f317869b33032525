/* ckpt_compat.h - whether the model of a checkpoint is the one at hand, else in what they differ.
 *
 *     the model differs from that of checkpoint 3:
 *       slot 'user': 'deep' is 4 wide, in the checkpoint 8
 */
#ifndef TN_TRAIN_CKPT_COMPAT_H
#define TN_TRAIN_CKPT_COMPAT_H

#include "ps/snapshot/manifest.h"
#include "train/step/worker.h"

/* TN_E_CONFIG with all differences. `goes_on`: a run is to go on from it, so the hint says how to
 * begin anew instead. */
tn_status tn_ckpt_fits(const tn_worker *w, const tn_manifest *m, bool goes_on,
                       tn_error *err) TN_MUST_USE;

#endif
