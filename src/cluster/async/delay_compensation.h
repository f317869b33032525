/* delay_compensation.h - delay compensation: corrects a late gradient for how far its weights have
 * moved.
 *
 *     g += dc * g * g * (w - w when it was pulled)        before all else of ps/optim/rule.h
 *
 * g * g stands for the diagonal of the Hessian: Zheng et al., Asynchronous SGD with Delay
 * Compensation (2017). `dc` is an option of each optimizer; where it is 0 everywhere nothing is
 * kept. From a pull until its push the owner keeps what it sent: the rows, and its range of the
 * dense vector at that moment, which is at most one message newer than what the worker computes
 * with. A norm that came with the push (cluster/async/pushnorm.h) is of the gradients as they were
 * sent. One thread at a time.
 */
#ifndef TN_CLUSTER_DELAY_COMPENSATION_H
#define TN_CLUSTER_DELAY_COMPENSATION_H

#include "cluster/exchange/owner_messages.h"
#include "ps/shard/shard.h"

bool tn_delay_is_on(const tn_rules *rules);

/* Keeps `rows`, which the pull of `keys` has just brought, and the `dense` weights of now: in d,
 * for the gradients that take their place. */
tn_status tn_delay_keep(tn_owner_floats *d, tn_shard *shard, const tn_keyset *keys,
                        const float *rows, size_t dense, tn_error *err) TN_MUST_USE;

/* `grads` of the same pull is compensated, and points into d until the next keep. `now` is room for
 * the weights of now, of the calling thread. */
tn_status tn_delay_compensate(tn_owner_floats *d, tn_owner_floats *now, tn_shard *shard,
                              tn_team *team, tn_gradients *grads, tn_error *err) TN_MUST_USE;

#endif
