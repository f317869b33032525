/* trainer_state.h - a run in progress; private to trainer.c, epoch.c and group_epoch.c. */
#ifndef TN_TRAIN_TRAINER_STATE_H
#define TN_TRAIN_TRAINER_STATE_H

#include "train/checkpoint/checkpoint.h"
#include "train/peers/leader.h"
#include "train/peers/part_dealer.h"
#include "train/report/report.h"
#include "train/run/heartbeat_stats.h"
#include "train/run/trainer.h"
#include "train/step/memory_cap.h"
#include "train/step/step_loop.h"

enum { TN_SAVES_FAILED_MAX = 3 };

typedef struct tn_trainer {
    const tn_model_plan *plan;
    const tn_run *run;
    const tn_run_text *text;
    const tn_watch *watch;
    tn_outcome *out;

    tn_worker *worker;
    tn_checkpoints *checkpoints;
    tn_leader *lead;          /* of the other peers; NULL: alone */
    tn_heartbeat_stats beats; /* to them */
    tn_metrics *whole;        /* as epoch_metrics, of all peers; when alone, these */
    tn_arena *parts;          /* holds state.part */
    tn_memory_cap memory;
    tn_report *report;
    tn_metrics *epoch_metrics; /* progressive: scores from before each row's own update */
    tn_early_stopping patience;
    tn_run_state state;
    tn_past past;      /* of the checkpoint that the run goes on from */
    tn_text beginning; /* what is said of it; empty: a fresh start */

    tn_every eval_every, ckpt_every, delta_every;
    double begin;                            /* monotonic seconds */
    double next_eval, next_ckpt, next_delta; /* when timed */
    uint64_t end;                            /* of the schedule, when that is the run's */
    uint64_t epoch_records;                  /* in the epoch before; 0: not known */
    uint64_t samples_before;                 /* consumed before the epoch that runs */
    bool peer_stops;                         /* a signal to another rank wants the end .. */
    bool peer_is_full;                       /* .. or its memory */
    bool opened;           /* an epoch, by this process: it has learned, or might have */
    bool unsaved;          /* something since the last checkpoint */
    uint64_t looked;       /* steps when it was last looked for what is due */
    uint64_t evaluated;    /* steps when data.valid was last evaluated; UINT64_MAX: never */
    uint32_t saves_failed; /* in a row */
    bool has_saved;
    tn_saved saved;                /* the newest one, perhaps of the process before */
    bool saving;                   /* one is being written: it will be .. */
    bool saving_best;              /* .. that of the best model */
    bool saving_delta;             /* .. what changed, if that is known */
    bool save_again;               /* .. begun anew when the disk fails it */
    tn_met met;                    /* of the last epoch, by this process */
    uint64_t bad_of_others;        /* in this epoch, as of the last meeting */
    uint64_t returned, reassigned; /* records of it by readers before; parts taken back before it */
    tn_step_prefetch *data;        /* of the epoch that runs; NULL: none */
    tn_step_loop *steps;           /* over them */
    tn_arena *map;                 /* holds state.data .. */
    uint32_t map_epoch;            /* .. of this epoch */
    tn_part_dealer *dealer; /* deals what several readers left of an epoch; NULL: nobody need */
    bool stop;              /* early stop, max_steps or max_time: end as if the data had ended */
} tn_trainer;

/* Evaluates data.valid, tells patience, keeps the best. TN_E_STOPPED, nothing told: by a signal. */
tn_status tn_trainer_validate(tn_trainer *t, tn_error *err) TN_MUST_USE;

/* Begins to save while steps go on; the save before is waited for. `delta`: what changed is enough.
 * How it went is told by one of the next two. A failure is an error only when checkpoint.on_error
 * does not allow for one more; else it is told as an event, and t->unsaved is set. */
tn_status tn_trainer_save(tn_trainer *t, bool delta, tn_error *err) TN_MUST_USE;

/* Before the first step: TN_E_IO when not even the smallest checkpoint will fit the disk. */
tn_status tn_trainer_check_room(tn_trainer *t, tn_error *err) TN_MUST_USE;

/* Takes note of a save that is done; `end` waits for it. Without one they do nothing. */
tn_status tn_trainer_note_save(tn_trainer *t, tn_error *err) TN_MUST_USE;
tn_status tn_trainer_end_save(tn_trainer *t, tn_error *err) TN_MUST_USE;

/* ---- with other peers (group_epoch.c); alone these do nothing ---- */

/* Has all peers train, from the beginning of what is left of an epoch, `at_first`, or after a
 * meeting. */
tn_status tn_trainer_start_peers(tn_trainer *t, bool at_first, tn_error *err) TN_MUST_USE;

/* What others ask for with their heartbeats, into t->peer_stops, t->peer_is_full, t->watch->save.
 * True: all should stand still so that parts can be dealt anew. */
bool tn_trainer_hear_peers(tn_trainer *t);

/* The worker has reached a meeting: when this returns all stand still, and the worker's weights
 * are those of all owners. *is_due: the meeting was not only for dealing parts anew. */
tn_status tn_trainer_gather_peers(tn_trainer *t, bool *is_due, tn_error *err) TN_MUST_USE;

/* Nothing of the epoch is left for this rank: waits until nothing is left for any. */
tn_status tn_trainer_end_peers(tn_trainer *t, tn_error *err) TN_MUST_USE;

/* At a meeting of all peers: where the epoch stands, into t->state and t->whole. */
tn_status tn_trainer_sum(tn_trainer *t, tn_error *err) TN_MUST_USE;

/* Above staleness 0: each rank makes steps of its own. */
bool tn_trainer_is_async(const tn_trainer *t);

/* Whether something is due when `steps` are done. */
bool tn_trainer_is_due(tn_trainer *t, uint64_t steps);

/* One epoch from t->state.progress on. */
tn_status tn_trainer_epoch(tn_trainer *t, tn_error *err) TN_MUST_USE;

bool tn_trainer_is_asked(const tn_trainer *t); /* a signal asked for the end */

/* The end that a signal asked for: saves what is not saved, unless that would take longer than
 * checkpoint.grace. Never TN_OK. */
tn_status tn_trainer_stop(tn_trainer *t, tn_error *err) TN_MUST_USE;

/* The same when the signal came within an evaluation: a resumed run begins with it. */
tn_status tn_trainer_stop_owing(tn_trainer *t, tn_error *err) TN_MUST_USE;

/* Whether memory is full, here or at another rank; and the end then: saves, and is TN_E_MEMORY. */
bool tn_trainer_is_full(tn_trainer *t);
tn_status tn_trainer_stop_full(tn_trainer *t, tn_error *err) TN_MUST_USE;

#endif
