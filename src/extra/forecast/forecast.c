/* forecast.c - measures the pieces of a step, and predicts how they go together. */
#include "extra/forecast/forecast.h"

#include "base/core/arena.h"
#include "base/core/clock.h"
#include "base/core/number.h"
#include "base/math/rng.h"
#include "base/thread/threads.h"
#include "base/trace/trace.h"
#include "io/rows/batch_builder.h"
#include "io/rows/rows.h"
#include "io/schema/schema.h"
#include "nn/graph/op.h"
#include "ps/table/table.h"
#include "train/config/run.h"
#include "train/eval/evaluate.h"
#include "train/report/profile.h"
#include "train/report/step_forecast.h"
#include "train/step/model_plan.h"
#include "train/step/step_prefetch.h"
#include "train/step/worker.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    WINDOW_MAX = 65536,  /* rows of the longest window that is measured */
    HELD_ROWS = 32768,   /* examples that are kept in memory for the measured steps */
    HELD_LEAST = 8,      /* fewest batches that hold them */
    HELD_MAX = 512,      /* most batches that hold them */
    STEPS_LEAST = 8,     /* fewest steps that are measured */
    STEPS_MOST = 4096,   /* most steps that are measured */
    STALL = 4,           /* a wait of so many usual waits means that a window was loaded */
    DRAWN_IDS = 1 << 20, /* different ids of rows that are drawn */
};
#define FRESH_S 0.5  /* seconds of steps that make rows */
#define STEADY_S 0.4 /* seconds of steps that find all rows */
#define RUN_S 1e-7   /* seconds that each thread adds to a run of the team: it looks for tiles */
#define QUIET 1e-3   /* factor of learning rates, so that a batch that comes again stays news */

/* ---- arithmetic ---- */

/* Rows that exist after so many examples: a power law through the two counts. */
static double rows_after(const tn_pace *p, double examples)
{
    double growth = p->keys[0] > 0 ? log2(p->keys[1] / p->keys[0]) : 1;
    double power = fmin(fmax(growth, 0), 1);
    return p->examples > 0 ? p->keys[1] * pow(examples / p->examples, power) : 0;
}

tn_forecast tn_forecast_of(const tn_pace *p)
{
    TN_ASSERT(p->batch > 0 && (!p->reads || p->cpus > 0));
    tn_forecast f = {.bound = "steps"};
    double steps = p->step;
    double all = p->run_examples > 0 ? p->run_examples : p->examples;
    double seen = p->data_examples > 0 ? fmin(p->data_examples, all) : all;
    f.new_rows = all > 0 ? rows_after(p, seen) * p->batch / all : 0;
    double made = f.new_rows * p->new_row;
    f.old = steps;
    f.seconds = steps + made;
    if (!p->reads) {
        return f;
    }
    double shared = (p->step_busy + made + p->hand_out) / p->cpus;
    double together = fmax(fmax(f.seconds, p->hand_out), shared);
    f.bound = together <= f.seconds ? "steps" : together <= p->hand_out ? "reading" : "processors";
    double waits = fmax(0, p->window - p->ahead * together) / fmax(p->batches, 1);
    f.bound = waits > together ? "reading" : f.bound;
    f.old = fmax(fmax(steps, p->hand_out), (p->step_busy + p->hand_out) / p->cpus) + waits;
    f.waits = waits + together - f.seconds;
    f.seconds = together + waits;
    return f;
}

/* ---- batches ---- */

/* Batches in memory, over and over, and steps over them, one after the other. */
typedef struct held {
    tn_worker *w;
    tn_pace *p;
    tn_arena *arena;  /* holds all lists */
    tn_schema schema; /* the reader's: a window that fills in a moment */
    tn_data_opts data;
    tn_reader *reader;        /* lends the batches; NULL: they were drawn */
    tn_batch_builder **drawn; /* n_drawn of them; NULL: they were read */
    uint32_t n_drawn;
    tn_batch **batch;
    uint32_t n, next; /* n: those that steps took */
    tn_metrics *metrics;
    double *time;   /* seconds of each step */
    uint64_t *rows; /* rows of the table after each step */
    uint32_t n_steps;
} held;

static tn_status next_held(void *from, uint64_t until_ns, tn_batch **out, tn_error *err)
{
    (void)until_ns;
    (void)err;
    held *h = from;
    TN_ASSERT(h->n > 0);
    *out = h->batch[h->next++ % h->n];
    return TN_OK;
}

