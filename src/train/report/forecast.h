/* forecast.h - how long a step of a run will take, before it begins: `--plan`.
 *
 *     tn_pace pace;
 *     TN_TRY(tn_pace_measure(worker, &pace, err));   a second of real work on the head of the data
 *     tn_forecast f = tn_forecast_of(&pace);         arithmetic
 *
 * The run itself is measured, cut in pieces: the reader alone, on the head of data.train, and steps
 * over the batches it gave, once while their rows are made and again when they are there. A second
 * is too short to measure how the pieces go together:
 *
 *     window    |load|hand out ..............|load|hand out ..           one thread of the reader
 *     steps          |step|step|step|step|step|    |step|step|           the team
 *                         new rows get fewer from step to step
 *
 * A window is loaded while nothing can be handed out but what is ready; handing out and steps go on
 * side by side, as far as there are processors.
 *
 * Where the run has more threads than there are processors, a machine of as many is foreseen: steps
 * are measured on one thread and their tiles counted, of which threads can share no more than there
 * are in a run of the team (Amdahl's law for each run). Bandwidth of memory, and a clock that is
 * slower when all processors work, are not foreseen.
 */
#pragma once

#include "base/core/text.h"

typedef struct tn_run tn_run;     /* train/config/run.h */
typedef struct tn_trace tn_trace; /* base/trace/trace.h */
typedef struct tn_worker tn_worker;

/* Seconds of a whole batch; wall time unless it says otherwise. */
typedef struct tn_pace {
    double step;          /* a step whose batch lies in memory, metrics included */
    double step_busy;     /* processor time of it, all threads */
    double new_row;       /* more for each row that is made */
    bool reads;           /* the reader was measured: */
    double hand_out;      /* the reader alone, within a window */
    double window;        /* .. and to load the next window, not of a batch but as a whole */
    double batches;       /* of a window */
    uint32_t ahead;       /* batches that are ready when a window ends */
    double keys[2];       /* rows of the table after half of the examples, and after all .. */
    double examples;      /* .. that were looked at */
    double run_examples;  /* of the run, 0: not known; .. */
    double data_examples; /* .. and of its data */
    uint32_t batch;
    uint32_t threads, cpus; /* cpus: of the machine that is foreseen, where that is not this one */
    bool foreseen;          /* for more threads than processors: step and new_row, from: */
    double alone;           /* a step on one thread, */
    double serial;          /* of it what more threads have no part in */
} tn_pace;

typedef struct tn_forecast {
    double seconds;    /* of a step, mean over the run */
    double old;        /* of one that makes no row */
    double new_rows;   /* that a step makes, mean over the run */
    double waits;      /* seconds of a step in which it waits for data */
    const char *bound; /* what it would take to be faster: "steps", "reading", "processors" */
} tn_forecast;

tn_forecast tn_forecast_of(const tn_pace *pace);

/* Whether the run has more threads than there are processors: its worker has a team of one. */
bool tn_pace_foresees(const tn_run *run);

/* Trains `w`, which is of no use for anything else afterwards. Without data, or when they come by
 * standard input, rows are drawn. `trace`: for a run that is foreseen, else NULL; nothing is
 * recorded there yet, and it must outlive `w`. */
tn_status tn_pace_measure(tn_worker *w, tn_trace *trace, tn_pace *out, tn_error *err) TN_MUST_USE;

/* Two or three lines: the pieces, and what they come to. */
void tn_pace_text(const tn_pace *pace, tn_text *out);

/* The same for a run that is under way, from its own first steps; but for `pace` 0 at its start. */
typedef struct tn_paced {
    tn_pace pace;     /* batch, batches and ahead are set, the rest is learned */
    uint64_t n;       /* steps that were told, */
    double seconds;   /* in which they were taken */
    double computed;  /* of the first ones without waiting, until .. */
    double predicted; /* .. a step's time was predicted; 0: not yet */
} tn_paced;

/* A step that took so long, waiting for its batch for `waited` of it. */
void tn_paced_step(tn_paced *p, double waited, double took);
