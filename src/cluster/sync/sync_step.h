/* sync_step.h - staleness 0 as one owner sees it: a step of all ranks becomes one update.
 *
 *     pull of rank 0 --.                .--> rows of rank 0 --> push --.
 *     pull of rank 1 --+--> one pull --+--> rows of rank 1 --> push --+--> one update --> answers
 *     pull of rank 2 --'                '--> rows of rank 2 --> push --'
 *
 * Pulls say how many rows and how much weight their batches have, so every rank learns the joint
 * batch before it computes: where its rows begin in it (dropout draws by that place) and the weight
 * W to divide by. A rank without data sends an empty pull and an empty push. The gradients are of
 * the mean loss of the joint batch; they are added up in rank order, whatever came first. Where the
 * global clip is on, owners send each other their part of the norm before any of them updates.
 *
 * A pull may come one step early, while the step before is computed: it is united with the others
 * at once and answered after the update. It is a machine without clock, threads or sockets: calls
 * put requests in, tn_sync_step_advance says what has become possible. One thread at a time; the
 * team works inside its calls.
 */
#pragma once

#include "cluster/exchange/exchange.h"
#include "cluster/sync/batch_union.h"
#include "ps/shard/client.h"

typedef struct tn_sync_step tn_sync_step;

/* The batch of a rank, as its pull announces it. */
typedef struct tn_batch_note {
    uint64_t rows; /* 0: the rank has no data left in this epoch */
    double weight_sum;
    bool meet; /* the rank wants all to pause after this step */
} tn_batch_note;

/* The contents of a push. Of lr_factor and day those of rank 0 count: they are the same of all. */
typedef struct tn_pushed {
    const float *grads; /* laid out by the keys of the pull; NULL: zeros */
    const float *dense; /* gradients of the shard's range; NULL: zeros */
    double lr_factor;
    uint32_t day;
    double loss; /* the rank's part of the joint batch's mean */
} tn_pushed;

typedef enum tn_turn {
    TN_TURN_NONE,    /* some rank has not sent what is due */
    TN_TURN_ROWS,    /* give each rank its rows */
    TN_TURN_SKIPPED, /* the joint batch weighs nothing: no push follows, the step does not count;
                        `over` in the joint note: the epoch is over */
    TN_TURN_NORM,    /* send this owner's part of the norm to every owner, this one included */
    TN_TURN_APPLIED, /* answer the pushes; what was lent for the step is free */
} tn_turn;

/* Makes it. On failure *out is NULL. */
tn_status tn_sync_step_new(tn_sync_step **out, const tn_exchange *x, tn_error *err) TN_MUST_USE;
void tn_sync_step_free(tn_sync_step *l); /* NULL is fine */

/* Requests of a rank, each in its order; TN_E_PEER: it is not due. Keys as tn_batch_union_unite
 * wants them (NULL: none). Keys and gradients are lent until the step is applied or skipped. */
tn_status tn_sync_step_pull(tn_sync_step *l, uint32_t rank, const tn_batch_note *note,
                            const tn_keyset *keys, tn_error *err) TN_MUST_USE;
tn_status tn_sync_step_push(tn_sync_step *l, uint32_t rank, const tn_pushed *pushed,
                            tn_error *err) TN_MUST_USE;
tn_status tn_sync_step_norm(tn_sync_step *l, uint32_t owner, double norm2,
                            tn_error *err) TN_MUST_USE;

/* Goes one turn on. Call until TN_TURN_NONE. TN_E_DIVERGED: the norm is not finite
 * (ps/shard/shard.h). */
tn_status tn_sync_step_advance(tn_sync_step *l, tn_team *team, tn_turn *turn,
                               tn_error *err) TN_MUST_USE;

/* Returns, after ROWS or SKIPPED, the joint batch as a reply describes it to one rank. */
tn_joint_batch tn_sync_step_note(const tn_sync_step *l, uint32_t rank);
bool tn_sync_step_can_give(const tn_sync_step *l, uint32_t rank);
/* Writes, from ROWS until the rank has pushed, its rows, laid out by its keys. May be called
 * again. */
void tn_sync_step_give(tn_sync_step *l, tn_team *team, uint32_t rank, float *to);
/* Returns 1 + the first rank whose request is due; 0: none is. */
uint32_t tn_sync_step_waits_for(const tn_sync_step *l);
/* Returns the squared norm: after NORM, this owner's part; after APPLIED, of all owners, or this
 * one's where there is no global clip. */
double tn_sync_step_norm2(const tn_sync_step *l);
/* Returns, after APPLIED, the loss of the joint batch, before the update. */
double tn_sync_step_loss(const tn_sync_step *l);