static void keep(void *from, tn_batch *batch)
{
    (void)from;
    (void)batch;
}

static void drop(held *h)
{
    tn_reader_close(h->reader);
    for (uint32_t i = 0; i < h->n_drawn; i++) {
        tn_batch_builder_free(h->drawn[i]);
    }
    h->w->metrics[0] = NULL;
    tn_metrics_free(h->metrics);
    tn_arena_free(h->arena);
}

static uint32_t held_most(const tn_pace *p)
{
    TN_ASSERT(p->batch > 0);
    uint32_t n = HELD_ROWS / p->batch;
    return n < HELD_LEAST ? HELD_LEAST : n > HELD_MAX ? HELD_MAX : n;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The mean of the middle half: what others do on the machine comes in bursts. Sorts. */
static double typical(double *value, uint32_t n)
{
    if (n == 0) {
        return 0;
    }
    qsort(value, n, sizeof *value, ascending);
    double sum = 0;
    const uint32_t out = n / 4;
    for (uint32_t i = out; i < n - out; i++) {
        sum += value[i];
    }
    return sum / (n - 2 * out);
}

/* Finds the pace of reading by the time `gap` before each of n batches, the first since the
 * opening. The second window was loaded in the longest of the others. */
static void take_gaps(tn_pace *p, double *gap, uint32_t n, bool ended)
{
    TN_ASSERT(n > 0);
    uint32_t longest = n > 1 ? 1 : 0;
    for (uint32_t i = 1; i < n; i++) {
        longest = gap[i] > gap[longest] ? i : longest;
    }
    const double first = gap[0];
    const double load = gap[longest];
    const uint32_t before = longest;
    p->hand_out = n > 1 ? typical(gap + 1, n - 1) : first;
    if (ended || n < 2) { /* the data are one window */
        p->window = first;
        p->batches = n;
    } else if (load > STALL * p->hand_out) {
        p->window = load - p->hand_out;
        p->batches = before;
    }
}

/* The first window, and what comes first of the second one. Whole batches are held. */
static tn_status read_head(held *h, double begin, tn_error *err)
{
    tn_pace *p = h->p;
    const uint32_t hold = held_most(p);
    const uint32_t window = (h->data.shuffle + p->batch - 1) / p->batch + HELD_LEAST;
    const uint32_t most = window > 2 * hold ? window : 2 * hold;
    double *gap = TN_NEW_ARRAY(h->arena, double, most);
    tn_status status = TN_OK;
    uint32_t n = 0;
    double before = begin;
    while (status == TN_OK && n < most) {
        tn_batch *batch = NULL;
        status = tn_reader_next(h->reader, &batch, err);
        if (status != TN_OK) {
            break;
        }
        double now = tn_clock_s();
        gap[n++] = now - before;
        before = now;
        if (h->n < hold && (batch->rows == p->batch || h->n == 0)) {
            h->batch[h->n++] = batch;
        } else {
            tn_reader_recycle(h->reader, batch);
        }
    }
    if (n > 0 && (status == TN_OK || status == TN_END)) {
        take_gaps(p, gap, n, status == TN_END);
        p->reads = true;
    }
    return status == TN_END && n > 0 ? TN_OK : status;
}

/* Examples of the whole data, by what the bytes so far hold. */
static void size_data(held *h)
{
    tn_read_counts counts;
    tn_reader_counts(h->reader, &counts);
    double done = (double)tn_reader_done_bytes(h->reader);
    double kept = (double)(counts.records - counts.bad - counts.sampled_out - counts.zero_weight);
    h->p->data_examples = done > 0 ? kept * (double)tn_reader_total_bytes(h->reader) / done : 0;
}

static tn_status read_batches(held *h, tn_error *err)
{
    const tn_run *run = h->w->plan->run;
    h->schema = *h->w->plan->schema;
    h->data = *h->schema.data;
    h->schema.data = &h->data;
    h->data.shuffle = h->data.shuffle < WINDOW_MAX ? h->data.shuffle : WINDOW_MAX;
    const tn_reader_opts opts = {.paths = run->data.train,
                                 .batch_rows = run->train.batch,
                                 .training = true,
                                 .seed = run->run.seed,
                                 .prefetch = run->train.prefetch};
    double begin = tn_clock_s();
    TN_TRY(tn_reader_open(&h->reader, &h->schema, &opts, err));
    tn_status status = read_head(h, begin, err);
    if (status == TN_END) {
        return tn_fail(err, TN_E_DATA, "data.train holds no records");
    }
    TN_TRY(status);
    h->p->batch = h->batch[0]->rows; /* all are this one, where the data are less than a batch */
    size_data(h);
    return TN_OK;
}

/* ---- drawn rows ---- */

/* A value for each slot, small ones more often. */
static tn_status draw_row(const tn_worker *w, tn_rows *rows, uint64_t number, tn_error *err)
{
    const tn_schema *s = w->plan->schema;
    const uint64_t stream = tn_stream2(w->plan->run->run.seed, TN_RNG_GENERATE, number);
    TN_TRY(tn_rows_begin(rows, (size_t)s->n_specs * TN_NUMBER_TEXT_MAX, err));
    rows->row[rows->n].label = (float)(number % 2);
    for (uint32_t i = 0; i < s->n_specs; i++) {
        char text[TN_NUMBER_TEXT_MAX];
        double id = exp(tn_unit(tn_draw(stream, i)) * log(DRAWN_IDS));
        int size = snprintf(text, sizeof text, "%u", (uint32_t)id);
        if (tn_rows_token(rows, &s->spec[i], text, (size_t)size, 1) != TN_FAULT_NONE) {
            return tn_fail(err, TN_E_LIMIT, "no row can be drawn for slot '%s'", s->spec[i].name);
        }
    }
    const tn_slot_spec *spec = NULL;
    return tn_rows_end(rows, &spec) == TN_FAULT_NONE
               ? TN_OK
               : tn_fail(err, TN_E_LIMIT, "no row can be drawn for slot '%s'", spec->name);
}

static tn_status draw_batch(held *h, tn_rows *rows, tn_error *err)
{
    const uint32_t batch = h->p->batch;
    tn_batch_builder *f = NULL;
    TN_TRY(tn_batch_builder_new(&f, h->w->plan->schema, batch, false, err));
    TN_ASSERT(h->n < HELD_MAX);
    h->drawn[h->n_drawn++] = f;
    const uint64_t first = (uint64_t)h->n++ * batch;
    tn_rows_clear(rows);
    for (uint32_t i = 0; i < batch; i++) {
        TN_TRY(draw_row(h->w, rows, first + i, err));
    }
    for (uint32_t i = 0; i < batch; i++) {
        TN_TRY(tn_batch_builder_add(f, rows, i, 0, err));
    }
    TN_TRY(tn_batch_builder_settle(f, err));
    h->batch[h->n - 1] = tn_batch_builder_end(f);
    return TN_OK;
}

static tn_status draw_batches(held *h, tn_error *err)
{
    const uint32_t n = held_most(h->p);
    tn_rows *rows = NULL;
    h->drawn = TN_NEW_ARRAY(h->arena, tn_batch_builder *, n);
    TN_TRY(tn_rows_new(&rows, h->w->plan->schema, 0, err));
    tn_status status = TN_OK;
    while (h->n < n && status == TN_OK) {
        status = draw_batch(h, rows, err);
    }
    tn_rows_free(rows);
    return status;
}

/* ---- steps ---- */

static tn_status one_step(held *h, tn_step_prefetch *feeder, tn_error *err)
{
    tn_step *step = NULL;
    tn_learned learned;
    double begin = tn_clock_s();
    TN_TRY(tn_step_prefetch_next(feeder, &step, err));
    tn_status status = tn_step_learn(h->w, step, QUIET, &learned, err);
    tn_step_prefetch_recycle(feeder, step);
    TN_TRY(status);
    TN_ASSERT(h->n_steps < STEPS_MOST);
    h->rows[h->n_steps] = tn_table_rows(h->w->shard.table);
    h->time[h->n_steps++] = tn_clock_s() - begin;
    return TN_OK;
}

/* At least `least` and at most `most` steps over what is held, for so many seconds. */
static tn_status take_steps(held *h, double seconds, uint32_t most, tn_error *err)
{
    const tn_run *run = h->w->plan->run;
    const tn_step_prefetch_opts opts = {
        .plan = h->w->plan, .team = h->w->team, .ahead = run->train.prefetch, .training = true};
    const tn_batches batches = {next_held, keep, h};
    tn_step_prefetch *feeder = NULL;
    h->next = 0;
    h->n_steps = 0;
    TN_TRY(tn_step_prefetch_over(&feeder, &opts, &batches, err));
    const double end = tn_clock_s() + 1e-9 * (double)tn_timer_ns((uint64_t)(1e9 * seconds));
    tn_status status = TN_OK;
    while (status == TN_OK && h->n_steps < most &&
           (h->n_steps < STEPS_LEAST || tn_clock_s() < end)) {
        status = one_step(h, feeder, err);
    }
    tn_step_prefetch_close(feeder);
    return status;
}

static double busy_s(void)
{
    struct timespec t;
    return clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) == 0
               ? (double)t.tv_sec + 1e-9 * (double)t.tv_nsec
               : 0;
}

