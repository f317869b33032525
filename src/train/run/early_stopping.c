/* early_stopping.c - compares a value with the best, counts those that are no better; keeps the
 * best model of a run, and brings it back at the end. */
#include "train/run/early_stopping.h"

#include "metrics/metrics.h"
#include "ps/optim/optim.h"
#include "train/eval/task_results.h"
#include "train/run/module.h"
#include "train/run/saver.h"
#include "train/run/timetable.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

bool tn_early_stopping_is_over(const tn_train_opts *opts, const tn_early_stopping_state *s)
{
    const tn_stop_opts *stop = &opts->stop;
    return stop->monitor != NULL && s->bad >= stop->patience;
}

/* Whether it beats an earlier value, if there was one. */
static bool beats(const tn_train_opts *opts, const tn_evaluated *what, bool seen, double earlier)
{
    const double delta = opts->stop.min_delta;
    const char *dot = strrchr(what->monitor, '.'); /* after the task, if there are several */
    const tn_metric_best best = tn_metric_find(dot != NULL ? dot + 1 : what->monitor)->best;
    TN_ASSERT(best != TN_BEST_NONE); /* refused with the configuration */
    if (best == TN_BEST_NEAREST_ONE) {
        return !seen || fabs(what->value - 1) < fabs(earlier - 1) - delta;
    }
    return !seen || (best == TN_BEST_LARGEST ? what->value > earlier + delta
                                             : what->value < earlier - delta);
}

/* True when the rate became smaller. */
static bool reduce(const tn_train_opts *opts, tn_early_stopping_state *s)
{
    const tn_plateau_opts *o = &opts->reduce_on_plateau;
    const tn_rule_opts *dense = opts->optimizer.opts;
    if (isnan(o->factor) || s->bad % o->patience != 0) {
        return false;
    }
    const double least = fmin(1, o->min_lr / dense->lr);
    const double scale = fmax(s->lr_scale * o->factor, least);
    const bool smaller = scale < s->lr_scale;
    s->lr_scale = scale;
    return smaller;
}

tn_verdict tn_early_stopping_add(const tn_train_opts *opts, tn_early_stopping_state *s,
                                 const tn_evaluated *what)
{
    TN_ASSERT(what->monitor != NULL && s->lr_scale > 0);
    if (isnan(what->value)) {
        return (tn_verdict){.unknown = true};
    }
    tn_verdict v = {.best = beats(opts, what, s->seen, s->best)};
    s->counted = s->seen ? s->counted : (double)NAN;
    if (v.best) {
        s->seen = true;
        s->best = what->value;
        s->step = what->step;
    }
    if (what->is_early) {
        return v;
    }
    if (beats(opts, what, !isnan(s->counted), s->counted)) {
        s->counted = what->value;
        s->bad = 0;
        return v;
    }
    s->bad++;
    v.reduced = reduce(opts, s);
    v.stop = tn_early_stopping_is_over(opts, s);
    return v;
}

/* ---- in a run ---- */

typedef struct watcher {
    tn_verdict verdict; /* by the last evaluation */
    bool said_unknown;  /* people know that the watched metric is not defined */
} watcher;

/* Judges the evaluation. Rows of one class cannot judge a model, whatever it is. */
static tn_status judge_scores(void *self, tn_run_now *now, tn_error *err)
{
    watcher *w = self;
    (void)err;
    const char *monitor = now->state->kept.patience.monitor;
    const uint64_t step = now->worker->steps;
    w->verdict = (tn_verdict){0};
    if (monitor != NULL) {
        const double value = tn_evaluation_get(&now->out->valid, now->run, monitor);
        const tn_evaluated what = {monitor, value, step,
                                   tn_timetable_is_early(now->timetable, step)};
        w->verdict = tn_early_stopping_add(&now->run->train, &now->state->kept.patience, &what);
    }
    now->is_best = w->verdict.best;
    return TN_OK;
}

