/* bench_checkpoint.c - P13, P14: full and delta checkpoints, and what they cost the training.
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
 *     load     the full one, from the page cache
 *
 * A stall is the longest step during the save beside the median one. Everything is measured in one
 * run, in turns; medians with [least, largest]. Nothing is gated.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/key.h"
#include "base/number.h"
#include "base/rng.h"
#include "base/threads.h"
#include "io/format.h"
#include "train/checkpoint.h"
#include "train/config.h"
#include "train/evaluate.h"
#include "train/step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    TURNS = 3,
    BATCHES = 60,
    BATCH = 1024,
    SLOTS = 39,
    STEPS_MAX = 1 << 16,
    DEFAULT_ROWS = 10000000
};

typedef struct bench {
    tn_arena *arena;
    tn_diag diag;
    tn_run run;
    const tn_blueprint *plan;
    tn_worker *worker;
    tn_metrics *metrics;
    tn_checkpoints *checkpoints;
    tn_reader *reader;
    tn_batch *batch[BATCHES];
    uint32_t n, next;
    tn_step *step;
    tn_run_state state;
    double step_s[STEPS_MAX]; /* of the last steps() or beside() */
    uint32_t n_steps;
    char data[TN_PATH_SIZE];
    char dir[TN_PATH_SIZE];
} bench;

typedef struct series {
    double x[TURNS];
} series;

static void check(tn_status status, const tn_error *err)
{
    if (status != TN_OK) {
        (void)fprintf(stderr, "bench_checkpoint: %s\n", err->text);
        exit(1); // NOLINT(concurrency-mt-unsafe): nothing else matters then
    }
}

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

static const char *format_preset(const char *name)
{
    const tn_format *f = tn_format_find(name);
    return f != NULL ? f->preset : NULL;
}

static void configure(bench *b, uint32_t n_more, char *const *more)
{
    static const tn_presets presets = {.format = format_preset, .model = tn_model_preset};
    const char **set = TN_NEW_ARRAY(b->arena, const char *, n_more + 8);
    char *train = TN_NEW_ARRAY(b->arena, char, TN_PATH_SIZE + 16);
    char *dir = TN_NEW_ARRAY(b->arena, char, TN_PATH_SIZE + 16);
    (void)snprintf(train, TN_PATH_SIZE + 16, "data.train=%s", b->data);
    (void)snprintf(dir, TN_PATH_SIZE + 16, "run.dir=%s", b->dir);
    uint32_t n = 0;
    set[n++] = train;
    set[n++] = dir;
    set[n++] = "model.hidden=[128, 64, 32]";
    set[n++] = "train.threads=1";
    set[n++] = "checkpoint.delta_every=1step";
    set[n++] = "checkpoint.keep=1";
    for (uint32_t i = 0; i < n_more; i++) {
        set[n++] = more[i];
    }
    tn_config_in in = {.fields = tn_run_fields,
                       .presets = &presets,
                       .path = "bench/configs/speed.yaml",
                       .overrides = set,
                       .n_overrides = n};
    tn_binder binder = {.arena = b->arena, .diag = &b->diag};
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
}

static void open_run(bench *b)
{
    static const tn_run_text text = {
        .config = "bench\n",
        .hash = "0000000000000000000000000000000000000000000000000000000000000000"};
    tn_error err = {0};
    tn_metrics_opts metrics = {0};
    tn_reader_opts opts = {
        .paths = b->run.data.train, .batch_rows = BATCH, .training = true, .prefetch = BATCHES};
    check(tn_metrics_new(&b->metrics, &metrics, &err), &err);
    check(tn_checkpoints_open(&b->checkpoints, b->plan, &text, &err), &err);
    check(tn_reader_open(&b->reader, b->plan->schema, &opts, &err), &err);
    check(tn_step_new(&b->step, b->plan, true, &err), &err);
    b->state.data = tn_data_map_of(b->reader, b->arena);
    while (b->n < BATCHES && tn_reader_next(b->reader, &b->batch[b->n], &err) == TN_OK) {
        b->n++;
    }
}

