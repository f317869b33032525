/* bench_turns.c - P5, P11, P16: two ways of running one net, in turns, and the ratio of the two.
 *
 *     bench_turns [--json] P5|P11|P16 CONFIG [SECONDS] [key=value ..]      default 1 second a turn
 *
 *     P5     one thread on one core and all of them: how much of the FMA peak, measured before each
 *            turn on as many threads, one thread keeps up and all keep up; from a file, and from
 *            memory
 *     P11    rows read from the file by a run's own threads, and rows that are in memory
 *     P16    scoring (forward and metrics), and training
 *
 * A ratio is of two neighbouring turns, since what a shared machine gives changes by the minute;
 * the median of those ratios is shown.
 */
#include "base/core/error.h"
#include "base/core/number.h"
#include "base/thread/threads.h"
#include "figure.h"
#include "machine.h"
#include "rig.h"

#include <stdio.h>
#include <string.h>

enum { TURNS = 9, OVERRIDES = 12, WORD = 96, PEAK_MS = 100, BATCHES = 400 };
#define SETTLE_S .1 /* what was read ahead while the other had its turn */

typedef struct bench {
    const char *row, *config;
    double seconds;
    bool json;
    uint32_t n;
    const char *set[OVERRIDES];
} bench;

static void load(const bench *b, bool big, uint32_t threads, tn_rig *rig)
{
    const char *set[OVERRIDES + 2];
    char word[WORD];
    (void)snprintf(word, WORD, "train.threads=%u", threads);
    set[0] = word;
    set[1] = big ? "model.hidden=[400, 400, 400]" : "model.hidden=[128, 64, 32]";
    memcpy(set + 2, b->set, b->n * sizeof *set);
    tn_rig_open(rig, b->config, b->n + 2, set);
    tn_rig_load(rig, BATCHES);
    (void)tn_rig_warm(rig);
}

static void say(bool big, const char *more, uint32_t threads, char out[2 * WORD])
{
    (void)snprintf(out, 2 * (size_t)WORD, "%s net, %s%s", big ? "big" : "small", more,
                   threads == 0   ? ""
                   : threads == 1 ? ", one core"
                                  : ", all cores");
}

/* Rows per second over the peak of that moment on as many threads; *most: the best rate so far. */
static double share(tn_rig *rig, tn_rig_rate *train, uint32_t cores, double seconds, double *most)
{
    tn_machine_use_cores(cores);
    const double peak = tn_machine_gflops(cores, PEAK_MS, NULL);
    if (train == tn_rig_train_file) {
        (void)train(rig, SETTLE_S);
    }
    const double rate = tn_rig_turn(rig, train, seconds).rate;
    *most = rate > *most ? rate : *most;
    return rate / peak;
}

static void scaling(const bench *b, bool big)
{
    static tn_rig one;
    static tn_rig all;
    static tn_rig_rate *const train[2] = {tn_rig_train_file, tn_rig_train_memory};
    static tn_samples kept[2]; /* from a file, from memory */
    uint32_t cores = tn_cpu_count();
    char what[2 * WORD];
    char rates[WORD];
    char beside[WORD];
    double best[2][2] = {{0}};
    tn_machine_use_cores(1);
    load(b, big, 1, &one);
    tn_machine_use_cores(0);
    load(b, big, cores, &all);
    kept[0].n = kept[1].n = 0;
    for (int i = 0; i < 2 * TURNS; i++) {
        const int m = i % 2;
        double alone = share(&one, train[m], 1, b->seconds, &best[m][0]);
        tn_sample(&kept[m], 100 * share(&all, train[m], cores, b->seconds, &best[m][1]) / alone);
    }
    (void)snprintf(rates, WORD, "1 -> %u threads, from a file: best %.1f k, %.1f k rows/s", cores,
                   best[0][0] * 1e-3, best[0][1] * 1e-3);
    const tn_spread memory = tn_spread_of(&kept[1]);
    (void)snprintf(beside, WORD, "%% from memory [%.0f %.0f], best %.1f k, %.1f k", memory.least,
                   memory.most, best[1][0] * 1e-3, best[1][1] * 1e-3);
    say(big, rates, 0, what);
    double target = cores <= 2 ? (big ? 95 : 88) : (big ? 90 : 75);
    tn_figure_print(&(tn_figure){.row = "P5",
                                 .what = what,
                                 .unit = "% kept of what the peak gains",
                                 .is = tn_spread_of(&kept[0]),
                                 .yardstick = memory.median,
                                 .yardstick_is = beside,
                                 .target = target},
                    b->json);
    tn_rig_close(&one);
    tn_rig_close(&all);
}

