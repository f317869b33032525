/* evaluations.c - scores data.valid when that is due, and data.test at the end of a run. */
#include "train/run/module.h"

#include "base/core/text.h"
#include "train/checkpoint/checkpoint.h"
#include "train/config/data_checks.h"
#include "train/config/days.h"
#include "train/eval/calibrate.h"
#include "train/eval/predict.h"
#include "train/run/saver.h"

#include <string.h>

/* ---- data.valid ---- */

typedef struct evaluator {
    uint64_t evaluated; /* steps of the model that was scored last; UINT64_MAX: none was */
    bool collected;     /* its scores are in now->calibrate */
    tn_text trained;    /* names the rows of data.valid that are learned, too */
} evaluator;

static tn_status init_evaluator(void *self, tn_run_now *now, tn_error *err)
{
    evaluator *v = self;
    (void)now;
    (void)err;
    v->evaluated = UINT64_MAX;
    return TN_OK;
}

static void free_evaluator(void *self)
{
    evaluator *v = self;
    tn_text_done(&v->trained);
}

/* Finds the rows of data.valid that are learned, too: these judge nothing. */
static tn_status look_at_valid(void *self, tn_run_now *now, tn_error *err)
{
    evaluator *v = self;
    const tn_data_opts *data = &now->run->data;
    tn_learned_days learned = {0};
    if (tn_run_has_days(now) && !now->run->checkpoint.fresh) {
        tn_checkpoint_days(now->run, &learned, NULL);
        learned.used = false; /* the days that are asked for will be learned, too */
    }
    if (tn_data_is_trained(data, &learned, &data->valid, &v->trained)) {
        now->state->kept.patience.monitor = NULL;
    }
    now->trained = tn_text_str(&v->trained);
    return tn_text_check(&v->trained, "a sentence", err);
}

/* The takers of the score of each row of data.valid. */
typedef struct score_takers {
    tn_calibrate *calibrate; /* NULL: no calibration is fitted */
    const tn_watch *watch;
} score_takers;

static tn_status pass_scores_on(void *arg, const tn_scores *scores, tn_error *err)
{
    const score_takers *takers = arg;
    const tn_watch *watch = takers->watch;
    const tn_batch *batch = scores->batch;
    if (watch->scored != NULL && batch->rows > 0) {
        watch->scored(watch->arg, batch->label, scores->logit, batch->weight, batch->rows);
    }
    return takers->calibrate != NULL ? tn_calibrate_sink(takers->calibrate, scores, err) : TN_OK;
}

/* Scores data.valid; `collects`: also for a calibration, if one is wanted. */
static tn_status score_valid(evaluator *v, tn_run_now *now, bool collects, tn_error *err)
{
    tn_evaluation *valid = &now->out->valid;
    TN_ASSERT(now->run->data.valid.n > 0 && now->report != NULL);
    const tn_watch *watch = now->watch;
    v->collected = now->calibrate != NULL && collects;
    score_takers takers = {v->collected ? now->calibrate : NULL, watch};
    const bool wanted = v->collected || watch->scored != NULL;
    if (watch->scored != NULL) {
        watch->scored(watch->arg, NULL, NULL, NULL, 0);
    }
    const tn_eval_request request = {.paths = &now->run->data.valid,
                                     .held = now->run->data.held != TN_HELD_NONE,
                                     .stop = now->watch->stop,
                                     .sink = wanted ? pass_scores_on : NULL,
                                     .sink_arg = &takers};
    tn_calibrate_clear(now->calibrate);
    tn_evaluation_done(valid);
    return tn_epoch_evaluate(now->epoch, &request, valid, err);
}

/* Scores data.valid and has others judge that. TN_E_STOPPED: by a signal. */
static tn_status evaluate_valid(evaluator *v, tn_run_now *now, tn_error *err)
{
    tn_run_state *state = now->state;
    if (now->run->data.valid.n == 0) {
        state->kept.eval_owed = false;
        return TN_OK;
    }
    /* Among peers rows would travel for it: only where this model may be the one that stays. */
    const bool last = now->stops || tn_run_is_last(now);
    TN_TRY(score_valid(v, now, now->epoch->is_alone || last, err));
    v->evaluated = now->worker->steps;
    state->kept.eval_owed = false;
    TN_TRY(tn_modules_at(now, TN_AT_SCORES, err));
    const tn_report_eval eval = {.data = "valid",
                                 .result = &now->out->valid,
                                 .state = state,
                                 .step = now->worker->steps,
                                 .best = now->is_best};
    TN_TRY(tn_report_eval_done(now->report, &eval, err));
    return tn_modules_at(now, TN_AT_EVALUATED, err);
}

