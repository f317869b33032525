/* client.h - the interface of a training step to the parameter servers, wherever the model is.
 *
 *     pull(k) -> rows(k) -> [pull(k + 1),] compute k -> push(k) -> rows(k + 1) -> ..
 *
 * One interface, three constants; train/step/step_loop.h, the only user in a run, does not know
 * which one it has:
 *
 *     tn_client_alone    ps/shard/client.c             one process: calls of its own shard
 *     tn_client_sync     cluster/sync/sync_client.h    staleness 0: one step of all ranks together
 *     tn_client_async    cluster/async/async_client.h  staleness s: each batch is a step, and this
 *                                                      rank's last s pushes may be under way
 *
 * So staleness is a property of the client alone: it decides which replies a push waits for.
 *
 * Calls belong to the worker's thread, but for those that say otherwise. After a failure only
 * `close` may be called.
 */
#pragma once

#include "base/core/error.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tn_dense_run tn_dense_run; /* ps/shard/dense.h */
typedef struct tn_keyset tn_keyset;       /* base/keys/keyset.h */
typedef struct tn_push tn_push;           /* ps/optim/rule.h */
typedef struct tn_shard tn_shard;         /* ps/shard/shard.h */
typedef struct tn_team tn_team;           /* base/thread/team.h */

struct tn_in_message; /* cluster/net/link.h */

/* The batch of a rank for a step. */
typedef struct tn_client_batch {
    const tn_keyset *keys; /* lent, as are rows, until its push has returned; of a batch that weighs
                              nothing, until its rows have */
    float *rows;           /* as in ps/shard/shard.h; written until `rows` returns */
    uint64_t examples;     /* 0: this rank has no data left (joint steps only) */
    double weight_sum;     /* above 0 where steps are not joint */
    bool meet; /* joint steps only: all ranks meet after this one, and every rank knows it */
} tn_client_batch;

/* The batch of a step, once its rows have come: this rank's, or that of all ranks. */
typedef struct tn_joint_batch {
    uint64_t step;
    uint64_t first_row; /* the position of the rank's first row; dropout draws by it */
    uint64_t rows;
    double weight_sum; /* 0: no rows were written, and no push follows */
    bool over;         /* joint steps only: no rank has data left */
    bool meet;         /* joint steps only: some rank wants it */
} tn_joint_batch;

/* Gradients of the mean loss over the joint batch's weight. */
typedef struct tn_client_gradients {
    const float *rows;  /* at keys->at; NULL: the batch has no examples */
    const float *dense; /* along the flat vector; new values of those that are not trained but
                           follow from the data (running statistics) */
    double loss;        /* this rank's part of that mean; finite */
    bool finite;        /* rows are known to be; else a process that holds the model looks */
} tn_client_gradients;

typedef struct tn_client_update {
    double loss;        /* mean over the joint batch before the update, the same on every rank */
    double norm;        /* all gradients before the global clip; above staleness 0 those of the
                           newest push that was acknowledged */
    uint64_t staleness; /* most updates of a shard between a pull and its push, of late */
    uint64_t updates;   /* all of the run that are known here; 0: one more */
} tn_client_update;

/* Returns the seconds that the worker has waited for others since the beginning. */
typedef struct tn_client_waits {
    double rows_s, weights_s; /* the latter with statistics of the joint batch */
} tn_client_waits;

/* Functions that may be NULL do nothing, or return zeros. */
typedef struct tn_client_ops {
    bool is_joint;   /* a step is one of all ranks: also those without data take part in it */
    bool pulls_next; /* the next batch is pulled before this one is pushed: two are under way */

    /* Asks for the rows of a batch. */
    tn_status (*pull)(void *self, const tn_client_batch *batch, tn_error *err);
    /* Waits for the rows of the oldest batch that has none, and for the dense weights of that time.
     */
    tn_status (*rows)(void *self, tn_team *team, tn_joint_batch *out, tn_error *err);
    /* Joint steps only: brings own[n] of every rank to every rank: *all has n doubles of each, in
     * rank order, lent until the next call. Between rows and push, as often as is needed; all ranks
     * make the same calls. TN_E_DIVERGED: a number is not finite. */
    tn_status (*gather)(void *self, tn_team *team, const double *own, uint32_t n,
                        const double **all, tn_error *err);
    /* The update from that batch. Of `how` lr_factor and day count; what is given is the caller's
     * again. TN_E_DIVERGED: the norm is not finite (ps/shard/shard.h). */
    tn_status (*push)(void *self, tn_team *team, const tn_client_gradients *grads,
                      const tn_push *how, tn_client_update *out, tn_error *err);
    /* Waits until nothing of this rank is under way: every batch that was pulled is pushed, or
     * weighs nothing. The worker then does something else than steps. May be NULL. */
    tn_status (*rest)(void *self, tn_team *team, tn_error *err);
    /* When all ranks rest: the worker's dense weights are those of all owners now. May be NULL. */
    tn_status (*refresh)(void *self, tn_error *err);
    uint64_t (*updates)(const void *self);       /* on any thread; may be NULL */
    tn_client_waits (*waited)(const void *self); /* may be NULL */

    /* Messages of other ranks, NULL where there are none: take over a request, or the answer to
     * one (NULL: it goes into the worker's queue). On tn-net; never wait. */
    void (*take_request)(void *self, struct tn_in_message *incoming);
    void (*take_answer)(void *self, struct tn_in_message *incoming);
    void (*stop)(void *self); /* serves nobody any more: before its link is closed; may be NULL */

    void (*close)(void *self); /* when no message comes any more; NULL is fine */
} tn_client_ops;

typedef struct tn_client {
    const tn_client_ops *ops; /* NULL: there is none */
    void *self;
} tn_client;

/* A client of the whole model in this process. `moving`: runs of the flat vector whose gradient is
 * their new value; these and the shard must outlive it. On failure out->self is NULL. */
tn_status tn_client_open_alone(tn_client *out, tn_shard *shard, const tn_dense_run *moving,
                               uint32_t n_moving, tn_error *err) TN_MUST_USE;
void tn_client_close(tn_client *c); /* none is fine */

extern const tn_client_ops tn_client_alone;
