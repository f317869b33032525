/* saver.c - saves a run, tries again where the disk refused rows, counts failures. */
#include "train/run/saver.h"

#include "base/core/failpoint.h"
#include "base/file/file.h"
#include "base/trace/trace.h"
#include "train/checkpoint/run_state.h"
#include "train/config/run.h"
#include "train/report/report.h"
#include "train/run/publisher.h"
#include "train/step/model_plan.h"
#include "train/step/worker.h"

#include <stdio.h>
#include <string.h>

enum { FAILED_MAX = 3 };

tn_status tn_saver_open(tn_saver *s, tn_worker *w, const tn_run_text *text, tn_error *err)
{
    TN_ASSERT(s->gather != NULL && s->state != NULL);
    s->w = w;
    s->want = &w->plan->run->checkpoint;
    s->is_unsaved = true; /* a signal may come before the first step */
    return tn_checkpoints_open(&s->checkpoints, w->plan, text, err);
}

tn_status tn_saver_resume(tn_saver *s, tn_metrics *metrics, tn_saved *which, tn_error *err)
{
    TN_TRY(tn_checkpoints_resume(s->checkpoints, s->w, s->state, metrics, which, err));
    if (which->ordinal != 0) {
        s->saved = *which;
        s->has_saved = true;
        s->saved_due = s->state->export.due;
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
    const tn_status before =
        s->export_next ? tn_publisher_end(s->publisher, err) : tn_publisher_note(s->publisher, err);
    return before == TN_E_STOPPED ? TN_OK : before;
}

static tn_status begin(tn_saver *s, bool delta, tn_error *err)
{
    tn_lane *lane = s->w->lane;
    s->saving_export = s->export_next && s->publisher != NULL;
    s->saving_due = s->saving_export || (s->due_next && s->publisher != NULL);
    s->export_next = false;
    s->due_next = false;
    s->state->export.due = s->saving_due;
    tn_ckpt_want want = {.delta = delta && !s->saving_due,
                         .later = s->later_next && !s->saving_due,
                         .keeps_all = tn_publisher_needs_checkpoints(s->publisher)};
    if (tn_failpoint("saver.gather") != 0) {
        return tn_fail(err, TN_E_IO, "failed on request at 'saver.gather'");
    }
    TN_TRY(s->gather(s->arg, &want, err));
    tn_span_begin(lane, TN_PHASE_CHECKPOINT);
    tn_status status = tn_checkpoints_begin(s->checkpoints, s->w, &want, err);
    tn_span_end(lane);
    TN_TRY(status);
    s->saving = true;
    s->saving_later = tn_checkpoints_rests(s->checkpoints);
    s->saving_delta = delta;
    s->is_unsaved = false;
    return TN_OK;
}

/* No checkpoint was written: an end, or only a line. */
static tn_status fail_save(tn_saver *s, tn_status status, tn_error *err)
{
    s->is_unsaved = true;
    s->saving_best = false;
    s->saving_export = false;
    s->saving_due = false;
    if (s->want->on_error == 0 || ++s->failed >= FAILED_MAX) {
        return status;
    }
    return tn_report_event(s->report, s->state, "warn", err->text, err);
}

static tn_status note_saved(tn_saver *s, const tn_saved *what, tn_error *err)
{
    s->failed = 0;
    s->saved = *what;
    s->has_saved = true;
    s->saved_due = s->saving_due;
    if (s->saving_best) {
        s->state->best_ordinal = what->ordinal;
    }
    s->saving_best = false;
    const bool asked = s->saving_asked;
    s->saving_asked = false;
    TN_TRY(tn_report_saved(s->report, what, s->state, asked, err));
    const bool exports = s->saving_export;
    s->saving_export = false;
    return exports ? tn_publisher_begin(s->publisher, what->ordinal, err) : TN_OK;
}

/* Ends a save. If the disk refused rows, a second save of the present moment is tried, as for every
 * other file. */
static tn_status end_once(tn_saver *s, tn_error *err)
{
    tn_lane *lane = s->w->lane;
    tn_saved what;
    s->saving = false;
    s->save_again = s->save_again && !s->saving_later; /* of that moment, or of none */
    s->saving_later = false;
    tn_span_begin(lane, TN_PHASE_CHECKPOINT);
    tn_status status = tn_checkpoints_end(s->checkpoints, &what, err);
    tn_span_end(lane);
    if (status != TN_OK && s->save_again && tn_checkpoints_lost_rows(s->checkpoints)) {
        s->save_again = false;
        s->export_next = s->saving_export;
        s->due_next = s->saving_due;
        status = begin(s, s->saving_delta, err);
        return status == TN_OK ? TN_OK : fail_save(s, status, err);
    }
    return status == TN_OK ? note_saved(s, &what, err) : fail_save(s, status, err);
}

tn_status tn_saver_note(tn_saver *s, tn_error *err)
{
    if (s->saving && tn_checkpoints_written(s->checkpoints)) {
        TN_TRY(end_once(s, err));
    }
    return tn_publisher_note(s->publisher, err);
}

tn_status tn_saver_end(tn_saver *s, tn_error *err)
{
    while (s->saving) {
        TN_TRY(end_once(s, err));
    }
    return TN_OK;
}

tn_status tn_saver_give_up(tn_saver *s, tn_error *err)
{
    s->save_again = false;
    return tn_saver_end(s, err);
}

tn_status tn_saver_save(tn_saver *s, bool delta, tn_error *err)
{
    TN_TRY(tn_saver_end(s, err));
    TN_TRY(await_export(s, err));
    tn_status status = begin(s, delta, err);
    s->save_again = status == TN_OK;
    return status == TN_OK ? TN_OK : fail_save(s, status, err);
}

tn_status tn_saver_begin_last(tn_saver *s, bool delta, tn_error *err)
{
    TN_TRY(tn_saver_end(s, err));
    if (!s->is_unsaved) {
        return TN_OK;
    }
    s->failed = FAILED_MAX;
    return tn_saver_save(s, delta, err);
}

static void drop(tn_saver *s)
{
    tn_saved none;
    tn_checkpoints_drop(s->checkpoints);
    tn_status status = tn_checkpoints_end(s->checkpoints, &none, NULL);
    (void)status; /* dropped, or failed before */
    s->saving = false;
    s->saving_later = false;
    s->saving_best = false;
    s->saving_export = false;
    s->saving_due = false;
    s->is_unsaved = true;
}

tn_status tn_saver_save_last(tn_saver *s, bool delta, tn_error *err)
{
    TN_TRY(tn_saver_begin_last(s, delta, err));
    return tn_saver_end(s, err);
}

tn_status tn_saver_export_last(tn_saver *s, tn_error *err)
{
    if (s->publisher == NULL) {
        return TN_OK;
    }
    TN_TRY(tn_saver_end(s, err));
    TN_ASSERT(!s->saving && !s->saving_export);
    if (s->has_saved && !s->is_unsaved && !s->saved_due) {
        s->export_next = true; /* the run that goes on must know of it */
        TN_TRY(tn_saver_save(s, false, err));
        TN_TRY(tn_saver_end(s, err));
    } else if (s->has_saved && !s->is_unsaved) {
        TN_TRY(tn_publisher_begin(s->publisher, s->saved.ordinal, err));
    }
    return tn_publisher_end(s->publisher, err);
}

/* ---- the best model ---- */

tn_status tn_saver_save_best(tn_saver *s, bool later, tn_error *err)
{
    const tn_stop_opts *stop = &s->w->plan->run->train.stop;
    if (stop->monitor == NULL || stop->restore != 0) {
        return TN_OK;
    }
    if (s->saving_later) {
        drop(s); /* the best one before, which nothing on the disk stands on */
    }
    TN_TRY(tn_saver_end(s, err));
    s->state->best_ordinal = 0; /* the one before may go */
    s->later_next = later;
    tn_status status = tn_saver_save(s, false, err);
    s->later_next = false;
    s->saving_best = s->saving;
    return status;
}

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
    same = same || (s->state->begun && strcmp(resume, "never") != 0);
    return s->want->fresh ? "start it again without --fresh to go on"
           : same         ? "start the same command again to go on"
                          : "start it again with checkpoint.resume=auto to go on";
}

tn_status tn_saver_stop(tn_saver *s, tn_error *err)
{
    unsigned long long steps = s->w->steps;
    const tn_saved *newest = &s->saved;
    const char *dir = tn_checkpoints_dir(s->checkpoints);
    TN_TRY(tn_saver_end(s, err));
    if (s->is_unsaved && s->has_saved && newest->seconds > s->want->grace) {
        return tn_fail(err, TN_E_STOPPED,
                       "stopped by a signal at step %llu; not saved, since that took %.0f s before "
                       "and checkpoint.grace is %.0f s; '%s/%s' is the newest",
                       steps, newest->seconds, s->want->grace, dir, newest->name);
    }
    TN_TRY(tn_saver_save_last(s, true, err));
    TN_ASSERT(s->has_saved);
    return tn_fail(err, TN_E_STOPPED,
                   "stopped by a signal at step %llu; saved as '%s/%s'\nhint: %s", steps, dir,
                   newest->name, advice(s));
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
    return tn_report_event(s->report, s->state, "warn", line, err);
}
