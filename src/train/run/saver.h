/* saver.h - the checkpoints that a run writes: begun between two steps, ended between two others.
 *
 *     tn_saver_save        waits for the save before, takes the moment; steps go on
 *     tn_saver_note        between two steps: takes note of a save that is written
 *     tn_saver_end         waits for it
 *     tn_saver_save_last   the end of a run: saves what is not saved, and waits
 *
 *     IDLE -> save -> WRITING or RESTING -> end -> IDLE
 *                     RESTING -> a save that may replace it drops it -> WRITING or RESTING
 *
 * A save that fails is an error only when checkpoint.on_error does not allow for one more; else it
 * is reported as an event, and the run is unsaved again. Others read the fields, which only saver.c
 * changes. When a run saves its module `checkpoint` decides (module.h), which is in saver.c too.
 * Belongs to the trainer's thread.
 */
#pragma once

#include "train/checkpoint/checkpoint.h"

typedef struct tn_checkpoint_opts tn_checkpoint_opts; /* train/config/run.h */
typedef struct tn_publisher tn_publisher;             /* train/run/publisher.h */
typedef struct tn_run_now tn_run_now;                 /* train/run/module.h */

typedef enum tn_saver_state {
    TN_SAVER_IDLE,
    TN_SAVER_WRITING,
    TN_SAVER_RESTING, /* in memory; nothing is written before the save ends */
} tn_saver_state;

typedef enum tn_save_why {
    TN_SAVE_DUE,   /* by checkpoint.every, delta_every or export.every */
    TN_SAVE_ASKED, /* by a signal: a line reports it */
    TN_SAVE_KEPT,  /* the best model, or a day: it stays until another is saved for that reason */
    TN_SAVE_LAST,  /* the run ends: only if it is unsaved, and it must not fail */
} tn_save_why;

/* Whether a checkpoint is exported, which its manifest says. Such a one is full and never rests. */
typedef enum tn_save_export {
    TN_EXPORT_NONE,
    TN_EXPORT_AT_END,     /* by tn_saver_export_last */
    TN_EXPORT_WHEN_SAVED, /* as soon as it is written */
} tn_save_export;

typedef struct tn_save_request {
    tn_save_why why;
    bool delta;       /* a save that rests need not be written any more */
    bool may_rest;    /* it may wait in memory, if it can, until something else is saved */
    bool may_replace; /* one that rests need not be written any more */
    tn_save_export export;
} tn_save_request;

typedef struct tn_saver {
    tn_publisher *publisher; /* set by the owner; NULL: nothing is published */

    tn_run_now *now;
    tn_worker *w;
    tn_run_state *state; /* its best_ordinal is set here */
    const tn_checkpoint_opts *want;
    tn_checkpoints *checkpoints; /* owned */
    bool is_rare; /* nothing is saved by time or steps: only the best model, or at a signal */

    tn_saver_state at;
    tn_save_request request; /* the save that is not IDLE */
    bool is_second;          /* it was begun anew, since the disk failed the first one */

    bool is_unsaved; /* something was learned since the last checkpoint */
    uint32_t failed; /* saves in a row */
    tn_saved saved;  /* the newest one, perhaps of the process before; ordinal 0: none */
    bool is_marked;  /* the newest one is, or is to be, exported */
} tn_saver;

static inline bool tn_saver_has_saved(const tn_saver *s)
{
    return s->saved.ordinal != 0;
}

/* Takes the run directory. The owner closes its checkpoints. */
tn_status tn_saver_open(tn_saver *s, tn_run_now *now, tn_error *err) TN_MUST_USE;

/* Loads as checkpoint.resume says (tn_checkpoints_resume); that is the newest checkpoint then. */
tn_status tn_saver_resume(tn_saver *s, tn_metrics *metrics, tn_saved *which,
                          tn_error *err) TN_MUST_USE;

/* Before the first step: TN_E_IO when not even the smallest checkpoint will fit the disk. */
tn_status tn_saver_check_room(tn_saver *s, tn_error *err) TN_MUST_USE;

void tn_saver_set_unsaved(tn_saver *s); /* something was learned */

/* Begins a save. Where now->due.publish is set, it is exported when it is written. */
tn_status tn_saver_save(tn_saver *s, const tn_save_request *request, tn_error *err) TN_MUST_USE;
tn_status tn_saver_note(tn_saver *s, tn_error *err) TN_MUST_USE;
tn_status tn_saver_end(tn_saver *s, tn_error *err) TN_MUST_USE;

/* The model that is saved, if one is, is exported before this returns: the end of a run. */
tn_status tn_saver_export_last(tn_saver *s, tn_error *err) TN_MUST_USE;

/* Saves what is not saved and waits, also where failures are allowed for: there is no next time. */
tn_status tn_saver_save_last(tn_saver *s, bool delta, tn_error *err) TN_MUST_USE;

/* Waits, too, but does not try again when the disk has failed the save. */
tn_status tn_saver_give_up(tn_saver *s, tn_error *err) TN_MUST_USE;

/* Loads the best model in the place of the last one. That is saved before, and comes back when the
 * best cannot be read: then *back is false, for the reason in `why`. */
tn_status tn_saver_restore_best(tn_saver *s, bool *back, tn_error *why, tn_error *err) TN_MUST_USE;
