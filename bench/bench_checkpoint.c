/* bench_checkpoint.c - P13, P14, P17: full and delta checkpoints, what they cost the training, and
 * the export of a large table.
 *
 *     bench_checkpoint [--json] [--rows N] [--dir PATH] [key=value ..]       from the top folder
 *
 * Wide & Deep of bench/configs/speed.yaml (hidden 128-64-32 unless overridden) on batches that stay
 * in memory, in a table of N rows (default 10 M), most of which training never meets. Per turn:
 *
 *     disk     as many bytes as a full checkpoint has, by plain write and fsync: the limit
 *     alone    a full checkpoint while nothing else runs
 *     steps    training for as long as that took
 *     beside   a full checkpoint while training goes on: time, stall, rate
 *     delta    after as many steps as touch about 1 % of the rows
 *     export   all rows as a dictionary (P17; bench_dict has its writer alone), by one thread and
 * by as many as there are processors load     the full one, from the page cache, by one thread and
 * by as many as processors
 *
 * A stall is the longest step during the save beside the median one. Everything is measured in one
 * run, in turns; medians with [least, largest]. Nothing is gated.
 */
#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/core/number.h"
#include "base/math/key.h"
#include "base/thread/team.h"
#include "base/thread/threads.h"
#include "ckptrun.h"
#include "machine.h"
#include "train/export/exportrows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TURNS = 3, DEFAULT_ROWS = 10000000 };

typedef struct series {
    double x[TURNS];
} series;

static int ascending(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;
    return *x < *y ? -1 : *x > *y;
}

static double median_of(double *x, uint32_t n)
{
    qsort(x, n, sizeof *x, ascending);
    return n > 0 ? x[n / 2] : 0;
}

static double plain_write(const tn_bench_run *b, uint64_t bytes)
{
    enum { PIECE = 1 << 20 };
    char path[TN_PATH_SIZE];
    tn_error err = {0};
    tn_bench_check(tn_path_join(b->dir, "plain", path, &err), &err);
    char *piece = tn_alloc(1, PIECE, "a piece");
    for (uint64_t i = 0; i < PIECE / sizeof(uint64_t); i++) {
        uint64_t word = tn_mix(i);
        memcpy(piece + i * sizeof word, &word, sizeof word);
    }
    double begin = tn_clock_s();
    FILE *f = fopen(path, "w");
    bool good = f != NULL;
    for (uint64_t at = 0; good && at < bytes; at += PIECE) {
        good = write(fileno(f), piece, PIECE) == PIECE;
    }
    good = good && fsync(fileno(f)) == 0;
    double seconds = tn_clock_s() - begin;
    if (!good) {
        perror(path);
        exit(1); // NOLINT(concurrency-mt-unsafe): as above
    }
    (void)fclose(f);
    (void)unlink(path);
    tn_free(piece);
    return seconds;
}

static tn_saved save(tn_bench_run *b, bool delta)
{
    tn_error err = {0};
    tn_saved saved;
    tn_ckpt_want want = {.state = &b->state, .metrics = b->metrics, .delta = delta};
    tn_bench_check(tn_checkpoints_begin(b->checkpoints, b->worker, &want, &err), &err);
    tn_bench_check(tn_checkpoints_end(b->checkpoints, &saved, &err), &err);
    return saved;
}

/* How many of the last steps were kept. */
static uint32_t timed(const tn_bench_run *b)
{
    return b->n_steps < TN_BENCH_STEPS_MAX ? b->n_steps : TN_BENCH_STEPS_MAX;
}

/* Mean seconds of a step for as long as `seconds`. */
static double steps(tn_bench_run *b, double seconds)
{
    double begin = tn_clock_s();
    b->n_steps = 0;
    while (tn_clock_s() - begin < seconds || b->n_steps < 10) {
        tn_bench_run_learn(b);
    }
    return (tn_clock_s() - begin) / b->n_steps;
}

/* The same while a full checkpoint is written; *stall: the longest step and the taking of the
 * moment, less a median step. */
