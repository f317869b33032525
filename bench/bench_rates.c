/* bench_rates.c - P1, P2, P3, P4, P12, P20: rows per second of whole training steps, case by case.
 *
 *     bench_rates [--json] machine                                  which one, and its FMA peak
 *     bench_rates [--json] ROW CONFIG [SECONDS] [key=value ..]      default 1 second a turn
 *
 *     P1, P2    big (400-400-400) and small nets (128-64-32), all cores: share of the FLOP limit
 *               that rows from the file reach, beside those in memory; what the yardsticks reach is
 *               in bench/yardsticks.sh
 *     P3        the same on one core, which reads, too
 *     P4        bf16 products beside fp32 ones, in turns
 *     P12       what the metrics take of a step of the small net
 *     P20       all cores, rows from data.train (a TFRecord file), beside TensorNet's figures
 *
 * A case is a model of its own; turns from the file, from memory and of the FMA peak on as many
 * threads alternate. The limit is the best peak of the run over the FLOPs of a row. All keys have
 * rows before the first turn.
 */
#include "base/core/clock.h"
#include "base/core/number.h"
#include "base/thread/threads.h"
#include "figure.h"
#include "machine.h"
#include "rig.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TURNS = 7, OVERRIDES = 12, WORD = 96, PEAK_MS = 60, BATCHES = 400 };
#define SETTLE_S .1 /* what was read ahead while others had their turn */

typedef struct run_case {
    const char *row;
    const char *model;
    uint32_t dim, batch;
    bool big, all_cores;
    double target; /* of the FLOP limit */
} run_case;

static const run_case cases[] = {
    {"P1", "widedeep", 8, 1024, true, true, .85},   {"P1", "deepfm", 8, 1024, true, true, .85},
    {"P1", "dcn", 8, 1024, true, true, .85},        {"P1", "dcnv2", 8, 1024, true, true, .85},
    {"P1", "widedeep", 16, 1024, true, true, .85},  {"P1", "deepfm", 16, 1024, true, true, .85},
    {"P1", "dcn", 16, 1024, true, true, .85},       {"P1", "dcnv2", 16, 1024, true, true, .85},
    {"P1", "widedeep", 8, 4096, true, true, .85},   {"P1", "dcnv2", 8, 4096, true, true, .85},
    {"P2", "widedeep", 8, 1024, false, true, .58},  {"P2", "deepfm", 8, 1024, false, true, .58},
    {"P2", "dcn", 8, 1024, false, true, .58},       {"P2", "dcnv2", 8, 1024, false, true, .58},
    {"P2", "widedeep", 16, 1024, false, true, .58}, {"P2", "deepfm", 16, 1024, false, true, .58},
    {"P2", "dcn", 16, 1024, false, true, .58},      {"P2", "dcnv2", 16, 1024, false, true, .58},
    {"P2", "widedeep", 8, 4096, false, true, .58},  {"P2", "dcnv2", 8, 4096, false, true, .58},
    {"P3", "widedeep", 8, 1024, true, false, .88},  {"P3", "widedeep", 8, 1024, false, false, .62},
};

/* What the user asked for, and room for the words of a case. */
typedef struct bench {
    const char *config;
    double seconds;
    bool json;
    uint32_t n;
    const char *set[OVERRIDES];
    char word[5][WORD];
} bench;

static const char *hidden(bool big)
{
    return big ? "[400, 400, 400]" : "[128, 64, 32]";
}

/* The case's own settings, then the user's. */
static uint32_t settings(bench *b, const run_case *c, const char *extra,
                         const char *out[OVERRIDES + 6])
{
    (void)snprintf(b->word[0], WORD, "model.type=%s", c->model);
    (void)snprintf(b->word[1], WORD, "embedding.dim=%u", c->dim);
    (void)snprintf(b->word[2], WORD, "train.batch=%u", c->batch);
    (void)snprintf(b->word[3], WORD, "model.hidden=%s", hidden(c->big));
    (void)snprintf(b->word[4], WORD, "train.threads=%u", c->all_cores ? tn_cpu_count() : 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < 5; i++) {
        out[n++] = b->word[i];
    }
    if (extra != NULL) {
        out[n++] = extra;
    }
    for (uint32_t i = 0; i < b->n; i++) {
        out[n++] = b->set[i];
    }
    return n;
}

