/* weights.c - the weights that a run begins with: of a checkpoint, of files, or first ones. */
#include "config/tree.h"
#include "models/model.h"
#include "train/begin/begun.h"
#include "train/begin/import.h"
#include "train/checkpoint/rerun.h"
#include "train/run/early_stopping.h"
#include "train/run/module.h"
#include "train/run/saver.h"
#include "train/step/frozen.h"

#include <string.h>

typedef struct origin {
    tn_saved resumed; /* the checkpoint that the run goes on from; ordinal 0: it is a fresh start */
    tn_begun begun;   /* the weights that checkpoint.from gave */
    tn_text said;     /* the line for people; empty: first weights */
} origin;

static void free_origin(void *self)
{
    origin *o = self;
    tn_begun_done(&o->begun);
    tn_text_done(&o->said);
}

/* Goes on where a run before has left off. */
static tn_status go_on(origin *o, tn_run_now *now, tn_error *err)
{
    now->resumed = &o->resumed;
    now->worker->steps = now->state->steps;
    const tn_rerun rerun = {
        .plan = now->plan,
        .text = now->text,
        .state = now->state,
        .name = o->resumed.name,
        .patience_over = tn_early_stopping_is_over(&now->run->train, &now->state->kept.patience)};
    return tn_rerun_tell(&rerun, &o->said, err);
}

/* Begins with the rows and values of files. */
static tn_status import_files(origin *o, tn_run_now *now, tn_error *err)
{
    now->state->kept.begun = true;
    TN_TRY(tn_import(now->run->checkpoint.from, now->worker, &o->begun, err));
    tn_begun_say(&o->begun, &o->said);
    return now->epoch->ranks.ops->load(now->epoch->ranks.self, "", err);
}

static tn_status load(void *self, tn_run_now *now, tn_error *err)
{
    origin *o = self;
    const tn_run *run = now->run;
    const tn_saved *which = &o->resumed;
    const tn_model_common *model = run->model.shared;
    TN_ASSERT(now->worker->steps == 0 && now->report == NULL);
    now->begun = &o->begun;
    TN_TRY(tn_saver_resume(now->saver, now->epoch->metrics, &o->resumed, err));
    if (which->ordinal != 0) {
        return go_on(o, now, err);
    }
    if (now->state->kept.begun) {
        tn_text_addf(&o->said, "begins with the weights of '%s' (epoch %u, step %llu)",
                     run->checkpoint.resume, which->epoch, (unsigned long long)which->step);
        return tn_text_check(&o->said, "a sentence", err);
    }
    if (!tn_tree_is_null(run->checkpoint.from)) {
        return import_files(o, now, err);
    }
    TN_TRY(tn_frozen_check(&run->train.freeze, now->worker->params, NULL, err));
    if (now->worker->output_bias == NULL || strcmp(model->bias_init, "prior") == 0) {
        return TN_OK; /* drawn from the first window of the data, see tn_epoch_begin_steps */
    }
    return tn_worker_set_bias(now->worker, model->bias_init, err);
}

static tn_status say_origin(void *self, tn_run_now *now, tn_error *err)
{
    const origin *o = self;
    return o->said.size > 0 ? tn_run_say(now, "info", tn_text_str(&o->said), err) : TN_OK;
}

extern const tn_module tn_module_weights;
const tn_module tn_module_weights = {.name = "weights",
                                     .size = sizeof(origin),
                                     .at = {[TN_AT_LOAD] = load, [TN_AT_BEGIN] = say_origin},
                                     .close = free_origin};
