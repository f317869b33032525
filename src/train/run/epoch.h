/* epoch.h - the epoch that runs, in the process that leads the run: its data, its steps, its
 * counts.
 *
 *     TN_TRY(tn_epoch_open(e, report, err));        the reader, from where the run stands
 *     TN_TRY(tn_epoch_begin_steps(e, err));
 *     TN_TRY(tn_epoch_note(e, batch, &rows, err));  behind each batch that is learned
 *     tn_epoch_end_steps(e);
 *     tn_epoch_close(e);
 *     TN_TRY(tn_epoch_look_again(e, err));          the files may have changed meanwhile
 *     end = tn_epoch_next(e);
 *
 * The place in the data stands in the state of the run. Others read the fields, which only epoch.c
 * changes. Belongs to the trainer's thread.
 */
#ifndef TN_TRAIN_EPOCH_H
#define TN_TRAIN_EPOCH_H

#include "train/report/peer_progress.h"

typedef struct tn_part_dealer tn_part_dealer;
typedef struct tn_report tn_report;
typedef struct tn_run_state tn_run_state;
typedef struct tn_step_loop tn_step_loop;
typedef struct tn_step_prefetch tn_step_prefetch;

typedef struct tn_epoch {
    tn_worker *w;
    tn_run_state *state;
    tn_report *report;
    tn_metrics *metrics;     /* progressive: scores from before each row's own update */
    tn_step_prefetch *data;  /* NULL: none is open */
    tn_step_loop *steps;     /* over them */
    tn_part_dealer *dealer;  /* deals what several readers left of it; NULL: nobody need */
    tn_arena *map;           /* holds state->data .. */
    uint32_t number;         /* .. of this epoch, the last that was opened */
    tn_arena *parts;         /* holds state->part */
    tn_met met;              /* of it, by this process */
    bool is_begun;           /* one was opened by this process: it has learned, or might have */
    bool is_whole;           /* it was opened at its beginning */
    uint64_t records_before; /* in the epoch before; 0: not known */
    uint64_t samples_before; /* consumed before it */
    uint64_t returned;       /* records of it by readers before */
    uint64_t reassigned;     /* parts taken back before it */
    uint64_t schedule_end;   /* step; when the schedule ends with the run */
} tn_epoch;

/* All must outlive it. done is fine after a failure, and of zeros. */
tn_status tn_epoch_init(tn_epoch *e, tn_worker *w, tn_run_state *state,
                        const tn_metrics_opts *metrics, tn_error *err) TN_MUST_USE;
void tn_epoch_done(tn_epoch *e);

/* Opens what is left of the epoch of state->progress. TN_E_DATA, here and when the files are looked
 * at again: they hold other bytes than before, and data.changed does not accept that. */
tn_status tn_epoch_open(tn_epoch *e, tn_report *report, tn_error *err) TN_MUST_USE;
void tn_epoch_close(tn_epoch *e);
tn_status tn_epoch_look_again(tn_epoch *e, tn_error *err) TN_MUST_USE;

tn_status tn_epoch_begin_steps(tn_epoch *e, tn_error *err) TN_MUST_USE;
void tn_epoch_end_steps(tn_epoch *e);

/* Gives the parts of this rank to others that are idle, and asks anew: other data, other steps. */
tn_status tn_epoch_give_back(tn_epoch *e, tn_error *err) TN_MUST_USE;

/* The batch was learned, with these scores: adds them, and moves the state on behind the batch. */
tn_status tn_epoch_note(tn_epoch *e, const tn_batch *batch, const tn_scored *rows,
                        tn_error *err) TN_MUST_USE;

/* Moves the state on to the next epoch; and back, for a run that is to come here again. */
typedef struct tn_epoch_end {
    tn_progress progress;
    uint64_t epoch_step, samples_before;
} tn_epoch_end;
tn_epoch_end tn_epoch_next(tn_epoch *e);
void tn_epoch_return(tn_epoch *e, const tn_epoch_end *end);

bool tn_epoch_is_current(const tn_epoch *e);     /* the state stands in it */
uint64_t tn_epoch_records(const tn_epoch *e);    /* consumed in it */
uint64_t tn_epoch_reassigned(const tn_epoch *e); /* parts taken back, in the whole run */

/* Share of it that is learned, 0 .. 1; NAN: not known. `others`: records read by other ranks. */
double tn_epoch_share(const tn_epoch *e, uint64_t others);

/* Sets state->samples: all ranks have consumed so many records of it. */
void tn_epoch_set_records(tn_epoch *e, uint64_t records);
void tn_epoch_count_dealt(tn_epoch *e); /* sets state->progress.records */

/* Sets state->part: as dealt, if they are; or as ranks that stand at progress[rank] read them,
 * false before they have. */
void tn_epoch_list_dealt(tn_epoch *e);
bool tn_epoch_list_parts(tn_epoch *e, const tn_progress *progress);

#endif
