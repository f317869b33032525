/* pushnorm.h - the norm of all gradients of one push, at its sender.
 *
 * The global clip needs it where a push is an update of its own: each of its owners has only a
 * part. Like tn_shard_norm2 it is taken after scale, L2, value and row clip, but with the weights
 * that were pulled instead of those of now, and without the rows outside the batch that `l2_mode:
 * dense` decays. In double; the same bits for any team.
 */
#pragma once

#include "cluster/exchange/exchange.h"

typedef struct tn_push tn_push; /* ps/optim/rule.h */

/* Returns the squared norm; not finite if a gradient is not. `rows` are the weights at keys->at,
 * and of `push` weight_sum counts. */
double tn_pushnorm2(tn_team *team, const tn_exchange *x, const float *rows,
                    const tn_gradients *grads, const tn_push *push);
