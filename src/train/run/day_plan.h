/* day_plan.h - which day a run learns next: what data.days names, less what is learned, once it is
 * there.
 *
 *     learned     2026-11-01..2026-11-07
 *     data.days   2026-11-01..2026-11-30     next: 2026-11-08, when its files are there
 *
 * A day that was begun comes first, whatever data.days says. Otherwise days come in order and none
 * is left out: between the last learned day and the next one lies no day, but for those that a list
 * leaves out.
 */
#pragma once

#include "base/core/error.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tn_binder tn_binder;             /* config/values.h */
typedef struct tn_data_opts tn_data_opts;       /* io/schema/dataopts.h */
typedef struct tn_learned_days tn_learned_days; /* train/config/days.h */
typedef struct tn_run tn_run;                   /* train/config/run.h */
typedef struct tn_text tn_text;                 /* base/core/text.h */

typedef struct tn_day_wait {
    bool again; /* the only day of data.days, although it is learned or lies before another */
    /* Called several times a second while a day is waited for. A status ends that. */
    tn_status (*idle)(void *arg, tn_error *err);
    void *arg;
} tn_day_wait;

/* Waits as data.wait says. TN_END: there is none to learn; `said` gets a sentence.
 * TN_E_CONFIG: a day of the past, or a day left out; TN_E_DATA: a day is missing, and a later one
 * is there, nothing was ever learned, or it was asked for again. */
tn_status tn_day_plan_next(const tn_data_opts *data, const tn_learned_days *learned,
                           const tn_day_wait *wait, uint32_t *day, tn_text *said,
                           tn_error *err) TN_MUST_USE;

/* Before the run is planned, of what the checkpoint at hand has learned: run->data.train becomes
 * the files of the day that is to be learned first, which the shape of rows is found in. Statuses
 * as above. Without data.days nothing is done. */
tn_status tn_day_plan_begin(tn_run *run, const tn_binder *b, const tn_day_wait *wait, tn_text *said,
                            tn_error *err) TN_MUST_USE;

/* The same for who trains nothing: the files of the first day that is there. */
void tn_day_plan_any(tn_run *run, const tn_binder *b);
