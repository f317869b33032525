/* advise.c - warns at the end of a run of what its figures show, a line each. */
#include "base/core/text.h"
#include "extra/advice/advice.h"
#include "metrics/metrics.h"
#include "models/model.h"

#include <math.h>
#include <string.h>

typedef struct advisor {
    tn_loss_curve curve;
    uint64_t best_step; /* the evaluation of the smallest valid.logloss; 0: there is none */
    double best_loss;
} advisor;

static tn_status open_advisor(void *self, tn_run_now *now, tn_error *err)
{
    advisor *a = self;
    (void)err;
    now->curve = &a->curve;
    return TN_OK;
}

/* Notes which evaluation is the best, whatever metric the run watches. */
static tn_status note_best(void *self, tn_run_now *now, tn_error *err)
{
    advisor *a = self;
    (void)err;
    const bool clicks = now->run->data.target == TN_TARGET_CLICK && !tn_run_has_days(now);
    const double loss = clicks ? tn_metrics_get(now->out->valid.metrics, "logloss") : (double)NAN;
    if (a->best_step == 0 ? !isnan(loss) : loss < a->best_loss) {
        a->best_step = now->worker->steps;
        a->best_loss = loss;
    }
    return TN_OK;
}

static tn_status say_lines(const tn_run_now *now, const tn_text *lines, tn_error *err)
{
    char *line = lines->data;
    for (char *end; line != NULL && *line != '\0'; line = end + 1) {
        end = strchr(line, '\n');
        *end = '\0';
        TN_TRY(tn_run_say(now, "warn", line, err));
    }
    return TN_OK;
}

static tn_status advise(void *self, tn_run_now *now, tn_error *err)
{
    const advisor *a = self;
    const tn_train_opts *train = &now->run->train;
    if (!now->epoch->is_begun) {
        return TN_OK; /* this process has learned nothing */
    }
    const tn_advice facts = {.steps = now->learned,
                             .epochs = now->state->progress.epoch - now->state->kept.days.epoch,
                             .batch = train->batch,
                             .epochs_chosen = train->epochs_chosen,
                             .batch_chosen = train->batch_chosen,
                             .past_best = now->restored != 0,
                             .linear = ((const tn_model *)now->run->model.choice->impl)->linear,
                             .days = tn_run_has_days(now),
                             .ordered = now->run->data.ordered,
                             .curve = &a->curve,
                             .best_step = a->best_step,
                             .best_loss = a->best_loss,
                             .stops = train->stop.monitor != NULL,
                             .cut = now->stops,
                             .diverged = tn_report_told_diverging(now->report),
                             .calibrates = now->map != NULL || now->calibrates,
                             .train = now->epoch->whole,
                             .valid = now->out->valid.metrics,
                             .keys = &now->out->valid.keys};
    tn_text lines = {0};
    tn_advice_text(&facts, &lines);
    tn_status status = tn_text_check(&lines, "advice", err);
    if (status == TN_OK) {
        status = say_lines(now, &lines, err);
    }
    tn_text_done(&lines);
    return status;
}

extern const tn_module tn_module_advise;
const tn_module tn_module_advise = {
    .name = "advise",
    .size = sizeof(advisor),
    .at = {[TN_AT_OPEN] = open_advisor, [TN_AT_SCORES] = note_best, [TN_AT_KEPT] = advise},
};
