/* trace_report.c - a trace that has ended, as tables of times and as a file of its latest spans. */
#include "base/trace/trace.h"

#include "base/codec/json.h"
#include "base/core/alloc.h"
#include "base/file/output_file.h"
#include "base/trace/tracelane.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the middle of a bucket; see bucket_of in trace.c. */
static double ticks_of(uint32_t bucket)
{
    if (bucket < TN_SUB_BUCKETS) {
        return bucket;
    }
    uint32_t octave = bucket / TN_SUB_BUCKETS - 1;
    uint32_t sub = bucket % TN_SUB_BUCKETS;
    return ldexp(TN_SUB_BUCKETS + sub + (octave > 0 ? 0.5 : 0.0), (int)octave);
}

/* Returns the quantile `q` of the times per step, in ticks. */
static double quantile(const tn_phase_sum *s, double q)
{
    double rank = q * (double)s->steps;
    uint64_t seen = 0;
    for (uint32_t b = 0; b < TN_BUCKETS; b++) {
        seen += s->bucket[b];
        if (seen > 0 && (double)seen >= rank) {
            return ticks_of(b);
        }
    }
    return 0;
}

double tn_trace_seconds(const tn_trace *trace)
{
    return tn_ticks_to_s(trace, trace->end - trace->begin);
}

uint32_t tn_trace_lanes(const tn_trace *trace)
{
    return atomic_load(&trace->n_lanes);
}

void tn_trace_times(const tn_trace *trace, uint32_t i, tn_lane_times *out)
{
    TN_ASSERT(i < tn_trace_lanes(trace));
    const tn_lane *l = trace->lane[i];
    double run = tn_trace_seconds(trace);
    double tick = tn_ticks_to_s(trace, 1);
    double here = tn_ticks_to_s(trace, l->present);
    double busy = 0;
    *out = (tn_lane_times){.name = l->title};
    for (uint32_t p = 0; p < TN_PHASES; p++) {
        const tn_phase_sum *s = &l->sum[p];
        double seconds = tn_ticks_to_s(trace, s->total);
        out->phase[p] = (tn_phase_times){.seconds = seconds,
                                         .share = seconds / run,
                                         .calls = s->calls,
                                         .median_s = quantile(s, 0.5) * tick,
                                         .p99_s = quantile(s, 0.99) * tick};
        busy += seconds;
    }
    out->other_s = fmax(0, here - busy);
    out->away_s = fmax(0, run - here);
}

double tn_trace_phase_s(const tn_trace *trace, const char *lanes, tn_phase phase)
{
    uint64_t ticks = 0;
    for (uint32_t i = 0; i < tn_trace_lanes(trace); i++) {
        const tn_lane *l = trace->lane[i];
        uint64_t own = phase < TN_PHASES ? l->sum[phase].total : l->present;
        ticks += strcmp(l->name, lanes) == 0 ? own : 0;
    }
    return tn_ticks_to_s(trace, ticks);
}

tn_tiles_times tn_trace_tiles(const tn_trace *trace, const char *lanes, tn_phase phase)
{
    tn_tiles_times all = {0};
    for (uint32_t i = 0; i < tn_trace_lanes(trace); i++) {
        const tn_lane *l = trace->lane[i];
        if (strcmp(l->name, lanes) == 0) {
            all.seconds += tn_ticks_to_s(trace, l->sum[phase].tiles);
            all.foreseen += tn_ticks_to_s(trace, 1) * l->sum[phase].foreseen;
            all.runs += l->sum[phase].runs;
        }
    }
    return all;
}

static void add_row(tn_text *out, const char *thread, const char *phase, double seconds,
                    double share)
{
    tn_text_addf(out, "%-16s %-12s %10.3f %7.1f", thread, phase, seconds, 100 * share);
}

/* Appends the times of one thread. Its name is in the first line only. */
static void add_times(const tn_lane_times *t, double run, tn_text *out)
{
    const char *name = t->name;
    for (uint32_t p = 0; p < TN_PHASES; p++) {
        const tn_phase_times *x = &t->phase[p];
        if (x->calls > 0) {
            add_row(out, name, tn_phase_name((tn_phase)p), x->seconds, x->share);
            tn_text_addf(out, " %10llu %11.3f %11.3f\n", (unsigned long long)x->calls,
                         1e3 * x->median_s, 1e3 * x->p99_s);
            name = "";
        }
    }
    add_row(out, name, "other", t->other_s, t->other_s / run);
    tn_text_addc(out, '\n');
    if (t->away_s > 0.0005 * run) {
        add_row(out, "", "not running", t->away_s, t->away_s / run);
        tn_text_addc(out, '\n');
    }
}

void tn_trace_table(const tn_trace *trace, tn_text *out)
{
    tn_text_addf(out, "%-16s %-12s %10s %7s %10s %11s %11s\n", "thread", "phase", "s", "%", "calls",
                 "ms median", "ms p99");
    for (uint32_t i = 0; i < tn_trace_lanes(trace); i++) {
        tn_lane_times times;
        tn_trace_times(trace, i, &times);
        add_times(&times, tn_trace_seconds(trace), out);
    }
    if (trace->lost) {
        tn_text_adds(out, "some threads are not shown: no memory to record them\n");
    }
}

/* ---- labelled spans that the rings still hold ---- */

/* Returns the number of spans in the lane's ring. */
static uint32_t lane_kept(const tn_lane *l)
{
    return l->n_spans <= l->ring_mask ? (uint32_t)l->n_spans : l->ring_mask + 1;
}

