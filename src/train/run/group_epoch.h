/* group_epoch.h - an epoch of rank 0 with other peers (train/peers/leader.h).
 *
 * A run alone has one, too: `lead` is NULL, nobody is ordered or waited for. Others read the
 * fields, which only group_epoch.c changes. Belongs to the trainer's thread.
 */
#ifndef TN_TRAIN_GROUP_EPOCH_H
#define TN_TRAIN_GROUP_EPOCH_H

#include "train/run/heartbeat_stats.h"

typedef struct tn_checkpoints tn_checkpoints;
typedef struct tn_epoch tn_epoch; /* train/run/epoch.h */
typedef struct tn_eval_request tn_eval_request;
typedef struct tn_evaluation tn_evaluation;
typedef struct tn_leader tn_leader;
typedef struct tn_metrics tn_metrics;
typedef struct tn_metrics_opts tn_metrics_opts;
typedef struct tn_run tn_run;
typedef struct tn_run_text tn_run_text;

typedef struct tn_group_epoch {
    tn_epoch *epoch; /* of this rank */
    const tn_watch *watch;
    tn_leader *lead;          /* of the other peers; NULL: alone */
    tn_heartbeat_stats beats; /* to them */
    tn_metrics *whole;        /* as epoch->metrics, of all peers; when alone, these */
    bool is_async;            /* above staleness 0, with others: each rank makes steps of its own */
    bool is_stopped;          /* a signal to another rank wants the end .. */
    bool is_full;             /* .. or its memory */
    uint64_t bad_of_others;   /* records in this epoch, as of the last meeting */
} tn_group_epoch;

/* Gathers the other processes of the run, if there are any: they save and load with `c`. The rest
 * is set by the owner. All must outlive it. */
tn_status tn_group_epoch_open(tn_group_epoch *g, const tn_run_text *text, tn_checkpoints *c,
                              const tn_metrics_opts *metrics, tn_error *err) TN_MUST_USE;

/* The others end as this run does, also those that wait for a group still. Also after a failure. */
void tn_group_epoch_close(tn_group_epoch *g, const tn_run *run, tn_status status, const char *why);

/* What the others ask for with their heartbeats, into is_stopped, is_full and watch->save. True:
 * all should stand still so that parts can be dealt anew. */
bool tn_group_epoch_hear(tn_group_epoch *g);

/* Warns when some rank will have no part. */
tn_status tn_group_epoch_check_parts(const tn_group_epoch *g, tn_error *err) TN_MUST_USE;

/* Has the others ask for their parts of the epoch that was opened; or, before the next, no more. */
void tn_group_epoch_deal(tn_group_epoch *g, bool deals);

/* The label rate of all ranks' first rows becomes the output bias, unless weights came from
 * somewhere. TN_END: alone, there are no rows. */
tn_status tn_group_epoch_prior(tn_group_epoch *g, tn_error *err) TN_MUST_USE;

/* Has all peers train, from the beginning of what is left of an epoch, `at_first`, or after a
 * meeting. */
tn_status tn_group_epoch_start(tn_group_epoch *g, bool at_first, tn_error *err) TN_MUST_USE;

/* After a turn of this rank: what its heartbeats say. */
void tn_group_epoch_beat(tn_group_epoch *g, const tn_step_turn *turn);

/* The worker has reached a meeting. `give_back` is for dealing parts anew, if that was asked for;
 * when `gather` returns all stand still, and the worker's weights are those of all owners. */
tn_status tn_group_epoch_give_back(tn_group_epoch *g, bool *given, tn_error *err) TN_MUST_USE;
tn_status tn_group_epoch_gather(tn_group_epoch *g, tn_error *err) TN_MUST_USE;

/* Nothing of the epoch is left for this rank: waits until nothing is left for any. */
tn_status tn_group_epoch_end(tn_group_epoch *g, tn_error *err) TN_MUST_USE;

/* At a meeting: where the epoch stands, into the state of the run and `whole`. */
tn_status tn_group_epoch_sum(tn_group_epoch *g, tn_error *err) TN_MUST_USE;

/* At a meeting, or alone: tn_evaluate by all ranks, as one phase of the run. */
tn_status tn_group_epoch_evaluate(tn_group_epoch *g, const tn_eval_request *request,
                                  tn_evaluation *out, tn_error *err) TN_MUST_USE;

/* Records of this epoch that the others have read, as far as they have told. */
uint64_t tn_group_epoch_records(const tn_group_epoch *g);

/* TN_E_DATA, after the sum of a whole epoch: the ranks have met too many bad records, or none. */
tn_status tn_group_epoch_judge(const tn_group_epoch *g, tn_error *err) TN_MUST_USE;

#endif
