/* bottleneck.h - what bounds a run, in one sentence with something to do about it. */
#ifndef TN_TRAIN_BOTTLENECK_H
#define TN_TRAIN_BOTTLENECK_H

#include "base/core/text.h"
#include "base/machine/machine_peak.h"
#include "base/trace/trace.h"

/* What a run did in its steps, and what the machine could. */
typedef struct tn_effort {
    double seconds; /* of steps */
    double rows_per_s;
    double flops; /* of a row */
    double bytes; /* of a row, moved by graph and table */
    uint32_t threads;
    tn_peaks peak; /* of that many threads */
} tn_effort;

/* Rows per second that the roofline allows. */
double tn_effort_limit(const tn_effort *w);

/* One line. The trace has ended. */
void tn_bound_text(const tn_trace *trace, const tn_effort *effort, tn_text *out);

#endif
