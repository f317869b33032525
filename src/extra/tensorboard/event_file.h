/* event_file.h - files that TensorBoard draws: curves, histograms, texts and a graph of one run.
 *
 *     TN_TRY(tn_event_file_open(&f, "runs/a/tb/train", now, 0, err));
 *     tn_event_begin(f, now, step);
 *     tn_event_scalar(f, "loss", .46);
 *     tn_event_histogram(f, "weights/deep/1/W", n, w);
 *     TN_TRY(tn_event_end(f, err));                          one write(2)
 *
 * A file is named events.out.tfevents.<seconds>.<host>.<process>.<number> and is never written
 * again once it is closed: a run that goes on opens another one in the same folder, which begins
 * with the first step after the checkpoint, and TensorBoard forgets what the others say of that
 * step and later ones. Records are uncompressed TFRecords of tensorflow.Event; how a tag is
 * drawn is said with its first value in a file. Source: docs/formats.md, section 8. One thread.
 */
#pragma once

#include "base/core/text.h"
#include "metrics/metrics.h"

typedef struct tn_node tn_node;   /* nn/graph/graph.h */
typedef struct tn_graph tn_graph; /* likewise */
typedef struct tn_tree tn_tree;   /* config/tree.h */

typedef struct tn_event_file tn_event_file;

enum {
    TN_EVENT_BARS = 30,        /* bars of a histogram */
    TN_EVENT_THRESHOLDS = 201, /* thresholds of a precision-recall curve: 0, .005, .. 1 */
};

/* Makes the folder where it is missing, and a file that no other run has. `wall`: Unix seconds.
 * `step`: 0 in the first file of a run, else the first step that this one is about. TN_E_IO. */
tn_status tn_event_file_open(tn_event_file **out, const char *folder, double wall, uint64_t step,
                             tn_error *err) TN_MUST_USE;
void tn_event_file_close(tn_event_file *f); /* NULL is fine */

/* Begins an event, which gets some values, a tag once. A scalar that is not finite is left out. */
void tn_event_begin(tn_event_file *f, double wall, uint64_t step);
void tn_event_scalar(tn_event_file *f, const char *tag, double value);

/* Adds bars of one width, from the least to the largest of the finite ones among n numbers. */
void tn_event_histogram(tn_event_file *f, const char *tag, size_t n, const float *x);

/* Adds precision and recall at TN_EVENT_THRESHOLDS of the probability, by the histogram of the
 * scores; nothing when they are no probabilities, or all rows are of one class. */
void tn_event_pr_curve(tn_event_file *f, const char *tag, const tn_metrics *m);

void tn_event_text(tn_event_file *f, const char *tag, const char *markdown);

/* The leaves of a configuration, by path ("train.sparse.lr"), as what the run was made with: for
 * TensorBoard's table of runs. `end`: 0: it has begun; 1: it ended well; 2: it failed. */
void tn_event_hparams(tn_event_file *f, const tn_tree *config, double wall);
void tn_event_hparams_end(tn_event_file *f, bool well, double wall);

/* Writes the event, unless it has no value. It has ended either way. */
tn_status tn_event_end(tn_event_file *f, tn_error *err) TN_MUST_USE;

/* Writes an event with the graph. */
tn_status tn_event_graph(tn_event_file *f, double wall, const tn_graph *graph,
                         tn_error *err) TN_MUST_USE;