/* ---- more threads than there are processors ---- */

/* From steps of a team of one: each run of n tiles takes as long as the most tiles of one thread.
 * Keys of batches to come are numbered by threads that find no tile, a batch by one thread; scores
 * are added to metrics likewise. What
 * was traced gives shares of the step alone, which was measured with less that disturbs. */
static void foresee(tn_pace *p, const tn_trace *trace, uint32_t steps, double ahead)
{
    double work = 0;
    double serial = 0;
    double tiles = 0;
    double runs = 0;
    for (uint32_t i = TN_PHASE_LOCALIZE; i <= TN_PHASE_REPORT; i++) {
        const tn_phase phase = (tn_phase)i;
        const tn_tiles_times of = tn_trace_tiles(trace, "main", phase);
        work += tn_trace_phase_s(trace, "main", phase);
        serial += tn_serial_s(trace, phase);
        tiles += of.foreseen;
        runs += (double)of.runs;
    }
    const double numbered = tn_trace_phase_s(trace, "main", TN_PHASE_LOCALIZE) / work;
    const tn_tiles_times pull = tn_trace_tiles(trace, "main", TN_PHASE_PULL);
    p->alone = p->step_busy = p->step;
    p->serial = p->alone * serial / work;
    p->step = p->serial + p->alone * tiles / work + runs / steps * p->threads * RUN_S;
    p->step = fmax(p->step, p->alone * fmax(1.0 / p->threads, numbered / fmin(ahead, p->threads)));
    p->new_row *= pull.seconds > 0 ? pull.foreseen / pull.seconds : 1;
    p->cpus = p->threads;
}