/* Rows that training does not meet. */
static void fill_table(bench *b, uint64_t rows)
{
    float data[TN_DIM_MAX] = {0};
    tn_error err = {0};
    const tn_layout *layout = b->plan->layout;
    const tn_record *record = tn_record_of(layout, 0);
    tn_row_view view = {.present = (uint16_t)((1U << record->n_segments) - 1), .data = data};
    for (uint32_t s = 0; s < record->n_segments; s++) {
        tn_place_in_row place = tn_table_place(b->worker->shard.table, layout->group[0].record, s);
        view.n_floats += record->segment[s].dim;
        for (uint32_t i = 0; i < place.n_states; i++) {
            view.n_floats += place.spec[i].per_row ? 1 : record->segment[s].dim;
        }
    }
    TN_ASSERT(view.n_floats > 0);
    for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
        tn_refill r;
        tn_refill_begin(&r, b->worker->shard.table, p);
        for (uint64_t i = 0; i < rows / TN_PARTITIONS; i++) {
            view.key = (uint64_t)p << 54 | (tn_mix(i + 1) >> 10);
            // cppcheck-suppress unreadVariable // through view.data
            data[i % view.n_floats] = (float)(view.key & 0xffff) * 1e-5F;
            check(tn_refill_add(&r, &view, &err), &err);
        }
        tn_refill_end(&r);
    }
}

static void learn(bench *b)
{
    tn_error err = {0};
    tn_learned learned;
    double begin = tn_clock_s();
    check(tn_step_prepare(b->step, b->batch[b->next], &err), &err);
    b->next = (b->next + 1) % b->n;
    check(tn_step_learn(b->worker, b->step, 1, &learned, &err), &err);
    tn_scored rows = {.n = b->step->batch->rows,
                      .logit = b->worker->train_logit->val,
                      .label = b->step->batch->label,
                      .weight = b->step->batch->weight};
    check(tn_metrics_add(b->metrics, &rows, &err), &err);
    b->state.steps = b->worker->steps;
    b->state.samples += BATCH;
    b->step_s[b->n_steps++ % STEPS_MAX] = tn_clock_s() - begin;
}

/* ---- what is measured ---- */

