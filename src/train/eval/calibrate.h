/* calibrate.h - from the scores of an evaluation to a calibration file, for tnet-export.
 *
 *     TN_TRY(tn_calibrate_open(&c, &opts, err));
 *     .. tn_evaluate with sink = tn_calibrate_sink, sink_arg = c ..
 *     TN_TRY(tn_calibrate_commit(c, "runs/a/ckpt-3", step, err));     fits, writes opts.path
 *     c->map, c->after                                                what was fitted
 *     tn_calibrate_free(c);
 *
 * Whatever the number of processes the sink sees the same rows in the same order, so the file is
 * the same to the byte.
 */
#ifndef TN_TRAIN_CALIBRATE_H
#define TN_TRAIN_CALIBRATE_H

#include "base/file/output_file.h"
#include "metrics/calibrator.h"
#include "train/eval/evaluate.h"

/* In the order of tn_calibrate_words. */
typedef enum tn_calibrate_method {
    TN_CALIBRATE_NONE,
    TN_CALIBRATE_PLATT,
    TN_CALIBRATE_PLATT_SMOOTHED,
    TN_CALIBRATE_ISOTONIC,
} tn_calibrate_method;

extern const char *const tn_calibrate_words[]; /* ends with NULL */

/* All but `method` and `sampling` must outlive the calibration. */
typedef struct tn_calibrate_opts {
    tn_calibrate_method method; /* not NONE */
    const char *path;           /* of the file */
    const tn_strs *data;        /* paths of the rows */
    double sampling;            /* data.negative_sampling */
    const tn_inputs *inputs;    /* that may not be written over; NULL: none */
    const atomic_bool *stop;    /* NULL: never */
} tn_calibrate_opts;

typedef struct tn_calibrate {
    tn_calibrate_opts opts;
    uint64_t rows;      /* of weight > 0 */
    tn_calibration map; /* once it is committed, as is the next one */
    tn_metrics *after;  /* of the same rows, calibrated; owned */
    tn_calibrator *calibrator;
    tn_arena *arena;
} tn_calibrate;

tn_status tn_calibrate_open(tn_calibrate **out, const tn_calibrate_opts *opts,
                            tn_error *err) TN_MUST_USE;
void tn_calibrate_free(tn_calibrate *c); /* NULL is fine */

/* A tn_score_sink. */
tn_status tn_calibrate_sink(void *calibrate, const tn_scores *scores, tn_error *err);

/* `checkpoint` is the folder that was evaluated, whose model the file names. TN_E_DATA: these rows
 * allow no fit; TN_E_IO. */
tn_status tn_calibrate_commit(tn_calibrate *c, const char *checkpoint, uint64_t step,
                              tn_error *err) TN_MUST_USE;

#endif
