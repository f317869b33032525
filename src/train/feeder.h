/* feeder.h - prepared steps from a reader, made ahead on a thread of its own.
 *
 *     reader -> batch -> [localize] -> bounded queue -> tn_feeder_next
 *
 *     while ((status = tn_feeder_next(f, &step, &err)) == TN_OK) {
 *         ... learn or score ...
 *         tn_feeder_recycle(f, step);
 *     }
 *
 * One feeder is one pass. The steps come in the reader's order.
 */
#ifndef TN_TRAIN_FEEDER_H
#define TN_TRAIN_FEEDER_H

#include "train/step.h"

#include <stdatomic.h>

typedef struct tn_feeder tn_feeder;

/* Opens a reader with `opts` and starts; `ahead` steps are kept ready. On failure *out is NULL. */
tn_status tn_feeder_open(tn_feeder **out, const tn_blueprint *plan, const tn_reader_opts *opts,
                         uint32_t ahead, tn_error *err) TN_MUST_USE;
void tn_feeder_close(tn_feeder *f); /* at any time; NULL is fine */

/* From now on a thread looks at *stop; when it turns true the reader stops, also one that waits for
 * data that do not come: what is ready follows, then TN_E_STOPPED (or TN_END, at the end). NULL:
 * nothing. At most once per feeder; `stop` must outlive it. */
tn_status tn_feeder_watch(tn_feeder *f, const atomic_bool *stop, tn_error *err) TN_MUST_USE;

/* TN_END after the last step; a failure of the reader is reported once, here. */
tn_status tn_feeder_next(tn_feeder *f, tn_step **out, tn_error *err) TN_MUST_USE;
void tn_feeder_recycle(tn_feeder *f, tn_step *step);

tn_reader *tn_feeder_reader(tn_feeder *f);

#endif
