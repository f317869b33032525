/* watch.h - what the caller of a run shows to people, and what it may ask for while the run goes
 * on.
 *
 * Owned by the caller, must outlive the run. Libraries do not print: lines for people come here.
 */
#pragma once

#include "base/core/error.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tn_metrics tn_metrics; /* metrics/metrics.h */

/* How far a run is. */
typedef struct tn_watch_progress {
    uint64_t steps, samples;
    double epochs;  /* learned, 1.5: half of the second */
    double done;    /* share of the run, 0 .. 1; NAN: not known */
    double loss;    /* mean of the open window; NAN: it has no step */
    double seconds; /* since the run began */
} tn_watch_progress;

typedef struct tn_watch {
    /* One line for a person. `transient`: it is drawn over the line before (a progress bar). The
     * table of peers is several lines, and comes on another thread. */
    void (*show)(void *arg, const char *text, bool transient);
    void *arg;
    /* Gets each line of metrics.jsonl, without its end, and how far the run is, ten times a second;
     * both on the trainer's thread. NULL: nobody wants them. */
    void (*record)(void *arg, const char *line, size_t size);
    void (*progress)(void *arg, const tn_watch_progress *progress);
    /* Gets the rows of data.valid as they are scored, batch by batch; n 0: an evaluation begins.
     * `weight` NULL: all are 1. Then, of one that came to its end, the metrics that are reported.
     * NULL: nobody wants them. */
    void (*scored)(void *arg, const float *label, const float *logit, const float *weight,
                   uint32_t n);
    void (*evaluated)(void *arg, uint64_t step, const tn_metrics *metrics);
    const atomic_bool *ends;        /* true: training ends as if the data had ended; NULL: never */
    uint64_t pause;                 /* ends as *stop asks, saved, after so many steps; 0: never */
    bool peers_table;               /* show a line per peer every 10 s */
    bool terminal;                  /* somebody looks at it: draw a bar */
    uint32_t width;                 /* columns of the terminal */
    const struct tn_inputs *inputs; /* files that outputs may not replace; NULL: none */
    struct tn_profile
        *profile; /* the run's picture (train/report/profile.h); NULL: nobody wants it */
    /* Set by signal handlers; NULL: nobody asks. Stop: end with TN_E_STOPPED, saved, as soon as a
     * step or a batch of an evaluation is done. Save: save between two steps and go on; cleared. */
    const atomic_bool *stop;
    atomic_bool *save;
    /* Set when the run of several processes failed in another one, which reports it; NULL: it does
     * not matter. */
    bool *told_elsewhere;
} tn_watch;

static inline void tn_watch_told_elsewhere(const tn_watch *watch, bool elsewhere)
{
    if (watch->told_elsewhere != NULL) {
        *watch->told_elsewhere = elsewhere;
    }
}

/* The resolved configuration as text, and its SHA-256 in hex. */
typedef struct tn_run_text {
    const char *config;
    const char *hash;
    const char *places; /* run.yaml: what config.yaml leaves out; NULL: nobody keeps it */
} tn_run_text;
