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
#pragma once

#include "cluster/exchange/exchange.h"
#include "ps/shard/client.h"

/* Opens a client. On failure out->self is NULL. */
tn_status tn_sync_client_open(tn_client *out, const tn_exchange *x, tn_error *err) TN_MUST_USE;

extern const tn_client_ops tn_client_sync;
