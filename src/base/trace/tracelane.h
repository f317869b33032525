/* tracelane.h - the inside of a trace, for trace.c, which records, and trace_report.c.
 *
 * Only its own thread writes a lane; other threads read it when that thread has left.
 * A thread finds its lane by `owner`; 0: the lane is free.
 */
#pragma once

#include "base/core/arena.h"
#include "base/trace/trace.h"

#include <pthread.h>
#include <stdatomic.h>

/* Times per step are counted in buckets, 16 to an octave of ticks: 4 % apart. */
enum { TN_LANE_DEPTH = 24, TN_SUB_BUCKETS = 16, TN_BUCKETS = 40 * TN_SUB_BUCKETS };

typedef struct tn_trace_span {
    uint64_t begin, end; /* ticks */
    const char *label;   /* NULL: the phase's name */
    uint64_t step : 48;
    uint64_t phase : 8;
    uint64_t depth : 8;
} tn_trace_span;

typedef struct tn_open_span {
    uint64_t begin;
    uint64_t inside; /* ticks of spans that ended within this one */
    const char *label;
    tn_phase phase;
} tn_open_span;

typedef struct tn_phase_sum {
    uint64_t in_step; /* own ticks since the step began */
    uint64_t total;   /* own ticks of the steps before */
    uint64_t calls;
    uint64_t steps;  /* steps in which the phase had any ticks */
    uint64_t tiles;  /* ticks in tiles of a team's runs */
    double foreseen; /* ticks of these that the first of trace->threads threads would have */
    uint64_t runs;   /* number of these runs */
    uint32_t bucket[TN_BUCKETS];
} tn_phase_sum;

struct tn_lane {
    tn_trace *trace;
    uint32_t index; /* in trace->lane */
    char name[TN_LANE_NAME_SIZE];
    char title[TN_LANE_NAME_SIZE + 12]; /* among those of this name: "team 2" */
    tn_phase fold;                      /* TN_PHASES: none */
    uint64_t step;
    uint64_t joined;  /* tick */
    uint64_t present; /* ticks, of the times before */
    uint32_t depth;
    tn_open_span open[TN_LANE_DEPTH];
    uint64_t n_spans; /* ever; the ring holds the last of them */
    uint32_t ring_mask;
    tn_trace_span *ring;
    tn_phase_sum sum[TN_PHASES];
    uint32_t n_tiles; /* tiles of the run that is under way; 0: none */
    /* share of the tiles that one of the foreseen threads takes */
    double tiles_share;
    uint64_t tiles_begin, tiles_inside; /* ticks; and those of spans that had ended in it by then */
};

struct tn_trace {
    uint32_t ring;
    uint32_t threads;          /* number of threads that are foreseen */
    uint64_t begin, end;       /* ticks; end 0: it goes on */
    uint64_t begin_ns, end_ns; /* the same moments, by the clock */
    pthread_mutex_t lock;      /* joining and naming: guards names, lost and new lanes */
    tn_arena *names;
    bool lost; /* a lane that there was no memory for */
    _Atomic uint32_t n_lanes;
    _Atomic uintptr_t owner[TN_LANES_MAX];
    tn_lane *lane[TN_LANES_MAX]; /* the first n_lanes are there and never move */
};

double tn_ticks_to_s(const tn_trace *trace, uint64_t ticks); /* once it has ended */