/* Evaluates; when a signal ends that, a resumed run begins with it. */
static tn_status evaluate_or_owe(evaluator *v, tn_run_now *now, tn_error *err)
{
    tn_status status = evaluate_valid(v, now, err);
    if (status == TN_E_STOPPED) {
        if (!now->state->kept.eval_owed) {
            tn_saver_set_unsaved(now->saver);
        }
        now->state->kept.eval_owed = true;
    }
    return status;
}

static tn_status evaluate_owed(void *self, tn_run_now *now, tn_error *err)
{
    return now->state->kept.eval_owed ? evaluate_or_owe(self, now, err) : TN_OK;
}

static tn_status evaluate_at_meeting(void *self, tn_run_now *now, tn_error *err)
{
    return now->due.eval ? evaluate_or_owe(self, now, err) : TN_OK;
}

static tn_status evaluate_after_epoch(void *self, tn_run_now *now, tn_error *err)
{
    return now->due.eval ? evaluate_valid(self, now, err) : TN_OK;
}

/* Evaluates a model whose training ended within an epoch. */
static tn_status evaluate_last(void *self, tn_run_now *now, tn_error *err)
{
    evaluator *v = self;
    return now->epoch->is_begun && v->evaluated != now->worker->steps ? evaluate_or_owe(v, now, err)
                                                                      : TN_OK;
}

static tn_status collect_scores(void *self, tn_run_now *now, tn_error *err)
{
    evaluator *v = self;
    if (now->run->data.next) {
        return TN_OK; /* days are judged by the day after */
    }
    const bool known =
        now->out->valid.metrics != NULL && v->collected && v->evaluated == now->worker->steps;
    v->evaluated = now->worker->steps;
    return known ? TN_OK : score_valid(v, now, true, err);
}

/* Scores the model that stays, unless its scores are known. */
static tn_status score_kept(void *self, tn_run_now *now, tn_error *err)
{
    const evaluator *v = self;
    const bool known = now->out->valid.metrics != NULL && (v->collected || now->calibrate == NULL);
    const bool wanted = now->run->data.valid.n > 0 && !known;
    tn_error why = {0};
    const tn_status status = wanted ? collect_scores(self, now, &why) : TN_OK;
    return status == TN_OK || status == TN_E_DATA ? TN_OK : tn_fail(err, status, "%s", why.text);
}

extern const tn_module tn_module_evaluate;
const tn_module tn_module_evaluate = {.name = "evaluate",
                                      .size = sizeof(evaluator),
                                      .at = {[TN_AT_OPEN] = init_evaluator,
                                             [TN_AT_LOOK] = look_at_valid,
                                             [TN_AT_STEPS] = evaluate_owed,
                                             [TN_AT_MEETING] = evaluate_at_meeting,
                                             [TN_AT_EPOCH] = evaluate_after_epoch,
                                             [TN_AT_END] = evaluate_last,
                                             [TN_AT_COLLECT] = collect_scores,
                                             [TN_AT_KEPT] = score_kept},
                                      .close = free_evaluator};

/* ---- data.test ---- */

/* Scores data.test, and writes it down where eval.predictions says. */
static tn_status score_test(tn_run_now *now, tn_error *err)
{
    tn_predictions *p = NULL;
    const tn_run *run = now->run;
    const tn_predictions_opts opts = {.path = run->eval.predictions,
                                      .sampling =
                                          now->map != NULL ? 1 : run->data.negative_sampling,
                                      .schema = now->plan->schema,
                                      .inputs = now->watch->inputs,
                                      .stop = now->watch->stop,
                                      .secrets = run->data.secrets};
    if (opts.path != NULL) {
        TN_TRY(tn_predictions_open(&p, &opts, err));
    }
    const tn_eval_request request = {.paths = &run->data.test,
                                     .want_ids = p != NULL,
                                     .calibration = now->map,
                                     .stop = now->watch->stop,
                                     .sink = p != NULL ? tn_predictions_sink : NULL,
                                     .sink_arg = p};
    tn_status status = tn_epoch_evaluate(now->epoch, &request, &now->out->test, err);
    if (status == TN_OK && p != NULL) {
        return tn_predictions_commit(p, err);
    }
    tn_predictions_abandon(p);
    return status;
}

static tn_status evaluate_test(void *self, tn_run_now *now, tn_error *err)
{
    (void)self;
    if (now->run->data.test.n == 0) {
        return TN_OK;
    }
    TN_TRY(score_test(now, err));
    const tn_report_eval eval = {.data = "test",
                                 .result = &now->out->test,
                                 .state = now->state,
                                 .step = now->restored != 0 ? now->restored : now->worker->steps};
    return tn_report_eval_done(now->report, &eval, err);
}

extern const tn_module tn_module_test;
const tn_module tn_module_test = {.name = "test", .at = {[TN_AT_KEPT] = evaluate_test}};
