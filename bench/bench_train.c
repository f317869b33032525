/* bench_train.c - P1, P2, P3: rows per second of whole training steps, beside the FLOP limit.
 *
 *     bench_train CONFIG SECONDS MODE [--profile[=FILE]] [key=value ..]
 *
 *     file     steps as a run makes them: read, parse, localize, pull, forward, backward, push,
 *              metrics
 *     memory   the parsed rows of the first 400 batches stay in memory; all else is the same
 *
 * Warm-up is a fifth of the time, and in memory one pass over the batches, which creates the rows
 * of all keys: the programs that we compare with have a table of all keys before their clock runs.
 * The rate of that pass is printed too (first_pass_rows_per_s), for a table that grows.
 *
 * Then prints one JSON line: rows_per_s over the whole time, the median, least and largest of ten
 * windows, FLOPs of a row, the peak of one core measured in the same run and the share of it that
 * is reached. Nothing is gated. With --profile it first prints what every thread's time went to;
 * FILE takes the latest spans, for ui.perfetto.dev.
 */
#include "base/clock.h"
#include "base/number.h"
#include "base/peak.h"
#include "base/threads.h"
#include "io/format.h"
#include "nn/plan.h"
#include "train/config.h"
#include "train/evaluate.h"
#include "train/feeder.h"
#include "train/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOWS = 10, BATCHES_MAX = 400 };

typedef struct bench {
    tn_arena *arena;
    tn_diag diag;
    tn_run run;
    const tn_blueprint *plan;
    tn_worker *worker;
    tn_metrics *metrics;
    double seconds;
    bool memory;
    tn_profile *profile;    /* NULL: not asked for */
    const char *trace_path; /* NULL: no file */
} bench;

static void check(tn_status status, const tn_error *err)
{
    if (status != TN_OK) {
        (void)fprintf(stderr, "bench_train: %s\n", err->text);
        exit(1); // NOLINT(concurrency-mt-unsafe): a program of one thread so far
    }
}

static const char *format_preset(const char *name)
{
    const tn_format *f = tn_format_find(name);
    return f != NULL ? f->preset : NULL;
}

/* --profile or --profile=FILE */
static bool take_profile(bench *b, const char *arg)
{
    static const char option[] = "--profile";
    size_t size = sizeof option - 1;
    if (strncmp(arg, option, size) != 0 || (arg[size] != '\0' && arg[size] != '=')) {
        return false;
    }
    tn_error err = {0};
    check(tn_profile_open(&b->profile, &err), &err);
    b->trace_path = arg[size] == '=' ? arg + size + 1 : NULL;
    return true;
}

static void set_up(bench *b, int argc, char **argv)
{
    static const tn_presets presets = {.format = format_preset, .model = tn_model_preset};
    b->arena = tn_arena_new(1 << 18);
    tn_binder binder = {.arena = b->arena, .diag = &b->diag};
    const char **overrides = TN_NEW_ARRAY(b->arena, const char *, (size_t)argc);
    uint32_t n = 0;
    for (int i = 4; i < argc; i++) {
        if (!take_profile(b, argv[i])) {
            overrides[n++] = argv[i];
        }
    }
    tn_config_in in = {.fields = tn_run_fields,
                       .presets = &presets,
                       .path = argv[1],
                       .overrides = overrides,
                       .n_overrides = n};
    tn_error err = {0};
    const tn_tree *tree = tn_config_load(&in, b->arena, &b->diag);
    if (tree != NULL) {
        tn_run_bind(&binder, tree, &b->run);
    }
    (void)fputs(tn_text_str(&b->diag.text), stderr);
    check(tn_diag_check(&b->diag, &err), &err);
    check(tn_blueprint_new(&b->plan, &b->run, &binder, &err), &err);
    check(tn_worker_new(&b->worker, b->plan, &(tn_worker_opts){.training = true}, &binder, &err),
          &err);
    tn_metrics_opts metrics = tn_metrics_opts_of(&b->run, b->plan->schema);
    check(tn_metrics_new(&b->metrics, &metrics, &err), &err);
}

static void learn(bench *b, tn_step *step)
{
    tn_error err = {0};
    tn_learned learned;
    tn_lane *lane = b->worker->lane;
    check(tn_step_learn(b->worker, step, 1, &learned, &err), &err);
    tn_span_begin(lane, TN_PHASE_METRICS);
    tn_scored rows = {.n = step->batch->rows,
                      .logit = b->worker->train_logit->val,
                      .label = step->batch->label,
                      .weight = step->batch->weight};
    check(tn_metrics_add(b->metrics, &rows, &err), &err);
    tn_span_end(lane);
    tn_lane_step(lane, b->worker->steps);
}

static tn_status next_step(const bench *b, tn_feeder *feeder, tn_step **out, tn_error *err)
{
    tn_span_begin(b->worker->lane, TN_PHASE_WAIT_DATA);
    tn_status status = tn_feeder_next(feeder, out, err);
    tn_span_end(b->worker->lane);
    return status;
}

static void prepare(const bench *b, tn_step *step, tn_batch *batch)
{
    tn_error err = {0};
    tn_span_begin(b->worker->lane, TN_PHASE_LOCALIZE);
    check(tn_step_prepare(step, batch, &err), &err);
    tn_span_end(b->worker->lane);
}

