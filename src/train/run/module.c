/* module.c - the list of the modules of a run, and the walk over it. */
#include "train/run/module.h"

#include "base/core/alloc.h"

#define TN_MODULE(name) extern const tn_module tn_module_##name;
#include "train/run/modules.def"
#undef TN_MODULE

static const tn_module *const all[] = {
#define TN_MODULE(name) &tn_module_##name,
#include "train/run/modules.def"
#undef TN_MODULE
};

enum { N_MODULES = sizeof all / sizeof all[0] };

tn_status tn_modules_new(tn_run_now *now, tn_error *err)
{
    TN_ASSERT(now->self == NULL);
    TN_TRY(TN_ALLOC(now->self, N_MODULES, "the modules of a run", err));
    for (uint32_t i = 0; i < N_MODULES; i++) {
        if (all[i]->size > 0) {
            now->self[i] = tn_try_alloc(1, all[i]->size, all[i]->name, err);
            TN_TRY(now->self[i] != NULL ? TN_OK : TN_E_MEMORY);
        }
    }
    return TN_OK;
}

void tn_modules_close(tn_run_now *now)
{
    for (uint32_t i = 0; now->self != NULL && i < N_MODULES; i++) {
        if (all[i]->close != NULL && now->self[i] != NULL) {
            all[i]->close(now->self[i]);
        }
        tn_free(now->self[i]);
    }
    tn_free(now->self);
    now->self = NULL;
}

tn_status tn_modules_at(tn_run_now *now, tn_run_moment moment, tn_error *err)
{
    TN_ASSERT(moment < TN_MOMENTS && now->self != NULL);
    for (uint32_t i = 0; i < N_MODULES; i++) {
        const tn_module *m = all[i];
        TN_TRY(m->at[moment] != NULL ? m->at[moment](now->self[i], now, err) : TN_OK);
    }
    return TN_OK;
}

tn_status tn_modules_hear(void *now, const tn_run_record *record, tn_error *err)
{
    void **self = ((tn_run_now *)now)->self;
    for (uint32_t i = 0; i < N_MODULES; i++) {
        const tn_module *m = all[i];
        TN_TRY(m->hear != NULL ? m->hear(self[i], record, err) : TN_OK);
    }
    return TN_OK;
}

bool tn_modules_due(const tn_run_now *now)
{
    bool is_due = false;
    for (uint32_t i = 0; i < N_MODULES && !is_due; i++) {
        is_due = all[i]->due != NULL && all[i]->due(now->self[i], now);
    }
    return is_due;
}

void tn_loss_curve_add(tn_loss_curve *c, double loss)
{
    if (c != NULL && c->n++ < TN_LOSS_CURVE_MAX) {
        c->loss[c->n - 1] = loss;
    }
}

tn_status tn_run_say(const tn_run_now *now, const char *level, const char *line, tn_error *err)
{
    TN_ASSERT(now->report != NULL);
    return tn_report_event(now->report, now->state, level, line, err);
}

bool tn_run_pauses(const tn_run_now *now, uint64_t steps)
{
    return now->watch->pause > 0 && steps >= now->watch->pause;
}

bool tn_run_is_asked(const tn_run_now *now)
{
    const atomic_bool *stop = now->watch->stop;
    return now->epoch->is_stopped || (stop != NULL && atomic_load(stop)) ||
           tn_run_pauses(now, now->worker->steps);
}

bool tn_run_publishes_end(const tn_run_now *now)
{
    return now->run->export.every != NULL && !tn_run_exports_days(now->run);
}

bool tn_run_goes_on(const tn_run_now *now)
{
    return now->worker->steps > 0 && (tn_run_has_days(now) || !tn_run_is_last(now));
}

bool tn_run_has_days(const tn_run_now *now)
{
    return now->run->data.pattern.n > 0;
}

bool tn_run_is_last(const tn_run_now *now)
{
    const uint32_t end = now->state->kept.days.epoch + now->run->train.epochs;
    return now->state->progress.epoch >= end;
}
