/* tracefile.h - the latest spans of a trace as a file for about:tracing and ui.perfetto.dev.
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
#ifndef TN_BASE_TRACEFILE_H
#define TN_BASE_TRACEFILE_H

#include "base/core/text.h"
#include "base/trace/trace.h"

/* The trace has ended and all threads have left. */
tn_status tn_trace_json(const tn_trace *trace, tn_text *out, tn_error *err) TN_MUST_USE;

/* The same as a file, which replaces another. */
tn_status tn_trace_write(const tn_trace *trace, const char *path, tn_error *err) TN_MUST_USE;

#endif
