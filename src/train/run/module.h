/* module.h - a part of a run that other parts can do without, and the moments at which it acts.
 *
 * The trainer makes steps. All else that a run does is done by modules: modules.def lists them in
 * the order in which they act at each moment. Whoever adds one writes a file that ends in a
 * constant `tn_module_NAME`, and its row there, or does so in src/extra (docs/extending.md).
 *
 *     OPEN     the worker is there, nothing is loaded: the module takes what it needs
 *     LOOK     all modules are open, no other rank is waited for: it refuses what cannot be
 *     LOAD     the group is formed: weights are read, or set; listeners open what they write
 *     BEGIN    the weights are there, and the report is open
 *     DATA     data are to be learned: a day of a run over days. TN_END: there are no more
 *       STEPS      an epoch is open; its steps begin, or go on where a run before has ended
 *         MEETING    between two steps, all ranks wait: what is due is done
 *         ROOM       the run is to go on with the next step: is there memory for it?
 *       EPOCH      an epoch is over, its rows are summed up; the state is that of the next one
 *     DAY      the data at hand were learned in all their epochs
 *     END      training is over: which model stays, and its checkpoint begins
 *     KEPT     the model that stays is being saved: what is still to be said of it
 *     SIGNAL   a signal asks for the end: saves the run, and is never TN_OK
 *
 * Three moments come within others, when the module that is named first asks for them:
 *
 *     SCORES     evaluate: data.valid is scored, and not reported yet
 *     EVALUATED  evaluate: it is reported
 *     COLLECT    calibrate: the scores that a calibration is fitted on are wanted, of the rows that
 *                the model is judged by. TN_E_DATA: there are no rows
 *     SAVE       checkpoint: a save is about to take its moment
 *
 * A module has a function for each moment at which it acts. A status other than TN_OK ends the walk
 * over the list, and the run ends with it; after TN_E_STOPPED, the end that a signal asks for, the
 * trainer walks SIGNAL.
 *
 * `due` is asked after every step of this rank, so it takes microseconds: where it is true all
 * ranks meet before the next step, and MEETING comes. What the timetable says needs no `due`: for
 * that they meet anyway, and `tn_run_now.due` says what it is.
 *
 * All of this is in the process that leads the run, which has the other ranks of a group do the
 * same (train/group/ranks.h); modules have no state there.
 *
 * `hear` gets every record that the report makes (train/report/metrics_jsonl.h), after LOAD: the
 * steps of a window, an evaluation, a day, a checkpoint, a line for people, the end of the run. It
 * returns soon, since training waits.
 *
 * Modules know the run by `tn_run_now` alone, and one another by its members; nobody reaches into
 * the trainer. A module's own state is `size` bytes, zeros at OPEN, freed after `close`, which
 * comes in any case. All of this belongs to the trainer's thread.
 *
 * This header includes those of what `tn_run_now` points to, so that a module need not.
 */
#pragma once

#include "train/checkpoint/run_state.h"
#include "train/config/run.h"
#include "train/report/report.h"
#include "train/run/epoch.h"
#include "train/step/model_plan.h"
#include "train/step/watch.h"
#include "train/step/worker.h"

typedef struct tn_calibrate tn_calibrate;     /* train/eval/calibrate.h */
typedef struct tn_calibration tn_calibration; /* metrics/calibrator.h */
typedef struct tn_day_loop tn_day_loop;       /* train/run/day_loop.h */
typedef struct tn_saver tn_saver;             /* train/run/saver.h */
typedef struct tn_timetable tn_timetable;     /* train/run/timetable.h */

typedef enum tn_run_moment {
    TN_AT_OPEN,
    TN_AT_LOOK,
    TN_AT_LOAD,
    TN_AT_BEGIN,
    TN_AT_DATA,
    TN_AT_STEPS,
    TN_AT_MEETING,
    TN_AT_ROOM,
    TN_AT_EPOCH,
    TN_AT_DAY,
    TN_AT_END,
    TN_AT_KEPT,
    TN_AT_SIGNAL,
    TN_AT_SCORES,
    TN_AT_EVALUATED,
    TN_AT_COLLECT,
    TN_AT_SAVE,
    TN_MOMENTS
} tn_run_moment;

/* Says what is due by the timetable at this MEETING or EPOCH. */
typedef struct tn_run_due {
    bool eval, save, delta; /* an evaluation, a checkpoint, one of what changed */
    bool over;              /* max_steps or max_time: the run is to end here */
    bool may_rest;          /* the best model may wait in memory until something else is saved */
    bool publish; /* the next checkpoint is exported: its save, or the run's end, clears this */
} tn_run_due;

