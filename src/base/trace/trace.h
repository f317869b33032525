/* trace.h - what every thread of a run does when: spans, summed and the last ones kept.
 *
 *     tn_trace *trace = tn_trace_open(TN_TRACE_SPANS);
 *     tn_lane *lane = tn_trace_join(trace, "main");         this thread's own
 *     tn_lane_step(lane, step);
 *     tn_span_begin(lane, TN_PHASE_PULL);
 *     ... work ...
 *     tn_span_next(lane, TN_PHASE_FORWARD);                 ends one, begins the next
 *     ... work, with spans inside ...
 *     tn_span_end(lane);
 *     tn_trace_leave(lane);
 *
 *     forward  |-------------------------|          its own time: without those inside
 *       deep.1   |-----|  wait: team |--|
 *
 * A lane belongs to one thread: recording takes no lock and no memory, some 25 ns per span. Where
 * nothing is recorded the lane is NULL, which is all that is tested then. Each lane sums the own
 * time of every phase, per step too, and keeps its latest spans in a ring (trace_report.h).
 *
 * The run owns the trace and hands it down; it must outlive all its users. A thread that
 * ends leaves; the next one of its name goes on in its lane, as the readers of the next epoch do.
 */
#ifndef TN_BASE_TRACE_H
#define TN_BASE_TRACE_H

#include "base/core/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum tn_phase {
#define TN_PHASE(id, name, kind, what) TN_PHASE_##id,
#include "base/trace/phases.def"
#undef TN_PHASE
    TN_PHASES
} tn_phase;

const char *tn_phase_name(tn_phase phase);
bool tn_phase_waits(tn_phase phase);

enum {
    TN_TRACE_SPANS = 1 << 14, /* the usual ring of a lane; a power of two */
    TN_LANES_MAX = 2048,
    TN_LANE_NAME_SIZE = 24,
};

typedef struct tn_trace tn_trace;
typedef struct tn_lane tn_lane;

/* `ring`: spans that each lane keeps. TN_E_MEMORY; *out is NULL then. */
tn_status tn_trace_open(tn_trace **out, uint32_t ring, tn_error *err) TN_MUST_USE;
void tn_trace_close(tn_trace *trace); /* NULL is fine; no thread may record any more */

/* The lane of the calling thread from now on. NULL: `trace` is NULL, or there is no memory for
 * another lane, which the table reports. Takes a lock. */
tn_lane *tn_trace_join(tn_trace *trace, const char *name);
/* Ends all open spans. Called by the thread of the lane, or after that has ended. NULL is fine. */
void tn_trace_leave(tn_lane *lane);

/* The calling thread's lane, NULL when it has none. For code that threads share. */
tn_lane *tn_trace_here(const tn_trace *trace);

/* A copy of `name` that lives as long as the trace, for tn_span_part; NULL for a NULL trace. */
const char *tn_trace_name(tn_trace *trace, const char *name);

/* Makes the run begin now instead of when the trace was opened. Call it before any thread joins. */
void tn_trace_begin(tn_trace *trace);

/* The run is over, and what is still open ends with it. At most once; threads need only leave. */
void tn_trace_end(tn_trace *trace);

/* ---- recording, by the inline functions below ---- */

/* With a label (tn_trace_name) it is a part of the phase that is open; `phase`: where none is. */
void tn_lane_begin(tn_lane *lane, tn_phase phase, const char *label);
void tn_lane_next(tn_lane *lane, tn_phase phase);
void tn_lane_end(tn_lane *lane);

/* The step that the lane's spans belong to from now on; a reader's threads count blocks or batches.
 * Does nothing while spans are folded. */
void tn_lane_step(tn_lane *lane, uint64_t step);
uint64_t tn_lane_step_of(const tn_lane *lane);

/* The innermost open phase; TN_PHASES: none. */
tn_phase tn_lane_phase(const tn_lane *lane);

/* Every span counts as `phase`, whatever it says, until the next call with TN_PHASES: what happens
 * inside an evaluation is no part of a step. */
void tn_lane_fold(tn_lane *lane, tn_phase phase);

static inline void tn_span_begin(tn_lane *lane, tn_phase phase)
{
    if (lane != NULL) {
        tn_lane_begin(lane, phase, NULL);
    }
}

static inline void tn_span_part(tn_lane *lane, tn_phase phase, const char *label)
{
    if (lane != NULL && label != NULL) {
        tn_lane_begin(lane, phase, label);
    }
}

static inline void tn_span_next(tn_lane *lane, tn_phase phase)
{
    if (lane != NULL) {
        tn_lane_next(lane, phase);
    }
}

static inline void tn_span_end(tn_lane *lane)
{
    if (lane != NULL) {
        tn_lane_end(lane);
    }
}

#endif
