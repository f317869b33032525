/* trace.c - records spans: a stack of open ones per thread, sums, and a ring of ended ones.
 *
 * On x86-64 time is the processor's counter, a third of the clock's price; the clock at both ends
 * of the run gives the length of a tick. All x86-64 processors of the last fifteen years count at a
 * constant rate.
 */
#include "base/trace/trace.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/trace/tracelane.h"

#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

static const struct {
    const char *name;
    bool waits;
} phases[TN_PHASES] = {
#define WORK false
#define WAIT true
#define TN_PHASE(id, name, kind, what) [TN_PHASE_##id] = {name, kind},
#include "base/trace/phases.def"
#undef TN_PHASE
#undef WAIT
#undef WORK
};

const char *tn_phase_name(tn_phase phase)
{
    TN_ASSERT(phase < TN_PHASES);
    return phases[phase].name;
}

bool tn_phase_waits(tn_phase phase)
{
    TN_ASSERT(phase < TN_PHASES);
    return phases[phase].waits;
}

/* ---- time ---- */

static uint64_t ticks_now(void)
{
#if defined(__x86_64__)
    return __rdtsc();
#else
    return tn_clock_ns();
#endif
}

double tn_ticks_to_s(const tn_trace *trace, uint64_t ticks)
{
    TN_ASSERT(trace->end > trace->begin);
    double tick_ns =
        (double)(trace->end_ns - trace->begin_ns) / (double)(trace->end - trace->begin);
    return (double)ticks * tick_ns * 1e-9;
}

/* Returns the ticks between two counts; counters of two processors may be a few ticks apart. */
static uint64_t since(uint64_t begin, uint64_t end)
{
    return end > begin ? end - begin : 0;
}

/* ---- a trace and its lanes ---- */

void tn_trace_begin(tn_trace *trace)
{
    TN_ASSERT(atomic_load(&trace->n_lanes) == 0);
    trace->begin_ns = tn_clock_ns();
    trace->begin = ticks_now();
}

tn_status tn_trace_open(tn_trace **out, uint32_t ring, tn_error *err)
{
    *out = NULL;
    TN_ASSERT(ring > 0 && (ring & (ring - 1)) == 0);
    tn_trace *t = NULL;
    TN_TRY(TN_ALLOC(t, 1, "a trace", err));
    t->ring = ring;
    t->threads = 1;
    t->names = tn_arena_new(1 << 12);
    (void)pthread_mutex_init(&t->lock, NULL);
    tn_trace_begin(t);
    *out = t;
    return TN_OK;
}

void tn_trace_close(tn_trace *trace)
{
    if (trace == NULL) {
        return;
    }
    for (uint32_t i = 0; i < atomic_load(&trace->n_lanes); i++) {
        tn_free(trace->lane[i]->ring);
        tn_free(trace->lane[i]);
    }
    (void)pthread_mutex_destroy(&trace->lock);
    tn_arena_free(trace->names);
    tn_free(trace);
}

void tn_trace_foresee(tn_trace *trace, uint32_t threads)
{
    TN_ASSERT(threads > 0 && atomic_load(&trace->n_lanes) == 0);
    trace->threads = threads;
}

void tn_trace_end(tn_trace *trace)
{
    TN_ASSERT(trace->end == 0);
    trace->end_ns = tn_clock_ns();
    trace->end = ticks_now();
    trace->end += trace->end <= trace->begin; /* a run of no length has one tick */
}

static tn_lane *new_lane(tn_trace *t, const char *name, uint32_t number)
{
    uint32_t n = atomic_load_explicit(&t->n_lanes, memory_order_relaxed);
    tn_lane *lane = n < TN_LANES_MAX ? tn_try_alloc(1, sizeof *lane, "a lane", NULL) : NULL;
    tn_trace_span *ring = lane != NULL ? tn_try_alloc(t->ring, sizeof *ring, "spans", NULL) : NULL;
    if (ring == NULL) {
        tn_free(lane);
        t->lost = true;
        return NULL;
    }
    lane->trace = t;
    lane->index = n;
    lane->ring = ring;
    lane->ring_mask = t->ring - 1;
    lane->fold = TN_PHASES;
    (void)snprintf(lane->name, sizeof lane->name, "%s", name);
    (void)snprintf(lane->title, sizeof lane->title, number > 1 ? "%s %u" : "%s", lane->name,
                   number);
    t->lane[n] = lane;
    return lane;
}

