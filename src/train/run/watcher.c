/* watcher.c - the module that passes records and evaluations on to the caller of a run, and ends
 * training where the caller wants that (train/step/watch.h). */
#include "train/run/module.h"

static tn_status pass_record_on(void *self, const tn_run_record *record, tn_error *err)
{
    (void)err;
    const tn_watch *watch = *(const tn_watch **)self;
    if (watch->record != NULL) {
        const tn_text *line = record->line;
        watch->record(watch->arg, line->data, line->size - 1); /* without its end */
    }
    return TN_OK;
}

static tn_status keep_watch(void *self, tn_run_now *now, tn_error *err)
{
    (void)err;
    *(const tn_watch **)self = now->watch;
    return TN_OK;
}

static tn_status tell_scores(void *self, tn_run_now *now, tn_error *err)
{
    (void)self;
    (void)err;
    const tn_watch *watch = now->watch;
    TN_ASSERT(now->out->valid.metrics != NULL);
    if (watch->evaluated != NULL) {
        watch->evaluated(watch->arg, now->worker->steps, now->out->valid.metrics);
    }
    now->stops = now->stops || (watch->ends != NULL && atomic_load(watch->ends));
    return TN_OK;
}

extern const tn_module tn_module_watch;
const tn_module tn_module_watch = {
    .name = "watch",
    .size = sizeof(const tn_watch *),
    .at = {[TN_AT_OPEN] = keep_watch, [TN_AT_EVALUATED] = tell_scores},
    .hear = pass_record_on,
};
