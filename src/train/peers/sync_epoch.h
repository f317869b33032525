/* sync_epoch.h - the steps of an epoch among peers at staleness 0: every rank brings a batch of its
 * own parts, or nothing, and all make one step of the joint batch.
 *
 *     while ((status = tn_sync_epoch_next(x, &ahead, &turn, err)) == TN_OK && !turn.over)
 *         ... turn.step, turn.learned ...
 *
 * The rows of step k+1 are asked for before step k is computed, so what is to follow step k+1 is
 * asked for then, too: rank 0 may have all stand still after it (a meeting). Nothing is under way
 * during a meeting. Belongs to the worker's thread.
 */
#ifndef TN_TRAIN_SYNC_EPOCH_H
#define TN_TRAIN_SYNC_EPOCH_H

#include "train/peers/peers.h"
#include "train/step/step_prefetch.h"

typedef struct tn_sync_epoch tn_sync_epoch;

/* `feeder` and `peers` must outlive it. On failure *out is NULL. */
tn_status tn_sync_epoch_new(tn_sync_epoch **out, tn_worker *w, tn_peers *peers,
                            tn_step_prefetch *feeder, tn_error *err) TN_MUST_USE;
void tn_sync_epoch_free(tn_sync_epoch *x); /* NULL is fine */

/* The trainer answers about the steps to come. `steps`: the number done by then. */
typedef struct tn_ahead {
    bool (*meets)(void *arg, uint64_t steps); /* after such a step all meet; NULL: rank 0 says */
    double (*factor)(void *arg); /* of every learning rate, now; NULL: rank 0's counts */
    void *arg;
} tn_ahead;

typedef struct tn_turn_taken {
    bool over;     /* nobody has any data left; then nothing below is set */
    bool meets;    /* all stand still now */
    tn_step *step; /* what this rank learned from, lent until the next call; NULL: it had nothing */
    uint64_t rows; /* of the joint batch */
    double weight; /* that the loss is the mean over */
    double waited_s;            /* for data .. */
    tn_sync_worker_waits waits; /* .. and, beside that, for others */
    tn_learned learned;         /* loss: the mean of the joint batch */
} tn_turn_taken;

tn_status tn_sync_epoch_next(tn_sync_epoch *x, const tn_ahead *ahead, tn_turn_taken *out,
                             tn_error *err) TN_MUST_USE;

#endif
