/* async_server.h - the owner's side above staleness 0: requests are served in order of arrival, and
 * each push is one update.
 *
 *     tn-net     tn_async_server_take: check, decode into a slot of the rank ──> inbox
 *     tn-shard   PULL: rows of now   PUSH: one update, weights of now      ──> replies
 *     worker     tn_async_server_pull, _push: the own rank's, at once, with its team
 *
 * Neither the net thread nor a worker waits for the shard: it has a thread of its own. A rank has
 * at most `permits` pulls without a push: that bounds its staleness, and the owner refuses any
 * further pull. Each slot keeps the decoded keys of a pull until the push that names it; the reply
 * says how many updates of this shard came between the two. Other ranks do not count: a slow rank
 * delays nobody, and its gradients are late by as many updates as the others made meanwhile.
 *
 * A request counts once (cluster/wire/dedup.h). A duplicate whose reply was lost gets one again: a
 * pull the rows of today, a push the weights of today. A pull of a batch without examples, and the
 * push that names it, change nothing and count as no update, as does a push of a batch that weighs
 * nothing: they fetch the weights of now.
 *
 * Where the global clip is on, a push brings the norm of all its gradients, which only its sender
 * has: cluster/async/pushnorm.h. Weights in replies are a copy between two updates of the range.
 */
#pragma once

#include "cluster/exchange/batch_messages.h"
#include "cluster/exchange/owner_messages.h"

enum { TN_PERMITS_MAX = 32 }; /* half of what a sender may have unacknowledged */

/* Permits of a worker at `staleness` steps: one more, at most TN_PERMITS_MAX; INFINITY too. */
uint32_t tn_async_permits_of(double staleness);

typedef struct tn_async_server tn_async_server;

/* Starts the thread. What is given must outlive it; of `moving` the last push wins. `reply` is
 * called on tn-net and on tn-shard, which ends the worker's waits when it fails: nothing is served
 * any more. On failure *out is NULL. */
tn_status tn_async_server_open(tn_async_server **out, const tn_exchange *x,
                               const tn_reply_path *reply, tn_error *err) TN_MUST_USE;
/* Ends it, while `reply` still works; requests may still come and are not served. */
void tn_async_server_stop(tn_async_server *s);
/* Closes it when no request comes any more. NULL is fine. */
void tn_async_server_close(tn_async_server *s);

/* Takes a PULL or PUSH of another rank, on tn-net; all else is refused. The payload is not needed
 * afterwards. Never waits. */
void tn_async_server_take(tn_async_server *s, const tn_frame *frame);

/* Pulls for the own rank, by its worker: the owned slice of `keys`, which are lent until the push.
 * `place` (below permits) is the caller's name of the pull until then. Laid out by keys->at. */
tn_status tn_async_server_pull(tn_async_server *s, tn_team *team, uint32_t place,
                               const tn_keyset *keys, float *rows, tn_error *err) TN_MUST_USE;

/* Applies the own push. The norm of `grads` is that of the whole push where the global clip is on
 * (0: there is no other part), and weight_sum, lr_factor and day count of its push. *out: norm of
 * this owner's part before the global clip, and updates of this shard since the pull. */
tn_status tn_async_server_push(tn_async_server *s, tn_team *team, uint32_t place,
                               const tn_slices_gradients *grads, tn_dense_params *out,
                               tn_error *err) TN_MUST_USE;

/* Updates of this shard so far: the step of a checkpoint. Any thread. */
uint64_t tn_async_server_updates(const tn_async_server *s);
