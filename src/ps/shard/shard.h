/* shard.h - one peer's part of the model: partitions of the table, a range of the dense vector.
 *
 * Plain calls, no sockets: a server loop makes them for other peers, a training step for its own.
 * With one process there is one shard, which is the whole model. */
#pragma once

#include "base/core/error.h"

#include <stdbool.h>

typedef struct tn_dense_store tn_dense_store; /* ps/shard/dense.h */
typedef struct tn_keyset tn_keyset;           /* base/keys/keyset.h */
typedef struct tn_push tn_push;               /* ps/optim/rule.h */
typedef struct tn_rules tn_rules;             /* likewise */
typedef struct tn_table tn_table;             /* ps/table/table.h */
typedef struct tn_team tn_team;               /* base/thread/team.h */

typedef struct tn_shard {
    tn_table *table;
    tn_dense_store *dense;
    const tn_rules *rules;
    const bool *missing_init; /* per group */
} tn_shard;

/* The gradients of one push. */
typedef struct tn_gradients {
    const tn_keyset *keys;
    const float *rows;  /* row of key n at keys->at[n] */
    const float *dense; /* as long as the flat vector */
    bool finite;        /* rows are known to be */
} tn_gradients;

/* rows[keys->at[n]] := the rows of `keys`; missing ones are created. */
tn_status tn_shard_pull(tn_shard *s, tn_team *team, const tn_keyset *keys, float *rows,
                        tn_error *err) TN_MUST_USE;

/* The same for evaluation: creates nothing, counts nothing. missing[i] (NULL: not wanted): key i
 * has no row and reads as zeros. */
void tn_shard_peek(tn_shard *s, tn_team *team, const tn_keyset *keys, float *rows, bool *missing);

/* Scale, L2, clip (global over dense and rows together), rule, prox, bounds; *norm is that of all
 * gradients before the global clip. A gradient that is not finite changes nothing and is
 * TN_E_DIVERGED; so is one that scale, L2 or a weight make so, which without a global clip is
 * noticed only when other rows have changed. A weight_sum of 0 changes nothing either, counts
 * included. */
tn_status tn_shard_push(tn_shard *s, tn_team *team, const tn_gradients *grads, const tn_push *push,
                        double *norm, tn_error *err) TN_MUST_USE;

/* The same with the squared norm, for a weight_sum above 0. */
tn_status tn_shard_update(tn_shard *s, tn_team *team, const tn_gradients *grads,
                          const tn_push *push, double *norm2, tn_error *err) TN_MUST_USE;

/* The two halves of a push, for a model that lies on several shards: the squared norm of this
 * shard's gradients, and the update, given the norm of all. */
double tn_shard_norm2(tn_shard *s, tn_team *team, const tn_gradients *grads, const tn_push *push);
tn_status tn_shard_apply(tn_shard *s, tn_team *team, const tn_gradients *grads, const tn_push *push,
                         double norm2, tn_error *err) TN_MUST_USE;
