/* calibrate.h - from the scores of an evaluation to a calibration file, and from that of a run to
 * those who use its model.
 *
 *     TN_TRY(tn_calibrate_open(&c, &opts, err));
 *     .. tn_evaluate with sink = tn_calibrate_sink, sink_arg = c ..
 *     TN_TRY(tn_calibrate_commit(c, "runs/a/ckpt-3", step, err));     fits, writes opts.path
 *     c->map, c->of[k].after                                          what was fitted
 *     tn_calibrate_clear(c);                                          for another evaluation
 *     tn_calibrate_free(c);
 *
 *     TN_TRY(tn_calibrate_find(&wanted, arena, &map, &said, err));    what a run has left
 *
 * Of several tasks each that makes probabilities gets a map of its own, fitted to its own labels.
 * One whose rows allow no fit stays as it is (tn_calibrate_left says why), unless none is left.
 *
 * Whatever the number of processes the sink sees the same rows in the same order, so the file is
 * the same to the byte.
 */
#pragma once

#include "base/file/output_file.h"
#include "metrics/calibrator.h"
#include "train/config/days.h"
#include "train/eval/evaluate.h"

/* The file of a run, in its directory, beside the checkpoints. */
#define TN_CALIBRATION_NAME "calibration.json"

/* All but `method` and `sampling` must outlive the calibration. */
typedef struct tn_calibrate_opts {
    tn_calibrate_method method; /* neither NONE nor AUTO */
    const char *path;           /* path of the file */
    const tn_strs *data;        /* paths of the rows; NULL: see tn_calibrate_name */
    double sampling;            /* data.negative_sampling */
    double class_min;           /* rows of each class that a map needs */
    const tn_tasks *tasks;      /* NULL: there is one label */
    const tn_inputs *inputs;    /* files that may not be overwritten; NULL: none */
    const atomic_bool *stop;    /* NULL: never */
} tn_calibrate_opts;

/* The rows of one task, or label. */
typedef struct tn_calibrate_rows_of {
    uint64_t rows;     /* number of rows of weight > 0 */
    double clicks;     /* sum of their labels */
    tn_metrics *after; /* metrics of these rows, calibrated; owned; NULL: nothing is fitted */
    tn_calibrator *calibrator; /* NULL: the task makes no probabilities */
    const char *why;           /* reason why it was not fitted; NULL: it was, or nobody tried */
} tn_calibrate_rows_of;

typedef struct tn_calibrate {
    tn_calibrate_opts opts;
    uint32_t n; /* tasks */
    tn_calibrate_rows_of of[TN_TASKS_MAX];
    tn_calibration map[TN_TASKS_MAX]; /* once they are fitted; kind NONE: the task has none */
    bool fitted;
    tn_arena *arena;
    char name[24]; /* name of the rows, when opts.data is NULL */
} tn_calibrate;

/* The rows to fit on: `named`, or where that is empty those that the model is judged by
 * (train/config/days.h), or for want of these the days that are named. `checkpoint`: its folder;
 * NULL: the newest of the run. TN_E_USAGE: it was trained on them, and a map that is fitted on what
 * a model knows by heart trusts it too much. TN_E_CONFIG, TN_E_DATA: there are none. */
tn_status tn_calibrate_rows(const tn_run *run, const tn_strs *named, const char *checkpoint,
                            tn_arena *arena, tn_valid_rows *out, tn_error *err) TN_MUST_USE;

tn_status tn_calibrate_open(tn_calibrate **out, const tn_calibrate_opts *opts,
                            tn_error *err) TN_MUST_USE;
void tn_calibrate_free(tn_calibrate *c);  /* NULL is fine */
void tn_calibrate_clear(tn_calibrate *c); /* leaves no scores and nothing fitted; NULL is fine */

/* Names the rows of the next scores: "day 2026-11-05". */
void tn_calibrate_name(tn_calibrate *c, const char *name);

/* A tn_score_sink. */
tn_status tn_calibrate_sink(void *calibrate, const tn_scores *scores, tn_error *err);

/* Fits unless that was done, without a file. TN_E_DATA: these rows allow no fit of any task. */
tn_status tn_calibrate_fit(tn_calibrate *c, tn_error *err) TN_MUST_USE;

/* Fits unless that was done. `checkpoint` is the folder that was evaluated, whose model the file
 * names. TN_E_DATA: these rows allow no fit; TN_E_IO. */
tn_status tn_calibrate_commit(tn_calibrate *c, const char *checkpoint, uint64_t step,
                              tn_error *err) TN_MUST_USE;

/* Appends "; 'like' is left as it is: reason" for each task that makes probabilities and was not
 * fitted. */
void tn_calibrate_left(const tn_calibrate *c, tn_text *out);

/* Appends "p = sigmoid(0.93 z - 0.1)", with c "p = sigmoid(0.93 z - 0.1 - 0.04 m), m slots of ..",
 * or how many knots there are; of several tasks each map, with its name. */
void tn_calibrate_put(const tn_calibration *map, const tn_tasks *tasks, tn_text *out);

/* Returns whether some task has a map. */
bool tn_calibrates(const tn_calibration *map, const tn_tasks *tasks);

/* Describes the model whose calibration is wanted. */
typedef struct tn_calibrate_wanted {
    tn_calibrate_method method; /* eval.calibrate; NONE: there is nothing to find */
    const char *checkpoint;     /* the folder of the model, "runs/a/ckpt-3" */
    uint64_t step;
    double sampling;
    const tn_tasks *tasks; /* NULL: one label */
} tn_calibrate_wanted;

/* The maps in calibration.json beside the checkpoint, if they were fitted for exactly that model;
 * else those that it was saved with; else kinds are NONE. *out has one for each task. `said` gets a
 * line that names the file and what it is, or why it is not used and what makes a new one; nothing
 * when nothing is wanted, or AUTO has left nothing. Knots live in `arena`. TN_E_IO: there is a
 * file, which cannot be read now.
 */
tn_status tn_calibrate_find(const tn_calibrate_wanted *wanted, tn_arena *arena, tn_calibration *out,
                            tn_text *said, tn_error *err) TN_MUST_USE;
