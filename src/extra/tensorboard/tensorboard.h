/* tensorboard.h - what a run writes for TensorBoard into the folder tb of its directory.
 *
 *     tb/train             curves of `train`, `sweep` and `ckpt` records; histograms of dense
 *                          weights, of their gradients and of rows per slot; the graph, the
 *                          configuration
 *     tb/valid, tb/test    curves of `eval` records, precision against recall; of days that a run
 *                          over days is about to learn in tb/next
 *
 * Each is a run to TensorBoard, which draws a tag of several runs in one chart: `loss` of all.
 *
 * A run that goes on adds files, and its curves go on. Among peers rank 0 writes one run, with
 * histograms of the rows that it owns. A file that cannot be written is logged once, and from then
 * on nothing is written: training does not wait for pictures. One thread, which is the worker's.
 */
#pragma once

#include "base/core/text.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tn_metrics tn_metrics;   /* metrics/metrics.h */
typedef struct tn_run_text tn_run_text; /* train/step/watch.h */
typedef struct tn_worker tn_worker;     /* train/step/worker.h */

typedef struct tn_tensorboard tn_tensorboard;

typedef struct tn_tensorboard_opts {
    const char *dir; /* folder of the run; these three must outlive it */
    const tn_run_text *text;
    const tn_worker *worker;
    uint64_t first; /* step that comes next; 0: a fresh start */
} tn_tensorboard_opts;

/* Never fails: without memory or a place for files it says so and writes nothing. */
tn_tensorboard *tn_tensorboard_open(const tn_tensorboard_opts *opts);

/* `well`: the run has ended as it should. NULL is fine, here and below. */
void tn_tensorboard_close(tn_tensorboard *b, bool well);

/* A record of metrics.jsonl, as a whole line: its numbers become points of curves. Of `train`
 * records one a minute, and the last one, come with histograms. */
void tn_tensorboard_record(tn_tensorboard *b, const tn_text *line);

/* Beside an `eval` record. `data`: valid, test. */
void tn_tensorboard_eval(tn_tensorboard *b, const char *data, const tn_metrics *m, uint64_t step);
