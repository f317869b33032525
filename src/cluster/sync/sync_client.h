/* sync_client.h - the client (ps/shard/client.h) of a rank at staleness 0: one model, cut among all
 * ranks, one step at a time.
 *
 * Every owner is asked for its slice of the batch's keys, the own shard too, by plain call; a batch
 * without examples takes part in everything. One pull may be under way while the step before is
 * computed. Rows and dense weights are those after all updates of the step before; see
 * cluster/sync/sync_step.h for what makes N peers equal one process on the joint batch.
 *
 * Running statistics of the joint batch are the same on every rank; a push brings them to the own
 * range before owners answer with their weights, and to the worker's copy, whatever rounding the
 * way of floats has.
 *
 * Belongs to the worker's thread, which also does the steps of the own shard while it waits. While
 * it rests, others whose answers were lost get them from the net thread.
 */
#ifndef TN_CLUSTER_SYNC_CLIENT_H
#define TN_CLUSTER_SYNC_CLIENT_H

#include "cluster/sync/sync_server.h"
#include "ps/shard/client.h"

typedef struct tn_sync_client_opts {
    tn_link *link; /* carries the messages */
    tn_out_messages *pool;
    uint32_t rank;
    uint64_t step;        /* number of the first one */
    uint64_t patience_ns; /* without an answer that is due: TN_E_PEER */
    tn_dedup *dedup; /* as in cluster/sync/sync_server.h; it and these must outlive the client */
    const tn_shares *shares;
    const tn_layout *layout;
    tn_shard *shard;
    const float *own;           /* weights of the shard's range of the flat vector */
    float *weights;             /* the worker's copy of the whole vector */
    const tn_dense_run *moving; /* of the whole vector, ascending: running statistics */
    uint32_t n_moving;
    tn_values row_values, dense_values; /* how floats travel */
} tn_sync_client_opts;

/* On failure out->self is NULL. */
tn_status tn_sync_client_open(tn_client *out, const tn_sync_client_opts *opts,
                              tn_error *err) TN_MUST_USE;

extern const tn_client_ops tn_client_sync;

#endif
