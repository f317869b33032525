/* timetable.c - compares steps, epochs and the clock with what the configuration says. */
#include "train/run/timetable.h"

#include "base/core/error.h"

#include <math.h>

void tn_timetable_init(tn_timetable *t, const tn_run *run, double now)
{
    const char *text[TN_DUES] = {[TN_DUE_EVAL] = run->eval.every,
                                 [TN_DUE_CKPT] = run->checkpoint.every,
                                 [TN_DUE_DELTA] = run->checkpoint.delta_every,
                                 [TN_DUE_EXPORT] =
                                     tn_run_exports_days(run) ? NULL : run->export.every};
    *t = (tn_timetable){.opts = &run->train, .early = &run->eval.at, .begin = now};
    for (uint32_t i = 0; i < TN_DUES; i++) {
        const bool good =
            text[i] == NULL ||
            (i == TN_DUE_CKPT ? tn_every_read_save : tn_every_read)(text[i], &t->every[i]);
        TN_ASSERT(good); /* checked with the configuration */
        t->next[i] = now + t->every[i].seconds;
    }
}

/* Returns whether one of eval.at has come since the last look. */
static bool comes_early(const tn_timetable *t, uint64_t steps)
{
    bool does = false;
    TN_ASSERT(steps >= t->looked);
    for (uint32_t i = 0; i < t->early->n; i++) {
        const uint64_t at = (uint64_t)t->early->item[i];
        does |= at > t->looked && at <= steps;
    }
    return does;
}

bool tn_timetable_is_early(const tn_timetable *t, uint64_t steps)
{
    return t->early->n > 0 && (double)steps <= t->early->item[t->early->n - 1];
}

/* Returns whether it is due by time, or a multiple of its steps has come since the last look. */
static bool comes(const tn_timetable *t, tn_due what, uint64_t steps, double now)
{
    const tn_every *every = &t->every[what];
    return (every->seconds > 0 && now >= t->next[what]) ||
           (every->steps > 0 && steps / every->steps > t->looked / every->steps) ||
           (what == TN_DUE_EVAL && comes_early(t, steps));
}

bool tn_timetable_is_over(const tn_timetable *t, uint64_t steps, double now)
{
    return steps >= t->opts->max_steps || now - t->begin >= t->opts->max_time;
}

bool tn_timetable_is_due(const tn_timetable *t, uint64_t steps, double now)
{
    return comes(t, TN_DUE_EVAL, steps, now) || comes(t, TN_DUE_CKPT, steps, now) ||
           comes(t, TN_DUE_DELTA, steps, now) || comes(t, TN_DUE_EXPORT, steps, now) ||
           tn_timetable_is_over(t, steps, now);
}

bool tn_timetable_take(tn_timetable *t, tn_due what, uint64_t steps, double now)
{
    const bool is_due = comes(t, what, steps, now);
    if (is_due) {
        t->next[what] = now + t->every[what].seconds;
    }
    return is_due;
}

void tn_timetable_look(tn_timetable *t, uint64_t steps)
{
    t->looked = steps;
}

bool tn_timetable_is_due_after(const tn_timetable *t, tn_due what, uint32_t epochs)
{
    return t->every[what].epochs > 0 && epochs % t->every[what].epochs == 0;
}

bool tn_timetable_saves_after(const tn_timetable *t, uint32_t epochs, uint64_t before,
                              uint64_t rows)
{
    const uint64_t enough = t->every[TN_DUE_CKPT].rows;
    TN_ASSERT(before <= rows);
    return tn_timetable_is_due_after(t, TN_DUE_CKPT, epochs) &&
           (enough == 0 || rows / enough > before / enough);
}

static bool is_never(const tn_every *every)
{
    return every->epochs == 0 && every->steps == 0 && every->seconds == 0;
}

bool tn_timetable_is_patient(const tn_timetable *t)
{
    return t->every[TN_DUE_CKPT].rows > 0 && is_never(&t->every[TN_DUE_DELTA]);
}

bool tn_timetable_saves(const tn_timetable *t)
{
    return !is_never(&t->every[TN_DUE_CKPT]) || !is_never(&t->every[TN_DUE_DELTA]) ||
           !is_never(&t->every[TN_DUE_EXPORT]);
}

double tn_timetable_share(const tn_timetable *t, uint64_t steps, double epochs, double now)
{
    const tn_train_opts *o = t->opts;
    double share = epochs / o->epochs;
    if (o->max_steps != TN_UNSET_U64) {
        share = fmax(share, (double)steps / (double)o->max_steps);
    }
    if (!isnan(o->max_time)) {
        share = fmax(share, (now - t->begin) / o->max_time);
    }
    return share;
}