static double beside(tn_bench_run *b, tn_saved *saved, double *stall)
{
    tn_error err = {0};
    tn_ckpt_want want = {.state = &b->state, .metrics = b->metrics};
    b->n_steps = 0;
    double begin = tn_clock_s();
    tn_bench_check(tn_checkpoints_begin(b->checkpoints, b->worker, &want, &err), &err);
    double taken = tn_clock_s() - begin;
    tn_bench_run_learn(b);
    double first = b->step_s[0] + taken; /* the gap from the last step before to the first after */
    while (!tn_checkpoints_written(b->checkpoints)) {
        tn_bench_run_learn(b);
    }
    double mean = (tn_clock_s() - begin) / b->n_steps;
    tn_bench_check(tn_checkpoints_end(b->checkpoints, saved, &err), &err);
    uint32_t n = timed(b);
    double median = median_of(b->step_s, n);
    double longest = first;
    for (uint32_t i = 0; i < n; i++) {
        longest = b->step_s[i] > longest ? b->step_s[i] : longest;
    }
    *stall = longest - median;
    return mean;
}

/* By `team` instead of the worker's own. */
static double load(tn_bench_run *b, tn_team *team, const char *name)
{
    char path[TN_PATH_SIZE];
    tn_error err = {0};
    tn_saved which;
    tn_team *own = b->worker->team;
    b->worker->team = team;
    tn_bench_check(tn_path_join(b->dir, name, path, &err), &err);
    tn_table_clear(b->worker->shard.table);
    double begin = tn_clock_s();
    tn_bench_check(tn_checkpoint_load(path, b->worker, &which, &err), &err);
    b->worker->team = own;
    return tn_clock_s() - begin;
}

/* All rows of the table as a dictionary; GB per second, by the clock and of processor time. */
static void export(tn_bench_run *b, tn_team *team, double *clock, double *cpu)
{
    char path[TN_PATH_SIZE];
    tn_error err = {0};
    tn_export_done done;
    const tn_export_rows rows = {.plan = b->plan,
                                 .table = b->worker->shard.table,
                                 .team = team,
                                 .model_id = "00000000000000000000000000000000"};
    tn_bench_check(tn_path_join(b->dir, "dict.tnd", path, &err), &err);
    double begin = tn_clock_s();
    double busy = tn_machine_cpu_s();
    tn_bench_check(tn_export_dict(&rows, path, &done, &err), &err);
    *clock = 1e-9 * (double)done.bytes / (tn_clock_s() - begin);
    *cpu = 1e-9 * (double)done.bytes / (tn_machine_cpu_s() - busy);
    tn_bench_check(tn_remove_file(path, &err), &err);
}

static void print(bool json, const char *row, const char *what, series s, const char *unit,
                  const char *target)
{
    double median = median_of(s.x, TURNS);
    (void)printf(json ? "{\"row\":\"%s\",\"what\":\"%s\",\"median\":%.4g,\"min\":%.4g,\"max\":%.4g,"
                        "\"unit\":\"%s\",\"target\":\"%s\"}\n"
                      : "%-4s %-44s %9.4g [%.4g %.4g] %-7s target %s\n",
                 row, what, median, s.x[0], s.x[TURNS - 1], unit, target);
}

typedef struct figures {
    series disk, alone, share, beside, beside_share, slower, stall, load, load_one;
    series delta_rows, delta_bytes, delta_time, delta_ms, dict, dict_one, dict_cpu;
} figures;

