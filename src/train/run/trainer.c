/* trainer.c - a whole run: begins or goes on, saves, evaluates, and ends by itself or by a signal.
 */
#include "train/run/trainer_state.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/file/file.h"
#include "train/checkpoint/import.h"
#include "train/checkpoint/rerun.h"
#include "train/eval/predict.h"
#include "train/report/profile.h"
#include "train/run/follower.h"
#include "train/run/trainer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- saving: begun between two steps, ended between two others ---- */

/* How the parts of an epoch stand that several readers have shared. */
static void tell_parts(tn_trainer *t)
{
    tn_run_state *s = &t->state;
    if (t->dealer != NULL && s->progress.epoch == tn_part_dealer_epoch(t->dealer)) {
        tn_arena_free(t->parts);
        t->parts = tn_arena_new(1 << 12);
        s->part = tn_part_dealer_parts(t->dealer, t->parts, &s->n_parts, tn_clock_ns());
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

/* Ends a save. If the disk refused rows, a second save of the present moment is tried, as for every
 * other file. */
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

static tn_status save_best(tn_trainer *t, tn_error *err)
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

static bool is_never(const tn_every *every)
{
    return every->epochs == 0 && every->steps == 0 && every->seconds == 0;
}

static bool saves_nothing(const tn_trainer *t)
{
    return is_never(&t->ckpt_every) && is_never(&t->delta_every);
}

tn_status tn_trainer_check_room(tn_trainer *t, tn_error *err)
{
    tn_ckpt_room room;
    const tn_checkpoint_opts *o = &t->run->checkpoint;
    const char *dir = tn_checkpoints_dir(t->checkpoints);
    if (saves_nothing(t)) {
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

/* ---- evaluating ---- */

/* tn_evaluate, as one phase of the run. */
static tn_status evaluate(tn_trainer *t, const tn_eval_request *request, tn_evaluation *out,
                          tn_error *err)
{
    tn_lane *lane = t->worker->lane;
    const char *data = request->paths == &t->run->data.test ? "test" : "valid";
    tn_span_begin(lane, TN_PHASE_EVALUATE);
    tn_lane_fold(lane, TN_PHASE_EVALUATE);
    tn_status status = t->lead != NULL ? tn_leader_evaluate(t->lead, data, request, out, err)
                                       : tn_evaluate(t->worker, request, out, err);
    tn_lane_fold(lane, TN_PHASES);
    tn_span_end(lane);
    return status;
}

tn_status tn_trainer_validate(tn_trainer *t, tn_error *err)
{
    if (t->run->data.valid.n == 0) {
        t->state.eval_owed = false;
        return TN_OK;
    }
    tn_eval_request request = {.paths = &t->run->data.valid, .stop = t->watch->stop};
    tn_evaluation_done(&t->out->valid);
    TN_TRY(evaluate(t, &request, &t->out->valid, err));
    t->evaluated = t->worker->steps;
    t->state.eval_owed = false;
    double value = t->patience.metric != NULL
                       ? tn_metrics_get(t->out->valid.metrics, t->patience.metric)
                       : (double)NAN;
    tn_verdict verdict = tn_early_stopping_add(&t->patience, value, t->worker->steps);
    t->state.patience = t->patience.state;
    tn_report_eval eval = {
        .data = "valid", .result = &t->out->valid, .state = &t->state, .best = verdict.best};
    TN_TRY(tn_report_eval_done(t->report, &eval, err));
    if (verdict.best) {
        TN_TRY(save_best(t, err));
    }
    char line[160];
    if (verdict.reduced) {
        (void)snprintf(line, sizeof line, "no better %s: learning rate times %g",
                       t->patience.metric, t->patience.state.lr_scale);
        TN_TRY(tn_report_event(t->report, &t->state, "info", line, err));
    }
    if (verdict.stop) {
        (void)snprintf(line, sizeof line, "no better %s %u times in a row: stopping",
                       t->patience.metric, t->patience.state.bad);
        TN_TRY(tn_report_event(t->report, &t->state, "info", line, err));
        t->stop = true;
    }
    return TN_OK;
}

/* ---- the end: the best model saved and tested, or a signal ---- */

bool tn_trainer_is_asked(const tn_trainer *t)
{
    return t->peer_stops || (t->watch->stop != NULL && atomic_load(t->watch->stop));
}

/* How to go on; the same command only does when it looks for checkpoints. */
static const char *advice(const tn_trainer *t)
{
    const char *resume = t->run->checkpoint.resume;
    bool same = strcmp(resume, "auto") == 0 || strcmp(resume, "must") == 0;
    same = same || (t->state.begun && strcmp(resume, "never") != 0);
    return t->run->checkpoint.fresh ? "start it again without --fresh to go on"
           : same                   ? "start the same command again to go on"
                                    : "start it again with checkpoint.resume=auto to go on";
}

/* Also where failures are allowed for: there is no next time. */
static tn_status save_at_last(tn_trainer *t, bool delta, tn_error *err)
{
    TN_TRY(tn_trainer_end_save(t, err));
    if (!t->unsaved) {
        return TN_OK;
    }
    t->saves_failed = TN_SAVES_FAILED_MAX;
    TN_TRY(tn_trainer_save(t, delta, err));
    return tn_trainer_end_save(t, err);
}

tn_status tn_trainer_stop(tn_trainer *t, tn_error *err)
{
    unsigned long long steps = t->worker->steps;
    const char *dir = tn_checkpoints_dir(t->checkpoints);
    TN_TRY(tn_trainer_end_save(t, err));
    if (t->unsaved && t->has_saved && t->saved.seconds > t->run->checkpoint.grace) {
        return tn_fail(err, TN_E_STOPPED,
                       "stopped by a signal at step %llu; not saved, since that took %.0f s before "
                       "and checkpoint.grace is %.0f s; '%s/%s' is the newest",
                       steps, t->saved.seconds, t->run->checkpoint.grace, dir, t->saved.name);
    }
    TN_TRY(save_at_last(t, true, err));
    TN_ASSERT(t->has_saved);
    return tn_fail(err, TN_E_STOPPED,
                   "stopped by a signal at step %llu; saved as '%s/%s'\nhint: %s", steps, dir,
                   t->saved.name, advice(t));
}

tn_status tn_trainer_stop_owing(tn_trainer *t, tn_error *err)
{
    t->unsaved = t->unsaved || !t->state.eval_owed;
    t->state.eval_owed = true;
    return tn_trainer_stop(t, err);
}

/* The best model into memory, in the place of the last one: that is saved before, and comes back
 * when the best cannot be read, for the reason in `why`. */
static tn_status bring_back(tn_trainer *t, bool *back, tn_error *why, tn_error *err)
{
    const bool kept = !saves_nothing(t);
    if (kept) {
        TN_TRY(save_at_last(t, false, err));
    }
    const uint64_t last = t->saved.ordinal;
    tn_status status =
        tn_checkpoints_restore(t->checkpoints, t->worker, t->state.best_ordinal, why);
    *back = status == TN_OK;
    if (*back) {
        t->unsaved = true;
        tn_evaluation_done(&t->out->valid); /* was of the model that is gone */
        return TN_OK;
    }
    why->text[strcspn(why->text, "\n")] = '\0'; /* no hint: the run goes on */
    t->state.best_ordinal = 0;
    if (kept) {
        return tn_checkpoints_restore(t->checkpoints, t->worker, last, err);
    }
    return tn_fail(err, status, "the best model cannot be read back: %s", why->text);
}

bool tn_trainer_is_full(tn_trainer *t)
{
    return t->peer_is_full || tn_room_is_over(tn_memory_cap_look(&t->memory));
}

tn_status tn_trainer_stop_full(tn_trainer *t, tn_error *err)
{
    char path[TN_PATH_SIZE];
    TN_TRY(save_at_last(t, true, err));
    TN_TRY(tn_path_join(tn_checkpoints_dir(t->checkpoints), t->saved.name, path, err));
    return tn_memory_cap_fail(&t->memory, path, err);
}

/* The best model back; it is not saved as the newest checkpoint yet. */
static tn_status restore_best(tn_trainer *t, tn_error *err)
{
    const tn_early_stopping_state *p = &t->patience.state;
    const tn_stop_opts *stop = &t->run->train.stop;
    if (stop->monitor == NULL || stop->restore != 0 || !p->seen || p->step == t->worker->steps) {
        return TN_OK;
    }
    tn_error why = {.text = "was not kept"};
    bool back = false;
    if (t->state.best_ordinal != 0) {
        TN_TRY(bring_back(t, &back, &why, err));
        tn_error_context(&why, "cannot be read back");
    }
    char line[sizeof why.text + 200];
    const unsigned long long step = p->step;
    (void)snprintf(line, sizeof line,
                   back ? "restored the best model: %s %.6f at step %llu"
                        : "the best model, %s %.6f at step %llu, %s: the last one stays",
                   t->patience.metric, p->best, step, why.text);
    return tn_report_event(t->report, &t->state, back ? "info" : "warn", line, err);
}

static tn_status evaluate_test(tn_trainer *t, tn_predictions *predictions, tn_error *err)
{
    bool wanted = predictions != NULL;
    tn_eval_request request = {.paths = &t->run->data.test,
                               .want_ids = wanted,
                               .stop = t->watch->stop,
                               .sink = wanted ? tn_predictions_sink : NULL,
                               .sink_arg = predictions};
    return evaluate(t, &request, &t->out->test, err);
}

static tn_status test_with_predictions(tn_trainer *t, tn_error *err)
{
    tn_predictions *p = NULL;
    const tn_predictions_opts opts = {.path = t->run->eval.predictions,
                                      .sampling = t->run->data.negative_sampling,
                                      .schema = t->worker->plan->schema,
                                      .inputs = t->watch->inputs,
                                      .stop = t->watch->stop};
    TN_TRY(tn_predictions_open(&p, &opts, err));
    tn_status status = evaluate_test(t, p, err);
    if (status != TN_OK) {
        tn_predictions_abandon(p);
        return status;
    }
    return tn_predictions_commit(p, err);
}

/* Scores of the model that stays: those of data.valid unless they are known, of data.test always.
 */
static tn_status judge_the_last(tn_trainer *t, tn_error *err)
{
    if (t->run->data.valid.n > 0 && t->out->valid.metrics == NULL) {
        tn_eval_request request = {.paths = &t->run->data.valid, .stop = t->watch->stop};
        TN_TRY(evaluate(t, &request, &t->out->valid, err));
    }
    if (t->run->data.test.n == 0) {
        return TN_OK;
    }
    TN_TRY(t->run->eval.predictions != NULL ? test_with_predictions(t, err)
                                            : evaluate_test(t, NULL, err));
    tn_report_eval eval = {.data = "test", .result = &t->out->test, .state = &t->state};
    return tn_report_eval_done(t->report, &eval, err);
}

/* The model that stays, with the evaluation that may still tell which one that is. */
static tn_status choose_the_last(tn_trainer *t, tn_error *err)
{
    if (!t->opened) {
        return TN_OK; /* its checkpoint was written here, or before anything was learned */
    }
    if (t->evaluated != t->worker->steps) { /* ended within an epoch */
        tn_status status = tn_trainer_validate(t, err);
        if (status == TN_E_STOPPED) {
            return tn_trainer_stop_owing(t, err);
        }
        TN_TRY(status);
    }
    return restore_best(t, err);
}

/* The end of training: the best model is brought back, saved, and tested. */
static tn_status wind_up(tn_trainer *t, tn_error *err)
{
    TN_TRY(tn_trainer_end_save(t, err));
    TN_TRY(choose_the_last(t, err));
    TN_TRY(tn_trainer_end_save(t, err));                   /* of the best model, which it may be */
    const bool imported = t->state.begun && !t->has_saved; /* also where nothing is learned */
    if ((t->opened || imported) && !saves_nothing(t) && !tn_trainer_is_asked(t)) {
        TN_TRY(save_at_last(t, false, err));
    }
    tn_status status = tn_trainer_is_asked(t) ? TN_E_STOPPED : judge_the_last(t, err);
    return status == TN_E_STOPPED ? tn_trainer_stop(t, err) : status;
}

/* ---- a run ---- */

/* Where a run before has left off, and what is said of it. */
static tn_status go_on(tn_trainer *t, const tn_saved *which, tn_error *err)
{
    t->worker->steps = t->state.steps;
    t->looked = t->state.steps;
    t->saved = *which;
    t->has_saved = true;
    t->patience.state = t->state.patience;
    const tn_rerun rerun = {
        .plan = t->plan,
        .text = t->text,
        .state = &t->state,
        .name = which->name,
        .finish = tn_run_finish(t->run, &t->state, tn_early_stopping_is_over(&t->patience))};
    return tn_rerun_tell(&rerun, &t->beginning, err);
}

/* Weights to begin with: a checkpoint, files, or first values with the label rate as bias. */
static tn_status first_weights(tn_trainer *t, tn_saved *which, tn_error *err)
{
    TN_TRY(
        tn_checkpoints_resume(t->checkpoints, t->worker, &t->state, t->epoch_metrics, which, err));
    if (which->ordinal != 0) {
        return go_on(t, which, err);
    }
    if (t->state.begun) {
        tn_text_addf(&t->beginning, "begins with the weights of '%s' (epoch %u, step %llu)",
                     t->run->checkpoint.resume, which->epoch, (unsigned long long)which->step);
        return tn_text_check(&t->beginning, "a sentence", err);
    }
    if (!tn_tree_is_null(t->run->checkpoint.from)) {
        t->state.begun = true;
        TN_TRY(tn_import(t->run->checkpoint.from, t->worker, err));
        return t->lead != NULL ? tn_leader_load(t->lead, "", err) : TN_OK;
    }
    const tn_model_common *model = t->run->model.shared;
    if (t->worker->output_bias == NULL || strcmp(model->bias_init, "prior") == 0) {
        return TN_OK; /* drawn from the first window of the data, see tn_trainer_epoch */
    }
    return tn_worker_set_bias(t->worker, model->bias_init, err);
}

/* The other processes of the run, if there are any. */
static tn_status gather_peers(tn_trainer *t, const tn_metrics_opts *metrics, tn_error *err)
{
    if (t->plan->owners.n_peers == 1) {
        return TN_OK;
    }
    t->whole = NULL;
    TN_TRY(tn_metrics_new(&t->whole, metrics, err));
    TN_TRY(tn_leader_open(&t->lead, t->worker, t->text, t->watch, t->checkpoints, err));
    t->beats = (tn_heartbeat_stats){.group = tn_peers_group(tn_leader_peers(t->lead)),
                                    .begin = tn_clock_s()};
    return tn_leader_form(t->lead, t->watch->stop, err);
}

static tn_status open_parts(tn_trainer *t, const tn_binder *b, tn_error *err)
{
    tn_metrics_opts metrics = tn_metrics_opts_of(t->run, t->plan->schema);
    metrics.exact_auc = false;
    metrics.grouped = false;
    TN_TRY(tn_metrics_new(&t->epoch_metrics, &metrics, err));
    t->whole = t->epoch_metrics;
    TN_TRY(tn_worker_new(&t->worker, t->plan, &(tn_worker_opts){.training = true}, b, err));
    tn_profile_begin(t->watch->profile, t->worker);
    tn_memory_cap_init(&t->memory, t->worker, 0);
    TN_TRY(tn_checkpoints_open(&t->checkpoints, t->plan, t->text, err));
    TN_TRY(gather_peers(t, &metrics, err));
    tn_saved which;
    TN_TRY(first_weights(t, &which, err));
    tn_memory_cap_begin(&t->memory);
    t->unsaved = !t->has_saved; /* a signal may come before the first step */
    tn_report_opts report = {
        .plan = t->plan,
        .text = t->text,
        .watch = t->watch,
        .worker = t->worker,
        .dir = tn_checkpoints_dir(t->checkpoints),
        .reported = t->lead != NULL ? tn_leader_peer_progress(t->lead) : NULL,
        .run_id = tn_checkpoints_run_id(t->checkpoints),
        .resumed = which.ordinal != 0 ? &which : NULL,
        .memory = &t->memory,
    };
    TN_TRY(tn_report_open(&t->report, &report, err));
    return t->beginning.size > 0
               ? tn_report_event(t->report, &t->state, "info", tn_text_str(&t->beginning), err)
               : TN_OK;
}

static tn_status run_epochs(tn_trainer *t, tn_error *err)
{
    t->stop =
        tn_early_stopping_is_over(&t->patience) || t->worker->steps >= t->run->train.max_steps;
    const bool goes_on = t->worker->steps > 0 && t->state.progress.epoch < t->run->train.epochs;
    if (!t->stop && goes_on && tn_trainer_is_full(t)) {
        return tn_trainer_stop_full(t, err);
    }
    while ((!t->stop || t->state.eval_owed) && t->state.progress.epoch < t->run->train.epochs) {
        TN_TRY(tn_trainer_epoch(t, err));
    }
    return wind_up(t, err);
}

/* A failed run waits for the checkpoint that is being written: it is good. */
static tn_status end_last_save(tn_trainer *t, tn_status status, tn_error *err)
{
    tn_error second = {0};
    t->save_again = false;
    tn_status ended = tn_trainer_end_save(t, status == TN_OK ? err : &second);
    return status != TN_OK ? status : ended;
}

/* The other processes end the same way, also those that wait for a group still. */
static void leave_group(tn_trainer *t, tn_status status, const tn_error *err)
{
    const char *why = status == TN_OK ? "" : err->text;
    if (status != TN_OK && t->lead == NULL) {
        tn_peers_decline(t->run, status, why);
    }
    tn_watch_told_elsewhere(t->watch, tn_leader_close(t->lead, status, why));
}

/* Ends the run's files; the first failure is the one that is told. */
static tn_status finish(tn_trainer *t, tn_status status, tn_error *err)
{
    status = end_last_save(t, status, err);
    t->out->steps = t->worker != NULL ? t->worker->steps : 0;
    t->out->samples = t->state.samples;
    t->out->seconds = tn_clock_s() - t->begin;
    t->out->loss = t->whole != NULL ? tn_metrics_get(t->whole, "logloss") : (double)NAN;
    if (t->report != NULL) {
        tn_report_end end = {
            .status = status == TN_OK          ? "ok"
                      : status == TN_E_STOPPED ? "stopped"
                                               : "failed",
            .result = status,
            .message = status == TN_OK ? NULL : err->text,
            .state = &t->state,
            .trained = t->out,
            .met = &t->met,
            .epoch = t->map_epoch,
            .train = t->whole,
            .saved = t->has_saved ? &t->saved : NULL,
            .reassigned =
                t->reassigned + (t->dealer != NULL ? tn_part_dealer_reassigned(t->dealer) : 0),
        };
        tn_error second = {0};
        tn_status written = tn_report_finish(t->report, &end, &second);
        if (status == TN_OK && written != TN_OK) {
            *err = second;
            status = written;
        }
    }
    tn_profile_end(t->watch->profile, t->worker);
    leave_group(t, status, err);
    tn_report_close(t->report);
    tn_checkpoints_close(t->checkpoints);
    if (t->whole != t->epoch_metrics) {
        tn_metrics_free(t->whole);
    }
    tn_metrics_free(t->epoch_metrics);
    tn_arena_free(t->parts);
    tn_worker_free(t->worker);
    tn_met_done(&t->met);
    tn_part_dealer_close(t->dealer);
    tn_epoch_position_done(&t->state.stand);
    tn_text_done(&t->past.config);
    tn_text_done(&t->past.sources);
    tn_text_done(&t->beginning);
    tn_arena_free(t->map);
    if (status != TN_OK && status != TN_E_STOPPED) {
        tn_outcome_done(t->out);
    }
    return status;
}

tn_status tn_train(const tn_model_plan *plan, const tn_run_text *text, const tn_watch *watch,
                   const tn_binder *b, tn_outcome *out, tn_error *err)
{
    if (plan->run->cluster.rank > 0) {
        return tn_follower_run(plan, text, watch, b, out, err);
    }
    *out = (tn_outcome){0};
    tn_trainer t = {.plan = plan, .run = plan->run, .text = text, .watch = watch, .out = out};
    t.begin = tn_clock_s();
    t.evaluated = UINT64_MAX;
    tn_early_stopping_init(&t.patience, &t.run->train);
    t.state.patience = t.patience.state;
    t.state.past = &t.past;
    t.state.monitor = t.patience.metric;
    bool good = tn_every_read(t.run->eval.every, &t.eval_every) &&
                tn_every_read(t.run->checkpoint.every, &t.ckpt_every) &&
                (t.run->checkpoint.delta_every == NULL ||
                 tn_every_read(t.run->checkpoint.delta_every, &t.delta_every));
    TN_ASSERT(good); /* checked with the configuration */
    t.next_eval = t.begin + t.eval_every.seconds;
    t.next_ckpt = t.begin + t.ckpt_every.seconds;
    t.next_delta = t.begin + t.delta_every.seconds;
    tn_status status = open_parts(&t, b, err);
    if (status == TN_OK) {
        status = run_epochs(&t, err);
    }
    return finish(&t, status, err);
}