static void open_case(bench *b, const run_case *c, const char *extra, tn_rig *rig)
{
    const char *set[OVERRIDES + 6];
    uint32_t n = settings(b, c, extra, set);
    tn_rig_open(rig, b->config, n, set);
}

static void load_case(bench *b, const run_case *c, const char *extra, tn_rig *rig)
{
    tn_machine_use_cores(c->all_cores ? 0 : 1);
    open_case(b, c, extra, rig);
    tn_rig_load(rig, BATCHES * 1024 / c->batch);
    (void)tn_rig_warm(rig);
}

static void say(const run_case *c, const char *more, char out[2 * WORD])
{
    (void)snprintf(out, 2 * (size_t)WORD, "%s dim %u %s batch %u, %s%s", c->model, c->dim,
                   c->big ? "400x3" : "128-64-32", c->batch,
                   c->all_cores ? "all cores" : "one core", more);
}

static void print_share(const bench *b, const run_case *c, tn_rig *rig)
{
    static tn_samples file;
    static tn_samples memory;
    file.n = memory.n = 0;
    char what[2 * WORD];
    char beside[WORD];
    double best = 0;
    for (int i = 0; i < TURNS; i++) {
        (void)tn_machine_gflops(tn_run_threads(&rig->run), PEAK_MS, &best);
        tn_sample(&memory, 1e-3 * tn_rig_turn(rig, tn_rig_train_memory, b->seconds).rate);
        (void)tn_rig_train_file(rig, SETTLE_S);
        tn_sample(&file, 1e-3 * tn_rig_turn(rig, tn_rig_train_file, b->seconds).rate);
    }
    const double limit = best * 1e6 / tn_rig_flops(rig);
    const tn_spread is = tn_spread_of(&memory);
    say(c, ", from a file", what);
    (void)snprintf(beside, WORD, "from memory [%.1f %.1f], %.3f of the limit", is.least, is.most,
                   is.median / limit);
    tn_figure_print(&(tn_figure){.row = c->row,
                                 .what = what,
                                 .unit = "k rows/s",
                                 .is = tn_spread_of(&file),
                                 .limit = limit,
                                 .limit_is = "FMA peak of this run over FLOPs of a row",
                                 .yardstick = is.median,
                                 .yardstick_is = beside,
                                 .target = c->target,
                                 .aim = TN_AIM_LIMIT},
                    b->json);
}

static void run_shares(bench *b, const char *row)
{
    static tn_rig rig;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (strcmp(cases[i].row, row) == 0) {
            load_case(b, &cases[i], NULL, &rig);
            print_share(b, &cases[i], &rig);
            tn_rig_close(&rig);
        }
    }
}

static void run_bf16(bench *b)
{
    static tn_rig fp32;
    static tn_rig bf16;
    static tn_samples ours;
    static tn_samples other;
    const run_case c = {"P4", "widedeep", 8, 1024, true, false, 1.6};
    char what[2 * WORD];
    if (!__builtin_cpu_supports("avx512bf16")) {
        (void)puts(b->json ? "{\"row\":\"P4\",\"met\":null,\"what\":\"not on this CPU\"}"
                           : "P4   not on this CPU");
        return;
    }
    load_case(b, &c, "compute.bf16=false", &fp32);
    load_case(b, &c, "compute.bf16=true", &bf16);
    for (int i = 0; i < TURNS; i++) {
        tn_sample(&other, tn_rig_turn(&fp32, tn_rig_train_memory, b->seconds).rate);
        tn_sample(&ours, tn_rig_turn(&bf16, tn_rig_train_memory, b->seconds).rate);
    }
    say(&c, ", bf16", what);
    tn_figure_print(&(tn_figure){.row = "P4",
                                 .what = what,
                                 .unit = "k rows/s",
                                 .is = tn_spread_scaled(tn_spread_of(&ours), 1e-3),
                                 .yardstick = tn_spread_of(&other).median * 1e-3,
                                 .yardstick_is = "our fp32",
                                 .target = c.target,
                                 .aim = TN_AIM_YARDSTICK},
                    b->json);
    tn_rig_close(&fp32);
    tn_rig_close(&bf16);
}

/* Of the time of training, in %. */
static double metrics_share(tn_rig *rig, double seconds)
{
    const double before = rig->metrics_s;
    const double from = tn_clock_s();
    (void)tn_rig_train_memory(rig, seconds);
    return 100 * (rig->metrics_s - before) / (tn_clock_s() - from);
}

