/* bench_checkpoint.c - P13, P14, P17: full and delta checkpoints, what they cost the training, and
 * the export of a large table.
 *
 *     bench_checkpoint [--json] [--rows N] [--dir PATH] [key=value ..]       from the top folder
 *
 * Wide & Deep of bench/configs/speed.yaml (hidden 128-64-32 and one thread unless overridden) on
 * batches that stay in memory, in a table of N rows (default 10 M), most of which training never
 * meets. Per turn:
 *
 *     disk     as many bytes as a full checkpoint has, before the next two and behind them: plain
 *              writes that the disk is told to begin every 8 MB, as a checkpoint's are, and fsync;
 *              the better of two in a row, since the first may wait for the memory that the system
 *              gives it. The fastest of the run is the limit, the median what a share is of
 *     alone    a full checkpoint while nothing else runs
 *     steps    training for as long as that took
 *     beside   a full checkpoint while training goes on: time, stall, rate
 *     delta    after as many steps as touch about 1 % of the rows
 *     export   all rows as a dictionary (P17; bench_dict has its writer alone), by one thread and
 *              by as many as there are processors
 *     load     the full one, from the page cache, by one thread and by as many as processors
 *
 * A stall is the longest step during the save beside the median one. Steps and loads are turns that
 * are made again when disturbed (machine.h); a disk's work is done by the system, which would count
 * as others. Nothing is gated.
 */
#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/core/number.h"
#include "base/file/file.h"
#include "base/keys/record.h"
#include "base/math/key.h"
#include "base/math/rng.h"
#include "base/thread/team.h"
#include "base/thread/threads.h"
#include "figure.h"
#include "machine.h"
#include "ps/table/table.h"
#include "rig.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/run_state.h"
#include "train/export/exportrows.h"
#include "train/step/model_plan.h"
#include "train/step/watch.h"
#include "train/step/worker.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TURNS = 3, DEFAULT_ROWS = 10000000, BATCH = 1024, BATCHES = 60, SLOTS = 39, OVERRIDES = 32 };

typedef struct bench {
    tn_rig rig;
    tn_checkpoints *checkpoints;
    tn_run_state state;
    tn_samples step_ms; /* since it was emptied */
    char data[TN_PATH_SIZE];
    char dir[TN_PATH_SIZE];
} bench;

static void check(tn_status status, const tn_error *err)
{
    if (status != TN_OK) {
        (void)fprintf(stderr, "bench_checkpoint: %s\n", err->text);
        exit(1); // NOLINT(concurrency-mt-unsafe): nothing else matters then
    }
}

/* ---- the run ---- */

/* Ids as speed.yaml has them: 13 small slots, 26 of 38,411 ids. */
static void write_data(const char *path)
{
    FILE *f = fopen(path, "w");
    if (f == NULL) {
        perror(path);
        exit(1); // NOLINT(concurrency-mt-unsafe): as above
    }
    uint64_t stream = tn_stream2(1, TN_RNG_ROW, 0);
    for (uint64_t row = 0; row < (uint64_t)BATCHES * BATCH; row++) {
        (void)fprintf(f, "%u", (unsigned)(row % 4 == 0));
        for (uint64_t s = 0; s < SLOTS; s++) {
            uint64_t size = s < 13 ? 100 : 38411;
            uint64_t first = s < 13 ? 1 + 100 * s : 1301 + 38411 * (s - 13);
            uint64_t id = first + tn_below(tn_draw(stream, row * SLOTS + s), size);
            (void)fprintf(f, " %llu:1", (unsigned long long)id);
        }
        (void)fputc('\n', f);
    }
    (void)fclose(f);
}

/* Rows that training does not meet. */
static void fill_table(bench *b, uint64_t rows)
{
    float data[TN_DIM_MAX] = {0};
    tn_error err = {0};
    const tn_layout *layout = b->rig.plan->layout;
    const tn_record *record = tn_record_of(layout, 0);
    tn_row_view view = {.present = (uint16_t)((1U << record->n_segments) - 1), .data = data};
    for (uint32_t s = 0; s < record->n_segments; s++) {
        tn_place_in_row place =
            tn_table_place(b->rig.worker->shard.table, layout->group[0].record, s);
        view.n_floats += record->segment[s].dim;
        for (uint32_t i = 0; i < place.n_states; i++) {
            view.n_floats += place.spec[i].per_row ? 1 : record->segment[s].dim;
        }
    }
    TN_ASSERT(view.n_floats > 0);
    for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
        tn_refill r;
        tn_refill_begin(&r, b->rig.worker->shard.table, p);
        for (uint64_t i = 0; i < rows / TN_PARTITIONS; i++) {
            view.key = (uint64_t)p << 54 | (tn_mix(i + 1) >> 10);
            // cppcheck-suppress unreadVariable // through view.data
            data[i % view.n_floats] = (float)(view.key & 0xffff) * 1e-5F;
            check(tn_refill_add(&r, &view, &err), &err);
        }
        tn_refill_end(&r);
    }
}

