/* async_worker_state.h - what the files of the free-running worker share; for async*.c only.
 *
 *     async_worker.c        what the worker calls
 *     async_worker_open.c    opening and closing; answers come in, on tn-net
 */
#ifndef TN_CLUSTER_ASYNC_WORKER_STATE_H
#define TN_CLUSTER_ASYNC_WORKER_STATE_H

#include "cluster/async/async_worker.h"
#include "cluster/exchange/batch_messages.h"
#include "cluster/net/wakeup.h"

/* A batch on its way: one permit. */
typedef struct tn_flight {
    tn_owner_slices slices; /* the worker's, as are these two */
    tn_async_batch of;
    bool has_rows;
    /* Guarded by lock: */
    bool held; /* the permit is */
    bool pushed;
    uint64_t number;    /* `step` of its messages */
    uint32_t n_left;    /* owners that have not acknowledged the push */
    bool *acknowledged; /* n_ranks */
    double norm2;       /* of all its gradients so far */
    uint64_t staleness; /* the largest so far */
} tn_flight;

struct tn_async {
    tn_async_opts opts;
    uint32_t n_ranks, permits;
    tn_bell bell;
    tn_freeserve *serve;
    tn_batchio io;
    tn_dense_run *trained;
    tn_parcel **parcel; /* n_ranks: of one push */
    tn_keyset none;     /* no keys */
    uint32_t *zeros;    /* of it */
    uint64_t n_pulled, n_pushed;
    uint32_t order[TN_PERMITS_MAX]; /* flights by number of the pull, modulo permits */
    tn_status failed;
    tn_error err;
    _Atomic uint32_t waits_for;

    pthread_mutex_t lock;
    tn_flight flight[TN_PERMITS_MAX]; /* permits; guarded by lock in part */
    tn_letter *first, *last;          /* guarded by lock: answers, oldest first .. */
    tn_letter **newest;               /* .. of each rank the last weights, not read yet .. */
    tn_async_seen seen;
    uint64_t seen_number;
    tn_status ended; /* .. and what tn_async_fail said */
    tn_error why;
};

/* Under the lock: one owner has acknowledged a push. */
void tn_flight_acknowledge(tn_async *g, tn_flight *f, uint32_t owner, const tn_pushed_here *what);

#endif