/* Once through the batches, which makes rows, and then over those that were used. The first half of
 * the rows would say too much of what one costs: memory is touched, partitions begin. */
static tn_status pace_steps(held *h, tn_error *err)
{
    tn_pace *p = h->p;
    h->time = TN_NEW_ARRAY(h->arena, double, STEPS_MOST);
    h->rows = TN_NEW_ARRAY(h->arena, uint64_t, STEPS_MOST);
    TN_TRY(take_steps(h, FRESH_S, h->n, err));
    const uint32_t n = h->n_steps;
    TN_ASSERT(n > 0 && n <= STEPS_MOST);
    const uint32_t half = n / 2;
    p->examples = (double)n * p->batch;
    p->keys[0] = (double)h->rows[half > 0 ? half - 1 : 0];
    p->keys[1] = (double)h->rows[n - 1];
    const double made = (p->keys[1] - p->keys[0]) / (n - half);
    const double fresh = typical(h->time + half, n - half);
    h->n = n;
    const double before = busy_s();
    TN_TRY(take_steps(h, STEADY_S, STEPS_MOST, err));
    p->step_busy = (busy_s() - before) / h->n_steps;
    p->step = typical(h->time, h->n_steps);
    p->new_row = made > 0 ? fmax(0, fresh - p->step) / made : 0;
    return TN_OK;
}

/* Once more, with tiles counted. */
static tn_status pace_tiles(held *h, tn_trace *trace, tn_error *err)
{
    tn_worker *w = h->w;
    tn_trace_foresee(trace, h->p->threads);
    tn_trace_begin(trace);
    tn_worker_trace(w, trace);
    TN_TRY(take_steps(h, STEADY_S, STEPS_MOST, err));
    tn_trace_end(trace);
    tn_trace_leave(w->lane);
    w->lane = NULL;
    foresee(h->p, trace, h->n_steps, w->plan->run->train.prefetch);
    return TN_OK;
}