static void open_run(bench *b, uint64_t rows, int n_more, char *const *more)
{
    static const tn_run_text text = {
        .config = "bench\n",
        .hash = "0000000000000000000000000000000000000000000000000000000000000000"};
    char train[TN_PATH_SIZE + 16];
    char dir[TN_PATH_SIZE + 16];
    const char *set[OVERRIDES] = {train,
                                  dir,
                                  "model.hidden=[128, 64, 32]",
                                  "train.threads=1",
                                  "checkpoint.delta_every=1step",
                                  "checkpoint.keep=1"};
    uint32_t n = 6;
    tn_error err = {0};
    (void)snprintf(train, sizeof train, "data.train=%s", b->data);
    (void)snprintf(dir, sizeof dir, "run.dir=%s", b->dir);
    for (int i = 0; i < n_more && n < OVERRIDES; i++) {
        set[n++] = more[i];
    }
    write_data(b->data);
    tn_rig_open(&b->rig, "bench/configs/speed.yaml", n, set);
    tn_rig_load(&b->rig, BATCHES);
    check(tn_checkpoints_open(&b->checkpoints, b->rig.plan, &text, &err), &err);
    b->state.data = tn_epoch_parts_of(b->rig.learned.reader, NULL, b->rig.arena);
    fill_table(b, rows);
}

static void learn(bench *b)
{
    double begin = tn_clock_s();
    (void)tn_rig_train_memory(&b->rig, 0); /* one step */
    tn_sample(&b->step_ms, 1e3 * (tn_clock_s() - begin));
    b->state.steps = b->rig.worker->steps;
    b->state.samples += BATCH;
}

/* ---- what is measured ---- */

/* Seconds of writing as many bytes. */
static double write_once(const bench *b, uint64_t bytes)
{
    enum { PIECE = 1 << 20, PIECES = 64, AT_ONCE = 8 << 20 };
    char path[TN_PATH_SIZE];
    tn_error err = {0};
    check(tn_path_join(b->dir, "plain", path, &err), &err);
    char *piece = tn_alloc(PIECES, PIECE, "pieces of a file");
    for (uint64_t i = 0; i < PIECES * (uint64_t)PIECE / sizeof(uint64_t); i++) {
        uint64_t word = tn_mix(i);
        memcpy(piece + i * sizeof word, &word, sizeof word);
    }
    double begin = tn_clock_s();
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    bool good = fd >= 0;
    for (uint64_t at = 0; good && at < bytes; at += PIECE) {
        good = write(fd, piece + at % (PIECES * (uint64_t)PIECE), PIECE) == PIECE;
        if ((at + PIECE) % AT_ONCE == 0) {
            (void)sync_file_range(fd, (off_t)(at + PIECE - AT_ONCE), AT_ONCE,
                                  SYNC_FILE_RANGE_WRITE);
        }
    }
    good = good && fsync(fd) == 0;
    double seconds = tn_clock_s() - begin;
    if (!good) {
        perror(path);
        exit(1); // NOLINT(concurrency-mt-unsafe): as above
    }
    (void)close(fd);
    (void)unlink(path);
    tn_free(piece);
    return seconds;
}

static double plain_write(const bench *b, uint64_t bytes)
{
    const double first = write_once(b, bytes);
    return fmin(first, write_once(b, bytes));
}

static tn_saved save(bench *b, bool delta)
{
    tn_error err = {0};
    tn_saved saved;
    tn_ckpt_want want = {.state = &b->state, .metrics = b->rig.metrics, .delta = delta};
    check(tn_checkpoints_begin(b->checkpoints, b->rig.worker, &want, &err), &err);
    check(tn_checkpoints_end(b->checkpoints, &saved, &err), &err);
    return saved;
}

/* Steps a second for as long as `seconds`, at least ten steps. */
static double steps(bench *b, double seconds)
{
    tn_turn t = {0};
    do {
        tn_turn_begin(&t);
        b->step_ms.n = 0;
        while (tn_clock_s() - t.wall < seconds || b->step_ms.n < 10) {
            learn(b);
        }
    } while (tn_turn_end(&t, b->step_ms.n / (tn_clock_s() - t.wall)));
    return t.rate;
}

