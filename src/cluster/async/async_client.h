/* async_client.h - the client (ps/shard/client.h) of a rank above staleness 0: each batch is a step
 * of its own, and nobody waits for another rank's steps.
 *
 * A batch takes one of s + 1 permits when it is pulled and gives it back when all owners have
 * acknowledged its push. So rows miss at most the last s pushes of this worker, and pushes travel
 * while the worker goes on; with `inf` there are as many permits as requests may be under way. The
 * progress of other ranks bounds nothing; see cluster/async/async_server.h, the owner's side. The
 * own shard is called directly, with the team: its rows miss none of this worker's pushes. With one
 * rank that is all there is, and the result is that of one process, whatever s.
 *
 * A pull waits for a permit, so batches that were pulled and not pushed may not hold all of them:
 * nobody would give one back. Gradients are those of the mean loss of the worker's own batch. Dense
 * weights come with acknowledgements; only `rows` puts them into the worker's copy, never while a
 * step computes. A push sends the gradients and makes the own shard's update. A rank without data
 * asks for nothing and delays nobody.
 *
 *     cut:   rest; when all ranks do: all requests are applied, nothing is under way
 *            refresh: the worker's copy holds all weights of now
 */
#pragma once

#include "cluster/exchange/exchange.h"
#include "ps/shard/client.h"

/* From staleness 1 on: 0 is one permit, too few for pulls_next. On failure out->self is NULL. */
tn_status tn_async_client_open(tn_client *out, const tn_exchange *x, tn_error *err) TN_MUST_USE;

extern const tn_client_ops tn_client_async;