/* The loss of each step of this process's run, while there are so few: the rows' first steps are
 * their largest. */
enum { TN_LOSS_CURVE_MAX = 500 };
typedef struct tn_loss_curve {
    uint32_t n; /* steps that were added, also those that are not kept */
    double loss[TN_LOSS_CURVE_MAX];
} tn_loss_curve;

/* The run as it is now. All that it points to outlives the modules. */
typedef struct tn_run_now {
    const tn_model_plan *plan;
    const tn_run *run;
    const tn_run_text *text;
    const tn_watch *watch;
    tn_worker *worker;
    tn_run_state *state; /* the part of the run that a checkpoint keeps */
    tn_epoch *epoch;
    tn_saver *saver;
    tn_report *report; /* NULL before BEGIN */
    tn_outcome *out;
    tn_run_due due;
    const tn_timetable *timetable;

    bool stops;       /* training ends here as if the data had ended */
    uint64_t learned; /* at END: steps that were made; the model that stays may be of fewer */

    /* Each of these is set by the module that its comment names, and read by others. */
    const tn_saved *resumed; /* weights: the run goes on from it; NULL: a fresh start */
    const tn_begun *begun;   /* weights: what checkpoint.from gave */
    tn_memory_cap *memory;   /* memory_cap: its cap */
    const tn_day_loop *days; /* days: how many are learned; NULL: the run is not over days */
    const char *trained;     /* evaluate: which rows of data.valid are learned, too; "": none */
    bool is_best;            /* early_stopping, at SCORES: no evaluation before was better */
    uint64_t restored;       /* early_stopping: the best model's step; 0: the last one stays */
    tn_calibrate *calibrate; /* calibrate: gets the scores of COLLECT; NULL: nobody wants them */
    const tn_calibration
        *map;        /* calibrate: by task, of the model that stays; NULL: it is not calibrated */
    bool calibrates; /* calibrate: it was asked for by name */
    tn_loss_curve *curve; /* advise: gets the loss of each step; NULL: nobody wants it */

    void **self; /* states of the modules, in the order of the list */
} tn_run_now;

typedef tn_status tn_module_fn(void *self, tn_run_now *now, tn_error *err);

typedef struct tn_module {
    const char *name;
    size_t size; /* bytes of its own state; 0: it has none, and `self` is NULL */
    bool (*due)(void *self, const tn_run_now *now); /* NULL: never */
    tn_module_fn *at[TN_MOMENTS];                   /* NULL: it does nothing then */
    tn_run_record_fn *hear;                         /* NULL: it listens to no record */
    void (*close)(void *self);                      /* NULL: it holds nothing */
} tn_module;

/* Makes the state of every module; then OPEN may come. */
tn_status tn_modules_new(tn_run_now *now, tn_error *err) TN_MUST_USE;
void tn_modules_close(tn_run_now *now); /* also after a failure */

/* Walks over the list at a moment. */
tn_status tn_modules_at(tn_run_now *now, tn_run_moment moment, tn_error *err) TN_MUST_USE;

/* Passes a record of the report on to the modules that listen. `now`: a tn_run_now. */
tn_run_record_fn tn_modules_hear TN_MUST_USE;

/* Asks the modules whether all ranks are to meet after this step. */
bool tn_modules_due(const tn_run_now *now);

void tn_loss_curve_add(tn_loss_curve *c, double loss); /* NULL is fine */

/* ---- what several modules ask of the run ---- */

/* Prints a line for people, and writes an `event` record. `level`: info or warn. */
tn_status tn_run_say(const tn_run_now *now, const char *level, const char *line,
                     tn_error *err) TN_MUST_USE;

/* Whether a signal, here or to another rank, asks for the end, or the run pauses at its step. */
bool tn_run_is_asked(const tn_run_now *now);
bool tn_run_pauses(const tn_run_now *now, uint64_t steps); /* whether tn_watch.pause is reached */

bool tn_run_has_days(const tn_run_now *now);

/* Whether the data at hand were learned in all their epochs; these are counted over all days. */
bool tn_run_is_last(const tn_run_now *now);

/* Whether a run before has made steps, and the data at hand are for more. */
bool tn_run_goes_on(const tn_run_now *now);

/* Whether the run publishes the model that it ends with; one that publishes days does not. */
bool tn_run_publishes_end(const tn_run_now *now);