/* Returns a lane that a thread of this name has left, or a new one. */
static tn_lane *take_lane(tn_trace *t, const char *name)
{
    uint32_t n = atomic_load_explicit(&t->n_lanes, memory_order_relaxed);
    uint32_t same = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool named = strncmp(t->lane[i]->name, name, TN_LANE_NAME_SIZE - 1) == 0;
        if (named && atomic_load_explicit(&t->owner[i], memory_order_acquire) == 0) {
            atomic_store_explicit(&t->owner[i], (uintptr_t)pthread_self(), memory_order_relaxed);
            return t->lane[i];
        }
        same += named;
    }
    tn_lane *lane = new_lane(t, name, same + 1);
    if (lane != NULL) {
        atomic_store_explicit(&t->owner[n], (uintptr_t)pthread_self(), memory_order_relaxed);
        atomic_store_explicit(&t->n_lanes, n + 1, memory_order_release);
    }
    return lane;
}

tn_lane *tn_trace_join(tn_trace *trace, const char *name)
{
    if (trace == NULL) {
        return NULL;
    }
    TN_ASSERT(tn_trace_here(trace) == NULL); /* a thread has one lane */
    (void)pthread_mutex_lock(&trace->lock);
    tn_lane *lane = trace->lost ? NULL : take_lane(trace, name);
    (void)pthread_mutex_unlock(&trace->lock);
    if (lane != NULL) {
        lane->joined = ticks_now();
    }
    return lane;
}

tn_lane *tn_trace_here(const tn_trace *trace)
{
    if (trace == NULL) {
        return NULL;
    }
    uintptr_t self = (uintptr_t)pthread_self();
    uint32_t n = atomic_load_explicit(&trace->n_lanes, memory_order_acquire);
    for (uint32_t i = 0; i < n; i++) {
        if (atomic_load_explicit(&trace->owner[i], memory_order_relaxed) == self) {
            return trace->lane[i];
        }
    }
    return NULL;
}

const char *tn_trace_name(tn_trace *trace, const char *name)
{
    if (trace == NULL) {
        return NULL;
    }
    size_t size = strlen(name) + 1;
    (void)pthread_mutex_lock(&trace->lock);
    char *copy = TN_NEW_ARRAY(trace->names, char, size);
    (void)pthread_mutex_unlock(&trace->lock);
    memcpy(copy, name, size);
    return copy;
}

/* ---- recording ---- */

static uint32_t bucket_of(uint64_t ticks)
{
    if (ticks < TN_SUB_BUCKETS) {
        return (uint32_t)ticks;
    }
    uint32_t top = 63U - (uint32_t)__builtin_clzll(ticks);
    uint32_t sub = (uint32_t)(ticks >> (top - 4)) & (TN_SUB_BUCKETS - 1);
    uint32_t bucket = (top - 3) * TN_SUB_BUCKETS + sub;
    return bucket < TN_BUCKETS ? bucket : TN_BUCKETS - 1;
}

static void settle_step(tn_lane *l)
{
    for (uint32_t i = 0; i < TN_PHASES; i++) {
        tn_phase_sum *s = &l->sum[i];
        if (s->in_step > 0) {
            s->total += s->in_step;
            s->bucket[bucket_of(s->in_step)]++;
            s->steps++;
            s->in_step = 0;
        }
    }
}

void tn_lane_step(tn_lane *lane, uint64_t step)
{
    if (lane != NULL && lane->step != step && lane->fold == TN_PHASES) {
        settle_step(lane);
        lane->step = step;
    }
}

uint64_t tn_lane_step_of(const tn_lane *lane)
{
    return lane->step;
}

