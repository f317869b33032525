/* epoch.h - the epoch that runs, in the process that leads the run: its data, its steps, its
 * counts, and how the ranks of the run share it (train/group/ranks.h).
 *
 *     TN_TRY(tn_epoch_open(e, report, err));           the reader, at the run's position
 *     TN_TRY(tn_epoch_begin_steps(e, err));            all ranks train
 *     tn_epoch_note(e, turn);                          after each turn of this one
 *     TN_TRY(e->ops->finish(e, err));                  nothing is left for any rank
 *     tn_epoch_close(e);
 *     TN_TRY(tn_epoch_finish(e, &end, err));           what all have learned; the next one
 *
 * The place in the data is in the state of the run. Others read the fields, which only epoch.c and
 * `ops` change once it is initialized. Belongs to the trainer's thread.
 */
#pragma once

#include "train/group/ranks.h"
#include "train/report/run_counts.h"
#include "train/run/epoch_reader.h"

typedef struct tn_report tn_report;
typedef struct tn_run_state tn_run_state;
typedef struct tn_step_loop tn_step_loop;
typedef struct tn_step_turn tn_step_turn;

typedef struct tn_epoch tn_epoch;

/* How the ranks of a run share an epoch: a constant of a process alone, and one of a group, which
 * tn_ranks_ops has. */
struct tn_epoch_ops {
    /* Opens e->data, and e->dealer where several readers have left parts of it, from where the run
     * is; the other ranks may ask for their parts then. Before the next they ask no more. */
    tn_status (*open_data)(tn_epoch *e, tn_error *err);
    void (*close_data)(tn_epoch *e);

    /* The label rate of the first rows of all ranks. TN_END: alone, there are none. */
    tn_status (*prior)(tn_epoch *e, tn_prior *out, tn_error *err);

    /* Has all ranks train: from the beginning of what is left (`at_first`), or after a meeting. */
    tn_status (*start)(tn_epoch *e, bool at_first, tn_error *err);

    /* Counts a turn in the state of the run, and sends the others what they need of it. */
    void (*note)(tn_epoch *e, const tn_step_turn *turn);

    /* Takes what the others ask for into is_stopped, is_full and watch->save. True: all are to
     * meet so that parts can be dealt anew. */
    bool (*hear)(tn_epoch *e);

    /* The worker has reached a meeting. `give_back` is for dealing parts anew, if that was asked
     * for: those of this rank go to others that are idle, and it asks for other ones. When `gather`
     * returns all wait, and the worker's weights are those of all owners. Then `start` has all go
     * on. */
    tn_status (*give_back)(tn_epoch *e, bool *given, tn_error *err);
    tn_status (*gather)(tn_epoch *e, tn_error *err);

    /* Nothing of the epoch is left for this rank: waits until nothing is left for any. */
    tn_status (*finish)(tn_epoch *e, tn_error *err);

    /* At a meeting: sums up what all ranks have learned in the epoch that is open, into `whole` and
     * the state of the run. */
    tn_status (*sum)(tn_epoch *e, tn_error *err);

    /* TN_E_DATA: all ranks together have met too many bad records in the epoch that is over; alone
     * the reader looks. */
    tn_status (*judge)(tn_epoch *e, tn_error *err);
};

struct tn_epoch {
    const tn_run *run; /* these three are set by the owner and must outlive it */
    const tn_watch *watch;
    tn_run_state *state;
    tn_worker *w;
    tn_report *report;
    tn_metrics *metrics; /* progressive: scores from before each row's own update; the worker's */
    tn_step_prefetch *data;  /* NULL: none is open */
    tn_step_loop *steps;     /* over them */
    tn_epoch_dealer dealer;  /* deals what several readers left of it; none: nobody need */
    tn_arena *map;           /* holds state->data of epoch `number` */
    uint32_t number;         /* the epoch that was opened last */
    tn_arena *parts;         /* holds state->part */
    tn_met met;              /* counts of this epoch, by this process */
    bool is_begun;           /* one was opened by this process: it has learned, or might have */
    bool is_new_data;        /* the next one has other files than those before */
    bool is_whole;           /* it was opened at its beginning */
    uint64_t records_before; /* in the epoch before; 0: not known */
    uint64_t samples_before; /* consumed before it */
    uint64_t returned;       /* records of it by readers before */
    uint64_t reassigned;     /* parts taken back before it */
    uint64_t schedule_end;   /* step; when the schedule ends with the run */

    tn_ranks ranks;          /* the others of the run */
    const tn_epoch_ops *ops; /* how they share it */
    tn_metrics *whole;       /* as metrics, of all ranks; when alone, these */
    bool is_alone;           /* a run of one process */
    bool is_async;           /* above staleness 0, with others: each rank makes steps of its own */
    bool is_stopped;         /* a signal to another rank asks for the end */
    bool is_full;            /* the memory of another rank is */
    uint64_t bad_of_others;  /* records in this epoch, as of the last meeting */
};

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

/* Whether nothing was learned yet, and the weights came from nowhere else. */
bool tn_epoch_is_fresh(const tn_epoch *e);

/* Has all ranks train what is left of it. Before, the label rate of all ranks' first rows becomes
 * the output bias, unless weights came from somewhere. TN_END: alone, there are no rows. */
tn_status tn_epoch_begin_steps(tn_epoch *e, tn_error *err) TN_MUST_USE;

/* Moves the state on after a turn. */
void tn_epoch_note(tn_epoch *e, const tn_step_turn *turn);

/* ---- meetings ---- */

/* At a meeting: puts the position of the epoch, with its parts, into the state of the run and
 * `whole`. */
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

/* Share of it that is learned by all ranks, as far as `others` go, 0 .. 1; NAN: not known. */
double tn_epoch_share(const tn_epoch *e, const tn_ranks_sums *others);
