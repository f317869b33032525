/* publish.c - when a run publishes: what it owes, what is due, and the model that it ends with. */
#include "train/checkpoint/checkpoint.h"
#include "train/run/module.h"
#include "train/run/publisher.h"
#include "train/run/saver.h"

static void close_publisher(void *self)
{
    tn_publisher **p = self;
    tn_publisher_close(*p);
}

static tn_status open_publisher(void *self, tn_run_now *now, tn_error *err)
{
    tn_publisher **p = self;
    const tn_publisher_opts opts = {.plan = now->plan,
                                    .dir = tn_checkpoints_dir(now->saver->checkpoints),
                                    .state = now->state,
                                    .stop = now->watch->stop};
    TN_TRY(tn_publisher_open(p, &opts, err));
    now->saver->publisher = *p;
    return TN_OK;
}

/* Saves once more, to be published, what a run before was to publish and a signal has left without
 * its calibration. */
static tn_status publish_late(void *self, tn_run_now *now, tn_error *err)
{
    tn_publisher **p = self;
    if (!now->state->kept.export.awaits || *p == NULL) {
        return TN_OK;
    }
    const tn_save_request request = {.export = TN_EXPORT_WHEN_SAVED};
    TN_TRY(tn_saver_save(now->saver, &request, err));
    return now->state->kept.export.awaits ? TN_E_STOPPED : TN_OK;
}

/* A run that has ended publishes its last model with its calibration, in the end. */
static tn_status publish_owed(void *self, tn_run_now *now, tn_error *err)
{
    tn_publisher **p = self;
    const tn_saver *s = now->saver;
    TN_ASSERT(now->report != NULL && s->at == TN_SAVER_IDLE);
    const bool goes_on = !now->stops && tn_run_goes_on(now);
    const bool later = tn_run_publishes_end(now) && !goes_on;
    tn_publisher_set_report(*p, now->report);
    TN_TRY(tn_saver_has_saved(s) ? tn_publisher_owe(*p, s->saved.ordinal - later, err) : TN_OK);
    const bool has_day = tn_run_has_days(now) && now->state->stand.n_parts == 0;
    return has_day ? publish_late(self, now, err) : TN_OK;
}

static tn_status publish_last(void *self, tn_run_now *now, tn_error *err)
{
    tn_publisher **p = self;
    return tn_run_publishes_end(now) ? tn_saver_export_last(now->saver, err)
                                     : tn_publisher_end(*p, err);
}

extern const tn_module tn_module_publish;
const tn_module tn_module_publish = {.name = "publish",
                                     .size = sizeof(tn_publisher *),
                                     .at = {[TN_AT_LOOK] = open_publisher,
                                            [TN_AT_BEGIN] = publish_owed,
                                            [TN_AT_STEPS] = publish_late,
                                            [TN_AT_KEPT] = publish_last},
                                     .close = close_publisher};