static double plain_write(const bench *b, uint64_t bytes)
{
    enum { PIECE = 1 << 20 };
    char path[TN_PATH_SIZE];
    tn_error err = {0};
    check(tn_path_join(b->dir, "plain", path, &err), &err);
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

static tn_saved save(bench *b, bool delta)
{
    tn_error err = {0};
    tn_saved saved;
    tn_ckpt_want want = {.state = &b->state, .metrics = b->metrics, .delta = delta};
    check(tn_checkpoints_save(b->checkpoints, b->worker, &want, &saved, &err), &err);
    return saved;
}

/* How many of the last steps were kept. */
static uint32_t timed(const bench *b)
{
    return b->n_steps < STEPS_MAX ? b->n_steps : STEPS_MAX;
}

/* Mean seconds of a step for as long as `seconds`. */
static double steps(bench *b, double seconds)
{
    double begin = tn_clock_s();
    b->n_steps = 0;
    while (tn_clock_s() - begin < seconds || b->n_steps < 10) {
        learn(b);
    }
    return (tn_clock_s() - begin) / b->n_steps;
}

/* The same while a full checkpoint is written; *stall: the longest step and the taking of the
 * moment, less a median step. */
static double beside(bench *b, tn_saved *saved, double *stall)
{
    tn_error err = {0};
    tn_ckpt_want want = {.state = &b->state, .metrics = b->metrics};
    b->n_steps = 0;
    double begin = tn_clock_s();
    check(tn_checkpoints_begin(b->checkpoints, b->worker, &want, &err), &err);
    double taken = tn_clock_s() - begin;
    learn(b);
    double first = b->step_s[0] + taken; /* the gap from the last step before to the first after */
    while (!tn_checkpoints_written(b->checkpoints)) {
        learn(b);
    }
    double mean = (tn_clock_s() - begin) / b->n_steps;
    check(tn_checkpoints_end(b->checkpoints, saved, &err), &err);
    uint32_t n = timed(b);
    double median = median_of(b->step_s, n);
    double longest = first;
    for (uint32_t i = 0; i < n; i++) {
        longest = b->step_s[i] > longest ? b->step_s[i] : longest;
    }
    *stall = longest - median;
    return mean;
}

static double load(bench *b, const char *name)
{
    char path[TN_PATH_SIZE];
    tn_error err = {0};
    tn_saved which;
    check(tn_path_join(b->dir, name, path, &err), &err);
    tn_table_clear(b->worker->shard.table);
    double begin = tn_clock_s();
    check(tn_checkpoint_load(path, b->worker, &which, &err), &err);
    return tn_clock_s() - begin;
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
    series disk, alone, share, beside, slower, stall, load, delta_rows, delta_bytes, delta_time;
} figures;

static void turn(bench *b, uint32_t i, figures *f)
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
    f->slower.x[i] = 100 * (during / ((mean + after) / 2) - 1);
    full = save(b, false);
    uint64_t rows = tn_table_rows(b->worker->shard.table);
    for (uint64_t touched = 0; touched < rows / 100; touched += b->step->local->keys.n) {
        learn(b);
    }
    tn_saved delta = save(b, true);
    f->delta_rows.x[i] = 100 * (double)delta.written / (double)delta.rows;
    f->delta_bytes.x[i] = 100 * (double)delta.bytes / (double)full.bytes;
    f->delta_time.x[i] = 100 * delta.seconds / full.seconds;
    full = save(b, false);
    f->load.x[i] = mb / 1e3 / load(b, full.name);
}

static void run(bench *b, bool json)
{
    static figures f;
    for (uint32_t i = 0; i < TURNS; i++) {
        turn(b, i, &f);
    }
    print(json, "P13", "disk: plain write and fsync of as many bytes", f.disk, "MB/s", "-");
    print(json, "P13", "full checkpoint alone", f.alone, "MB/s", "-");
    print(json, "P13", "the same, share of the disk", f.share, "", ">= .8");
    print(json, "P13", "full checkpoint beside training", f.beside, "MB/s", "-");
    print(json, "P13", "stall: longest step less the median one", f.stall, "ms", "<= 50");
    print(json, "P13", "training meanwhile slower by", f.slower, "%", "<= 5");
    print(json, "P13", "load from the page cache", f.load, "GB/s", ">= 1");
    print(json, "P14", "delta: rows that were touched", f.delta_rows, "%", "1");
    print(json, "P14", "delta: bytes, share of the full one", f.delta_bytes, "%", "<= 2");
    print(json, "P14", "delta: time, share of the full one", f.delta_time, "%", "<= 2");
}

int main(int argc, char **argv)
{
    static bench b;
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
    tn_flush_denormals();
    b.arena = tn_arena_new(1 << 18);
    (void)snprintf(b.dir, sizeof b.dir, "%s/bench_checkpoint.%d", dir, (int)getpid());
    check(tn_dir_make(b.dir, &err), &err);
    check(tn_path_join(b.dir, "train.svm", b.data, &err), &err);
    write_data(b.data);
    configure(&b, (uint32_t)(argc - i), argv + i);
    open_run(&b);
    fill_table(&b, rows);
    (void)steps(&b, 1);
    run(&b, json);
    tn_step_free(b.step);
    tn_reader_close(b.reader);
    tn_checkpoints_close(b.checkpoints);
    tn_metrics_free(b.metrics);
    tn_worker_free(b.worker);
    tn_diag_done(&b.diag);
    tn_arena_free(b.arena);
    check(tn_remove_tree(b.dir, &err), &err);
    return 0;
}
