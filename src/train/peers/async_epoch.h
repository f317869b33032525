/* async_epoch.h - the steps of an epoch among peers at staleness s and inf: every batch is a step
 * of its own, and nobody waits for another rank until all are to stand still.
 *
 *     while (tn_async_epoch_next(x, &ahead, &turn, err) == TN_OK && !turn.over && !turn.meets)
 *         ... turn.step, turn.learned ...
 *
 * The rows of the next batch are asked for before this one is computed, where a permit allows it
 * and there is such a batch already: one that this rank's own steps are needed for would never
 * come. When the rank is to stand still, or has nothing to read, all its pushes are acknowledged
 * first; so when all ranks do, nothing is under way. Belongs to the worker's thread.
 */
#ifndef TN_TRAIN_ASYNC_EPOCH_H
#define TN_TRAIN_ASYNC_EPOCH_H

#include "train/peers/sync_epoch.h"

typedef struct tn_async_epoch tn_async_epoch;

/* `feeder` and `peers` must outlive it. On failure *out is NULL. */
tn_status tn_async_epoch_new(tn_async_epoch **out, tn_worker *w, tn_peers *peers,
                             tn_step_prefetch *feeder, tn_error *err) TN_MUST_USE;
void tn_async_epoch_free(tn_async_epoch *x); /* NULL is fine */

/* As tn_sync_epoch_next, but for this rank alone: `over` is its own data's end, `meets` is asked
 * before each step and makes it the last one before the rank stands still. Without data it returns
 * every so often: turn.step is NULL, and `meets` was asked. turn.rows are this rank's rows times
 * the number of ranks, an estimate; the worker's steps are those of all ranks as far as they are
 * known here, until all meet. */
tn_status tn_async_epoch_next(tn_async_epoch *x, const tn_ahead *ahead, tn_turn_taken *out,
                              tn_error *err) TN_MUST_USE;

#endif
