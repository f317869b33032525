/* bench_train.c - rows per second of whole training steps, beside the FLOP limit.
 *
 *     bench_train CONFIG SECONDS file|memory|score [--profile[=FILE]] [key=value ..]
 *
 *     file     steps as a run makes them: read, parse, localize, pull, forward, backward, push,
 *              metrics
 *     memory   the parsed rows of the first 400 batches stay in memory; all else is the same
 *     score    the same rows, forward and metrics only
 *
 * Warm-up is a fifth of the time, and in memory one pass over the batches, which creates the rows
 * of all keys: the programs that we compare with have a table of all keys before their clock runs.
 * The rate of that pass is printed too (first_pass_rows_per_s), for a table that grows.
 *
 * Then prints one JSON line: rows_per_s over the whole time, the median, least and largest of ten
 * windows, FLOPs of a row, the peak of one core measured in the same run, the share of it that is
 * reached, processor time, memory and the time to the first step, and `others`, the cores that
 * other programs took meanwhile: above .08 it is measured again, up to three times, and the least
 * disturbed try counts. Nothing is gated. With --profile
 * it first prints what every thread's time went to; FILE takes the latest spans, for
 * ui.perfetto.dev. Figures beside their targets: bench_rates.
 */
#include "base/core/clock.h"
#include "base/core/number.h"
#include "base/machine/machine_peak.h"
#include "base/thread/threads.h"
#include "figure.h"
#include "machine.h"
#include "rig.h"
#include "train/report/profile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOWS = 10, BATCHES = 400, TRIES = 4 };
#define QUIET .08 /* of a core for others: a measurement that they disturb more is made again */

static void check(tn_status status, const tn_error *err)
{
    if (status != TN_OK) {
        (void)fprintf(stderr, "bench_train: %s\n", err->text);
        exit(1); // NOLINT(concurrency-mt-unsafe): the main thread
    }
}

/* Takes --profile or --profile=FILE out of the arguments; NULL: there is none. */
static tn_profile *take_profile(int *argc, char **argv, const char **path)
{
    static const char option[] = "--profile";
    const size_t size = sizeof option - 1;
    tn_profile *p = NULL;
    for (int i = 1; i < *argc; i++) {
        const char *word = argv[i];
        if (p == NULL && strncmp(word, option, size) == 0 &&
            (word[size] == '\0' || word[size] == '=')) {
            tn_error err = {0};
            check(tn_profile_open(&p, &err), &err);
            *path = word[size] == '=' ? word + size + 1 : NULL;
            memmove(argv + i, argv + i + 1, (size_t)(*argc - i) * sizeof *argv);
            --*argc;
            i--;
        }
    }
    return p;
}

/* When all threads have left. */
static void show_profile(tn_profile *p, const char *path)
{
    if (p == NULL) {
        return;
    }
    tn_error err = {0};
    tn_text text = {0};
    check(tn_profile_text(p, &text, &err), &err);
    (void)fputs(tn_text_str(&text), stdout);
    tn_text_done(&text);
    if (path != NULL) {
        check(tn_profile_write(p, path, &err), &err);
    }
    tn_profile_close(p);
}

/* What one try measured. */
typedef struct turn {
    tn_spread windows; /* rows per second */
    double rate;       /* over all of them */
    double cpu_per_mrow;
    double others; /* cores that other programs took meanwhile */
} turn;

typedef double train_fn(tn_rig *rig, double seconds);

static turn try_once(tn_rig *rig, train_fn *train, double seconds)
{
    static tn_samples rate;
    rate.n = 0;
    double rows = 0;
    const double from = tn_clock_s();
    const double cpu = tn_machine_cpu_s();
    const double busy = tn_machine_busy_s();
    for (int i = 0; i < WINDOWS; i++) {
        double start = tn_clock_s();
        double now = train(rig, seconds / WINDOWS);
        tn_sample(&rate, now);
        rows += now * (tn_clock_s() - start);
    }
    const double took = tn_clock_s() - from;
    const double own = tn_machine_cpu_s() - cpu;
    return (turn){.windows = tn_spread_of(&rate),
                  .rate = rows / took,
                  .cpu_per_mrow = own * 1e6 / rows,
                  .others = fmax(0, (tn_machine_busy_s() - busy - own) / took)};
}

/* The first try that others leave alone, else the one that they disturb least. A profile is of one
 * try, whatever happens. */
static turn measure(tn_rig *rig, train_fn *train, double seconds, bool once)
{
    turn best = try_once(rig, train, seconds);
    for (int i = 1; i < TRIES && best.others > QUIET && !once; i++) {
        turn now = try_once(rig, train, seconds);
        best = now.others < best.others ? now : best;
    }
    return best;
}

int main(int argc, char **argv)
{
    const char *trace_path = NULL;
    tn_profile *profile = take_profile(&argc, argv, &trace_path);
    double began = tn_clock_s();
    double seconds = 0;
    if (argc < 4 || tn_read_f64(argv[2], strlen(argv[2]), &seconds) != TN_NUM_OK) {
        (void)fputs("usage: bench_train CONFIG SECONDS file|memory|score [--profile[=FILE]] "
                    "[key=value ..]\n",
                    stderr);
        return 2;
    }
    tn_flush_denormals();
    static tn_rig rig;
    bool memory = strcmp(argv[3], "file") != 0;
    train_fn *train = memory ? tn_rig_train_memory : tn_rig_train_file;
    double first = 0;
    tn_rig_open(&rig, argv[1], (uint32_t)argc - 4, (const char *const *)argv + 4);
    if (memory) {
        tn_rig_load(&rig, BATCHES);
    }
    (void)train(&rig, 0);
    double first_step_s = tn_clock_s() - began;
    if (memory) {
        first = tn_rig_warm(&rig);
    }
    if (strcmp(argv[3], "score") == 0) {
        train = tn_rig_score_memory;
        (void)train(&rig, 0); /* loads its rows */
    }
    (void)train(&rig, seconds / 5);
    tn_profile_begin(profile, rig.worker);
    const turn t = measure(&rig, train, seconds, profile != NULL);
    tn_profile_end(profile, rig.worker);
    double rss = tn_machine_rss_mb();
    double peak = tn_peak_gflops(5);
    double flops = tn_rig_flops(&rig);
    uint32_t threads = tn_run_threads(&rig.run);
    (void)printf(
        "{\"rows_per_s\":%.0f,\"median\":%.0f,\"min\":%.0f,\"max\":%.0f,\"threads\":%u,"
        "\"batch\":%u,\"flops_per_row\":%.0f,\"peak_gflops_core\":%.1f,\"limit_rows_per_s\":%.0f,"
        "\"share\":%.3f,\"first_pass_rows_per_s\":%.0f,\"cpu_s_per_mrow\":%.2f,\"rss_mb\":%.0f,"
        "\"first_step_s\":%.2f,\"others\":%.3f,\"mode\":\"%s\"}\n",
        t.rate, t.windows.median, t.windows.least, t.windows.most, threads, rig.run.train.batch,
        flops, peak, peak * 1e9 * threads / flops, t.rate * flops / (peak * 1e9 * threads), first,
        t.cpu_per_mrow, rss, first_step_s, t.others, argv[3]);
    tn_rig_close(&rig);
    show_profile(profile, trace_path);
    return 0;
}
