/* leader.h - rank 0 among its peers: what the trainer has all others do, and what comes of it.
 *
 *     tn_leader_open, form              all are in
 *     tn_checkpoints_resume             every rank loads its part
 *     tn_leader_start                   all train until they meet (train/step/step_loop.h)
 *     at a meeting: tn_leader_sum       where all are, and what they scored
 *                   evaluate            all score their parts of a data set
 *                   tn_checkpoints_begin      every rank saves its part
 *     close
 *
 * It is the tn_ranks of a group; the functions here are what an epoch needs besides, for
 * group_epoch.c. The others' side is cluster/train/follower.h. Belongs to the trainer's thread, but
 * for what the checkpoints call on theirs.
 *
 * The result of an evaluation is that of one process to the last bit: integers are added up, and
 * where rows themselves are wanted (exact AUC, groups, slices, a sink) they all come to rank 0, in
 * the order of the data (cluster/train/score_exchange.h).
 */
#pragma once

#include "io/read/reader.h"
#include "metrics/metrics.h"
#include "train/group/ranks.h"

typedef struct tn_heartbeat_stats tn_heartbeat_stats;
typedef struct tn_part_dealer tn_part_dealer;
typedef struct tn_peers tn_peers;

typedef struct tn_leader tn_leader;

/* As in tn_group_kind: out->self is a tn_leader. */
tn_status tn_leader_open(tn_ranks *out, const tn_ranks_opts *opts, tn_error *err) TN_MUST_USE;

/* At staleness above 0: waits until the others have nothing left to read in this epoch. */
tn_status tn_leader_finish(tn_leader *l, tn_error *err) TN_MUST_USE;

/* At staleness above 0: the others ask for their parts of this epoch; NULL: no more. The dealer
 * must outlive that. */
void tn_leader_deal(tn_leader *l, tn_part_dealer *dealer);

/* This rank's part has taken too long and another rank is idle: it is to give back what it holds.
 * `forget`: it does so now. */
bool tn_leader_gives_back(tn_leader *l, bool forget);

/* The others open `epoch`, the first of a run, and look at its first rows (tn_reader_prior). What
 * they hold is added to *sum, which has rank 0's, in rank order. */
tn_status tn_leader_prior(tn_leader *l, uint32_t epoch, tn_error *err) TN_MUST_USE;
tn_status tn_leader_add_priors(tn_leader *l, uint32_t epoch, tn_prior *sum,
                               tn_error *err) TN_MUST_USE;

/* All train in `epoch` until they meet, with learning rates times `lr_scale` and a schedule that
 * ends at step `end`, if it ends with the run. The first time with rank 0's output bias, which may
 * have been drawn from its data, unless the weights were loaded. */
typedef struct tn_leader_begin {
    uint32_t epoch;
    bool is_fresh;
    double lr_scale;
    uint64_t end;
} tn_leader_begin;
tn_status tn_leader_start(tn_leader *l, const tn_leader_begin *how, tn_error *err) TN_MUST_USE;

/* Sums of an epoch over all ranks. */
typedef struct tn_leader_totals {
    uint64_t records, bad;
    tn_progress *progress; /* per rank; lent until the next call */
} tn_leader_totals;

/* At a meeting. `own`: this rank's; its metrics are added to those of the others in `whole`. A
 * ledger that deals on request gets to know the parts that the others hold. */
tn_status tn_leader_sum(tn_leader *l, const tn_progress *own, const tn_metrics *metrics,
                        tn_metrics *whole, tn_leader_totals *out, tn_error *err) TN_MUST_USE;

/* How the ranks share an epoch (group_epoch.c). */
extern const tn_epoch_ops tn_group_epoch;

tn_peers *tn_leader_peers(tn_leader *l);
tn_heartbeat_stats *tn_leader_beats(tn_leader *l); /* rank 0's own */
