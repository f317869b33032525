/* profile.h - the picture of a run: what each thread did, what bounds it, how far from the limit.
 *
 *     tn_profile *p = NULL;
 *     TN_TRY(tn_profile_open(&p, err));
 *     tn_profile_begin(p, worker);                 from here on the worker's threads are recorded
 *     ... steps; readers get p's trace from worker->trace ...
 *     tn_profile_end(p, worker);                   their figures; before the worker is freed
 *     tn_worker_free(worker);                      .. with whom the last threads leave
 *     TN_TRY(tn_profile_text(p, &text, err));      the table; measures this machine for .2 s
 *     TN_TRY(tn_profile_write(p, "trace.json", err));
 *     tn_profile_close(p);
 *
 * All take NULL for a profile that nobody wants, but the last three lines. Belongs to the thread
 * that the worker belongs to.
 */
#pragma once

#include "base/core/text.h"
#include "base/machine/machine_peak.h"
#include "base/trace/trace.h"

typedef struct tn_worker tn_worker;

typedef struct tn_profile tn_profile;

tn_status tn_profile_open(tn_profile **out, tn_error *err) TN_MUST_USE;
void tn_profile_close(tn_profile *p);

/* The run begins now. Once; the profile must outlive the worker. */
void tn_profile_begin(tn_profile *p, tn_worker *w);
/* The run is over. `w` may be NULL: it never began. */
void tn_profile_end(tn_profile *p, const tn_worker *w);

/* Returns whether there is something to say: the run began, and is over. */
bool tn_profile_ended(const tn_profile *p);

/* The table of threads and phases, the totals, and one sentence about what bounds the run. */
tn_status tn_profile_text(const tn_profile *p, tn_text *out, tn_error *err) TN_MUST_USE;

/* The spans that the rings still hold, for about:tracing and Perfetto (base/trace/trace.h). */
tn_status tn_profile_write(const tn_profile *p, const char *path, tn_error *err) TN_MUST_USE;

/* ---- what bounds a run ---- */

/* Work of a run in its steps, and the peaks of the machine. */
typedef struct tn_effort {
    double seconds; /* spent in steps */
    double rows_per_s;
    double flops; /* per row */
    double bytes; /* per row, moved by graph and table */
    uint32_t threads;
    tn_peaks peak; /* peaks with that many threads */
} tn_effort;

/* Rows per second that the roofline allows. */
double tn_effort_limit(const tn_effort *w);

/* One line. The trace has ended. */
void tn_bound_text(const tn_trace *trace, const tn_effort *effort, tn_text *out);

/* ---- what more threads would have no part in ---- */

/* Seconds of a step's phase, LOCALIZE .. REPORT, that the main thread spends outside of tiles; 0 of
 * those that a helper does as a whole: keys of batches to come, and scores. */
double tn_serial_s(const tn_trace *trace, tn_phase phase);
