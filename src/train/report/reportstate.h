/* reportstate.h - what report.c and reportend.c share; private to them. */
#ifndef TN_TRAIN_REPORTSTATE_H
#define TN_TRAIN_REPORTSTATE_H

#include "train/report/forecast.h"
#include "train/report/metrics_jsonl.h"
#include "train/report/progress.h"
#include "train/report/report.h"
#include "train/report/window_totals.h"
#include "train/step/host.h"

struct tn_report {
    tn_report_opts opts;
    const tn_run *run;
    tn_journal *journal; /* NULL: log.jsonl is off */
    tn_window_sums window;
    tn_bar bar;
    tn_text warnings; /* told so far, each ended by NUL */
    uint32_t n_warnings;
    double started_wall, begin;
    tn_paced paced;
    uint64_t rows, steps; /* of the steps of this process, or of all together */
    char blas[TN_HOST_BLAS_SIZE];
};

/* What a run that ended well says last: rows, time, scores, where it all is. */
void tn_report_closing(const tn_report *r, const tn_report_end *end, tn_text *out);

/* What the tables of all ranks hold. */
tn_held tn_report_held(const tn_report *r);

/* Replaces summary.json. */
tn_status tn_report_summary(const tn_report *r, const tn_report_end *end,
                            tn_error *err) TN_MUST_USE;

#endif
