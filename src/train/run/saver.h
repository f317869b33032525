/* saver.h - the checkpoints that a run writes: begun between two steps, ended between two others.
 *
 *     tn_saver_save        waits for the save before, takes the moment; steps go on
 *     tn_saver_note        between two steps: takes note of a save that is written
 *     tn_saver_end         waits for it
 *     tn_saver_save_last   the end of a run: saves what is not saved
 *
 * A save that fails is an error only when checkpoint.on_error does not allow for one more; else it
 * is told as an event, and the run is unsaved again. Others read the fields, which only saver.c
 * changes once it is open. Belongs to the trainer's thread.
 */
#pragma once

#include "train/checkpoint/checkpoint.h"

typedef struct tn_checkpoint_opts tn_checkpoint_opts; /* train/config/run.h */
typedef struct tn_publisher tn_publisher;
typedef struct tn_report tn_report;

typedef struct tn_saver {
    /* Set by the owner; all that it points to must outlive the saver. */
    tn_run_state *state;     /* its best_ordinal is set here */
    tn_report *report;       /* from the first save on */
    tn_publisher *publisher; /* NULL: nothing is published */
    bool export_next;        /* what is saved next is full, and exported when it is written .. */
    bool due_next;           /* .. or by tn_saver_export_last, which the owner calls */
    bool is_rare; /* nothing is saved by time or steps: only the best model, or at a signal */
    /* Brings state and metrics up to date when a save begins, and says where they are. */
    tn_status (*gather)(void *arg, tn_ckpt_want *want, tn_error *err);
    void *arg;

    tn_worker *w;
    const tn_checkpoint_opts *want;
    tn_checkpoints *checkpoints; /* owned */
    bool is_unsaved;             /* something was learned since the last checkpoint */
    uint32_t failed;             /* saves in a row */
    bool has_saved;
    tn_saved saved;     /* the newest one, perhaps of the process before */
    bool saving;        /* one is being written: it will be .. */
    bool saving_best;   /* .. that of the best model */
    bool saving_asked;  /* .. what a signal asked for; set by the owner */
    bool saving_delta;  /* .. what changed, if that is known */
    bool saving_export; /* .. what is to be exported .. */
    bool saving_due;    /* .. or will be, which its manifest says, as .. */
    bool saved_due;     /* .. that of the newest does */
    bool saving_later;  /* .. all of it then, unless it is dropped before */
    bool later_next;    /* what is saved next waits so, if it can */
    bool save_again;    /* .. begun anew when the disk fails it */
} tn_saver;

/* Takes the run directory. The owner closes its checkpoints. */
tn_status tn_saver_open(tn_saver *s, tn_worker *w, const tn_run_text *text,
                        tn_error *err) TN_MUST_USE;

/* Loads as checkpoint.resume says (tn_checkpoints_resume); that is the newest checkpoint then. */
tn_status tn_saver_resume(tn_saver *s, tn_metrics *metrics, tn_saved *which,
                          tn_error *err) TN_MUST_USE;

/* Before the first step: TN_E_IO when not even the smallest checkpoint will fit the disk. */
tn_status tn_saver_check_room(tn_saver *s, tn_error *err) TN_MUST_USE;

void tn_saver_set_unsaved(tn_saver *s); /* something was learned */

/* `delta`: what changed is enough. The best model is saved if the run will end with it; `later`:
 * it waits in memory, if it can, until something else is saved; a better one takes its place. */
tn_status tn_saver_save(tn_saver *s, bool delta, tn_error *err) TN_MUST_USE;
tn_status tn_saver_save_best(tn_saver *s, bool later, tn_error *err) TN_MUST_USE;
tn_status tn_saver_note(tn_saver *s, tn_error *err) TN_MUST_USE;
tn_status tn_saver_end(tn_saver *s, tn_error *err) TN_MUST_USE;

/* The model that is saved, if one is, is exported before this returns: the end of a run. */
tn_status tn_saver_export_last(tn_saver *s, tn_error *err) TN_MUST_USE;

/* Saves what is not saved and waits, also where failures are allowed for: there is no next time. */
tn_status tn_saver_save_last(tn_saver *s, bool delta, tn_error *err) TN_MUST_USE;
/* The same without waiting, which tn_saver_end then does. */
tn_status tn_saver_begin_last(tn_saver *s, bool delta, tn_error *err) TN_MUST_USE;

/* The end that a signal asked for: saves what is not saved, unless that would take longer than
 * checkpoint.grace. Never TN_OK: TN_E_STOPPED says where the checkpoint is. */
tn_status tn_saver_stop(tn_saver *s, tn_error *err) TN_MUST_USE;

/* Waits, too, but does not try again when the disk has failed the save. */
tn_status tn_saver_give_up(tn_saver *s, tn_error *err) TN_MUST_USE;

/* Loads the best model in the place of the last one. That is saved before, and comes back when the
 * best cannot be read: then *back is false, for the reason in `why`. */
tn_status tn_saver_restore_best(tn_saver *s, bool *back, tn_error *why, tn_error *err) TN_MUST_USE;
