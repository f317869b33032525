/* allreduce_stats.h - statistics over the joint batch of all ranks at staleness 0: what the graph
 * asks of its peers (nn/graph/peer_column_stats.h), carried by cluster/sync/sync_worker.h, and the
 * running values that follow from it.
 *
 *     forward, backward with feed.peers = &sums.peers
 *     TN_TRY(tn_allreduce_stats_check(&sums, err));
 *     tn_running_keep(w);         before the push: owners answer it with the running values of now
 *     push, weights
 *     tn_running_take(w);         which may have been rounded on their way
 *
 * Every rank computes the same running values from the same numbers. Belongs to the worker's
 * thread.
 */
#ifndef TN_TRAIN_ALLREDUCE_STATS_H
#define TN_TRAIN_ALLREDUCE_STATS_H

#include "cluster/sync/sync_worker.h"
#include "nn/graph/peer_column_stats.h"
#include "train/step/worker.h"

typedef struct tn_allreduce_stats {
    tn_feed_peers peers;
    tn_sync_worker *sync;
    tn_team *team;
    tn_status status; /* of the first exchange that failed; none is tried after it */
    tn_error err;
} tn_allreduce_stats;

/* `sync` and `w` must outlive it; it must stay where it is. */
void tn_allreduce_stats_init(tn_allreduce_stats *s, const tn_worker *w, tn_sync_worker *sync);

/* TN_OK, or why a step is void. */
tn_status tn_allreduce_stats_check(const tn_allreduce_stats *s, tn_error *err) TN_MUST_USE;

/* The forward pass left new running values where gradients stand: the worker's weights take them;
 * and its range of the shard does. */
void tn_running_take(tn_worker *w);
void tn_running_keep(tn_worker *w);

#endif
