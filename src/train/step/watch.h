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

typedef struct tn_watch {
    /* One line for a person. `transient`: it is drawn over the line before (a progress bar). The
     * table of peers is several lines, and comes on another thread. */
    void (*show)(void *arg, const char *text, bool transient);
    void *arg;
    bool peers_table;                   /* show a line per peer every 10 s */
    bool terminal;                      /* somebody looks at it: draw a bar */
    uint32_t width;                     /* columns of the terminal */
    int (*exit_code)(tn_status status); /* documented code of an outcome, for summary.json */
    const struct tn_inputs *inputs;     /* files that outputs may not replace; NULL: none */
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
