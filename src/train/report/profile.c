/* profile.c - records what threads did, and says what bounds a run, in a table and a sentence. */
#include "train/report/profile.h"

#include "base/core/alloc.h"
#include "nn/passes/plan.h"
#include "train/config/run.h"
#include "train/step/model_plan.h"
#include "train/step/worker.h"

#include <math.h>

/* ---- what bounds a run: the largest share of the main thread's time ---- */

double tn_effort_limit(const tn_effort *w)
{
    TN_ASSERT(w->peak.gflops > 0 && w->peak.bytes > 0);
    return 1 / fmax(w->flops / (w->peak.gflops * 1e9), w->bytes / w->peak.bytes);
}

/* Shares of the time from which on a line is worth printing. */
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
        double of = busy / (tn_trace_phase_s(trace, stages[i].lanes, TN_PHASES) + 1e-9);
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

/* Says where the time of steps goes, when nothing outside of them is the cause. */
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

/* ---- what more threads would have no part in ---- */

/* Phases of a step that helpers do as a whole: keys of batches to come, and scores. */
static bool is_aside(tn_phase phase)
{
    return phase == TN_PHASE_LOCALIZE || phase == TN_PHASE_METRICS;
}

double tn_serial_s(const tn_trace *trace, tn_phase phase)
{
    TN_ASSERT(phase >= TN_PHASE_LOCALIZE && phase <= TN_PHASE_REPORT);
    if (is_aside(phase)) {
        return 0;
    }
    double tiles = tn_trace_tiles(trace, "main", phase).seconds;
    return fmax(0, tn_trace_phase_s(trace, "main", phase) - tiles);
}

/* The phases that have most of it, for a bracket. */
static void say_phases(const tn_trace *trace, double work, tn_text *out)
{
    const char *before = " (";
    for (uint32_t i = TN_PHASE_LOCALIZE; i <= TN_PHASE_REPORT; i++) {
        double share = tn_serial_s(trace, (tn_phase)i) / work;
        if (share >= 0.0005) {
            tn_text_addf(out, "%s%s %.2f", before, tn_phase_name((tn_phase)i), 100 * share);
            before = ", ";
        }
    }
    tn_text_adds(out, before[0] == ',' ? ")" : "");
}

/* One line: the serial share of the work of all threads in steps. */
static void serial_text(const tn_trace *trace, tn_text *out)
{
    double serial = 0;
    double work = 0;
    for (uint32_t i = TN_PHASE_LOCALIZE; i <= TN_PHASE_REPORT; i++) {
        const tn_phase phase = (tn_phase)i;
        work += tn_trace_phase_s(trace, "main", phase) + tn_trace_phase_s(trace, "team", phase);
        serial += tn_serial_s(trace, phase);
    }
    if (work > 0) {
        tn_text_addf(
            out, "serial: %.2f %% of the work of steps is done by one thread whatever their number",
            100 * serial / work);
        say_phases(trace, work, out);
        tn_text_addf(out, "\n");
    }
}

/* ---- the profile ---- */

#define MEASURED_S 0.2

struct tn_profile {
    tn_trace *trace;
    bool begun, ended;
    bool trained; /* else it scored */
    uint64_t rows, rows_before;
    tn_effort effort;
};

tn_status tn_profile_open(tn_profile **out, tn_error *err)
{
    *out = NULL;
    tn_profile *p = NULL;
    TN_TRY(TN_ALLOC(p, 1, "a profile", err));
    tn_status status = tn_trace_open(&p->trace, TN_TRACE_SPANS, err);
    if (status != TN_OK) {
        tn_free(p);
        return status;
    }
    *out = p;
    return TN_OK;
}

void tn_profile_close(tn_profile *p)
{
    if (p != NULL) {
        tn_trace_close(p->trace);
        tn_free(p);
    }
}

void tn_profile_begin(tn_profile *p, tn_worker *w)
{
    if (p == NULL) {
        return;
    }
    TN_ASSERT(!p->begun);
    p->begun = true;
    p->rows_before = w->rows;
    tn_trace_begin(p->trace);
    tn_worker_trace(w, p->trace);
}

/* Bytes that a row moves: what the graph's own loops touch, and the rows of its keys: read from the
 * table, written beside the batch and gathered; their gradients written, summed and read; the row
 * and its state read and written again. */