/* The same while a full checkpoint is written; *stall: the longest step and the taking of the
 * moment, less a median step, in ms. */
static double beside(bench *b, tn_saved *saved, double *stall)
{
    tn_error err = {0};
    tn_ckpt_want want = {.state = &b->state, .metrics = b->rig.metrics};
    b->step_ms.n = 0;
    double begin = tn_clock_s();
    check(tn_checkpoints_begin(b->checkpoints, b->rig.worker, &want, &err), &err);
    double taken = tn_clock_s() - begin;
    learn(b);
    b->step_ms.x[0] += 1e3 * taken; /* the gap from the last step before to the first after */
    while (!tn_checkpoints_written(b->checkpoints)) {
        learn(b);
    }
    double rate = b->step_ms.n / (tn_clock_s() - begin);
    check(tn_checkpoints_end(b->checkpoints, saved, &err), &err);
    const tn_spread ms = tn_spread_of(&b->step_ms);
    *stall = ms.most - ms.median;
    return rate;
}

/* Seconds, by `team` instead of the worker's own. */
static double load(bench *b, tn_team *team, const char *name)
{
    char path[TN_PATH_SIZE];
    tn_error err = {0};
    tn_saved which;
    tn_turn t = {0};
    tn_team *own = b->rig.worker->team;
    double begin = 0;
    b->rig.worker->team = team;
    check(tn_path_join(b->dir, name, path, &err), &err);
    do {
        tn_table_clear(b->rig.worker->shard.table);
        tn_turn_begin(&t);
        begin = tn_clock_s();
        check(tn_checkpoint_load(path, b->rig.worker, &which, &err), &err);
    } while (tn_turn_end(&t, tn_clock_s() - begin));
    b->rig.worker->team = own;
    return t.rate;
}

/* All rows of the table as a dictionary; GB per second, by the clock and of processor time. */
static void export(bench *b, tn_team *team, double *clock, double *cpu)
{
    char path[TN_PATH_SIZE];
    tn_error err = {0};
    tn_export_done done;
    const tn_export_rows rows = {.plan = b->rig.plan,
                                 .table = b->rig.worker->shard.table,
                                 .team = team,
                                 .model_id = "00000000000000000000000000000000"};
    check(tn_path_join(b->dir, "dict.tnd", path, &err), &err);
    double begin = tn_clock_s();
    double busy = tn_machine_cpu_s();
    check(tn_export_dict(&rows, path, &done, &err), &err);
    *clock = 1e-9 * (double)done.bytes / (tn_clock_s() - begin);
    *cpu = 1e-9 * (double)done.bytes / (tn_machine_cpu_s() - busy);
    check(tn_remove_file(path, &err), &err);
}

typedef struct figures {
    tn_samples disk, alone, beside, slower, stall, load, load_one;
    tn_samples delta_rows, delta_bytes, delta_time, delta_ms, dict, dict_one, dict_cpu;
    double mb; /* of a full checkpoint */
} figures;

static void measure_saves(bench *b, figures *f)
{
    tn_saved full = save(b, false);
    tn_saved busy;
    double stall = 0;
    const double mb = f->mb = (double)full.bytes / 1e6;
    tn_sample(&f->disk, mb / plain_write(b, full.bytes));
    full = save(b, false);
    tn_sample(&f->alone, mb / full.seconds);
    (void)steps(b, 1);
    const double before = steps(b, full.seconds);
    const double during = beside(b, &busy, &stall);
    const double after = steps(b, full.seconds);
    tn_sample(&f->disk, mb / plain_write(b, full.bytes));
    tn_sample(&f->stall, stall);
    tn_sample(&f->beside, mb / busy.seconds);
    tn_sample(&f->slower, 100 * (2 / during / (1 / before + 1 / after) - 1));
}

static void turn(bench *b, tn_team *all, figures *f)
{
    double clock = 0;
    double cpu = 0;
    measure_saves(b, f);
    tn_saved full = save(b, false);
    tn_step *step = tn_rig_next(&b->rig);
    const uint64_t touched = step->local->keys.n; /* by a step, about */
    tn_rig_done(&b->rig, step);
    for (uint64_t n = tn_table_rows(b->rig.worker->shard.table) / 100 / touched; n > 0; n--) {
        learn(b);
    }
    tn_saved delta = save(b, true);
    tn_sample(&f->delta_rows, 100 * (double)delta.written / (double)delta.rows);
    tn_sample(&f->delta_bytes, 100 * (double)delta.bytes / (double)full.bytes);
    tn_sample(&f->delta_time, 100 * delta.seconds / full.seconds);
    tn_sample(&f->delta_ms, 1e3 * delta.seconds);
    export(b, NULL, &clock, &cpu);
    tn_sample(&f->dict_one, clock);
    export(b, all, &clock, &cpu);
    tn_sample(&f->dict, clock);
    tn_sample(&f->dict_cpu, cpu);
    full = save(b, false);
    tn_sample(&f->load_one, f->mb / 1e3 / load(b, NULL, full.name));
    tn_sample(&f->load, f->mb / 1e3 / load(b, all, full.name));
}

