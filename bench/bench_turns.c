/* bench_turns.c - P5, P11, P16: two ways of running one net, in turns, and the ratio of the two.
 *
 *     bench_turns [--json] P5|P11|P16 CONFIG [SECONDS] [key=value ..]      default 1 second a turn
 *
 *     P5     one thread and all of them: how much of the FMA peak, measured before each turn on as
 *            many threads, one thread keeps up and all keep up
 *     P11    rows read from the file by a run's own threads, and rows that are in memory
 *     P16    scoring (forward and metrics), and training; both per second of processor time
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

static void scaling(const bench *b, bool big)
{
    static tn_rig one;
    static tn_rig all;
    static tn_samples kept;
    static tn_samples peaks;
    uint32_t cores = tn_cpu_count();
    char what[2 * WORD];
    char rates[WORD];
    double best[2] = {0};
    kept.n = 0;
    peaks.n = 0;
    load(b, big, 1, &one);
    load(b, big, cores, &all);
    for (int i = 0; i < TURNS; i++) {
        double peak_one = tn_machine_gflops(1, PEAK_MS);
        double rate_one = tn_rig_train_memory(&one, b->seconds);
        double peak_all = tn_machine_gflops(cores, PEAK_MS);
        double rate_all = tn_rig_train_memory(&all, b->seconds);
        tn_sample(&kept, 100 * (rate_all / peak_all) / (rate_one / peak_one));
        tn_sample(&peaks, peak_all / peak_one);
        best[0] = rate_one > best[0] ? rate_one : best[0];
        best[1] = rate_all > best[1] ? rate_all : best[1];
    }
    (void)snprintf(rates, WORD, "1 -> %u threads: best %.1f k, %.1f k rows/s", cores,
                   best[0] * 1e-3, best[1] * 1e-3);
    say(big, rates, 0, what);
    double target = cores <= 2 ? (big ? 95 : 88) : (big ? 90 : 75);
    tn_figure_print(&(tn_figure){.row = "P5",
                                 .what = what,
                                 .unit = "% kept",
                                 .is = tn_spread_of(&kept),
                                 .limit = 100 * tn_spread_of(&peaks).median / cores,
                                 .limit_is = "% of the peak that each core keeps with all at work",
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
    const double settle = .1; /* what was read ahead while the other had its turn */
    char what[2 * WORD];
    ratio.n = 0;
    memory.n = 0;
    load(b, big, threads, &rig);
    for (int i = 0; i < TURNS; i++) {
        double from_memory = tn_rig_train_memory(&rig, b->seconds);
        (void)tn_rig_train_file(&rig, settle);
        double from_file = tn_rig_train_file(&rig, b->seconds);
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
        tn_lap lap = tn_lap_begin();
        double trained = tn_lap_per_cpu(lap, tn_rig_train_memory(&rig, b->seconds));
        lap = tn_lap_begin();
        double scored = tn_lap_per_cpu(lap, tn_rig_score_memory(&rig, b->seconds));
        tn_sample(&training, trained * 1e-3);
        tn_sample(&ratio, scored / trained);
    }
    say(big, "rate of evaluation", threads, what);
    tn_figure_print(&(tn_figure){.row = "P16",
                                 .what = what,
                                 .unit = "x that of training",
                                 .is = tn_spread_of(&ratio),
                                 .yardstick = tn_spread_of(&training).median,
                                 .yardstick_is = "k rows of training, per second of processor time",
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
