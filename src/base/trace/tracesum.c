/* tracesum.c - see tracesum.h. */
#include "base/trace/tracesum.h"

#include "base/trace/tracelane.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The middle of a bucket; see bucket_of in trace.c. */
static double ticks_of(uint32_t bucket)
{
    if (bucket < TN_SUB_BUCKETS) {
        return bucket;
    }
    uint32_t octave = bucket / TN_SUB_BUCKETS - 1;
    uint32_t sub = bucket % TN_SUB_BUCKETS;
    return ldexp(TN_SUB_BUCKETS + sub + (octave > 0 ? 0.5 : 0.0), (int)octave);
}

/* What the share `q` of all steps does not exceed, in ticks. */
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

void tn_lane_name(const tn_lane *lane, char out[TN_LANE_NAME_SIZE + 12])
{
    if (lane->number == 1) {
        (void)snprintf(out, TN_LANE_NAME_SIZE, "%s", lane->name);
    } else {
        (void)snprintf(out, TN_LANE_NAME_SIZE + 12, "%s %u", lane->name, lane->number);
    }
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
    *out = (tn_lane_times){0};
    tn_lane_name(l, out->name);
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
        ticks += strcmp(l->name, lanes) == 0 ? l->sum[phase].total : 0;
    }
    return tn_ticks_to_s(trace, ticks);
}

double tn_trace_lane_s(const tn_trace *trace, const char *lanes)
{
    uint64_t ticks = 0;
    for (uint32_t i = 0; i < tn_trace_lanes(trace); i++) {
        const tn_lane *l = trace->lane[i];
        ticks += strcmp(l->name, lanes) == 0 ? l->present : 0;
    }
    return tn_ticks_to_s(trace, ticks);
}

static void add_row(tn_text *out, const char *thread, const char *phase, double seconds,
                    double share)
{
    tn_text_addf(out, "%-16s %-12s %10.3f %7.1f", thread, phase, seconds, 100 * share);
}

/* The name stands in a thread's first line only. */
static void add_lane(const tn_lane_times *t, double run, tn_text *out)
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
        add_lane(&times, tn_trace_seconds(trace), out);
    }
    if (trace->lost) {
        tn_text_adds(out, "some threads are not shown: no memory to record them\n");
    }
}
