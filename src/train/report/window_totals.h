/* window_totals.h - what the steps since the last `train` record of metrics.jsonl add up to.
 *
 *     tn_window_totals_add       every step of this rank
 *     tn_window_totals_hear      before it is read: takes what the other ranks have reported
 *
 * Belongs to the report; one thread.
 */
#pragma once

#include "base/core/text.h"
#include "metrics/metrics.h"
#include "train/group/ranks.h"
#include "train/step/step_loop.h"

/* A step: what it learned. Its scores from before the update are added to `metrics` beside this. */
typedef struct tn_window_step {
    const tn_step_turn *turn;
    uint64_t joint; /* rows that were learned from: of all peers at staleness 0, else of this one */
    double lr;
    uint64_t bytes_in, bytes_out; /* sizes of this peer's messages, since the start */
} tn_window_step;

typedef struct tn_window_totals {
    double begin; /* monotonic seconds */
    uint64_t steps, keys;
    uint64_t rows;                  /* learned from in steps of this rank, or of all together */
    uint64_t bytes_in, bytes_out;   /* since the start, when the last step was done */
    uint64_t in_before, out_before; /* since the start, when the window began */
    double loss, weight;            /* sum of w l, and of w */
    double grad_norm, wait_read_s, wait_pull_s, wait_push_s, compute_s;
    double lr;           /* at the last step */
    uint64_t staleness;  /* at most */
    tn_metrics *metrics; /* owned, one for its life; 2^12 bins are enough for a line */

    const tn_ranks *ranks;    /* NULL: a process alone */
    tn_metrics *whole;        /* owned: the window's scores with those of the others; NULL: alone */
    tn_metrics *before, *now; /* owned: theirs at the window's begin, and at the last look */
    tn_ranks_sums others;     /* at the last look */
    tn_ranks_sums others_before; /* at the window's begin */
} tn_window_totals;

/* `ranks` (NULL: a process alone) must outlive it. After a failure done is fine. */
tn_status tn_window_totals_init(tn_window_totals *w, const tn_metrics_opts *kinds,
                                const tn_ranks *ranks, double now, tn_error *err) TN_MUST_USE;
void tn_window_totals_done(tn_window_totals *w);
void tn_window_totals_clear(tn_window_totals *w, double now);

void tn_window_totals_add(tn_window_totals *w, const tn_window_step *step);

/* Takes in what other ranks have reported by now. */
tn_status tn_window_totals_hear(tn_window_totals *w, tn_error *err) TN_MUST_USE;

/* Returns the loss of all ranks as last reported; NAN: nothing was learned. Metrics are lent. */
double tn_window_totals_loss(const tn_window_totals *w);
const tn_metrics *tn_window_totals_metrics(const tn_window_totals *w);

/* Members of a `train` record: means per step and row of a window that is not empty. `hex` as in
 * tn_journal_loss. */
void tn_window_totals_record(const tn_window_totals *w, double now, bool hex, tn_text *t);
