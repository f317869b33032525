/* day_plan.c - chooses the next day, waits until it is there, and says why there is none. */
#include "train/run/day_plan.h"

#include "base/core/clock.h"
#include "base/core/log.h"
#include "base/core/text.h"
#include "train/checkpoint/checkpoint.h"
#include "train/config/days.h"
#include "train/config/run.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { LOOK_MS = 200 }; /* between two looks at what is waited for */

typedef struct choice {
    const tn_data_opts *data;
    const tn_learned_days *learned;
    uint32_t at; /* in data->day; n_days: none */
} choice;

static uint32_t last_learned(const tn_learned_days *s)
{
    TN_ASSERT(s->n > 0);
    return s->range[s->n - 1].last;
}

/* ---- which one ---- */

static tn_status refuse_past(const choice *c, tn_error *err)
{
    char name[TN_DAY_NAME];
    char day[TN_DAY_TEXT];
    char last[TN_DAY_TEXT];
    tn_day_name(c->data->day[c->at], name);
    tn_day_text(c->data->day[c->at], day);
    tn_day_text(last_learned(c->learned), last);
    return tn_fail(err, TN_E_CONFIG,
                   "%s lies before %s, which is learned already\nhint: 'data.days=%s --again' "
                   "learns it nevertheless",
                   name, last, day);
}

/* Days between the last that is learned and the next: only a list leaves one out. */
static tn_status check_gap(const choice *c, tn_error *err)
{
    const uint32_t day = c->data->day[c->at];
    const uint32_t last = c->learned->n > 0 ? last_learned(c->learned) : day - 1;
    if (last + 1 == day || (c->at > 0 && c->data->day[c->at - 1] == last)) {
        return TN_OK;
    }
    char name[TN_DAY_NAME];
    char missing[TN_DAY_TEXT];
    char next[TN_DAY_TEXT];
    char before[TN_DAY_TEXT];
    tn_day_name(last + 1, name);
    tn_day_text(last + 1, missing);
    tn_day_text(last, before);
    tn_day_text(day, next);
    return tn_fail(err, TN_E_CONFIG,
                   "%s is not learned, and data.days goes on with %s behind %s\nhint: "
                   "'data.days=%s..%s' learns what lies between, 'data.days=[%s, %s]' leaves it "
                   "out",
                   name, next, before, missing, next, before, next);
}

/* A run learns days or hours. */
static tn_status check_unit(const choice *c, tn_error *err)
{
    const tn_learned_days *learned = c->learned;
    TN_ASSERT(c->data->n_days > 0);
    const uint32_t any = learned->within  ? learned->day
                         : learned->n > 0 ? last_learned(learned)
                                          : 0;
    const bool hours = tn_day_is_hour(c->data->day[0]);
    return any == 0 || tn_day_is_hour(any) == hours
               ? TN_OK
               : tn_fail(err, TN_E_CONFIG, "data.days are %s, and the run has learned %s",
                         hours ? "hours" : "days", hours ? "days" : "hours");
}

static tn_status choose(choice *c, bool again, tn_error *err)
{
    const tn_data_opts *data = c->data;
    if (again) {
        c->at = 0;
        return data->n_days == 1
                   ? TN_OK
                   : tn_fail(err, TN_E_CONFIG,
                             "--again learns one day once more, and data.days names %u",
                             data->n_days);
    }
    while (c->at < data->n_days && tn_days_has(c->learned, data->day[c->at])) {
        c->at++;
    }
    if (c->at == data->n_days) {
        return TN_OK;
    }
    const bool past = c->learned->n > 0 && data->day[c->at] < last_learned(c->learned);
    return past ? refuse_past(c, err) : check_gap(c, err);
}

/* ---- is it there? ---- */

