/* forecast.h - predicts how long a step of a run will take: `--plan`.
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

typedef struct tn_trace tn_trace; /* base/trace/trace.h */
typedef struct tn_worker tn_worker;

/* Seconds of a whole batch; wall time unless it says otherwise. */
typedef struct tn_pace {
    double step;          /* a step whose batch is in memory, metrics included */
    double step_busy;     /* processor time of a step, all threads */
    double new_row;       /* time that each row that is made adds */
    bool reads;           /* the reader was measured: the next four members are set */
    double hand_out;      /* time of the reader alone, within a window */
    double window;        /* time to load a whole window */
    double batches;       /* number of batches of a window */
    uint32_t ahead;       /* batches that are ready when a window ends */
    double keys[2];       /* rows of the table after half of the examples, and after all */
    double examples;      /* number of examples that were looked at */
    double run_examples;  /* number of examples of the run; 0: not known */
    double data_examples; /* number of examples of its data; 0: not known */
    uint32_t batch;
    uint32_t threads;
    uint32_t cpus; /* processors of this machine, or of the one that is foreseen */
    bool foreseen; /* more threads than processors: step and new_row come from the next two */
    double alone;  /* a step on one thread */
    double serial; /* the part of it that other threads cannot share */
} tn_pace;

typedef struct tn_forecast {
    double seconds;    /* time of a step, mean over the run */
    double old;        /* time of a step that makes no row */
    double new_rows;   /* rows that a step makes, mean over the run */
    double waits;      /* seconds of a step in which it waits for data */
    const char *bound; /* names the limit: "steps", "reading", "processors" */
} tn_forecast;

tn_forecast tn_forecast_of(const tn_pace *pace);

/* As tn_forecast_kind.plan trains `w`. */
tn_status tn_pace_measure(tn_worker *w, tn_trace *trace, tn_pace *out, tn_error *err) TN_MUST_USE;

/* Appends two or three lines: the pieces, and what they add up to. */
void tn_pace_text(const tn_pace *pace, tn_text *out);