static void run_metrics(bench *b)
{
    static tn_rig rig;
    static tn_samples share;
    const run_case c = {"P12", "widedeep", 8, 1024, false, false, 1};
    char what[2 * WORD];
    load_case(b, &c, NULL, &rig);
    for (int i = 0; i < TURNS; i++) {
        tn_sample(&share, tn_rig_turn(&rig, metrics_share, b->seconds).rate);
    }
    say(&c, ": metrics", what);
    tn_figure_print(&(tn_figure){.row = "P12",
                                 .what = what,
                                 .unit = "% of a step",
                                 .is = tn_spread_of(&share),
                                 .target = c.target,
                                 .at_most = true},
                    b->json);
    tn_rig_close(&rig);
}

/* TensorNet's own figures, two ranks, rows from TFRecord, of another machine: the one place where
 * it ran. */
#define THEIR_MACHINE "2 cores of a Zen 3, 100 GFLOP/s each"

static void run_tensornet(bench *b)
{
    static tn_rig rig;
    static tn_samples rate;
    static const struct {
        run_case c;
        double theirs;
    } row[] = {{{"P20", "widedeep", 8, 1024, true, true, 4.5}, 17.4},
               {{"P20", "widedeep", 8, 1024, false, true, 15}, 25.6},
               {{"P20", "widedeep", 8, 32, false, true, 35}, 2.7}};
    const double their_mb = 2600;
    char what[2 * WORD];
    char on[WORD];
    double rss = 0;
    double peak = 0;
    (void)tn_machine_gflops(tn_cpu_count(), 5 * PEAK_MS, &peak);
    (void)snprintf(on, sizeof on, ", from TFRecord, %u cores of %.40s, %.0f GFLOP/s",
                   tn_cpu_count(), tn_machine_name(), peak);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        open_case(b, &row[i].c, NULL, &rig);
        (void)tn_rig_train_file(&rig, 3 * b->seconds); /* most of the keys */
        rss = i == 1 ? tn_machine_rss_mb() : rss;
        rate.n = 0;
        for (int k = 0; k < TURNS; k++) {
            tn_sample(&rate, 1e-3 * tn_rig_turn(&rig, tn_rig_train_file, b->seconds).rate);
        }
        tn_rig_close(&rig);
        say(&row[i].c, on, what);
        tn_figure_print(&(tn_figure){.row = "P20",
                                     .what = what,
                                     .unit = "k rows/s",
                                     .is = tn_spread_of(&rate),
                                     .yardstick = row[i].theirs,
                                     .yardstick_is = "TensorNet, two ranks, on " THEIR_MACHINE,
                                     .target = row[i].c.target,
                                     .aim = TN_AIM_YARDSTICK},
                        b->json);
    }
    tn_figure_print(&(tn_figure){.row = "P20",
                                 .what = "memory of those runs",
                                 .unit = "MB",
                                 .is = tn_spread_one(rss),
                                 .yardstick = their_mb,
                                 .yardstick_is = "TensorNet, one rank, on " THEIR_MACHINE,
                                 .target = .1,
                                 .aim = TN_AIM_YARDSTICK,
                                 .at_most = true},
                    b->json);
}

int main(int argc, char **argv)
{
    static bench b = {.seconds = 1};
    b.json = tn_json_wanted(&argc, argv);
    if (argc == 2 && strcmp(argv[1], "machine") == 0) {
        tn_machine_print(b.json);
        return 0;
    }
    if (argc < 3) {
        (void)fputs("usage: bench_rates [--json] machine\n"
                    "       bench_rates [--json] P1|P2|P3|P4|P12|P20 CONFIG [SECONDS] "
                    "[key=value ..]\n",
                    stderr);
        return 2;
    }
    tn_flush_denormals();
    b.config = argv[2];
    int at = 3;
    if (argc > 3 && tn_read_f64(argv[3], strlen(argv[3]), &b.seconds) == TN_NUM_OK) {
        at++;
    }
    while (at < argc && b.n < OVERRIDES) {
        b.set[b.n++] = argv[at++];
    }
    const char *row = argv[1];
    if (strcmp(row, "P4") == 0) {
        run_bf16(&b);
    } else if (strcmp(row, "P12") == 0) {
        run_metrics(&b);
    } else if (strcmp(row, "P20") == 0) {
        run_tensornet(&b);
    } else {
        run_shares(&b, row);
    }
    return 0;
}
