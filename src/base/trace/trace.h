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
 * time of every phase, per step too, and keeps its latest spans in a ring.
 *
 * The run owns the trace and hands it down; it must outlive all its users. A thread that
 * ends leaves; the next one of its name goes on in its lane, as the readers of the next epoch do.
 */
#pragma once

#include "base/core/text.h"

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

/* Opens a trace; each lane keeps `ring` spans. TN_E_MEMORY; *out is NULL then. */
tn_status tn_trace_open(tn_trace **out, uint32_t ring, tn_error *err) TN_MUST_USE;
void tn_trace_close(tn_trace *trace); /* NULL is fine; no thread may record any more */

/* Returns the lane of the calling thread from now on. NULL: `trace` is NULL, or there is no memory
 * for another lane, which the table reports. Takes a lock. */
tn_lane *tn_trace_join(tn_trace *trace, const char *name);
/* Ends all open spans. Called by the thread of the lane, or after that has ended. NULL is fine. */
void tn_trace_leave(tn_lane *lane);

/* Returns the calling thread's lane, NULL when it has none. For code that threads share. */
tn_lane *tn_trace_here(const tn_trace *trace);

/* Returns a copy of `name` that lives as long as the trace, for tn_span_part; NULL for a NULL
 * trace. */
const char *tn_trace_name(tn_trace *trace, const char *name);

/* Makes the run begin now instead of when the trace was opened. Call it before any thread joins. */
void tn_trace_begin(tn_trace *trace);

/* Makes the trace count tiles as a team of so many threads would share them, too. Call it before
 * any thread joins. */
void tn_trace_foresee(tn_trace *trace, uint32_t threads);

/* Ends the run, and all spans that are still open. At most once; threads need only leave. */
void tn_trace_end(tn_trace *trace);

/* ---- recording, by the inline functions below ---- */

/* Begins a span. With a label (tn_trace_name) it is a part of the phase that is open; `phase`
 * applies where none is. */
void tn_lane_begin(tn_lane *lane, tn_phase phase, const char *label);
void tn_lane_next(tn_lane *lane, tn_phase phase);
void tn_lane_end(tn_lane *lane);

/* Sets the step that the lane's spans belong to from now on; a reader's threads count blocks or
 * batches. Does nothing while spans are folded. */
void tn_lane_step(tn_lane *lane, uint64_t step);
uint64_t tn_lane_step_of(const tn_lane *lane);

/* Returns the innermost open phase; TN_PHASES: none. */
tn_phase tn_lane_phase(const tn_lane *lane);

/* The lane's thread begins to take tiles of a team's run of n, within the phase that is open, and
 * finds no more of them. Of a phase the rest is serial: other threads have no part in it. */
void tn_lane_tiles_begin(tn_lane *lane, uint32_t n);
void tn_lane_tiles_end(tn_lane *lane);

/* Counts every span as `phase`, whatever it says, until the next call with TN_PHASES: what happens
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

/* ---- a trace that has ended, as times per thread and phase, and as a file ----
 *
 *     tn_trace_end(trace);
 *     for (uint32_t i = 0; i < tn_trace_lanes(trace); i++) {
 *         tn_lane_times times;
 *         tn_trace_times(trace, i, &times);                 its shares sum to 1
 *     }
 *     tn_trace_table(trace, &text);                         the same for a person
 *
 * Times are a phase's own: what happens inside it under another name is not in them. All threads
 * have left. */

typedef struct tn_phase_times {
    double seconds;
    double share; /* share of the run's time */
    uint64_t calls;
    double median_s, p99_s; /* per step that had any; within 4 % */
} tn_phase_times;

typedef struct tn_lane_times {
    const char *name; /* "team 2"; lent by the trace */
    tn_phase_times phase[TN_PHASES];
    double other_s; /* in no span */
    double away_s;  /* the run went on without such a thread */
} tn_lane_times;

double tn_trace_seconds(const tn_trace *trace); /* length of the run */
uint32_t tn_trace_lanes(const tn_trace *trace);
void tn_trace_times(const tn_trace *trace, uint32_t i, tn_lane_times *out);

/* Returns the seconds of `phase` in all lanes of that name: "team" is every helper. TN_PHASES: the
 * seconds in which such threads ran at all. */
double tn_trace_phase_s(const tn_trace *trace, const char *lanes, tn_phase phase);

/* Seconds of `phase` in which the lanes of that name took tiles of runs, and as many of them as the
 * first of tn_trace_foresee's threads would: a run of n tiles takes ceil(n / threads) of them. Only
 * a team of one thread measures the second. */
typedef struct tn_tiles_times {
    double seconds, foreseen;
    uint64_t runs;
} tn_tiles_times;
tn_tiles_times tn_trace_tiles(const tn_trace *trace, const char *lanes, tn_phase phase);

/* Appends one line per thread and phase that took any time; every thread's shares sum to 100 %. */
void tn_trace_table(const tn_trace *trace, tn_text *out);

enum { TN_NODES_SHOWN = 24 };

/* Appends the times of labelled spans, of all threads together, in the steps that the rings still
 * hold; the longest first, nothing when there are none. */
tn_status tn_trace_nodes(const tn_trace *trace, tn_text *out, tn_error *err) TN_MUST_USE;

/* The latest spans as JSON for about:tracing and ui.perfetto.dev:
 *
 *     [{"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"main"}},
 *      {"ph":"X","name":"forward","cat":"work","pid":1,"tid":1,"ts":12.345,"dur":3.210,
 *       "args":{"step":7}}, ..]
 *
 * The JSON array form of the Trace Event Format: metadata, then complete events, thread by thread
 * and by their beginning; an event lies within the one before it or after it. Times are
 * microseconds since the run began. Rings of busy threads reach back less far than others: the
 * file begins where the last of them does, so that the picture is whole from there on.
 */
tn_status tn_trace_json(const tn_trace *trace, tn_text *out, tn_error *err) TN_MUST_USE;

/* Writes that JSON to a file, which replaces another. */
tn_status tn_trace_write(const tn_trace *trace, const char *path, tn_error *err) TN_MUST_USE;
