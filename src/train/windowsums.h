/* windowsums.h - what the steps since the last `train` record of metrics.jsonl add up to.
 *
 * Belongs to the report; one thread.
 */
#ifndef TN_TRAIN_WINDOWSUMS_H
#define TN_TRAIN_WINDOWSUMS_H

#include "train/journal.h"
#include "train/report.h"

typedef struct tn_window_sums {
    double begin; /* monotonic seconds */
    uint64_t steps, rows, keys;
    uint64_t joint;                 /* rows of all peers */
    uint64_t bytes_in, bytes_out;   /* since the start, when the last step was done .. */
    uint64_t in_before, out_before; /* .. and when the window began */
    double loss, grad_norm, wait_read_s, wait_pull_s, wait_push_s, compute_s;
    double lr;           /* of the last step */
    uint64_t staleness;  /* at most */
    tn_metrics *metrics; /* owned; 2^12 bins are enough for a line */
} tn_window_sums;

tn_status tn_window_sums_init(tn_window_sums *w, double sampling, double now,
                              tn_error *err) TN_MUST_USE;
void tn_window_sums_done(tn_window_sums *w);
void tn_window_sums_clear(tn_window_sums *w, double now);

tn_status tn_window_sums_add(tn_window_sums *w, const tn_report_step *step,
                             tn_error *err) TN_MUST_USE;

/* Means per step and row of a window that is not empty. `window` is lent. */
tn_journal_train_record tn_window_sums_record(const tn_window_sums *w, double now);

#endif
