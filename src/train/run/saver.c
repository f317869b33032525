/* saver.c - saves a run, tries again where the disk refused rows, counts failures. */
#include "train/run/saver.h"

#include "base/core/failpoint.h"
#include "base/file/file.h"
#include "base/trace/trace.h"
#include "train/checkpoint/ckpt_peers.h"
#include "train/checkpoint/ckptfiles.h"
#include "train/run/module.h"
#include "train/run/publisher.h"
#include "train/run/timetable.h"

#include <stdio.h>
#include <string.h>

enum { FAILED_MAX = 3 };

tn_status tn_saver_open(tn_saver *s, tn_run_now *now, tn_error *err)
{
    s->now = now;
    s->w = now->worker;
    s->state = now->state;
    s->want = &now->run->checkpoint;
    s->is_rare = !tn_timetable_saves(now->timetable) && !tn_run_has_days(now);
    s->is_unsaved = true; /* a signal may come before the first step */
    return tn_checkpoints_open(&s->checkpoints, now->plan, now->text, err);
}

tn_status tn_saver_resume(tn_saver *s, tn_metrics *metrics, tn_saved *which, tn_error *err)
{
    TN_TRY(tn_checkpoints_resume(s->checkpoints, s->w, s->state, metrics, which, err));
    if (which->ordinal != 0) {
        s->saved = *which;
        s->is_marked = s->state->kept.export.due;
        s->is_unsaved = false;
    }
    return TN_OK;
}

void tn_saver_set_unsaved(tn_saver *s)
{
    s->is_unsaved = true;
}

/* ---- one save ---- */

/* One export at a time: where a save is for another, the one before is waited for. What is saved
 * names the export that is written, since the checkpoint of that one may go. One that a signal has
 * ended is owed. */
static tn_status await_export(tn_saver *s, tn_error *err)
{
    const tn_status before = s->now->due.publish ? tn_publisher_end(s->publisher, err)
                                                 : tn_publisher_note(s->publisher, err);
    return before == TN_E_STOPPED ? TN_OK : before;
}

/* Brings state and metrics up to date, over all ranks. */
static tn_status gather(tn_saver *s, tn_ckpt_want *want, tn_error *err)
{
    s->state->steps = s->w->steps;
    TN_TRY(tn_modules_at(s->now, TN_AT_SAVE, err));
    TN_TRY(tn_epoch_locate(s->now->epoch, err));
    want->state = s->state;
    want->metrics = s->now->epoch->whole;
    return TN_OK;
}

/* Begins what s->request says, of the present moment. */
static tn_status begin(tn_saver *s, tn_error *err)
{
    tn_lane *lane = s->w->lane;
    tn_save_request *r = &s->request;
    TN_ASSERT(s->at == TN_SAVER_IDLE);
    const bool is_marked = r->export != TN_EXPORT_NONE;
    s->state->kept.export.due = is_marked;
    tn_ckpt_want want = {.delta = r->delta && !is_marked,
                         .later = r->may_rest && !is_marked,
                         .keeps_all = tn_publisher_needs_checkpoints(s->publisher)};
    if (tn_failpoint("saver.gather") != 0) {
        return tn_fail(err, TN_E_IO, "failed on request at 'saver.gather'");
    }
    TN_TRY(gather(s, &want, err));
    tn_span_begin(lane, TN_PHASE_CHECKPOINT);
    tn_status status = tn_checkpoints_begin(s->checkpoints, s->w, &want, err);
    tn_span_end(lane);
    TN_TRY(status);
    s->at = tn_checkpoints_rests(s->checkpoints) ? TN_SAVER_RESTING : TN_SAVER_WRITING;
    s->is_unsaved = false;
    return TN_OK;
}

/* No checkpoint was written: an end, or only a line. */
static tn_status fail_save(tn_saver *s, tn_status status, tn_error *err)
{
    s->is_unsaved = true;
    if (s->want->on_error == 0 || ++s->failed >= FAILED_MAX) {
        return status;
    }
    return tn_run_say(s->now, "warn", err->text, err);
}

