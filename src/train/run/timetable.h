/* timetable.h - when a run evaluates, saves and publishes, and when it is over: by steps, epochs
 * and time. The trainer knows what comes with the end of a day.
 *
 *     if (tn_timetable_is_due(&t, steps, now))            something is: all ranks wait
 *         if (tn_timetable_take(&t, TN_DUE_EVAL, steps, now)) ..
 *         tn_timetable_look(&t, steps);                   all that was due is done
 *
 * Belongs to the trainer's thread. Its fields are changed here only.
 */
#pragma once

#include "train/config/run.h"

typedef enum tn_due { TN_DUE_EVAL, TN_DUE_CKPT, TN_DUE_DELTA, TN_DUE_EXPORT, TN_DUES } tn_due;

typedef struct tn_timetable {
    const tn_train_opts *opts;
    const tn_f64s *early; /* steps with an evaluation of their own: eval.at */
    tn_every every[TN_DUES];
    double next[TN_DUES]; /* by time; monotonic seconds */
    double begin;         /* when the run began */
    uint64_t looked;      /* steps when it was last looked for what is due */
} tn_timetable;

/* `run` must outlive it. The run begins `now`, of tn_clock_s(). */
void tn_timetable_init(tn_timetable *t, const tn_run *run, double now);

/* Whether anything is due when `steps` are done, the end of the run included. */
bool tn_timetable_is_due(const tn_timetable *t, uint64_t steps, double now);

/* Whether `what` is due; by time it is due once. */
bool tn_timetable_take(tn_timetable *t, tn_due what, uint64_t steps, double now);
void tn_timetable_look(tn_timetable *t, uint64_t steps);
bool tn_timetable_is_due_after(const tn_timetable *t, tn_due what, uint32_t epochs);
/* Whether a full checkpoint is, when the last epoch has brought the rows learned from `before`. */
bool tn_timetable_saves_after(const tn_timetable *t, uint32_t epochs, uint64_t before,
                              uint64_t rows);

/* Whether epochs without a checkpoint are to cost no save: of checkpoint.every: auto alone. */
bool tn_timetable_is_patient(const tn_timetable *t);

/* Returns whether an evaluation after so many steps is one of eval.at, or before one. */
bool tn_timetable_is_early(const tn_timetable *t, uint64_t steps);
bool tn_timetable_is_over(const tn_timetable *t, uint64_t steps, double now);
bool tn_timetable_saves(const tn_timetable *t); /* ever */

/* Share of the run that is done: of what ends it first. NAN: not known. */
double tn_timetable_share(const tn_timetable *t, uint64_t steps, double epochs, double now);
