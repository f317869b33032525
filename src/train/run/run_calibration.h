/* run_calibration.h - the calibration that a run ends with: fitted on the scores of data.valid,
 * written beside the checkpoints.
 *
 *     TN_TRY(tn_run_calibration_open(&c, watch, err));
 *     .. an evaluation of data.valid with sink = tn_calibrate_sink, sink_arg = c.calibrate ..
 *     TN_TRY(tn_run_calibration_end(&c, valid, stop, err));     c.map: what was fitted
 *
 * Belongs to the trainer's thread.
 */
#pragma once

#include "base/file/file.h"
#include "train/eval/calibrate.h"

typedef struct tn_run tn_run;     /* train/config/run.h */
typedef struct tn_saver tn_saver; /* train/run/saver.h */
typedef struct tn_watch tn_watch; /* train/step/watch.h */

typedef struct tn_run_calibration {
    /* Set by the owner; must outlive it. */
    const tn_run *run;
    tn_saver *saver;
    const bool *stopped; /* the run ends: another rank has asked for it */
    const char *trained; /* why data.valid is not fit for it; "": it is */

    tn_calibrate *calibrate; /* owned; NULL: none is wanted, or there is nothing to fit on */
    char path[TN_PATH_SIZE];
    const tn_calibration *map; /* of the model that stays, in its file; NULL: not calibrated */
} tn_run_calibration;

/* Whether somebody has asked for a calibration by name, and wants to hear that there is none. */
bool tn_run_calibration_is_wanted(const tn_run *run);

/* Room for the scores that it will be fitted on. Behind tn_saver_open. */
tn_status tn_run_calibration_open(tn_run_calibration *t, const tn_watch *watch,
                                  tn_error *err) TN_MUST_USE;

/* The map of the model whose scores were collected, as JSON, appended to `json`. `valid`: metrics
 * of the same scores. TN_E_DATA: that cannot be, or is worth nothing. */
tn_status tn_run_calibration_fit(const tn_run_calibration *t, const tn_metrics *valid,
                                 tn_text *json, tn_error *err) TN_MUST_USE;

/* What comes of it where a model is published: for TN_E_DATA says why there is no calibration, if
 * one was asked for, and is TN_OK; else the status, with `why`. */
tn_status tn_run_calibration_judge(const tn_run_calibration *t, tn_status status, const char *why,
                                   tn_error *err) TN_MUST_USE;

/* The map from scores to probabilities, with a line that tells what it does. It is fitted while the
 * last checkpoint is written, whose model its file will name. `valid`: metrics of the same scores.
 * TN_E_STOPPED: the run ends; `stop` may be NULL. */
tn_status tn_run_calibration_end(tn_run_calibration *t, const tn_metrics *valid,
                                 const atomic_bool *stop, tn_error *err) TN_MUST_USE;