static tn_status note_saved(tn_saver *s, const tn_saved *what, tn_error *err)
{
    const tn_save_request *r = &s->request;
    TN_ASSERT(what->ordinal != 0 && s->at == TN_SAVER_IDLE);
    s->failed = 0;
    s->saved = *what;
    s->is_marked = r->export != TN_EXPORT_NONE;
    if (r->why == TN_SAVE_KEPT) {
        s->state->best_ordinal = what->ordinal;
    }
    const bool asked = r->why == TN_SAVE_ASKED;
    TN_TRY(tn_report_saved(s->now->report, what, s->state, asked, err));
    return r->export == TN_EXPORT_WHEN_SAVED ? tn_publisher_begin(s->publisher, what->ordinal, err)
                                             : TN_OK;
}

/* Ends a save. If the disk refused rows, a second save of the present moment is tried, as for every
 * other file, unless the first has rested: it was of that moment, or of none. */
static tn_status end_once(tn_saver *s, bool again, tn_error *err)
{
    tn_lane *lane = s->w->lane;
    tn_saved what;
    again = again && s->at == TN_SAVER_WRITING;
    s->at = TN_SAVER_IDLE;
    tn_span_begin(lane, TN_PHASE_CHECKPOINT);
    tn_status status = tn_checkpoints_end(s->checkpoints, &what, err);
    tn_span_end(lane);
    if (status != TN_OK && again && !s->is_second && tn_checkpoints_lost_rows(s->checkpoints)) {
        s->is_second = true;
        status = begin(s, err);
        return status == TN_OK ? TN_OK : fail_save(s, status, err);
    }
    return status == TN_OK ? note_saved(s, &what, err) : fail_save(s, status, err);
}

tn_status tn_saver_note(tn_saver *s, tn_error *err)
{
    if (s->at != TN_SAVER_IDLE && tn_checkpoints_written(s->checkpoints)) {
        TN_TRY(end_once(s, true, err));
    }
    return tn_publisher_note(s->publisher, err);
}

tn_status tn_saver_end(tn_saver *s, tn_error *err)
{
    while (s->at != TN_SAVER_IDLE) {
        TN_TRY(end_once(s, true, err));
    }
    return TN_OK;
}

tn_status tn_saver_give_up(tn_saver *s, tn_error *err)
{
    return s->at != TN_SAVER_IDLE ? end_once(s, false, err) : TN_OK;
}

/* Drops the best model before this one, which waits in memory: no file on the disk builds on it. */
static void drop_resting(tn_saver *s)
{
    tn_saved none;
    TN_ASSERT(s->request.export == TN_EXPORT_NONE); /* one that is exported does not rest */
    tn_checkpoints_drop(s->checkpoints);
    tn_status status = tn_checkpoints_end(s->checkpoints, &none, NULL);
    (void)status; /* dropped, or failed before */
    s->at = TN_SAVER_IDLE;
    s->is_unsaved = true;
}

tn_status tn_saver_save(tn_saver *s, const tn_save_request *request, tn_error *err)
{
    if (s->at == TN_SAVER_RESTING && request->may_replace) {
        drop_resting(s);
    }
    TN_TRY(tn_saver_end(s, err));
    if (request->why == TN_SAVE_LAST) {
        if (!s->is_unsaved) {
            return TN_OK;
        }
        s->failed = FAILED_MAX;
    }
    if (request->why == TN_SAVE_KEPT) {
        s->state->best_ordinal = 0; /* the one before may go */
    }
    TN_TRY(await_export(s, err));
    s->request = *request;
    s->is_second = false;
    if (s->now->due.publish) {
        s->request.export = TN_EXPORT_WHEN_SAVED;
    }
    if (s->publisher == NULL) {
        s->request.export = TN_EXPORT_NONE;
    }
    s->now->due.publish = false;
    tn_status status = begin(s, err);
    return status == TN_OK ? TN_OK : fail_save(s, status, err);
}