/* Returns the tick from which on no ring has lost any span. */
static uint64_t kept_from(const tn_trace *t)
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

/* All spans of one label and phase. */
typedef struct node_sum {
    const char *label;
    tn_phase phase;
    uint64_t step; /* step of the span that is added */
    uint64_t ticks;
    uint64_t calls;
} node_sum;

static int by_name(const void *a, const void *b)
{
    const node_sum *x = a;
    const node_sum *y = b;
    int order = strcmp(x->label, y->label);
    return order != 0 ? order : (x->phase > y->phase) - (x->phase < y->phase);
}

static int longest_first(const void *a, const void *b)
{
    const node_sum *x = a;
    const node_sum *y = b;
    return x->ticks != y->ticks ? (x->ticks < y->ticks ? 1 : -1) : by_name(a, b);
}

/* Collects the labelled spans of a lane, one entry each. An evaluation within a run is no part of a
 * step. */
static uint32_t collect_labelled(const tn_lane *l, uint64_t begin, node_sum *out)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < lane_kept(l); k++) {
        const tn_trace_span *s = &l->ring[k];
        if (s->label != NULL && s->begin >= begin && s->phase != TN_PHASE_EVALUATE) {
            out[n++] = (node_sum){s->label, (tn_phase)s->phase, s->step, s->end - s->begin, 1};
        }
    }
    return n;
}

/* Merges equal ones into one; drops those before step `first`. */
static uint32_t merge_equal(node_sum *sum, uint32_t n, uint64_t first)
{
    uint32_t kept = 0;
    qsort(sum, n, sizeof *sum, by_name);
    for (uint32_t i = 0; i < n; i++) {
        if (sum[i].step < first) {
            continue;
        }
        if (kept > 0 && by_name(&sum[kept - 1], &sum[i]) == 0) {
            sum[kept - 1].ticks += sum[i].ticks;
            sum[kept - 1].calls += sum[i].calls;
        } else {
            sum[kept++] = sum[i];
        }
    }
    return kept;
}

static void print_nodes(const tn_trace *t, const node_sum *sum, uint32_t n, uint64_t steps,
                        tn_text *out)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < n; i++) {
        all += sum[i].ticks;
    }
    tn_text_addf(out, "\nnodes in the latest %llu steps, all threads\n%-32s %-12s %11s %7s %10s\n",
                 (unsigned long long)steps, "node", "phase", "ms a step", "%", "tiles");
    for (uint32_t i = 0; i < n && i < TN_NODES_SHOWN; i++) {
        tn_text_addf(out, "%-32s %-12s %11.3f %7.1f %10llu\n", sum[i].label,
                     tn_phase_name(sum[i].phase),
                     1e3 * tn_ticks_to_s(t, sum[i].ticks) / (double)steps,
                     100 * (double)sum[i].ticks / (double)all, (unsigned long long)sum[i].calls);
    }
    if (n > TN_NODES_SHOWN) {
        tn_text_addf(out, "and %u less\n", n - TN_NODES_SHOWN);
    }
}

tn_status tn_trace_nodes(const tn_trace *trace, tn_text *out, tn_error *err)
{
    uint32_t lanes = tn_trace_lanes(trace);
    node_sum *sum = NULL;
    TN_TRY(TN_ALLOC(sum, (size_t)lanes * trace->ring + 1, "spans", err));
    uint64_t begin = kept_from(trace);
    uint64_t first = UINT64_MAX;
    uint64_t last = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < lanes; i++) {
        n += collect_labelled(trace->lane[i], begin, sum + n);
    }
    for (uint32_t i = 0; i < n; i++) {
        first = sum[i].step < first ? sum[i].step : first;
        last = sum[i].step > last ? sum[i].step : last;
    }
    first += first < last; /* it may have lost its beginning */
    n = merge_equal(sum, n, first);
    TN_ASSERT(n <= (uint64_t)lanes * trace->ring);
    if (n > 0) {
        qsort(sum, n, sizeof *sum, longest_first);
        print_nodes(trace, sum, n, last - first + 1, out);
    }
    tn_free(sum);
    return TN_OK;
}

/* ---- the file ---- */

/* Orders spans by their beginning, outer ones first when two begin at the same tick. */
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

/* Appends microseconds to the nanosecond, never with an exponent: 12.345. */
static void add_us(tn_text *out, const char *key, uint64_t ns)
{
    char number[40];
    (void)snprintf(number, sizeof number, "%llu.%03u", (unsigned long long)(ns / 1000),
                   (unsigned)(ns % 1000));
    tn_json_raw(out, key, number);
}

/* Opens one event, which takes one line. */
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

/* Appends a span. Both ends are rounded down the same way, so what was inside another span stays
 * inside. */
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
    TN_ASSERT(lane_kept(l) <= t->ring);
    uint64_t first = kept_from(t);
    uint32_t n = 0;
    for (uint32_t k = 0; k < lane_kept(l); k++) {
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
    tn_trace_span *room = NULL;
    TN_TRY(TN_ALLOC(room, trace->ring, "spans", err));
    tn_json_open(out, '[');
    add_metadata("process_name", 0, "tnet", out);
    for (uint32_t i = 0; i < tn_trace_lanes(trace); i++) {
        add_metadata("thread_name", i + 1, trace->lane[i]->title, out);
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
