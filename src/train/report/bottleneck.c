/* bottleneck.c - see bottleneck.h: the largest share of the main thread's time tells. */
#include "train/report/bottleneck.h"

#include "base/trace/tracesum.h"

#include <math.h>

double tn_effort_limit(const tn_effort *w)
{
    return 1 / fmax(w->flops / (w->peak.gflops * 1e9), w->bytes / w->peak.bytes);
}

/* From where on something is worth a word. */
#define WAITS 0.10
#define PAUSES 0.25
#define UNEVEN 0.20

/* A stage of the reader, by what keeps it busy. */
typedef struct stage {
    const char *lanes;
    tn_phase phase;
    const char *advice;
} stage;

static const stage stages[] = {
    {"read", TN_PHASE_READ, "the files come too slowly"},
    {"read", TN_PHASE_INFLATE, "uncompressed files"},
    {"read", TN_PHASE_CUT, "a format that is cut faster"},
    {"parse", TN_PHASE_PARSE, "more data.readers"},
    {"batch", TN_PHASE_SHUFFLE, "a smaller data.shuffle"},
    {"batch", TN_PHASE_BATCH, "fewer or shorter slots"},
};

/* The stage that is busy for the largest share of its threads' time. */
static const stage *busiest(const tn_trace *trace, double *share)
{
    const stage *best = &stages[0];
    *share = 0;
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        double busy = tn_trace_phase_s(trace, stages[i].lanes, stages[i].phase);
        double of = busy / (tn_trace_lane_s(trace, stages[i].lanes) + 1e-9);
        if (of > *share) {
            *share = of;
            best = &stages[i];
        }
    }
    return best;
}

static void say_waits(const tn_trace *trace, double share, tn_text *out)
{
    double busy = 0;
    const stage *s = busiest(trace, &busy);
    tn_text_addf(out,
                 "training waits %.0f %% of the time for data, most of all for '%s', busy %.0f %% "
                 "of its time: %s\n",
                 100 * share, tn_phase_name(s->phase), 100 * busy, s->advice);
}

/* Seconds that the main thread is in one of these; the list ends with TN_PHASES. */
static double main_s(const tn_trace *trace, const tn_phase *phase)
{
    double seconds = 0;
    for (; *phase != TN_PHASES; phase++) {
        seconds += tn_trace_phase_s(trace, "main", *phase);
    }
    return seconds;
}

/* What the time of steps goes to, when nothing outside of them is to blame. */
static void say_work(const tn_trace *trace, const tn_effort *e, tn_text *out)
{
    static const tn_phase table[] = {TN_PHASE_PULL, TN_PHASE_ROW_GRADS, TN_PHASE_PUSH_ROWS,
                                     TN_PHASES};
    static const tn_phase net[] = {TN_PHASE_FORWARD, TN_PHASE_BACKWARD, TN_PHASE_LOSS, TN_PHASES};
    double rows = main_s(trace, table) / e->seconds;
    double graph = main_s(trace, net) / e->seconds;
    double peak = e->rows_per_s * e->flops / (e->peak.gflops * 1e9);
    if (graph >= rows) {
        tn_text_addf(out,
                     "the net bounds the run: %.0f %% of the steps' time is forward and "
                     "backward, and %.0f %% of the multiply-add peak is reached\n",
                     100 * graph, 100 * peak);
    } else {
        tn_text_addf(out,
                     "the table bounds the run: %.0f %% of the steps' time is pulling and "
                     "pushing rows, %.0f %% the net\n",
                     100 * rows, 100 * graph);
    }
}

void tn_bound_text(const tn_trace *trace, const tn_effort *e, tn_text *out)
{
    double run = tn_trace_seconds(trace);
    double data = tn_trace_phase_s(trace, "main", TN_PHASE_WAIT_DATA) / run;
    double eval = tn_trace_phase_s(trace, "main", TN_PHASE_EVALUATE) / run;
    double save = tn_trace_phase_s(trace, "main", TN_PHASE_CHECKPOINT) / run;
    double team = tn_trace_phase_s(trace, "main", TN_PHASE_WAIT_TEAM) / run;
    double most = fmax(fmax(data, eval), fmax(save, team));
    if (data >= WAITS && data >= most) {
        say_waits(trace, data, out);
    } else if (eval >= PAUSES && eval >= most) {
        tn_text_addf(out, "evaluations take %.0f %% of the time: a larger eval.every\n",
                     100 * eval);
    } else if (save >= PAUSES && save >= most) {
        tn_text_addf(out, "checkpoints take %.0f %% of the time: a larger checkpoint.every\n",
                     100 * save);
    } else if (team >= UNEVEN && team >= most) {
        tn_text_addf(out,
                     "threads wait %.0f %% of the time for each other: a larger train.batch, or "
                     "fewer train.threads than there are free processors\n",
                     100 * team);
    } else {
        say_work(trace, e, out);
    }
}