tn_phase tn_lane_phase(const tn_lane *lane)
{
    return lane->depth > 0 ? lane->open[lane->depth - 1].phase : TN_PHASES;
}

void tn_lane_fold(tn_lane *lane, tn_phase phase)
{
    if (lane != NULL) {
        lane->fold = phase;
    }
}

static void open_at(tn_lane *l, tn_phase phase, const char *label, uint64_t now)
{
    TN_ASSERT(l->depth < TN_LANE_DEPTH);
    phase = label != NULL && l->depth > 0 ? tn_lane_phase(l) : phase;
    phase = l->fold < TN_PHASES ? l->fold : phase;
    l->sum[phase].calls += tn_lane_phase(l) != phase; /* else it is a part of the same call */
    l->open[l->depth++] = (tn_open_span){.begin = now, .label = label, .phase = phase};
}

/* Adds ticks within the tiles of the run that is under way. */
static void add_tiles(tn_lane *l, tn_phase phase, uint64_t ticks)
{
    tn_phase_sum *s = &l->sum[phase];
    s->tiles += ticks;
    s->foreseen += (double)ticks * l->tiles_share;
}

static void close_at(tn_lane *l, uint64_t now)
{
    TN_ASSERT(l->depth > 0);
    const tn_open_span *o = &l->open[--l->depth];
    uint64_t all = since(o->begin, now);
    uint64_t own = since(o->inside, all);
    l->sum[o->phase].in_step += own;
    add_tiles(l, o->phase, l->n_tiles > 0 ? own : 0);
    if (l->depth > 0) {
        l->open[l->depth - 1].inside += all;
    }
    l->ring[l->n_spans++ & l->ring_mask] =
        (tn_trace_span){.begin = o->begin,
                        .end = o->begin + all,
                        .label = o->label,
                        .step = l->step & ((UINT64_C(1) << 48) - 1),
                        .phase = (uint8_t)o->phase,
                        .depth = (uint8_t)l->depth};
}

void tn_lane_begin(tn_lane *lane, tn_phase phase, const char *label)
{
    open_at(lane, phase, label, ticks_now());
}

void tn_lane_next(tn_lane *lane, tn_phase phase)
{
    uint64_t now = ticks_now();
    close_at(lane, now);
    open_at(lane, phase, NULL, now);
}

void tn_lane_end(tn_lane *lane)
{
    close_at(lane, ticks_now());
}

void tn_lane_tiles_begin(tn_lane *lane, uint32_t n)
{
    if (lane == NULL || lane->depth == 0) { /* in no phase, it is no part of any */
        return;
    }
    const uint32_t threads = lane->trace->threads;
    TN_ASSERT(n > 0 && lane->n_tiles == 0);
    lane->n_tiles = n;
    const uint32_t most = (n + threads - 1) / threads;
    lane->tiles_share = (double)most / n;
    lane->tiles_begin = ticks_now();
    lane->tiles_inside = lane->open[lane->depth - 1].inside;
}

void tn_lane_tiles_end(tn_lane *lane)
{
    if (lane == NULL || lane->depth == 0) {
        return;
    }
    const tn_open_span *o = &lane->open[lane->depth - 1];
    const uint64_t inside = o->inside - lane->tiles_inside; /* counted as they ended */
    add_tiles(lane, o->phase, since(inside, since(lane->tiles_begin, ticks_now())));
    lane->sum[o->phase].runs++;
    lane->n_tiles = 0;
}

void tn_trace_leave(tn_lane *lane)
{
    if (lane == NULL) {
        return;
    }
    tn_trace *t = lane->trace;
    uint64_t now = ticks_now();
    now = t->end != 0 && now > t->end ? t->end : now;
    while (lane->depth > 0) {
        close_at(lane, now);
    }
    settle_step(lane);
    lane->fold = TN_PHASES;
    lane->present += since(lane->joined, now);
    TN_ASSERT(atomic_load(&t->owner[lane->index]) == (uintptr_t)pthread_self());
    atomic_store_explicit(&t->owner[lane->index], 0, memory_order_release);
}
