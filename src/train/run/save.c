/* save.c - saving while training goes on: begun between two steps, ended between two others.
 */
#include "train/run/trainer_state.h"

#include "base/core/clock.h"
#include "base/file/file.h"

#include <stdio.h>

/* How the parts of an epoch stand that several readers have shared. */
static void tell_parts(tn_trainer *t)
{
    tn_run_state *s = &t->state;
    if (t->dealer != NULL && s->progress.epoch == tn_partdealer_epoch(t->dealer)) {
        tn_arena_free(t->parts);
        t->parts = tn_arena_new(1 << 12);
        s->part = tn_partdealer_parts(t->dealer, t->parts, &s->n_parts, tn_clock_ns());
    }
}

static tn_status begin(tn_trainer *t, bool delta, tn_error *err)
{
    t->state.patience = t->patience.state;
    t->state.steps = t->worker->steps;
    TN_TRY(tn_trainer_sum(t, err));
    tell_parts(t);
    tn_ckpt_want want = {.state = &t->state, .metrics = t->whole, .delta = delta};
    tn_span_begin(t->worker->lane, TN_PHASE_CHECKPOINT);
    tn_status status = tn_checkpoints_begin(t->checkpoints, t->worker, &want, err);
    tn_span_end(t->worker->lane);
    TN_TRY(status);
    t->saving = true;
    t->saving_delta = delta;
    t->unsaved = false;
    return TN_OK;
}

/* No checkpoint was written: an end, or only a line. */
static tn_status failed(tn_trainer *t, tn_status status, tn_error *err)
{
    t->unsaved = true;
    t->saving_best = false;
    if (t->run->checkpoint.on_error == 0 || ++t->saves_failed >= TN_SAVES_FAILED_MAX) {
        return status;
    }
    return tn_report_event(t->report, &t->state, "warn", err->text, err);
}

static tn_status saved(tn_trainer *t, const tn_saved *what, tn_error *err)
{
    t->saves_failed = 0;
    t->saved = *what;
    t->has_saved = true;
    if (t->saving_best) {
        t->state.best_ordinal = what->ordinal;
    }
    t->saving_best = false;
    return tn_report_saved(t->report, what, &t->state, err);
}

/* What the disk refused once it may take a second time, as every file is: of this moment then. */
static tn_status end_once(tn_trainer *t, tn_error *err)
{
    tn_saved what;
    t->saving = false;
    tn_span_begin(t->worker->lane, TN_PHASE_CHECKPOINT);
    tn_status status = tn_checkpoints_end(t->checkpoints, &what, err);
    tn_span_end(t->worker->lane);
    if (status != TN_OK && t->save_again && tn_checkpoints_lost_rows(t->checkpoints)) {
        t->save_again = false;
        status = begin(t, t->saving_delta, err);
        return status == TN_OK ? TN_OK : failed(t, status, err);
    }
    return status == TN_OK ? saved(t, &what, err) : failed(t, status, err);
}

tn_status tn_trainer_note_save(tn_trainer *t, tn_error *err)
{
    return t->saving && tn_checkpoints_written(t->checkpoints) ? end_once(t, err) : TN_OK;
}

tn_status tn_trainer_end_save(tn_trainer *t, tn_error *err)
{
    while (t->saving) {
        TN_TRY(end_once(t, err));
    }
    return TN_OK;
}

tn_status tn_trainer_save(tn_trainer *t, bool delta, tn_error *err)
{
    TN_TRY(tn_trainer_end_save(t, err));
    tn_status status = begin(t, delta, err);
    t->save_again = status == TN_OK;
    return status == TN_OK ? TN_OK : failed(t, status, err);
}

tn_status tn_trainer_save_best(tn_trainer *t, tn_error *err)
{
    if (t->run->train.stop.monitor == NULL || t->run->train.stop.restore != 0) {
        return TN_OK;
    }
    TN_TRY(tn_trainer_end_save(t, err));
    t->state.best_ordinal = 0; /* the one before may go */
    TN_TRY(tn_trainer_save(t, false, err));
    t->saving_best = t->saving;
    return TN_OK;
}

tn_status tn_trainer_check_room(tn_trainer *t, tn_error *err)
{
    tn_ckpt_room room;
    const tn_checkpoint_opts *o = &t->run->checkpoint;
    const char *dir = tn_checkpoints_dir(t->checkpoints);
    if (tn_trainer_saves_nothing(t)) {
        return TN_OK;
    }
    TN_TRY(tn_checkpoints_room(t->checkpoints, t->worker, &t->saved, &room, err));
    if (room.unused < room.least && o->on_error == 0) {
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
        (double)room.unused / 1e6, dir, o->keep, room.wanted, (double)room.least / 1e6);
    return tn_report_event(t->report, &t->state, "warn", line, err);
}