static void turn(tn_bench_run *b, tn_team *all, uint32_t i, figures *f)
{
    tn_saved full = save(b, false);
    double mb = (double)full.bytes / 1e6;
    double disk = plain_write(b, full.bytes);
    full = save(b, false);
    f->disk.x[i] = mb / disk;
    f->alone.x[i] = mb / full.seconds;
    f->share.x[i] = disk / full.seconds;
    (void)steps(b, 1);
    double mean = steps(b, full.seconds);
    tn_saved busy;
    double during = beside(b, &busy, &f->stall.x[i]);
    double after = steps(b, full.seconds);
    f->stall.x[i] *= 1e3;
    f->beside.x[i] = mb / busy.seconds;
    f->beside_share.x[i] = disk / busy.seconds;
    f->slower.x[i] = 100 * (during / ((mean + after) / 2) - 1);
    full = save(b, false);
    uint64_t rows = tn_table_rows(b->worker->shard.table);
    for (uint64_t touched = 0; touched < rows / 100; touched += b->step->local->keys.n) {
        tn_bench_run_learn(b);
    }
    tn_saved delta = save(b, true);
    f->delta_rows.x[i] = 100 * (double)delta.written / (double)delta.rows;
    f->delta_bytes.x[i] = 100 * (double)delta.bytes / (double)full.bytes;
    f->delta_time.x[i] = 100 * delta.seconds / full.seconds;
    f->delta_ms.x[i] = 1e3 * delta.seconds;
    export(b, NULL, &f->dict_one.x[i], &f->dict_cpu.x[i]);
    export(b, all, &f->dict.x[i], &f->dict_cpu.x[i]);
    full = save(b, false);
    f->load_one.x[i] = mb / 1e3 / load(b, NULL, full.name);
    f->load.x[i] = mb / 1e3 / load(b, all, full.name);
}

static void run(tn_bench_run *b, bool json)
{
    static figures f;
    tn_error err = {0};
    tn_team *all = NULL;
    tn_bench_check(tn_team_open(&all, tn_cpu_count(), &err), &err);
    for (uint32_t i = 0; i < TURNS; i++) {
        turn(b, all, i, &f);
    }
    tn_team_close(all);
    print(json, "P13", "disk: plain write and fsync of as many bytes", f.disk, "MB/s", "-");
    print(json, "P13", "full checkpoint alone", f.alone, "MB/s", "-");
    print(json, "P13", "the same, share of the disk", f.share, "", ">= .8");
    print(json, "P13", "full checkpoint beside training", f.beside, "MB/s", "-");
    print(json, "P13", "stall: longest step less the median one", f.stall, "ms", "<= 50");
    print(json, "P13", "training meanwhile slower by", f.slower, "%", "<= 5");
    print(json, "P13", "the same, share of the disk", f.beside_share, "", ">= .8");
    print(json, "P13", "load from the page cache, all processors", f.load, "GB/s", ">= 1");
    print(json, "P13", "load from the page cache, one thread", f.load_one, "GB/s", "-");
    print(json, "P14", "delta: rows that were touched", f.delta_rows, "%", "1");
    print(json, "P14", "delta: bytes, share of the full one", f.delta_bytes, "%", "<= 2");
    print(json, "P14", "delta: time, share of the full one", f.delta_time, "%", "<= 2");
    print(json, "P14", "delta: time", f.delta_ms, "ms", "-");
    print(json, "P17", "dictionary of the table's rows, all processors", f.dict, "GB/s", ">= 1");
    print(json, "P17", "the same, one thread", f.dict_one, "GB/s", "-");
    print(json, "P17", "the same, of processor time", f.dict_cpu, "GB/s", ">= 1");
}

int main(int argc, char **argv)
{
    static tn_bench_run b;
    bool json = false;
    uint64_t rows = DEFAULT_ROWS;
    const char *dir = "/tmp";
    int i = 1;
    tn_error err = {0};
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            json = true;
        } else if (strcmp(argv[i], "--rows") == 0 && i + 1 < argc &&
                   tn_read_u64(argv[i + 1], strlen(argv[i + 1]), &rows) == TN_NUM_OK) {
            i++;
        } else if (strcmp(argv[i], "--dir") == 0 && i + 1 < argc) {
            dir = argv[++i];
        } else {
            (void)fputs("usage: bench_checkpoint [--json] [--rows N] [--dir PATH] [key=value ..]\n",
                        stderr);
            return 2;
        }
    }
    (void)snprintf(b.dir, sizeof b.dir, "%s/bench_checkpoint.%d", dir, (int)getpid());
    tn_bench_check(tn_dir_make(b.dir, &err), &err);
    tn_bench_check(tn_path_join(b.dir, "train.svm", b.data, &err), &err);
    tn_bench_run_open(&b, rows, (uint32_t)(argc - i), argv + i);
    (void)steps(&b, 1);
    run(&b, json);
    tn_bench_run_close(&b);
    tn_bench_check(tn_remove_tree(b.dir, &err), &err);
    return 0;
}