/* Says once that evaluations decide nothing. */
static tn_status say_unknown(watcher *w, const tn_run_now *now, tn_error *err)
{
    const char *one = tn_metrics_one_class(now->out->valid.metrics);
    char line[240];
    TN_ASSERT(now->state->kept.patience.monitor != NULL);
    if (w->said_unknown) {
        return TN_OK;
    }
    w->said_unknown = true;
    (void)snprintf(
        line, sizeof line,
        "%s%s%svalid.%s cannot be judged: no learning rate and no end of the run depends "
        "on it",
        one != NULL ? "data.valid has " : "", one != NULL ? one : "", one != NULL ? "; " : "",
        now->state->kept.patience.monitor);
    return tn_run_say(now, "warn", line, err);
}

/* Saves the model if the run will end with it: a better one takes its place. */
static tn_status save_best(tn_run_now *now, tn_error *err)
{
    const tn_stop_opts *stop = &now->run->train.stop;
    const tn_save_request request = {
        .why = TN_SAVE_KEPT, .may_rest = now->due.may_rest, .may_replace = true};
    const bool kept = stop->monitor != NULL && stop->restore == 0;
    return kept ? tn_saver_save(now->saver, &request, err) : TN_OK;
}

/* Keeps the best model, and does what the verdict says. */
static tn_status act_on_verdict(void *self, tn_run_now *now, tn_error *err)
{
    watcher *w = self;
    const tn_verdict v = w->verdict;
    const char *monitor = now->state->kept.patience.monitor;
    char line[160];
    if (v.best) {
        TN_TRY(save_best(now, err));
    }
    if (v.unknown) {
        TN_TRY(say_unknown(w, now, err));
    }
    if (v.reduced) {
        (void)snprintf(line, sizeof line, "no better %s: learning rate times %g", monitor,
                       now->state->kept.patience.lr_scale);
        TN_TRY(tn_run_say(now, "info", line, err));
    }
    if (v.stop) {
        (void)snprintf(line, sizeof line, "no better %s %u times in a row: stopping", monitor,
                       now->state->kept.patience.bad);
        TN_TRY(tn_run_say(now, "info", line, err));
        now->stops = true;
    }
    return TN_OK;
}

/* Brings the best model back; it is not saved as the newest checkpoint yet. */
static tn_status restore_best(tn_run_now *now, tn_error *err)
{
    const tn_early_stopping_state *p = &now->state->kept.patience;
    const uint64_t steps = now->worker->steps;
    TN_ASSERT(now->restored == 0 && p->seen);
    tn_error why = {.text = "was not kept"};
    bool back = false;
    if (now->state->best_ordinal != 0) {
        TN_TRY(tn_saver_restore_best(now->saver, &back, &why, err));
        tn_error_context(&why, "cannot be read back");
    }
    if (back) {
        now->restored = p->step;
        tn_evaluation_done(&now->out->valid); /* was of the model that is gone */
    }
    char line[sizeof why.text + 200];
    char best[160];
    const uint32_t epochs = now->state->progress.epoch;
    (void)snprintf(best, sizeof best, "%s %.6f at step %llu, epoch %.3g of %u",
                   now->state->kept.patience.monitor, p->best, (unsigned long long)p->step,
                   (double)p->step * epochs / (double)(steps > 0 ? steps : 1), epochs);
    (void)snprintf(line, sizeof line,
                   back ? "restored the best model: %s"
                        : "the best model, %s, %s: the last one stays",
                   best, why.text);
    return tn_run_say(now, back ? "info" : "warn", line, err);
}

static tn_status choose_model(void *self, tn_run_now *now, tn_error *err)
{
    (void)self;
    const tn_early_stopping_state *p = &now->state->kept.patience;
    const tn_stop_opts *stop = &now->run->train.stop;
    if (stop->monitor == NULL || stop->restore != 0 || !p->seen || p->step == now->worker->steps) {
        return TN_OK;
    }
    /* A run before may have written its last checkpoint and been killed before the best one's. */
    const bool owes = now->state->owes_best && !tn_run_is_asked(now);
    return now->epoch->is_begun || owes ? restore_best(now, err) : TN_OK;
}

extern const tn_module tn_module_early_stopping;
const tn_module tn_module_early_stopping = {
    .name = "early_stopping",
    .size = sizeof(watcher),
    .at = {[TN_AT_SCORES] = judge_scores,
           [TN_AT_EVALUATED] = act_on_verdict,
           [TN_AT_END] = choose_model},
};
