/* async_worker.h - a worker among its peers above staleness 0: each batch is a step of its own.
 *
 *     pull(k) -> rows(k) -> pull(k + 1), compute k -> push(k) -> rows(k + 1) -> ..
 *
 * A batch takes one of s + 1 permits when it is pulled and gives it back when all owners have
 * acknowledged its push. So rows miss at most the last s pushes of this worker, and pushes travel
 * while the worker goes on; with `inf` there are as many permits as requests may be under way. The
 * progress of other ranks bounds nothing; see cluster/async/async_server.h, the owner's side. The
 * own shard is called directly, with the team: its rows miss none of this worker's pushes. With one
 * rank that is all there is, and the result is that of one process, whatever s.
 *
 * Gradients are those of the mean loss of the worker's own batch. Dense weights come with
 * acknowledgements; only tn_async_worker_rows puts them into the worker's copy, never while a step
 * computes. A rank without data asks for nothing and delays nobody.
 *
 *     cut:   drain; when all ranks have: all requests are applied, nothing is under way
 *            refresh: the worker's copy holds all weights of now
 *
 * Belongs to the worker's thread, except for the calls that say otherwise.
 */
#ifndef TN_CLUSTER_ASYNC_WORKER_H
#define TN_CLUSTER_ASYNC_WORKER_H

#include "cluster/async/async_server.h"

typedef struct tn_async_worker tn_async_worker;

typedef struct tn_async_worker_opts {
    tn_link *link; /* carries the messages */
    tn_out_messages *pool;
    uint32_t rank;
    double staleness;     /* 0 (one permit) ..; INFINITY */
    uint64_t step;        /* updates of the run so far */
    uint64_t patience_ns; /* without an answer that is due: TN_E_PEER */
    tn_dedup *dedup; /* as in cluster/async/async_server.h; it and these must outlive the async */
    const tn_shares *shares;
    const tn_layout *layout;
    tn_shard *shard;             /* its dense range is not `weights` */
    float *weights;              /* the worker's copy of the whole vector */
    const tn_dense_run *trained; /* of the whole vector, ascending; copied */
    uint32_t n_trained;
    const tn_dense_run *moving; /* as in cluster/async/async_server.h */
    uint32_t n_moving;
    tn_values row_values, dense_values; /* how floats travel */
} tn_async_worker_opts;

/* On failure *out is NULL. */
tn_status tn_async_worker_open(tn_async_worker **out, const tn_async_worker_opts *opts,
                               tn_error *err) TN_MUST_USE;
/* Ends the shard's thread, which answers by the link: before the link is closed. */
void tn_async_worker_stop(tn_async_worker *g);
void tn_async_worker_close(tn_async_worker *g); /* when no message comes any more; NULL is fine */

/* Messages of the link: a PULL or PUSH, and an answer to one. On tn-net; never wait. */
void tn_async_worker_take_request(tn_async_worker *g, tn_in_message *incoming);
void tn_async_worker_take_answer(tn_async_worker *g, tn_in_message *incoming);

/* From any thread: calls that wait, or will, end with this. The first one counts. */
void tn_async_worker_fail(tn_async_worker *g, tn_status status, const char *why);

/* 1 + the rank whose answer the worker waits for; 0: none. From any thread. */
uint32_t tn_async_worker_waits_for(const tn_async_worker *g);

typedef struct tn_async_worker_batch {
    const tn_keyset *keys; /* lent until it is pushed, as are rows */
    float *rows;           /* as in ps/shard/shard.h */
    uint64_t examples;     /* not 0 */
    double weight_sum;     /* above 0 */
} tn_async_worker_batch;

/* Asks for the rows of a batch; waits for a permit. Batches that were pulled and not pushed may not
 * hold all of them: nobody would give one back. */
tn_status tn_async_worker_pull(tn_async_worker *g, const tn_async_worker_batch *batch,
                               tn_error *err) TN_MUST_USE;

/* Waits for the rows of the oldest batch that was not pushed, and brings the worker's copy of the
 * dense weights up to date with all that has come. Once per batch. */
tn_status tn_async_worker_rows(tn_async_worker *g, tn_team *team, tn_error *err) TN_MUST_USE;

/* Sends the gradients of that batch and makes the own shard's update. dense: of the whole flat
 * vector. Both are the caller's again. Of `push` lr_factor and day count. TN_E_DIVERGED: they are
 * not finite. */
tn_status tn_async_worker_push(tn_async_worker *g, tn_team *team, const float *grads,
                               const float *dense, const tn_push *push, tn_error *err) TN_MUST_USE;

/* Waits until every push is acknowledged. No batch may be pulled and not pushed. */
tn_status tn_async_worker_drain(tn_async_worker *g, tn_error *err) TN_MUST_USE;

/* Drained: the worker's copy := the weights of all owners now. */
tn_status tn_async_worker_refresh(tn_async_worker *g, tn_error *err) TN_MUST_USE;

/* Of the pushes that were acknowledged since the last call. */
typedef struct tn_async_worker_seen {
    uint64_t pushes;
    double norm;            /* of the gradients of the newest, before the global clip */
    uint64_t staleness_max; /* updates of a shard between a pull and its push */
} tn_async_worker_seen;
void tn_async_worker_take_seen(tn_async_worker *g, tn_async_worker_seen *out);

/* Updates of the own shard so far: that of every shard when all ranks are drained. */
uint64_t tn_async_worker_updates(const tn_async_worker *g);

#endif
