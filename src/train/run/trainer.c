/* trainer.c - a whole run; see trainer.h. */
#include "train/run/trainer.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "train/checkpoint/import.h"
#include "train/checkpoint/rerun.h"
#include "train/report/profile.h"
#include "train/run/follower.h"
#include "train/run/trainer_state.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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
        .finish = tn_run_finish(t->run, &t->state, tn_patience_is_over(&t->patience))};
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
        return t->lead != NULL ? tn_lead_load(t->lead, "", err) : TN_OK;
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
    TN_TRY(tn_lead_open(&t->lead, t->worker, t->text, t->watch, t->checkpoints, err));
    t->beats = (tn_beats){.group = tn_peers_group(tn_lead_peers(t->lead)), .begin = tn_clock_s()};
    return tn_lead_form(t->lead, t->watch->stop, err);
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
        .reported = t->lead != NULL ? tn_lead_reported(t->lead) : NULL,
        .run_id = tn_checkpoints_run_id(t->checkpoints),
        .resumed = which.ordinal != 0 ? &which : NULL,
        .memory = &t->memory,
    };
    TN_TRY(tn_report_open(&t->report, &report, err));
    return t->beginning.size > 0
               ? tn_report_event(t->report, &t->state, "info", tn_text_str(&t->beginning), err)
               : TN_OK;
}

tn_status tn_trainer_evaluate(tn_trainer *t, const tn_eval_request *request, tn_evaluation *out,
                              tn_error *err)
{
    tn_lane *lane = t->worker->lane;
    const char *data = request->paths == &t->run->data.test ? "test" : "valid";
    tn_span_begin(lane, TN_PHASE_EVALUATE);
    tn_lane_fold(lane, TN_PHASE_EVALUATE);
    tn_status status = t->lead != NULL ? tn_lead_evaluate(t->lead, data, request, out, err)
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
    TN_TRY(tn_trainer_evaluate(t, &request, &t->out->valid, err));
    t->evaluated = t->worker->steps;
    t->state.eval_owed = false;
    double value = t->patience.metric != NULL
                       ? tn_metrics_get(t->out->valid.metrics, t->patience.metric)
                       : (double)NAN;
    tn_verdict verdict = tn_patience_tell(&t->patience, value, t->worker->steps);
    t->state.patience = t->patience.state;
    tn_report_eval eval = {
        .data = "valid", .result = &t->out->valid, .state = &t->state, .best = verdict.best};
    TN_TRY(tn_report_eval_done(t->report, &eval, err));
    if (verdict.best) {
        TN_TRY(tn_trainer_save_best(t, err));
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

static tn_status run_epochs(tn_trainer *t, tn_error *err)
{
    t->stop = tn_patience_is_over(&t->patience) || t->worker->steps >= t->run->train.max_steps;
    const bool goes_on = t->worker->steps > 0 && t->state.progress.epoch < t->run->train.epochs;
    if (!t->stop && goes_on && tn_trainer_is_full(t)) {
        return tn_trainer_stop_full(t, err);
    }
    while ((!t->stop || t->state.eval_owed) && t->state.progress.epoch < t->run->train.epochs) {
        TN_TRY(tn_trainer_epoch(t, err));
    }
    return tn_trainer_wind_up(t, err);
}

/* A failed run waits for the checkpoint that is being written: it is good. */
static tn_status end_save(tn_trainer *t, tn_status status, tn_error *err)
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
    tn_watch_told_elsewhere(t->watch, tn_lead_close(t->lead, status, why));
}

/* Ends the run's files; the first failure is the one that is told. */
static tn_status finish(tn_trainer *t, tn_status status, tn_error *err)
{
    status = end_save(t, status, err);
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
                t->reassigned + (t->dealer != NULL ? tn_partdealer_reassigned(t->dealer) : 0),
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
    tn_partdealer_close(t->dealer);
    tn_data_stand_done(&t->state.stand);
    tn_text_done(&t->past.config);
    tn_text_done(&t->past.sources);
    tn_text_done(&t->beginning);
    tn_arena_free(t->map);
    if (status != TN_OK && status != TN_E_STOPPED) {
        tn_outcome_done(t->out);
    }
    return status;
}

tn_status tn_train(const tn_blueprint *plan, const tn_run_text *text, const tn_watch *watch,
                   const tn_binder *b, tn_outcome *out, tn_error *err)
{
    if (plan->run->cluster.rank > 0) {
        return tn_follow(plan, text, watch, b, out, err);
    }
    *out = (tn_outcome){0};
    tn_trainer t = {.plan = plan, .run = plan->run, .text = text, .watch = watch, .out = out};
    t.begin = tn_clock_s();
    t.evaluated = UINT64_MAX;
    tn_patience_init(&t.patience, &t.run->train);
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
