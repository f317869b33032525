/* tracefile.c - see tracefile.h. */
#include "base/trace/tracefile.h"

#include "base/codec/json.h"
#include "base/core/alloc.h"
#include "base/file/output_file.h"
#include "base/trace/tracelane.h"
#include "base/trace/tracesum.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

uint32_t tn_lane_kept(const tn_lane *l)
{
    return l->n_spans <= l->ring_mask ? (uint32_t)l->n_spans : l->ring_mask + 1;
}

uint64_t tn_trace_kept_from(const tn_trace *t)
{
    uint64_t first = t->begin;
    for (uint32_t i = 0; i < tn_trace_lanes(t); i++) {
        const tn_lane *l = t->lane[i];
        if (l->n_spans > l->ring_mask + UINT64_C(1)) {
            uint64_t oldest = l->ring[l->n_spans & l->ring_mask].end;
            first = oldest > first ? oldest : first;
        }
    }
    return first;
}

/* Outer spans first, when two begin at the same tick. */
static int by_begin(const void *a, const void *b)
{
    const tn_trace_span *x = a;
    const tn_trace_span *y = b;
    if (x->begin != y->begin) {
        return x->begin < y->begin ? -1 : 1;
    }
    return (x->depth > y->depth) - (x->depth < y->depth);
}

static uint64_t ns_of(const tn_trace *t, uint64_t ticks)
{
    return (uint64_t)llround(tn_ticks_to_s(t, ticks) * 1e9);
}

/* Microseconds to the nanosecond, never with an exponent: 12.345. */
static void add_us(tn_text *out, const char *key, uint64_t ns)
{
    char number[40];
    (void)snprintf(number, sizeof number, "%llu.%03u", (unsigned long long)(ns / 1000),
                   (unsigned)(ns % 1000));
    tn_json_raw(out, key, number);
}

/* One event to a line. */
static void open_event(tn_text *out, const char *kind, const char *name, uint32_t thread)
{
    bool first = out->size == 0 || out->data[out->size - 1] == '[';
    tn_text_adds(out, first ? "" : ",\n");
    tn_json_open(out, '{');
    tn_json_str(out, "ph", kind);
    tn_json_str(out, "name", name);
    tn_json_u64(out, "pid", 1);
    tn_json_u64(out, "tid", thread);
}

/* Both ends are rounded down the same way, so what was inside another span stays inside. */
static void add_span(const tn_trace *t, uint32_t thread, const tn_trace_span *s, tn_text *out)
{
    tn_phase phase = (tn_phase)s->phase;
    const char *name = tn_phase_name(phase);
    uint64_t begin = ns_of(t, s->begin - t->begin);
    open_event(out, "X", s->label != NULL ? s->label : name, thread);
    tn_json_str(out, "cat", s->label != NULL ? name : tn_phase_waits(phase) ? "wait" : "work");
    add_us(out, "ts", begin);
    add_us(out, "dur", ns_of(t, s->end - t->begin) - begin);
    tn_json_open_key(out, "args", '{');
    tn_json_u64(out, "step", s->step);
    tn_json_close(out, '}');
    tn_json_close(out, '}');
}

static void add_metadata(const char *what, uint32_t thread, const char *name, tn_text *out)
{
    open_event(out, "M", what, thread);
    tn_json_open_key(out, "args", '{');
    tn_json_str(out, "name", name);
    tn_json_close(out, '}');
    tn_json_close(out, '}');
}

static void add_lane(const tn_trace *t, uint32_t i, tn_trace_span *room, tn_text *out)
{
    const tn_lane *l = t->lane[i];
    uint64_t first = tn_trace_kept_from(t);
    uint32_t n = 0;
    for (uint32_t k = 0; k < tn_lane_kept(l); k++) {
        if (l->ring[k].begin >= first) {
            room[n++] = l->ring[k];
        }
    }
    qsort(room, n, sizeof *room, by_begin);
    for (uint32_t k = 0; k < n; k++) {
        add_span(t, i + 1, &room[k], out);
    }
}

tn_status tn_trace_json(const tn_trace *trace, tn_text *out, tn_error *err)
{
    tn_trace_span *room = tn_try_alloc(trace->ring, sizeof *room, "spans", err);
    if (room == NULL) {
        return TN_E_MEMORY;
    }
    tn_json_open(out, '[');
    add_metadata("process_name", 0, "tnet", out);
    for (uint32_t i = 0; i < tn_trace_lanes(trace); i++) {
        char name[TN_LANE_NAME_SIZE + 12];
        tn_lane_name(trace->lane[i], name);
        add_metadata("thread_name", i + 1, name, out);
    }
    for (uint32_t i = 0; i < tn_trace_lanes(trace); i++) {
        add_lane(trace, i, room, out);
    }
    tn_json_close(out, ']');
    tn_text_addc(out, '\n');
    tn_free(room);
    return tn_text_check(out, "a trace", err);
}

tn_status tn_trace_write(const tn_trace *trace, const char *path, tn_error *err)
{
    tn_text text = {0};
    tn_status status = tn_trace_json(trace, &text, err);
    if (status == TN_OK) {
        status = tn_output_put(path, tn_text_str(&text), text.size, NULL, err);
    }
    tn_text_done(&text);
    return status;
}
