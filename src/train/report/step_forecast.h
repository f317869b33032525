/* step_forecast.h - how long a step will take: of a plan (`--plan`), and of a run from its first
 * steps. Who predicts is the row of forecast_kinds.def, at most one, of src/extra.
 */
#pragma once

#include "base/core/error.h"

#include <stdint.h>

typedef struct tn_text tn_text;     /* base/core/text.h */
typedef struct tn_trace tn_trace;   /* base/trace/trace.h */
typedef struct tn_worker tn_worker; /* train/step/worker.h */

/* Steps of a run under way, in seconds; but for the first three members 0 at first. */
typedef struct tn_paced {
    uint32_t batch;
    uint32_t ahead;   /* batches that are ready when a window of the reader ends */
    double batches;   /* number of batches of a window */
    double window;    /* time to load a whole window */
    uint64_t n;       /* number of steps so far */
    double seconds;   /* time of these steps */
    double computed;  /* time of the first steps without waiting, until there is a prediction */
    double predicted; /* the predicted time of a step; 0: not yet, or nobody predicts */
} tn_paced;

typedef struct tn_forecast_kind {
    /* Trains `w`, which is of no use for anything else afterwards, and appends two to four lines.
     * Without data, or when they come by standard input, rows are drawn. `trace`: for a run of more
     * threads than there are processors, whose `w` has one, else NULL; nothing is recorded there
     * yet, and it must outlive `w`. */
    tn_status (*plan)(tn_worker *w, tn_trace *trace, tn_text *out, tn_error *err);
    double (*predict)(const tn_paced *p); /* called once, after some steps */
} tn_forecast_kind;

const tn_forecast_kind *tn_forecast_built(void); /* NULL: this build has none */

/* Adds a step that took so long, waiting for its batch for `waited` of it. */
void tn_paced_step(tn_paced *p, double waited, double took);
