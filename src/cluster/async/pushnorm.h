/* pushnorm.h - the norm of all gradients of one push, at its sender.
 *
 * The global clip needs it where a push is an update of its own: each of its owners has only a
 * part. Like tn_shard_norm2 it is taken after scale, L2, value and row clip, but with the weights
 * that were pulled instead of those of now, and without the rows outside the batch that `l2_mode:
 * dense` decays. In double; the same bits for any team.
 */
#ifndef TN_CLUSTER_PUSHNORM_H
#define TN_CLUSTER_PUSHNORM_H

#include "base/keys/keyset.h"
#include "base/thread/team.h"
#include "ps/shard/dense.h"

typedef struct tn_push tn_push;   /* ps/optim/rule.h */
typedef struct tn_rules tn_rules; /* likewise */

typedef struct tn_pushnorm {
    const tn_rules *rules;
    const tn_keyset *keys;
    const float *rows, *grads; /* at keys->at: weights and their gradients */
    const tn_dense_run *run;   /* of the flat vector: what is trained */
    uint32_t n_runs;
    const float *weights, *dense; /* the flat vector and its gradient */
    const tn_push *push;          /* of which weight_sum counts */
} tn_pushnorm;

/* Squared; not finite if a gradient is not. */
double tn_pushnorm2(tn_team *team, const tn_pushnorm *x);

#endif
