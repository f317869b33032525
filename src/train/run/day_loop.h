/* day_loop.h - learns day behind day, with a checkpoint and a record for each.
 *
 *     choose and wait (day_plan.h) -> score its head -> learn -> save -> score its neighbours -> ..
 *
 * In the process that leads a run. A day is learned when it is saved; whatever ends the run before
 * leaves the checkpoint of the day before, or one within the day. Belongs to the trainer's thread.
 */
#pragma once

#include "base/core/error.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct tn_calibrate tn_calibrate;
typedef struct tn_epoch tn_epoch;
typedef struct tn_evaluation tn_evaluation;
typedef struct tn_report tn_report;
typedef struct tn_run tn_run;
typedef struct tn_run_state tn_run_state;
typedef struct tn_saver tn_saver;

typedef struct tn_day_loop {
    /* Set by the owner; all that they point to must outlive it. */
    const tn_run *run;
    const atomic_bool *stop;
    tn_run_state *state;
    tn_epoch *epoch;
    tn_saver *saver;
    tn_report *report;
    tn_evaluation *next;     /* gets what was found of the day after */
    tn_calibrate *calibrate; /* .. and its scores; NULL: nobody wants these */
    /* Learns the epochs that are left of the day. TN_END: the run is to end before they are over.
     */
    tn_status (*learn)(void *arg, tn_error *err);
    bool (*stops)(void *arg); /* whether the run is asked to end, while a day is waited for */
    void *arg;

    bool again;           /* data.again, until that day is learned */
    uint32_t judged;      /* the last day after that was scored; 0: none .. */
    uint64_t judged_step; /* .. by the model of this step */
    uint32_t n, ahead;    /* days: learned by this process; to learn when it began */
} tn_day_loop;

/* Until there is no day to learn, which is told, or the run is to end. */
tn_status tn_day_loop_run(tn_day_loop *l, tn_error *err) TN_MUST_USE;

/* Scores the day behind the last learned one, unless the model at hand has done so. TN_E_DATA: it
 * is not there; TN_E_STOPPED: by a signal. */
tn_status tn_day_loop_judge(tn_day_loop *l, tn_error *err) TN_MUST_USE;

/* Whether a run over days has something left to do, even where it would learn nothing: an export,
 * or the evaluations and the record of its last day, because a process ended before them. By
 * manifests, names and metrics.jsonl alone. */
bool tn_day_loop_owes(const tn_run *run);

/* The epochs of the day that was begun, if one was, are over: it is learned. */
tn_status tn_day_loop_close(tn_run_state *state, tn_error *err) TN_MUST_USE;

/* Epochs of a run of one day that are as large a share of it as `epochs` of this day, and the days
 * before, are of this run. */
double tn_day_loop_share(const tn_day_loop *l, double epochs);
