/* finish.c - how a run ends: by itself, with the best model saved and tested, or by a signal. */
#include "base/file/file.h"
#include "train/eval/predict.h"
#include "train/run/trainer_state.h"

#include <stdio.h>
#include <string.h>

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

static bool is_never(const tn_every *every)
{
    return every->epochs == 0 && every->steps == 0 && every->seconds == 0;
}

bool tn_trainer_saves_nothing(const tn_trainer *t)
{
    return is_never(&t->ckpt_every) && is_never(&t->delta_every);
}

/* The best model into memory, in the place of the last one: that is saved before, and comes back
 * when the best cannot be read, for the reason in `why`. */
static tn_status bring_back(tn_trainer *t, bool *back, tn_error *why, tn_error *err)
{
    const bool kept = !tn_trainer_saves_nothing(t);
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
    const tn_patience_state *p = &t->patience.state;
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
    return tn_trainer_evaluate(t, &request, &t->out->test, err);
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
        TN_TRY(tn_trainer_evaluate(t, &request, &t->out->valid, err));
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

tn_status tn_trainer_wind_up(tn_trainer *t, tn_error *err)
{
    TN_TRY(tn_trainer_end_save(t, err));
    TN_TRY(choose_the_last(t, err));
    TN_TRY(tn_trainer_end_save(t, err));                   /* of the best model, which it may be */
    const bool imported = t->state.begun && !t->has_saved; /* also where nothing is learned */
    if ((t->opened || imported) && !tn_trainer_saves_nothing(t) && !tn_trainer_is_asked(t)) {
        TN_TRY(save_at_last(t, false, err));
    }
    tn_status status = tn_trainer_is_asked(t) ? TN_E_STOPPED : judge_the_last(t, err);
    return status == TN_E_STOPPED ? tn_trainer_stop(t, err) : status;
}