static double bytes_of_row(const tn_worker *w, const tn_cost *cost, bool training)
{
    TN_ASSERT(w->rows + w->scored > 0);
    enum { TIMES = 3, TIMES_TRAINING = 8, KEY_BYTES = TN_CACHE_LINE };
    const tn_run *run = w->plan->run;
    double rows = (double)(w->rows + w->scored);
    double floats = (double)w->floats / rows;
    double keys = (double)w->keys / rows;
    return cost->bytes / (training ? run->train.batch : run->eval.batch) +
           floats * sizeof(float) * (training ? TIMES_TRAINING : TIMES) +
           keys * KEY_BYTES * (training ? 2 : 1);
}

void tn_profile_end(tn_profile *p, const tn_worker *w)
{
    if (p == NULL || w == NULL || !p->begun) {
        return;
    }
    TN_ASSERT(!p->ended);
    tn_trace_end(p->trace);
    p->ended = true;
    p->trained = w->rows > p->rows_before;
    p->rows = p->trained ? w->rows - p->rows_before : w->scored;
    p->effort.threads = tn_run_threads(w->plan->run);
    if (p->rows > 0) {
        tn_cost cost = tn_graph_cost(p->trained ? w->train_graph : w->eval_graph);
        const tn_run *run = w->plan->run;
        uint32_t batch = p->trained ? run->train.batch : run->eval.batch;
        p->effort.flops = (cost.product_flops + cost.other_flops) / batch;
        p->effort.bytes = bytes_of_row(w, &cost, p->trained);
    }
}

/* Seconds of steps: without evaluations, checkpoints and what is between steps. */
static double step_seconds(const tn_profile *p)
{
    double seconds = 0;
    for (uint32_t i = 0; i < TN_PHASES; i++) {
        bool step = i != TN_PHASE_EVALUATE && i != TN_PHASE_CHECKPOINT;
        seconds += step ? tn_trace_phase_s(p->trace, "main", (tn_phase)i) : 0;
    }
    return seconds;
}

static void add_totals(const tn_profile *p, const tn_effort *w, tn_text *out)
{
    double run = tn_trace_seconds(p->trace);
    tn_text_addf(out, "\n%llu rows in %.2f s: %.0f rows/s", (unsigned long long)p->rows, run,
                 (double)p->rows / run);
    tn_text_addf(out, "; %.2f s of them in steps: %.0f rows/s\n", w->seconds, w->rows_per_s);
    tn_text_addf(out,
                 "%.1f kFLOP a row: %.1f GFLOP/s, %.1f %% of the multiply-add peak, %.1f GFLOP/s "
                 "on %u thread%s (%s)\n",
                 w->flops * 1e-3, w->rows_per_s * w->flops * 1e-9,
                 100 * w->rows_per_s * w->flops * 1e-9 / w->peak.gflops, w->peak.gflops, w->threads,
                 w->threads == 1 ? "" : "s", tn_peak_kind());
    double limit = tn_effort_limit(w);
    tn_text_addf(out,
                 "about %.1f kB a row: %.2f GB/s of %.1f; the roofline is %.0f rows/s by %s: "
                 "%.1f %% of it\n",
                 w->bytes * 1e-3, w->rows_per_s * w->bytes * 1e-9, w->peak.bytes * 1e-9, limit,
                 w->flops / (w->peak.gflops * 1e9) >= w->bytes / w->peak.bytes ? "FLOPs" : "memory",
                 100 * w->rows_per_s / limit);
}

bool tn_profile_ended(const tn_profile *p)
{
    return p->ended;
}

tn_status tn_profile_text(const tn_profile *p, tn_text *out, tn_error *err)
{
    TN_ASSERT(p->ended);
    tn_effort effort = p->effort;
    TN_TRY(tn_peaks_measure(effort.threads, MEASURED_S, &effort.peak, err));
    tn_trace_table(p->trace, out);
    TN_TRY(tn_trace_nodes(p->trace, out, err));
    effort.seconds = step_seconds(p);
    if (p->rows > 0 && effort.seconds > 0) {
        effort.rows_per_s = (double)p->rows / effort.seconds;
        add_totals(p, &effort, out);
        serial_text(p->trace, out);
        tn_bound_text(p->trace, &effort, out);
    }
    return tn_text_check(out, "a profile", err);
}

tn_status tn_profile_write(const tn_profile *p, const char *path, tn_error *err)
{
    TN_ASSERT(p->ended);
    return tn_trace_write(p->trace, path, err);
}
