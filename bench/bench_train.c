/* bench_train.c - rows per second of whole training steps, beside the FLOP limit.
 *
 *     bench_train CONFIG SECONDS file|memory|both|score [--profile[=FILE]] [key=value ..]
 *
 *     file     steps as a run makes them: read, parse, shuffle, localize, pull, forward, backward,
 *              push, metrics
 *     memory   the parsed rows of the first 400 batches stay in memory; all else is the same
 *     both     memory, then the same from the file
 *     score    rows in memory, forward and metrics only
 *
 * What CONFIG leaves open, train.batch among it, is chosen as tnet-train chooses it. Warm-up is a
 * fifth of the time, and but for `file` one pass over the batches, which creates the rows of all
 * keys: the programs that we compare with have a table of all keys before their clock runs. The
 * rate of that pass is printed too (first_pass_rows_per_s), for a table that grows.
 *
 * Then prints one JSON line: rows_per_s over the whole time, the median, least and largest of ten
 * windows, what the file gave beside it (`both`), FLOPs of a row, the peak of as many cores as
 * threads before and behind, the share of it that is reached, processor time, memory and the time
 * to the first step, and `others`, the cores that others took meanwhile: a disturbed turn
 * (machine.h) is made again, `again` says how often. Nothing is gated. With --profile
 * it first prints what every thread's time went to; FILE takes the latest spans, for
 * ui.perfetto.dev. Figures beside their targets: bench_rates.
 */
#include "base/core/clock.h"
#include "base/core/number.h"
#include "base/thread/threads.h"
#include "figure.h"
#include "machine.h"
#include "rig.h"
#include "train/report/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOWS = 10, BATCHES = 400, PEAK_MS = 100 };

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

/* What one try measured, and the turn around it. */
typedef struct turn {
    tn_spread windows; /* rows per second */
    double cpu_per_mrow;
    tn_turn whole;
} turn;

static double try_once(tn_rig *rig, tn_rig_rate *train, double seconds, turn *t)
{
    static tn_samples rate;
    rate.n = 0;
    double rows = 0;
    const double from = tn_clock_s();
    const double cpu = tn_machine_cpu_s();
    for (int i = 0; i < WINDOWS; i++) {
        double start = tn_clock_s();
        double now = train(rig, seconds / WINDOWS);
        tn_sample(&rate, now);
        rows += now * (tn_clock_s() - start);
    }
    t->windows = tn_spread_of(&rate);
    t->cpu_per_mrow = (tn_machine_cpu_s() - cpu) * 1e6 / rows;
    return rows / (tn_clock_s() - from);
}

/* A profile is of one try, whatever happens. */
static turn measure(tn_rig *rig, tn_rig_rate *train, double seconds, bool once)
{
    turn best = {0};
    tn_turn now = {0};
    bool again = false;
    do {
        turn t = {0};
        tn_turn_begin(&now);
        again = tn_turn_end(&now, try_once(rig, train, seconds, &t));
        t.whole = now;
        best = now.tries == 1 || now.others < best.whole.others ? t : best;
    } while (again && !once);
    best.whole = now;
    return best;
}

typedef struct report {
    const char *mode;
    turn main, file; /* file: of `both` */
    double peak;     /* GFLOP/s of all threads */
    double first_pass, first_step_s;
} report;

static void print(const report *r, const tn_rig *rig)
{
    const turn *t = &r->main;
    const double flops = tn_rig_flops(rig);
    const double limit = r->peak * 1e9 / flops;
    (void)printf("{\"rows_per_s\":%.0f,\"median\":%.0f,\"min\":%.0f,\"max\":%.0f,", t->whole.rate,
                 t->windows.median, t->windows.least, t->windows.most);
    if (r->file.whole.tries > 0) {
        (void)printf("\"file_rows_per_s\":%.0f,\"file_share\":%.3f,\"file_others\":%.3f,",
                     r->file.whole.rate, r->file.whole.rate / limit, r->file.whole.others);
    }
    (void)printf("\"threads\":%u,\"batch\":%u,\"flops_per_row\":%.0f,\"peak_gflops\":%.1f,"
                 "\"limit_rows_per_s\":%.0f,\"share\":%.3f,\"first_pass_rows_per_s\":%.0f,"
                 "\"again\":%u,\"cpu_s_per_mrow\":%.2f,\"rss_mb\":%.0f,\"first_step_s\":%.2f,"
                 "\"others\":%.3f,\"mode\":\"%s\"}\n",
                 tn_run_threads(&rig->run), rig->run.train.batch, flops, r->peak, limit,
                 t->whole.rate / limit, r->first_pass,
                 t->whole.tries - 1 + (r->file.whole.tries > 1 ? r->file.whole.tries - 1 : 0),
                 t->cpu_per_mrow, tn_machine_rss_mb(), r->first_step_s, t->whole.others, r->mode);
}

/* The whole of the work, the last turns under the profile. */
static void run(tn_rig *rig, report *r, double seconds, tn_profile *profile)
{
    const double began = tn_clock_s();
    const bool from_file = strcmp(r->mode, "file") == 0;
    tn_rig_rate *train = from_file ? tn_rig_train_file : tn_rig_train_memory;
    if (!from_file) {
        tn_rig_load(rig, BATCHES);
    }
    (void)train(rig, 0);
    r->first_step_s += tn_clock_s() - began;
    if (!from_file) {
        r->first_pass = tn_rig_warm(rig);
    }
    if (strcmp(r->mode, "score") == 0) {
        train = tn_rig_score_memory;
    }
    const uint32_t threads = tn_run_threads(&rig->run);
    (void)tn_machine_gflops(threads, PEAK_MS, &r->peak);
    (void)train(rig, seconds / 5);
    tn_profile_begin(profile, rig->worker);
    r->main = measure(rig, train, seconds, profile != NULL);
    if (strcmp(r->mode, "both") == 0) {
        (void)tn_rig_train_file(rig, seconds / 5);
        r->file = measure(rig, tn_rig_train_file, seconds, profile != NULL);
    }
    tn_profile_end(profile, rig->worker);
    (void)tn_machine_gflops(threads, PEAK_MS, &r->peak);
}

int main(int argc, char **argv)
{
    const char *trace_path = NULL;
    tn_profile *profile = take_profile(&argc, argv, &trace_path);
    double began = tn_clock_s();
    double seconds = 0;
    if (argc < 4 || tn_read_f64(argv[2], strlen(argv[2]), &seconds) != TN_NUM_OK) {
        (void)fputs("usage: bench_train CONFIG SECONDS file|memory|both|score [--profile[=FILE]] "
                    "[key=value ..]\n",
                    stderr);
        return 2;
    }
    tn_flush_denormals();
    static tn_rig rig;
    report r = {.mode = argv[3]};
    tn_rig_open(&rig, argv[1], (uint32_t)argc - 4, (const char *const *)argv + 4);
    r.first_step_s = tn_clock_s() - began;
    run(&rig, &r, seconds, profile);
    print(&r, &rig);
    tn_rig_close(&rig);
    show_profile(profile, trace_path);
    return 0;
}
