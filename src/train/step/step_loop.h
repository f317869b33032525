/* step_loop.h - the training steps of an epoch, one after another: the same loop for one process,
 * for rank 0 and for the ranks that follow it, whatever the staleness (ps/shard/client.h).
 *
 *     read k+1 -> pull k+1 ┐                       turn.meets: all pause, nothing is
 *     rows k -> compute k -> push k -> note k ->   under way; the caller does what is due
 *
 *     while ((status = tn_step_loop_run(x, &hooks, err)) == TN_OK) {
 *         .. validate, save, stop ..
 *     }                                            TN_END: nothing is left to read
 *
 * Where steps are joint, a rank brings a batch of its own parts, or nothing, and all make one step
 * of the joint batch; the epoch is over when nobody has data left. What is to follow step k+1 is
 * settled when its rows are asked for, so that all ranks know it: rank 0 may have all pause.
 *
 * Above staleness 0 every batch is a step of its own and nobody waits for another rank until all
 * are to pause; the epoch is over when this rank's data are. The next batch is asked for only
 * if there is one already: one that this rank's own steps are needed for would never come. A rank
 * without data takes a turn without a step every so often, so that it sees what is due.
 *
 * Belongs to the worker's thread.
 */
#pragma once

#include "ps/shard/client.h"
#include "train/step/step_prefetch.h"

typedef struct tn_step_loop tn_step_loop;

/* `w`, with its client, and `steps` must outlive it. On failure *out is NULL. */
tn_status tn_step_loop_new(tn_step_loop **out, tn_worker *w, tn_step_prefetch *steps,
                           tn_error *err) TN_MUST_USE;
void tn_step_loop_free(tn_step_loop *x); /* NULL is fine */

/* The outcome of a turn. */
typedef struct tn_step_turn {
    bool over;       /* nothing is left to read; then nothing below is set */
    bool meets;      /* all pause now */
    tn_step *step;   /* learned by this rank, lent until the next turn; NULL: it had nothing */
    uint64_t rows;   /* all of the joint batch; above staleness 0 an estimate from this rank's */
    double weight;   /* weight that the loss is the mean over */
    double factor;   /* factor of every learning rate */
    double waited_s; /* seconds that it waited for data */
    tn_client_waits waits; /* seconds that it waited for other ranks */
    double took_s;         /* the turn, without waiting for data where that is part of it */
    tn_learned learned;
} tn_step_turn;

/* Functions by which the owner of a run decides about steps to come, and learns of those done. */
typedef struct tn_step_hooks {
    /* Returns whether all pause when `steps` are done. Asked once a turn. NULL: never, or as rank 0
     * says. */
    bool (*meets)(void *arg, uint64_t steps);
    double (*factor)(void *arg); /* factor of every learning rate, now; NULL: rank 0's counts */
    /* After each turn but the last one, over. */
    tn_status (*note)(void *arg, const tn_step_turn *turn, tn_error *err);
    void *arg;
} tn_step_hooks;

/* Takes turns until all pause, TN_OK, or nothing is left, TN_END: then, too, nothing of this rank
 * is under way. The worker's steps are those of all ranks as far as they are known here. */
tn_status tn_step_loop_run(tn_step_loop *x, const tn_step_hooks *hooks, tn_error *err) TN_MUST_USE;