/* Rows of one pass over the file, until `until`. */
static uint64_t pass_file(bench *b, uint32_t epoch, double until)
{
    tn_reader_opts opts = {.paths = b->run.data.train,
                           .batch_rows = b->run.train.batch,
                           .training = true,
                           .seed = b->run.run.seed,
                           .from = {.epoch = epoch},
                           .prefetch = b->run.train.prefetch,
                           .trace = b->worker->trace};
    tn_feeder *feeder = NULL;
    tn_step *step = NULL;
    tn_error err = {0};
    uint64_t rows = 0;
    check(tn_feeder_open(&feeder, b->plan, &opts, b->run.train.prefetch, &err), &err);
    while (tn_clock_s() < until && next_step(b, feeder, &step, &err) == TN_OK) {
        learn(b, step);
        rows += step->batch->rows;
        tn_feeder_recycle(feeder, step);
    }
    tn_feeder_close(feeder);
    return rows;
}

typedef struct memory {
    tn_reader *reader;
    tn_batch *batch[BATCHES_MAX];
    uint32_t n, next;
    tn_step *step;
} memory;

static void load_memory(bench *b, memory *m)
{
    tn_reader_opts opts = {.paths = b->run.data.train,
                           .batch_rows = b->run.train.batch,
                           .training = true,
                           .seed = b->run.run.seed,
                           .prefetch = BATCHES_MAX};
    tn_error err = {0};
    check(tn_reader_open(&m->reader, b->plan->schema, &opts, &err), &err);
    check(tn_step_new(&m->step, b->plan, true, &err), &err);
    while (m->n < BATCHES_MAX && tn_reader_next(m->reader, &m->batch[m->n], &err) == TN_OK) {
        m->n += m->batch[m->n]->rows == b->run.train.batch; /* whole ones only */
    }
}

static uint64_t pass_memory(bench *b, memory *m, double until)
{
    uint64_t rows = 0;
    while (tn_clock_s() < until) {
        prepare(b, m->step, m->batch[m->next]);
        m->next = (m->next + 1) % m->n;
        learn(b, m->step);
        rows += b->run.train.batch;
    }
    return rows;
}

/* Every batch once; rows per second. */
static double first_pass(bench *b, memory *m)
{
    double from = tn_clock_s();
    for (uint32_t i = 0; i < m->n; i++) {
        prepare(b, m->step, m->batch[i]);
        learn(b, m->step);
    }
    return (double)m->n * b->run.train.batch / (tn_clock_s() - from);
}

/* Rows per second of each of `n` windows; *all over the whole time. */
static double run_windows(bench *b, memory *m, double seconds, uint32_t n, double *rate)
{
    uint32_t epoch = 0;
    uint64_t all = 0;
    double begin = tn_clock_s();
    for (uint32_t i = 0; i < n; i++) {
        double from = tn_clock_s();
        double until = from + seconds / n;
        uint64_t rows = 0;
        while (tn_clock_s() < until) {
            rows += b->memory ? pass_memory(b, m, until) : pass_file(b, epoch++, until);
        }
        rate[i] = (double)rows / (tn_clock_s() - from);
        all += rows;
    }
    return (double)all / (tn_clock_s() - begin);
}

static int ascending(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* When all threads have left. */
static void show_profile(const bench *b)
{
    if (b->profile == NULL) {
        return;
    }
    tn_error err = {0};
    tn_text text = {0};
    check(tn_profile_text(b->profile, &text, &err), &err);
    (void)fputs(tn_text_str(&text), stdout);
    tn_text_done(&text);
    if (b->trace_path != NULL) {
        check(tn_profile_write(b->profile, b->trace_path, &err), &err);
    }
    tn_profile_close(b->profile);
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        (void)fputs("usage: bench_train CONFIG SECONDS file|memory [--profile[=FILE]] "
                    "[key=value ..]\n",
                    stderr);
        return 2;
    }
    tn_flush_denormals();
    static bench b;
    static memory m;
    double rate[WINDOWS];
    b.memory = strcmp(argv[3], "memory") == 0;
    if (tn_read_f64(argv[2], strlen(argv[2]), &b.seconds) != TN_NUM_OK) {
        return 2;
    }
    set_up(&b, argc, argv);
    double first = 0;
    if (b.memory) {
        load_memory(&b, &m);
        first = first_pass(&b, &m);
    }
    (void)run_windows(&b, &m, b.seconds / 5, 1, rate);
    tn_profile_begin(b.profile, b.worker);
    double all = run_windows(&b, &m, b.seconds, b.memory ? WINDOWS : 1, rate);
    tn_profile_end(b.profile, b.worker);
    qsort(rate, b.memory ? WINDOWS : 1, sizeof *rate, ascending);
    double peak = tn_peak_gflops(5);
    tn_cost cost =
        tn_graph_cost(b.worker->train_graph, &(tn_rates){.products = 1e9, .bytes = 1e9}, 1);
    double flops = cost.product_flops / b.run.train.batch;
    uint32_t threads = tn_worker_threads(&b.run);
    (void)printf(
        "{\"rows_per_s\":%.0f,\"median\":%.0f,\"min\":%.0f,\"max\":%.0f,\"threads\":%u,"
        "\"batch\":%u,\"flops_per_row\":%.0f,\"peak_gflops_core\":%.1f,\"limit_rows_per_s\":%.0f,"
        "\"share\":%.3f,\"first_pass_rows_per_s\":%.0f,\"mode\":\"%s\"}\n",
        all, rate[b.memory ? WINDOWS / 2 : 0], rate[0], rate[b.memory ? WINDOWS - 1 : 0], threads,
        b.run.train.batch, flops, peak, peak * 1e9 * threads / flops,
        all * flops / (peak * 1e9 * threads), first, argv[3]);
    tn_step_free(m.step);
    tn_reader_close(m.reader);
    tn_metrics_free(b.metrics);
    tn_worker_free(b.worker);
    show_profile(&b);
    tn_diag_done(&b.diag);
    tn_arena_free(b.arena);
    return 0;
}
