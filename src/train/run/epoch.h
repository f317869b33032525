/* epoch.h - the epoch that runs, in the process that leads the run: its data, its steps, its
 * counts, and the other ranks that train with it (train/peers/leader.h).
 *
 *     TN_TRY(tn_epoch_open(e, report, err));           the reader, from where the run stands
 *     TN_TRY(tn_epoch_begin_steps(e, err));            all ranks train
 *     tn_epoch_note(e, turn);                          behind each turn of this one
 *     TN_TRY(tn_epoch_wait_for_all(e, err));           nothing is left for any rank
 *     tn_epoch_close(e);
 *     TN_TRY(tn_epoch_finish(e, &end, err));           what all have learned; the next one
 *
 * A run alone has no `lead`: nobody is ordered or waited for. The place in the data stands in the
 * state of the run. Others read the fields, which only epoch.c changes once it is initialized.
 * Belongs to the trainer's thread.
 */
#pragma once

#include "train/report/peer_progress.h"
#include "train/run/heartbeat_stats.h"

typedef struct tn_checkpoints tn_checkpoints;
typedef struct tn_eval_request tn_eval_request;
typedef struct tn_evaluation tn_evaluation;
typedef struct tn_leader tn_leader;
typedef struct tn_part_dealer tn_part_dealer;
typedef struct tn_report tn_report;
typedef struct tn_run tn_run;
typedef struct tn_run_state tn_run_state;
typedef struct tn_run_text tn_run_text;
typedef struct tn_step_loop tn_step_loop;
typedef struct tn_step_prefetch tn_step_prefetch;

typedef struct tn_epoch {
    const tn_run *run; /* these three are set by the owner and must outlive it */
    const tn_watch *watch;
    tn_run_state *state;
    tn_worker *w;
    tn_report *report;
    tn_metrics *metrics; /* progressive: scores from before each row's own update; the worker's */
    tn_step_prefetch *data;  /* NULL: none is open */
    tn_step_loop *steps;     /* over them */
    tn_part_dealer *dealer;  /* deals what several readers left of it; NULL: nobody need */
    tn_arena *map;           /* holds state->data .. */
    uint32_t number;         /* .. of this epoch, the last that was opened */
    tn_arena *parts;         /* holds state->part */
    tn_met met;              /* of it, by this process */
    bool is_begun;           /* one was opened by this process: it has learned, or might have */
    bool is_new_data;        /* the next one has other files than those before */
    bool is_whole;           /* it was opened at its beginning */
    uint64_t records_before; /* in the epoch before; 0: not known */
    uint64_t samples_before; /* consumed before it */
    uint64_t returned;       /* records of it by readers before */
    uint64_t reassigned;     /* parts taken back before it */
    uint64_t schedule_end;   /* step; when the schedule ends with the run */

    tn_leader *lead;          /* of the other ranks; NULL: alone */
    tn_heartbeat_stats beats; /* to them */
    tn_metrics *whole;        /* as metrics, of all ranks; when alone, these */
    bool is_async;            /* above staleness 0, with others: each rank makes steps of its own */
    bool is_stopped;          /* a signal to another rank wants the end .. */
    bool is_full;             /* .. or its memory */
    uint64_t bad_of_others;   /* records in this epoch, as of the last meeting */
} tn_epoch;

/* Takes its memory, which is to be known when the limit of the table is found. */
tn_status tn_epoch_init(tn_epoch *e, tn_worker *w, tn_error *err) TN_MUST_USE;

/* Gathers the other processes of the run, if there are any: they save and load with `c`. */
tn_status tn_epoch_form(tn_epoch *e, const tn_run_text *text, tn_checkpoints *c,
                        tn_error *err) TN_MUST_USE;

/* The others end as this run does, also those that wait for a group still. Then `e` is done, which
 * may not have been initialized, or without success. */
void tn_epoch_done(tn_epoch *e, tn_status status, const char *why);

/* ---- its data ---- */

/* Opens what is left of the epoch of state->progress, and has the others ask for their parts of it.
 * TN_E_DATA, here and when the files are looked at again: they hold other bytes than before, and
 * data.changed does not accept that. */
tn_status tn_epoch_open(tn_epoch *e, tn_report *report, tn_error *err) TN_MUST_USE;
void tn_epoch_close(tn_epoch *e); /* its steps, too */

/* The next epoch is the first of other data than those before: of the next day. */
void tn_epoch_begin_data(tn_epoch *e);

/* Warns when some rank will have no part. */
tn_status tn_epoch_check_parts(const tn_epoch *e, tn_error *err) TN_MUST_USE;

/* ---- its steps ---- */

/* Has all ranks train what is left of it. Before, the label rate of all ranks' first rows becomes
 * the output bias, unless weights came from somewhere. TN_END: alone, there are no rows. */
tn_status tn_epoch_begin_steps(tn_epoch *e, tn_error *err) TN_MUST_USE;

/* After a turn: the state moves on behind it, and the others are told with the heartbeats. */
void tn_epoch_note(tn_epoch *e, const tn_step_turn *turn);

/* What the others ask for with their heartbeats, into is_stopped, is_full and watch->save. True:
 * all should stand still so that parts can be dealt anew. */
bool tn_epoch_hear(tn_epoch *e);

/* The worker has reached a meeting. `give_back` is for dealing parts anew, if that was asked for:
 * those of this rank go to others that are idle, and it asks for other ones. When `gather` returns
 * all stand still, and the worker's weights are those of all owners. Then all go on. */
tn_status tn_epoch_give_back(tn_epoch *e, bool *given, tn_error *err) TN_MUST_USE;
tn_status tn_epoch_gather(tn_epoch *e, tn_error *err) TN_MUST_USE;
tn_status tn_epoch_go_on(tn_epoch *e, tn_error *err) TN_MUST_USE;

/* Nothing of the epoch is left for this rank: waits until nothing is left for any. */
tn_status tn_epoch_wait_for_all(tn_epoch *e, tn_error *err) TN_MUST_USE;

/* ---- where all stand ---- */

/* At a meeting: where the epoch stands, with its parts, into the state of the run and `whole`. */
tn_status tn_epoch_locate(tn_epoch *e, tn_error *err) TN_MUST_USE;

/* At a meeting, or alone: tn_evaluate by all ranks, as one phase of the run. */
tn_status tn_epoch_evaluate(tn_epoch *e, const tn_eval_request *request, tn_evaluation *out,
                            tn_error *err) TN_MUST_USE;

/* The files are looked at again, which may have changed meanwhile; what all have learned is summed
 * up. TN_E_DATA: they have met too many bad records, or none. Then the state moves on to the next
 * epoch; and back, for a run that is to come here again. */
typedef struct tn_epoch_end {
    tn_progress progress;
    uint64_t epoch_step, samples_before;
} tn_epoch_end;
tn_status tn_epoch_finish(tn_epoch *e, tn_epoch_end *out, tn_error *err) TN_MUST_USE;
void tn_epoch_return(tn_epoch *e, const tn_epoch_end *end);

uint64_t tn_epoch_reassigned(const tn_epoch *e); /* parts taken back, in the whole run */

/* Share of it that is learned by all ranks, as far as they have told, 0 .. 1; NAN: not known. */
double tn_epoch_share(const tn_epoch *e);
