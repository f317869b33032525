/* scaleowner.h - one owner of a part of the model that bench_scale trains: see scale.h.
 *
 * 26 groups whose rows have a wide and a deep segment, under row-wise Adagrad; Adam on the dense
 * vector. No global clip: owners do not wait for each other.
 */
#ifndef TN_BENCH_SCALEOWNER_H
#define TN_BENCH_SCALEOWNER_H

#include "cluster/sync/sync_step.h"
#include "scale.h"
#include "tablerows.h"

typedef struct tn_scale_owner {
    tn_arena *arena;
    tn_bench_model base; /* for its options */
    tn_share_group group[TN_SCALE_SLOTS];
    tn_rule rule[TN_SCALE_SLOTS * TN_SEGMENTS_MAX];
    tn_record record;
    tn_layout layout;
    tn_rules rules;
    float *weights;
    size_t dense; /* floats of its range */
    tn_shard shard;
    tn_sync_step *steps;
    tn_keyblock *block;          /* of each rank */
    float **grads, **dense_grad; /* of each rank; the caller takes memory for what comes */
    float *rows;                 /* for one */
} tn_scale_owner;

/* Peer 0 of `shares`, which must outlive it. It stays in place. */
void tn_scale_owner_init(tn_scale_owner *own, const tn_shares *shares);
void tn_scale_owner_done(tn_scale_owner *own, uint32_t n_ranks);

#endif