static tn_status wait_for(const tn_data_opts *data, uint32_t day, const tn_day_wait *wait,
                          tn_error *err)
{
    const double end = tn_clock_s() + data->wait_s;
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
    tn_status status = tn_days_look(data, day, err);
    if (status == TN_E_DATA && data->wait_s > 0) {
        char name[TN_DAY_NAME];
        tn_day_name(day, name);
        tn_log(TN_LOG_INFO, "waiting for %s: %s", name, err->text);
    }
    while (status == TN_E_DATA && tn_clock_s() < end) {
        TN_TRY(wait->idle(wait->arg, err));
        (void)nanosleep(&pause, NULL);
        status = tn_days_look(data, day, err);
    }
    return status;
}

/* A day is missing, for the reason in `why`. */
static tn_status tell_missing(const choice *c, bool again, const tn_error *why, tn_text *said,
                              tn_error *err)
{
    const tn_data_opts *data = c->data;
    char name[TN_DAY_NAME];
    char day[TN_DAY_TEXT];
    char later[TN_DAY_TEXT];
    tn_day_name(data->day[c->at], name);
    tn_day_text(data->day[c->at], day);
    for (uint32_t i = c->at + 1; i < data->n_days; i++) {
        const tn_status status = tn_days_look(data, data->day[i], err);
        if (status == TN_E_STOPPED) {
            return status;
        }
        if (status == TN_OK) {
            tn_day_text(data->day[i], later);
            return tn_fail(err, TN_E_DATA, "%s is not there, and %s is: %s", name, later,
                           why->text);
        }
    }
    if (c->learned->n == 0 || again) {
        return tn_fail(err, TN_E_DATA, "%s is not there: %s", name, why->text);
    }
    tn_days_put(c->learned, said);
    tn_text_addf(said, "; nothing new: %s is not there (%s)", day, why->text);
    return TN_END;
}

static tn_status look_for_begun(const tn_data_opts *data, uint32_t day, tn_error *err)
{
    const tn_status status = tn_days_look(data, day, err);
    if (status == TN_E_DATA) {
        tn_error_context(err, "a day that is half learned is not there any more");
    }
    return status;
}

static tn_status look_for_next(const choice *c, const tn_day_wait *wait, tn_text *said,
                               tn_error *err)
{
    tn_error why = {0};
    const tn_status status = wait_for(c->data, c->data->day[c->at], wait, &why);
    if (status == TN_E_DATA) {
        return tell_missing(c, wait->again, &why, said, err);
    }
    if (status != TN_OK && err != NULL) {
        *err = why;
    }
    return status;
}

tn_status tn_day_plan_next(const tn_data_opts *data, const tn_learned_days *learned,
                           const tn_day_wait *wait, uint32_t *day, tn_text *said, tn_error *err)
{
    TN_ASSERT(data->pattern.n > 0 && data->n_days > 0);
    choice c = {.data = data, .learned = learned};
    TN_TRY(check_unit(&c, err));
    if (learned->within) {
        *day = learned->day;
        return look_for_begun(data, *day, err);
    }
    TN_TRY(choose(&c, wait->again, err));
    if (c.at == data->n_days) {
        tn_days_put(learned, said);
        tn_text_adds(said, "; nothing new in data.days");
        return TN_END;
    }
    *day = data->day[c.at];
    return look_for_next(&c, wait, said, err);
}

/* ---- before the run is planned ---- */

tn_status tn_day_plan_begin(tn_run *run, const tn_binder *b, const tn_day_wait *wait, tn_text *said,
                            tn_error *err)
{
    tn_data_opts *data = &run->data;
    tn_learned_days learned = {0};
    uint32_t day = 0;
    if (data->pattern.n == 0) {
        return TN_OK;
    }
    tn_checkpoint_days(run, &learned, NULL);
    TN_TRY(tn_day_plan_next(data, &learned, wait, &day, said, err));
    data->train = tn_days_paths(&data->pattern, day, b->arena);
    return TN_OK;
}

void tn_day_plan_any(tn_run *run, const tn_binder *b)
{
    tn_data_opts *data = &run->data;
    for (uint32_t i = 0; i < data->n_days; i++) {
        if (tn_days_look(data, data->day[i], NULL) == TN_OK) {
            data->train = tn_days_paths(&data->pattern, data->day[i], b->arena);
            return;
        }
    }
}
