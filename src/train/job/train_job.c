/* train_job.c - chooses the first day, plans and trains. */
#include "train/job/train_job.h"

#include "base/core/log.h"
#include "io/source/remote.h"
#include "train/checkpoint/checkpoint.h"
#include "train/eval/predict.h"
#include "train/report/report.h"
#include "train/run/day_loop.h"
#include "train/run/day_plan.h"
#include "train/run/trainer.h"

tn_status tn_train_job_begin(tn_setup *s, const tn_train_job_opts *o, tn_error *err)
{
    TN_ASSERT(s->tree != NULL && !s->reads);
    if (o->fresh && o->resume) {
        return tn_fail(err, TN_E_USAGE,
                       "--fresh begins anew and --resume goes on: only one of them");
    }
    if (o->again && s->run.data.pattern.n == 0) {
        return tn_fail(err, TN_E_USAGE,
                       "--again learns a day once more, and data.days is not set\nhint: "
                       "'day=2026-11-07' names it");
    }
    if (o->resume) {
        s->run.checkpoint.resume = "must";
    }
    s->run.checkpoint.fresh = o->fresh;
    s->run.data.again = o->again;
    return TN_OK;
}

typedef struct stop_flag {
    const atomic_bool *stop; /* NULL: nobody asks */
} stop_flag;

static tn_status look_for_stop(void *arg, tn_error *err)
{
    const stop_flag *flag = arg;
    return flag->stop != NULL && atomic_load(flag->stop)
               ? tn_fail(err, TN_E_STOPPED,
                         "stopped by a signal while a day was waited for; nothing is lost\nhint: "
                         "start the same command again to go on")
               : TN_OK;
}

/* Chooses the day that is learned first. TN_END: there is none, and the user knows why. A run that
 * owes something begins in any case: it pays first, then waits for its day, or says why there is
 * none. */
static tn_status choose_day(tn_setup *s, const atomic_bool *stop, tn_error *err)
{
    TN_ASSERT(!s->reads && !s->alone);
    stop_flag flag = {stop};
    const tn_day_wait wait = {.again = s->run.data.again, .idle = look_for_stop, .arg = &flag};
    const double wait_s = s->run.data.wait_s;
    const bool owes = tn_day_loop_owes(&s->run);
    tn_text said = {0};
    s->run.data.wait_s = owes ? 0 : wait_s;
    tn_status status = tn_day_plan_begin(&s->run, &s->binder, &wait, &said, err);
    s->run.data.wait_s = wait_s;
    s->has_day = status == TN_OK;
    if (owes && (status == TN_END || status == TN_E_DATA || status == TN_E_CONFIG)) {
        tn_text_done(&said);
        return TN_OK; /* tn_setup_choose takes the files of a day that is there */
    }
    if (status == TN_END && s->run.cluster.rank == 0) {
        tn_log(TN_LOG_INFO, "%s", tn_text_str(&said));
        tn_checkpoint_settle(&s->run);
    }
    tn_text_done(&said);
    return status;
}

tn_status tn_train_job_plan(tn_setup *s, const atomic_bool *stop, tn_error *err)
{
    const tn_status status = choose_day(s, stop, err);
    return status == TN_OK ? tn_setup_plan(s, err) : status;
}

/* Outputs that would replace an input are refused before anything is trained. */
static tn_status check_outputs(tn_setup *s, tn_error *err)
{
    const char *predictions = s->run.eval.predictions;
    if (s->run.cluster.rank > 0 || predictions == NULL) {
        return TN_OK;
    }
    TN_TRY(tn_setup_inputs(s, &(tn_strs){0}, err));
    return tn_uri_is(predictions) ? tn_predictions_check_uri(predictions, s->run.data.secrets, err)
                                  : tn_output_check(predictions, &s->inputs, err);
}

tn_status tn_train_job_run(tn_setup *s, const tn_watch *watch, tn_outcome *out, tn_error *err)
{
    TN_ASSERT(s->plan != NULL);
    *out = (tn_outcome){0};
    if (s->run.data.train.n == 0) {
        return tn_fail(err, TN_E_CONFIG,
                       "nothing to learn from: data.train is not set\nhint: 'data.train=PATH' "
                       "names files, a pattern or a folder");
    }
    TN_TRY(check_outputs(s, err));
    return tn_train(s->plan, &s->text, watch, &s->binder, out, err);
}