static void print(const figures *f, bool json)
{
    const double none = (double)NAN;
    const tn_spread disk = tn_spread_of(&f->disk);
    const tn_figure saves = {.row = "P13",
                             .unit = "MB/s",
                             .limit = disk.most,
                             .limit_is = "the fastest plain write of this run",
                             .yardstick = disk.median,
                             .yardstick_is = "the median one",
                             .target = .8,
                             .aim = TN_AIM_YARDSTICK};
    tn_figure alone = saves;
    tn_figure meanwhile = saves;
    alone.what = "full checkpoint alone";
    alone.is = tn_spread_of(&f->alone);
    meanwhile.what = "full checkpoint beside training";
    meanwhile.is = tn_spread_of(&f->beside);
    tn_figure_print(&alone, json);
    tn_figure_print(&meanwhile, json);
    const struct {
        const char *row, *what, *unit;
        const tn_samples *is;
        double target;
        bool at_most;
    } others[] = {
        {"P13", "disk: plain writes of as many bytes", "MB/s", &f->disk, none, false},
        {"P13", "stall: longest step less the median one", "ms", &f->stall, 50, true},
        {"P13", "training meanwhile slower by", "%", &f->slower, 5, true},
        {"P13", "load from the page cache, all processors", "GB/s", &f->load, 1, false},
        {"P13", "load from the page cache, one thread", "GB/s", &f->load_one, none, false},
        {"P14", "delta: rows that were touched", "%", &f->delta_rows, none, false},
        {"P14", "delta: bytes, of the full one", "%", &f->delta_bytes, 2, true},
        {"P14", "delta: time, of the full one", "%", &f->delta_time, 2, true},
        {"P14", "delta: time", "ms", &f->delta_ms, none, false},
        {"P17", "dictionary of the table's rows, all processors", "GB/s", &f->dict, 1, false},
        {"P17", "the same, one thread", "GB/s", &f->dict_one, none, false},
        {"P17", "the same, of processor time", "GB/s", &f->dict_cpu, 1, false},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        tn_figure_print(&(tn_figure){.row = others[i].row,
                                     .what = others[i].what,
                                     .unit = others[i].unit,
                                     .is = tn_spread_of(others[i].is),
                                     .target = others[i].target,
                                     .at_most = others[i].at_most},
                        json);
    }
}

static void run(bench *b, bool json)
{
    static figures f;
    tn_error err = {0};
    tn_team *all = NULL;
    check(tn_team_open(&all, tn_cpu_count(), &err), &err);
    (void)steps(b, 1);
    for (uint32_t i = 0; i < TURNS; i++) {
        turn(b, all, &f);
    }
    tn_team_close(all);
    print(&f, json);
}

int main(int argc, char **argv)
{
    static bench b;
    const bool json = tn_json_wanted(&argc, argv);
    uint64_t rows = DEFAULT_ROWS;
    const char *dir = "/tmp";
    int i = 1;
    tn_error err = {0};
    tn_flush_denormals();
    for (; i + 1 < argc && strncmp(argv[i], "--", 2) == 0; i += 2) {
        if (strcmp(argv[i], "--dir") == 0) {
            dir = argv[i + 1];
        } else if (strcmp(argv[i], "--rows") != 0 ||
                   tn_read_u64(argv[i + 1], strlen(argv[i + 1]), &rows) != TN_NUM_OK) {
            break;
        }
    }
    if (i < argc && strncmp(argv[i], "--", 2) == 0) {
        (void)fputs("usage: bench_checkpoint [--json] [--rows N] [--dir PATH] [key=value ..]\n",
                    stderr);
        return 2;
    }
    (void)snprintf(b.dir, sizeof b.dir, "%s/bench_checkpoint.%d", dir, (int)getpid());
    check(tn_dir_make(b.dir, &err), &err);
    check(tn_path_join(b.dir, "train.svm", b.data, &err), &err);
    open_run(&b, rows, argc - i, argv + i);
    run(&b, json);
    tn_checkpoints_close(b.checkpoints);
    tn_rig_close(&b.rig);
    check(tn_remove_tree(b.dir, &err), &err);
    return 0;
}
