/* tracenodes.c - the labelled spans that the rings still hold, summed by label; see tracesum.h. */
#include "base/core/alloc.h"
#include "base/trace/tracelane.h"
#include "base/trace/tracesum.h"

#include <stdlib.h>
#include <string.h>

/* All spans of one label and phase. */
typedef struct node_sum {
    const char *label;
    tn_phase phase;
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

/* An evaluation within a run is no part of a step. */
static bool counts(const tn_trace_span *s, uint64_t first)
{
    return s->label != NULL && s->begin >= first && s->phase != TN_PHASE_EVALUATE;
}

/* First and last step that labelled spans are of; first > last: there are none. */
static void find_steps(const tn_trace *t, uint64_t begin, uint64_t *first, uint64_t *last)
{
    *first = UINT64_MAX;
    *last = 0;
    for (uint32_t i = 0; i < tn_trace_lanes(t); i++) {
        const tn_lane *l = t->lane[i];
        for (uint32_t k = 0; k < tn_lane_kept(l); k++) {
            const tn_trace_span *s = &l->ring[k];
            if (counts(s, begin)) {
                *first = s->step < *first ? s->step : *first;
                *last = s->step > *last ? s->step : *last;
            }
        }
    }
}

/* The labelled spans of one lane from a step on, one entry each. */
static uint32_t collect(const tn_lane *l, uint64_t begin, uint64_t step, node_sum *out)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < tn_lane_kept(l); k++) {
        const tn_trace_span *s = &l->ring[k];
        if (counts(s, begin) && s->step >= step) {
            out[n++] = (node_sum){s->label, (tn_phase)s->phase, s->end - s->begin, 1};
        }
    }
    return n;
}

/* Equal ones become one. */
static uint32_t merge(node_sum *sum, uint32_t n)
{
    uint32_t kept = 0;
    qsort(sum, n, sizeof *sum, by_name);
    for (uint32_t i = 0; i < n; i++) {
        if (kept > 0 && by_name(&sum[kept - 1], &sum[i]) == 0) {
            sum[kept - 1].ticks += sum[i].ticks;
            sum[kept - 1].calls += sum[i].calls;
        } else {
            sum[kept++] = sum[i];
        }
    }
    return kept;
}

static void print(const tn_trace *t, const node_sum *sum, uint32_t n, uint64_t steps, tn_text *out)
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
    node_sum *sum = tn_try_alloc((size_t)lanes * trace->ring + 1, sizeof *sum, "spans", err);
    if (sum == NULL) {
        return TN_E_MEMORY;
    }
    uint64_t begin = tn_trace_kept_from(trace);
    uint64_t first = 0;
    uint64_t last = 0;
    uint32_t n = 0;
    find_steps(trace, begin, &first, &last);
    first += first < last; /* it may have lost its beginning */
    for (uint32_t i = 0; i < lanes; i++) {
        n += collect(trace->lane[i], begin, first, sum + n);
        n = merge(sum, n); /* so that little is carried on */
    }
    if (n > 0) {
        qsort(sum, n, sizeof *sum, longest_first);
        print(trace, sum, n, last - first + 1, out);
    }
    tn_free(sum);
    return TN_OK;
}