tn_status tn_saver_save_last(tn_saver *s, bool delta, tn_error *err)
{
    const tn_save_request request = {.why = TN_SAVE_LAST, .delta = delta};
    TN_TRY(tn_saver_save(s, &request, err));
    return tn_saver_end(s, err);
}

tn_status tn_saver_export_last(tn_saver *s, tn_error *err)
{
    if (s->publisher == NULL) {
        return TN_OK;
    }
    TN_TRY(tn_saver_end(s, err));
    const bool is_saved = tn_saver_has_saved(s) && !s->is_unsaved;
    if (is_saved && !s->is_marked) {
        const tn_save_request request = {.export = TN_EXPORT_WHEN_SAVED};
        TN_TRY(tn_saver_save(s, &request, err)); /* the run that goes on must know of it */
        TN_TRY(tn_saver_end(s, err));
    } else if (is_saved) {
        TN_TRY(tn_publisher_begin(s->publisher, s->saved.ordinal, err));
    }
    return tn_publisher_end(s->publisher, err);
}

/* ---- the best model ---- */

tn_status tn_saver_restore_best(tn_saver *s, bool *back, tn_error *why, tn_error *err)
{
    tn_worker *w = s->w;
    if (!s->is_rare) {
        TN_TRY(tn_saver_save_last(s, false, err));
    }
    const uint64_t last = s->saved.ordinal;
    tn_status status = tn_checkpoints_restore(s->checkpoints, w, s->state->best_ordinal, why);
    *back = status == TN_OK;
    if (*back) {
        s->is_unsaved = true;
        return TN_OK;
    }
    why->text[strcspn(why->text, "\n")] = '\0'; /* no hint: the run goes on */
    s->state->best_ordinal = 0;
    if (!s->is_rare) {
        return tn_checkpoints_restore(s->checkpoints, w, last, err);
    }
    return tn_fail(err, status, "the best model cannot be read back: %s", why->text);
}

/* ---- a signal ---- */

/* How to go on; the same command only does when it looks for checkpoints. */
static const char *advice(const tn_saver *s)
{
    const char *resume = s->want->resume;
    bool same = strcmp(resume, "auto") == 0 || strcmp(resume, "must") == 0;
    same = same || (s->state->kept.begun && strcmp(resume, "never") != 0);
    return s->want->fresh ? "start it again without --fresh to go on"
           : same         ? "start the same command again to go on"
                          : "start it again with checkpoint.resume=auto to go on";
}

/* The end that a signal or a pause asked for: saves what is not saved, after a signal unless that
 * would take longer than checkpoint.grace. Never TN_OK: TN_E_STOPPED says where the checkpoint
 * is. */
static tn_status stop_saved(void *self, tn_run_now *now, tn_error *err)
{
    (void)self;
    tn_saver *s = now->saver;
    unsigned long long steps = s->w->steps;
    const bool pauses = tn_run_pauses(now, steps);
    const tn_saved *newest = &s->saved;
    const char *dir = tn_checkpoints_dir(s->checkpoints);
    TN_TRY(tn_saver_end(s, err));
    if (!pauses && s->is_unsaved && tn_saver_has_saved(s) && newest->seconds > s->want->grace) {
        return tn_fail(err, TN_E_STOPPED,
                       "stopped by a signal at step %llu; not saved, since that took %.0f s before "
                       "and checkpoint.grace is %.0f s; '%s/%s' is the newest",
                       steps, newest->seconds, s->want->grace, dir, newest->name);
    }
    TN_TRY(tn_saver_save_last(s, true, err));
    TN_ASSERT(tn_saver_has_saved(s));
    return tn_fail(err, TN_E_STOPPED, "%s at step %llu; saved as '%s/%s'\nhint: %s",
                   pauses ? "paused" : "stopped by a signal", steps, dir, newest->name,
                   pauses ? "start it again with a larger '--pause', or without, to go on"
                          : advice(s));
}

