/* train_job.h - trains a run from its setup: what tnet-train and the library for training share.
 *
 *     TN_TRY(tn_setup_load(&s, &in, err));
 *     TN_TRY(tn_train_job_begin(&s, &how, err));
 *     status = tn_train_job_plan(&s, stop, err);        TN_END: there is no day to learn
 *     status = tn_train_job_run(&s, &watch, &out, err);
 *
 * One thread; the setup knows its rank.
 */
#pragma once

#include "train/job/setup.h"

typedef struct tn_outcome tn_outcome; /* train/report/report.h */

/* Asks of one start of a run, which no configuration keeps. */
typedef struct tn_train_job_opts {
    bool resume; /* go on from the newest checkpoint, which must exist */
    bool fresh;  /* begin anew; what is there is kept aside */
    bool again;  /* learn the day of data.days although it is learned, or lies before one that is */
} tn_train_job_opts;

/* Takes them to the setup. TN_E_USAGE: they do not go together, or not with the configuration. */
tn_status tn_train_job_begin(tn_setup *s, const tn_train_job_opts *o, tn_error *err) TN_MUST_USE;

/* Chooses the day that is learned first, where the run is over days, and waits for it as data.wait
 * says; then plans the run. TN_END: there is no day to learn, as the log says. TN_E_STOPPED: *stop
 * turned true while a day was waited for. */
tn_status tn_train_job_plan(tn_setup *s, const atomic_bool *stop, tn_error *err) TN_MUST_USE;

/* Trains to the end of the run. TN_E_CONFIG: nothing names data to learn from. TN_E_USAGE: an
 * output would replace a file that the run reads. On failure *out is
 * empty, but for the steps and rows of a run that was stopped. */
tn_status tn_train_job_run(tn_setup *s, const tn_watch *watch, tn_outcome *out,
                           tn_error *err) TN_MUST_USE;
