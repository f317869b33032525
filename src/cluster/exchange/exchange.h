/* exchange.h - the part of a rank in the exchange of rows and dense weights: the settings that its
 * client, its owner's side and its evaluation share.
 */
#pragma once

#include "base/core/arena.h"
#include "cluster/exchange/reply_queue.h"
#include "cluster/wire/dedup.h"
#include "cluster/wire/float_codec.h"
#include "ps/shard/ownership.h"
#include "ps/shard/shard.h"

typedef struct tn_layout tn_layout; /* base/keys/record.h */

/* Facts and parts that all sides of an exchange share; they must outlive those who are given it. */
typedef struct tn_exchange {
    tn_arena *arena; /* memory for things that last as long as its users */
    tn_link *link;   /* carries the messages */
    tn_out_messages *pool;
    tn_reply_queue *replies; /* queue of the worker */
    uint32_t rank;
    uint64_t step;    /* updates of the run so far */
    double staleness; /* 0; or 1 .., INFINITY */
    /* dedup of every rank, begun; requests of other kinds are marked there, too */
    tn_dedup *dedup;
    const tn_shares *shares;
    const tn_layout *layout;
    tn_shard *shard;
    const float *own; /* weights of the shard's range of the flat vector */
    float *weights;   /* the worker's copy of the whole vector; above staleness 0 not of `own` */
    /* Runs of the whole vector, ascending: those that an optimizer trains, and running statistics,
     * whose gradient is their new value. */
    const tn_dense_run *trained, *moving;
    uint32_t n_trained, n_moving;
    tn_values values; /* how floats travel */
} tn_exchange;

/* Floats of the rank's range of the flat vector. */
static inline size_t tn_exchange_dense(const tn_exchange *x)
{
    return x->shares->dense[x->rank + 1] - x->shares->dense[x->rank];
}