static void reading(const bench *b, bool big, uint32_t threads)
{
    static tn_rig rig;
    static tn_samples ratio;
    static tn_samples memory;
    char what[2 * WORD];
    ratio.n = 0;
    memory.n = 0;
    load(b, big, threads, &rig);
    for (int i = 0; i < TURNS; i++) {
        double from_memory = tn_rig_turn(&rig, tn_rig_train_memory, b->seconds).rate;
        (void)tn_rig_train_file(&rig, SETTLE_S);
        double from_file = tn_rig_turn(&rig, tn_rig_train_file, b->seconds).rate;
        tn_sample(&memory, from_memory * 1e-3);
        tn_sample(&ratio, 100 * from_file / from_memory);
    }
    say(big, "rate with rows from the file", threads, what);
    bool spare = threads < tn_cpu_count();
    tn_figure_print(
        &(tn_figure){.row = "P11",
                     .what = what,
                     .unit = "% of that from memory",
                     .is = tn_spread_of(&ratio),
                     .yardstick = tn_spread_of(&memory).median,
                     .yardstick_is = spare ? "k rows/s from memory"
                                           : "k rows/s from memory; no core to spare for readers",
                     .target = 97},
        b->json);
    tn_rig_close(&rig);
}

static void scoring(const bench *b, bool big, uint32_t threads)
{
    static tn_rig rig;
    static tn_samples ratio;
    static tn_samples training;
    char what[2 * WORD];
    ratio.n = 0;
    training.n = 0;
    load(b, big, threads, &rig);
    (void)tn_rig_score_memory(&rig, 0); /* loads its rows */
    for (int i = 0; i < TURNS; i++) {
        double trained = tn_rig_turn(&rig, tn_rig_train_memory, b->seconds).rate;
        double scored = tn_rig_turn(&rig, tn_rig_score_memory, b->seconds).rate;
        tn_sample(&training, trained * 1e-3);
        tn_sample(&ratio, scored / trained);
    }
    say(big, "rate of evaluation", threads, what);
    tn_figure_print(&(tn_figure){.row = "P16",
                                 .what = what,
                                 .unit = "x that of training",
                                 .is = tn_spread_of(&ratio),
                                 .yardstick = tn_spread_of(&training).median,
                                 .yardstick_is = "k rows/s of training",
                                 .target = 2.8},
                    b->json);
    tn_rig_close(&rig);
}

static bool run(const bench *b)
{
    TN_ASSERT(b->row != NULL);
    for (int k = 0; k < 4; k++) {
        bool big = k % 2 == 0;
        uint32_t threads = k < 2 ? 1 : tn_cpu_count();
        if (k >= 2 && threads == 1) {
            continue;
        }
        if (strcmp(b->row, "P11") == 0) {
            reading(b, big, threads);
        } else if (strcmp(b->row, "P16") == 0) {
            scoring(b, big, threads);
        } else if (strcmp(b->row, "P5") != 0) {
            return false;
        } else if (k < 2) {
            scaling(b, big);
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    static bench b = {.seconds = 1};
    b.json = tn_json_wanted(&argc, argv);
    tn_flush_denormals();
    if (argc > 2) {
        b.row = argv[1];
        b.config = argv[2];
        int at = 3;
        if (argc > 3 && tn_read_f64(argv[3], strlen(argv[3]), &b.seconds) == TN_NUM_OK) {
            at++;
        }
        while (at < argc && b.n < OVERRIDES) {
            b.set[b.n++] = argv[at++];
        }
        if (run(&b)) {
            return 0;
        }
    }
    (void)fputs("usage: bench_turns [--json] P5|P11|P16 CONFIG [SECONDS] [key=value ..]\n", stderr);
    return 2;
}
