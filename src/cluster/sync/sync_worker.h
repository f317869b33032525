/* sync_worker.h - a worker among its peers at staleness 0: one model, cut among all, one step at a
 * time.
 *
 *     pull(k) -> rows(k) -> pull(k + 1), compute k -> push(k) -> weights(k) -> rows(k + 1) -> ..
 *
 * Every owner is asked for its slice of the batch's keys, the own shard too, by plain call; a batch
 * without examples takes part in everything. One pull may be under way while the step before is
 * computed. Rows and dense weights are those after all updates of the step before; see
 * cluster/sync/sync_step.h for what makes N peers equal one process on the joint batch.
 *
 * Belongs to the worker's thread, which also does the steps of the own shard while it waits.
 */
#ifndef TN_CLUSTER_SYNC_WORKER_H
#define TN_CLUSTER_SYNC_WORKER_H

#include "cluster/sync/sync_server.h"

typedef struct tn_sync_worker tn_sync_worker;

typedef struct tn_sync_worker_opts {
    tn_link *link; /* carries the messages */
    tn_out_messages *pool;
    uint32_t rank;
    uint64_t step;        /* number of the first one */
    uint64_t patience_ns; /* without an answer that is due: TN_E_PEER */
    tn_dedup *dedup;      /* as in cluster/sync/sync_server.h; it and these must outlive the sync */
    const tn_shares *shares;
    const tn_layout *layout;
    tn_shard *shard;
    const float *own;                   /* weights of the shard's range of the flat vector */
    float *weights;                     /* the worker's copy of the whole vector */
    tn_values row_values, dense_values; /* how floats travel */
} tn_sync_worker_opts;

/* On failure *out is NULL. */
tn_status tn_sync_worker_open(tn_sync_worker **out, const tn_sync_worker_opts *opts,
                              tn_error *err) TN_MUST_USE;
void tn_sync_worker_close(tn_sync_worker *g); /* when no message comes any more; NULL is fine */

/* Messages of the link: a PULL, PUSH or SHARE, and an answer to one. On tn-net; never wait. */
void tn_sync_worker_take_request(tn_sync_worker *g, tn_in_message *incoming);
void tn_sync_worker_take_answer(tn_sync_worker *g, tn_in_message *incoming);

/* From any thread: calls that wait, or will, end with this. The first one counts. */
void tn_sync_worker_fail(tn_sync_worker *g, tn_status status, const char *why);

/* 1 + the rank that the worker waits for: one that has not asked or pushed, else one that has not
 * answered; 0: none. From any thread. */
uint32_t tn_sync_worker_waits_for(const tn_sync_worker *g);

/* How long the worker has stood still for others since the beginning; what it does for its own
 * shard meanwhile is no waiting. */
typedef struct tn_sync_worker_waits {
    double rows_s, weights_s; /* the latter with statistics of the joint batch */
} tn_sync_worker_waits;
tn_sync_worker_waits tn_sync_worker_waited(const tn_sync_worker *g);

typedef struct tn_sync_worker_batch {
    const tn_keyset *keys; /* lent until its push has been waited for */
    float *rows;           /* as in ps/shard/shard.h; written until tn_sync_worker_rows returns */
    uint64_t examples;     /* 0: the rank has no data left */
    double weight_sum;
    bool meet; /* by one rank: after this step all stand still, and every one knows it */
} tn_sync_worker_batch;

/* Asks for the rows of a batch; at most two batches are under way. */
tn_status tn_sync_worker_pull(tn_sync_worker *g, const tn_sync_worker_batch *batch,
                              tn_error *err) TN_MUST_USE;

/* Waits for the rows of the oldest batch without. A joint weight of 0: none are written, and no
 * push follows. */
tn_status tn_sync_worker_rows(tn_sync_worker *g, tn_team *team, tn_joint_batch *out,
                              tn_error *err) TN_MUST_USE;

/* Brings own[n] of every rank to every rank: *all has n doubles of each, in rank order, lent until
 * the next call. Between rows and push, as often as is needed; all ranks of a step that has weight
 * make the same calls with the same n in the same order, those without examples, too.
 * TN_E_DIVERGED: a number is not finite. */
tn_status tn_sync_worker_gather(tn_sync_worker *g, tn_team *team, const double *own, uint32_t n,
                                const double **all, tn_error *err) TN_MUST_USE;

/* The gradients and the loss of that batch. */
typedef struct tn_sync_worker_learned {
    const float *rows;  /* gradients of the mean loss of the joint batch, at keys->at; .. */
    const float *dense; /* .. of the whole flat vector; NULL without examples, as rows */
    double loss;        /* this rank's part of that mean; finite */
} tn_sync_worker_learned;

/* Sends it. Of `push` lr_factor and day count. */
tn_status tn_sync_worker_push(tn_sync_worker *g, const tn_sync_worker_learned *learned,
                              const tn_push *push, tn_error *err) TN_MUST_USE;

/* The step of all ranks. */
typedef struct tn_sync_worker_step {
    double norm; /* of all gradients before the global clip */
    double loss; /* mean of the joint batch before the update, the same on every rank */
} tn_sync_worker_step;

/* Waits until all owners have applied the step and the weights are up to date. TN_E_DIVERGED: the
 * norm was not finite; nothing was changed. */
tn_status tn_sync_worker_weights(tn_sync_worker *g, tn_team *team, tn_sync_worker_step *out,
                                 tn_error *err) TN_MUST_USE;

/* The worker does something else than steps, with nothing of its own under way, until the next
 * pull: others whose answers were lost get them from the net thread. */
tn_status tn_sync_worker_rest(tn_sync_worker *g, tn_team *team, tn_error *err) TN_MUST_USE;

#endif