/* Standard input would be gone for the run, and a file may come later. */
static bool has_data(const tn_strs *paths)
{
    bool any = paths->n > 0;
    for (uint32_t i = 0; i < paths->n; i++) {
        const char *path = paths->item[i];
        bool pattern = strpbrk(path, "*?[") != NULL;
        any = any && strcmp(path, "-") != 0 && (pattern || access(path, F_OK) == 0);
    }
    return any;
}

tn_status tn_pace_measure(tn_worker *w, tn_trace *trace, tn_pace *out, tn_error *err)
{
    const tn_run *run = w->plan->run;
    *out = (tn_pace){.batch = run->train.batch,
                     .threads = tn_run_threads(run),
                     .foreseen = trace != NULL,
                     .cpus = tn_cpu_count(),
                     .ahead = 2 * run->train.prefetch};
    const tn_metrics_opts kinds = tn_metrics_opts_of(run);
    held h = {.w = w, .p = out, .arena = tn_arena_new(1 << 16)};
    h.batch = TN_NEW_ARRAY(h.arena, tn_batch *, held_most(out));
    tn_status status = has_data(&run->data.train) ? read_batches(&h, err) : draw_batches(&h, err);
    if (status == TN_OK) {
        status = tn_metrics_new(&h.metrics, &kinds, err);
        w->metrics[0] = h.metrics;
    }
    if (status == TN_OK) {
        status = pace_steps(&h, err);
    }
    if (status == TN_OK && trace != NULL) {
        status = pace_tiles(&h, trace, err);
    }
    drop(&h);
    const double whole = out->data_examples * run->train.epochs;
    const bool cut = run->train.max_steps != TN_UNSET_U64;
    const double steps = cut ? (double)run->train.max_steps * out->batch : whole;
    out->run_examples = whole > 0 ? fmin(steps, whole) : cut ? steps : 0;
    return status;
}

/* ---- a run under way ---- */

static double predict(const tn_paced *p)
{
    const tn_pace pace = {.step = p->computed / (double)(p->n - 1),
                          .reads = true,
                          .window = p->window,
                          .batches = p->batches,
                          .ahead = p->ahead,
                          .batch = p->batch,
                          .cpus = 1};
    return tn_forecast_of(&pace).seconds;
}

/* ---- for people ---- */

void tn_pace_text(const tn_pace *p, tn_text *out)
{
    const tn_forecast f = tn_forecast_of(p);
    const double batch = p->batch;
    if (p->reads) {
        tn_text_addf(out,
                     "reading: %.0f rows/s alone; %.2f ms to hand out a batch, %.2f ms a batch to "
                     "fill a window\n",
                     batch / (p->hand_out + p->window / fmax(p->batches, 1)), p->hand_out * 1e3,
                     p->window / fmax(p->batches, 1) * 1e3);
    } else {
        tn_text_adds(out, "reading: not measured, there is no file to read; rows were drawn\n");
    }
    tn_text_addf(out,
                 "steps: %.2f ms on %u thread%s with the batch in memory; %.0f new rows a step, "
                 "%.0f ns each\n",
                 p->step * 1e3, p->threads, p->threads == 1 ? "" : "s", f.new_rows,
                 p->new_row * 1e9);
    if (p->foreseen) {
        tn_text_addf(out,
                     "foreseen for %u processors from one thread's %.2f ms, of which %.3f ms "
                     "(%.2f %%) are serial; %.1f of %u threads are busy in a step\n",
                     p->cpus, p->alone * 1e3, p->serial * 1e3, 100 * p->serial / p->alone,
                     p->alone / p->step, p->threads);
    }
    tn_text_addf(
        out, "expected step: %.2f ms, %.0f rows/s, bound by %s; %.2f ms once all rows are there\n",
        f.seconds * 1e3, batch / f.seconds, f.bound, f.old * 1e3);
}

static tn_status plan(tn_worker *w, tn_trace *trace, tn_text *out, tn_error *err)
{
    tn_pace pace;
    TN_TRY(tn_pace_measure(w, trace, &pace, err));
    tn_pace_text(&pace, out);
    return TN_OK;
}

extern const tn_forecast_kind tn_forecast_kind_forecast;
const tn_forecast_kind tn_forecast_kind_forecast = {.plan = plan, .predict = predict};
