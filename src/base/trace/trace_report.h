/* trace_report.h - a trace that has ended, as times per thread and phase, and as a file.
 *
 *     tn_trace_end(trace);
 *     for (uint32_t i = 0; i < tn_trace_lanes(trace); i++) {
 *         tn_lane_times times;
 *         tn_trace_times(trace, i, &times);                 its shares sum to 1
 *     }
 *     tn_trace_table(trace, &text);                         the same for a person
 *
 * Times are a phase's own: what happens inside it under another name is not in them. All threads
 * have left.
 */
#ifndef TN_BASE_TRACE_REPORT_H
#define TN_BASE_TRACE_REPORT_H

#include "base/core/text.h"
#include "base/trace/trace.h"

typedef struct tn_phase_times {
    double seconds;
    double share; /* of the run */
    uint64_t calls;
    double median_s, p99_s; /* per step that had any; within 4 % */
} tn_phase_times;

typedef struct tn_lane_times {
    const char *name; /* "team 2"; lent by the trace */
    tn_phase_times phase[TN_PHASES];
    double other_s; /* in no span */
    double away_s;  /* the run went on without such a thread */
} tn_lane_times;

double tn_trace_seconds(const tn_trace *trace); /* of the run */
uint32_t tn_trace_lanes(const tn_trace *trace);
void tn_trace_times(const tn_trace *trace, uint32_t i, tn_lane_times *out);

/* Seconds of `phase` in all lanes of that name: "team" is every helper. TN_PHASES: in which such
 * threads ran at all. */
double tn_trace_phase_s(const tn_trace *trace, const char *lanes, tn_phase phase);

/* One line per thread and phase that took any time; every thread's shares sum to 100 %. */
void tn_trace_table(const tn_trace *trace, tn_text *out);

enum { TN_NODES_SHOWN = 24 };

/* Times of labelled spans, of all threads together, in the steps that the rings still hold; the
 * longest first, nothing when there are none. */
tn_status tn_trace_nodes(const tn_trace *trace, tn_text *out, tn_error *err) TN_MUST_USE;

/* The latest spans as JSON for about:tracing and ui.perfetto.dev:
 *
 *     [{"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"main"}},
 *      {"ph":"X","name":"forward","cat":"work","pid":1,"tid":1,"ts":12.345,"dur":3.210,
 *       "args":{"step":7}}, ..]
 *
 * The JSON array form of the Trace Event Format: metadata, then complete events, thread by thread
 * and by their beginning; an event lies within the one before it or behind it. Times are
 * microseconds since the run began. Rings of busy threads reach back less far than others: the
 * file begins where the last of them does, so that the picture is whole from there on.
 */
tn_status tn_trace_json(const tn_trace *trace, tn_text *out, tn_error *err) TN_MUST_USE;

/* Writes that JSON to a file, which replaces another. */
tn_status tn_trace_write(const tn_trace *trace, const char *path, tn_error *err) TN_MUST_USE;

#endif
