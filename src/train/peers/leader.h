/* leader.h - rank 0 among its peers: what the trainer has all others do, and what comes of it.
 *
 *     tn_leader_open, form                all are in
 *     tn_checkpoints_resume             every rank loads its part
 *     tn_leader_start                     all train until they meet (train/step/step_loop.h)
 *     at a meeting: tn_leader_sum         where all stand, and what they scored
 *                   tn_leader_evaluate          all score their parts of a data set
 *                   tn_checkpoints_begin      every rank saves its part
 *     tn_leader_close
 *
 * The others' side is train/run/follower.h. Belongs to the trainer's thread, but for what the
 * checkpoints call on theirs.
 */
#pragma once

#include "ps/table/table.h"
#include "train/eval/evaluate.h"

typedef struct tn_checkpoints tn_checkpoints;
typedef struct tn_part_dealer tn_part_dealer;
typedef struct tn_peer_progress tn_peer_progress;
typedef struct tn_peers tn_peers;
typedef struct tn_run_text tn_run_text;
typedef struct tn_watch tn_watch;

typedef struct tn_leader tn_leader;

/* `w`, `text`, `watch` (tn_peers_open) and `c`, which saves and loads with all others from now on,
 * must outlive it; NULL: nothing is saved. On failure *out is NULL. */
tn_status tn_leader_open(tn_leader **out, tn_worker *w, const tn_run_text *text,
                         const tn_watch *watch, tn_checkpoints *c, tn_error *err) TN_MUST_USE;
tn_status tn_leader_form(tn_leader *l, const atomic_bool *stop, tn_error *err) TN_MUST_USE;

/* The run ends like this: the others do, too. Frees; NULL is fine. True: it had failed in another
 * rank, which tells people. */
bool tn_leader_close(tn_leader *l, tn_status status, const char *why);

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

/* At a meeting: rows that expire on `day` leave everywhere. What the others did is added to
 * groups[n], which has rank 0's. */
tn_status tn_leader_sweep(tn_leader *l, uint32_t day, tn_group_rows *groups, uint32_t n,
                          tn_error *err) TN_MUST_USE;

/* When rank 0 has read its part of a checkpoint that is to be evaluated: the others do the same.
 * Path "": first weights, from the files of checkpoint.from. */
tn_status tn_leader_load(tn_leader *l, const char *path, tn_error *err) TN_MUST_USE;

/* Where the epoch stands, over all ranks. */
typedef struct tn_leader_totals {
    uint64_t records, bad;
    tn_progress *progress; /* per rank; lent until the next call */
} tn_leader_totals;

/* At a meeting. `own`: this rank's; its metrics are added to those of the others in `whole`. Where
 * parts are dealt on request, the ledger hears what the others hold. */
tn_status tn_leader_sum(tn_leader *l, const tn_progress *own, const tn_metrics *metrics,
                        tn_metrics *whole, tn_leader_totals *out, tn_error *err) TN_MUST_USE;

/* At a meeting: tn_evaluate by all ranks, each of its parts of a data set: "valid" or "test"; those
 * that evaluate only know which one. The result is that of one process to the last bit: integers
 * are added up, and where rows themselves are wanted (exact AUC, groups, slices, a sink) they all
 * come to rank 0, in the order of the data (train/peers/score_exchange.h). */
tn_status tn_leader_evaluate(tn_leader *l, const char *data, const tn_eval_request *request,
                             tn_evaluation *out, tn_error *err) TN_MUST_USE;

/* The others write their rows into the folder of an export (train/export/exportrows.h); and all
 * have. */
tn_status tn_leader_export(tn_leader *l, const char *folder, tn_error *err) TN_MUST_USE;
tn_status tn_leader_exported(tn_leader *l, tn_error *err) TN_MUST_USE;

tn_peers *tn_leader_peers(tn_leader *l);
tn_peer_progress *tn_leader_peer_progress(tn_leader *l); /* what the others have learned */