/* ---- room on the disk ---- */

tn_status tn_saver_check_room(tn_saver *s, tn_error *err)
{
    tn_ckpt_room room;
    const char *dir = tn_checkpoints_dir(s->checkpoints);
    if (s->is_rare) {
        return TN_OK;
    }
    TN_TRY(tn_checkpoints_room(s->checkpoints, s->w, &s->saved, &room, err));
    if (room.unused < room.least && s->want->on_error == 0) {
        return tn_fail(err, TN_E_IO,
                       "no room for any checkpoint in '%s': %llu bytes free, at least %llu needed\n"
                       "hint: another run.dir, or checkpoint.every=never",
                       dir, (unsigned long long)room.unused, (unsigned long long)room.least);
    }
    if (room.unused / room.wanted >= room.least) {
        return TN_OK;
    }
    char line[TN_PATH_SIZE + 200];
    (void)snprintf(
        line, sizeof line,
        "%.1f MB are free in '%s', and with checkpoint.keep=%u up to %u more checkpoints "
        "of at least %.1f MB will stand there",
        (double)room.unused / 1e6, dir, s->want->keep, room.wanted, (double)room.least / 1e6);
    return tn_run_say(s->now, "warn", line, err);
}

/* ---- in a run ---- */

static bool is_save_asked(void *self, const tn_run_now *now)
{
    (void)self;
    return now->watch->save != NULL && atomic_load(now->watch->save);
}

/* Saves what is due, or asked for by a signal, unless the end of the run is going to save. */
static tn_status save_at_meeting(void *self, tn_run_now *now, tn_error *err)
{
    tn_saver *s = now->saver;
    (void)self;
    if (now->stops || now->due.over) {
        return TN_OK; /* perhaps it saves another model than this one */
    }
    const bool asked = now->watch->save != NULL && atomic_exchange(now->watch->save, false);
    const bool full = asked || now->due.save || now->due.publish;
    const tn_save_request request = {.why = asked ? TN_SAVE_ASKED : TN_SAVE_DUE, .delta = !full};
    return full || now->due.delta ? tn_saver_save(s, &request, err) : TN_OK;
}

/* Saves after an epoch that is not the last, which the end of the run saves, or of the day. */
static tn_status save_after_epoch(void *self, tn_run_now *now, tn_error *err)
{
    tn_saver *s = now->saver;
    (void)self;
    if (tn_run_is_last(now)) {
        return TN_OK;
    }
    const bool due = now->due.save || now->due.delta;
    const bool saves = now->due.publish || (due && s->is_unsaved);
    const tn_save_request request = {.delta = !now->due.save};
    now->due.publish = now->due.publish && !now->stops;
    return saves && !now->stops ? tn_saver_save(s, &request, err) : TN_OK;
}

/* Begins the checkpoint of the model that stays. */
static tn_status save_last_model(void *self, tn_run_now *now, tn_error *err)
{
    tn_saver *s = now->saver;
    (void)self;
    TN_TRY(tn_saver_end(s, err)); /* it may be that of the best model */
    const bool unlearned = now->restored != 0 || (now->state->kept.begun && !tn_saver_has_saved(s));
    if ((!now->epoch->is_begun && !unlearned) || s->is_rare || tn_run_is_asked(now)) {
        return TN_OK;
    }
    const tn_save_request request = {.why = TN_SAVE_LAST,
                                     .export = tn_run_publishes_end(now) ? TN_EXPORT_AT_END
                                                                         : TN_EXPORT_NONE};
    return tn_saver_save(s, &request, err);
}

extern const tn_module tn_module_checkpoint;
const tn_module tn_module_checkpoint = {.name = "checkpoint",
                                        .due = is_save_asked,
                                        .at = {[TN_AT_MEETING] = save_at_meeting,
                                               [TN_AT_EPOCH] = save_after_epoch,
                                               [TN_AT_END] = save_last_model,
                                               [TN_AT_SIGNAL] = stop_saved}};
