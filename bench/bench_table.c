/* bench_table.c - the table of rows on one core: pull, push, insert, bytes per key (P8, P19).
 *
 *     bench_table [--json] [--dim 8|16] [KEYS ..]      default 100000 1000000 10000000, both dims
 *     bench_table --rules                              push under every rule, 100,000 keys of dim 8
 *     bench_table --list | NAME                        for .ci/check-instructions
 *
 * Rows as widedeep has them by default: dim 8 (68 bytes) and dim 16 (100 bytes). Batches of 16,384
 * different keys, each timed alone; insert in 16 parts of the filling. "push" is that of a step:
 * the keyset was pulled before, 64 MB of other memory were written in between. "alone": of a keyset
 * that was not pulled. Limits, measured in the same run: the lines of as many rows at random places
 * of an array as large as all rows, fetched 64 ahead and read (pull) or changed (push); for insert,
 * the first touch of fresh memory, which the system clears. With several sizes, how much longer a
 * pull takes in a larger table than in the first (P19; 1e8 keys of dim 8 take 8 GB).
 */
#include "base/keys/keyset.h"
#include "counted.h"
#include "figure.h"
#include "machine.h"
#include "tablerows.h"
#include "touch.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/math/rng.h"
#include "base/thread/threads.h"
#include "ps/table/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES_MAX = 256, FLUSH = 64 << 20, ROW_HEADER = 24 };

/* Millions of keys per second, and what a key takes. */
typedef struct figures {
    tn_samples pull, push, alone, norm, insert;
    double bytes, of_row; /* of a key, and without index and room */
    bool rules;           /* only pull and push are wanted */
} figures;

static void sample_rate(tn_samples *s, uint64_t ns)
{
    tn_sample(s, TN_BENCH_KEYS / (double)ns * 1e3);
}

static void time_steps(tn_table *t, const tn_bench_batch *b, const float *grads, float *rows,
                       figures *f)
{
    static tn_keyset unknown; /* never pulled under this address */
    char *other = tn_alloc(1, FLUSH, "other memory");
    tn_bench_batch *now = tn_alloc(1, sizeof *now, "a batch");
    tn_push p = {.weight_sum = 1, .lr_factor = 1};
    for (uint32_t i = 0; i < BATCHES_MAX; i++) {
        memcpy(now, &b[i], sizeof *now); /* as the localizer leaves it: in the cache */
        tn_keyset keys = tn_bench_keyset(now);
        unknown = keys;
        uint64_t start = tn_clock_ns();
        tn_status status = tn_table_pull(t, NULL, &keys, rows, NULL);
        sample_rate(&f->pull, tn_clock_ns() - start);
        TN_ASSERT(status == TN_OK);
        memset(other, (int)i, FLUSH);
        start = tn_clock_ns();
        (void)tn_table_push_whole(t, NULL, &keys, grads, &p, false);
        sample_rate(&f->push, tn_clock_ns() - start);
        if (f->rules) {
            continue;
        }
        start = tn_clock_ns();
        (void)tn_table_norm2(t, NULL, &keys, grads, &p);
        sample_rate(&f->norm, tn_clock_ns() - start);
        memset(other, (int)i, FLUSH);
        start = tn_clock_ns();
        tn_table_push(t, NULL, &unknown, grads, &p, 1);
        sample_rate(&f->alone, tn_clock_ns() - start);
    }
    tn_free(now);
    tn_free(other);
}

static void measure(uint64_t n_keys, uint32_t dim, const tn_optim *optim, figures *f)
{
    tn_bench_model m;
    tn_arena *arena = tn_arena_new(1 << 16);
    tn_bench_model_init(&m, dim, optim, arena);
    tn_bench_batch *b = tn_alloc(BATCHES_MAX, sizeof *b, "batches");
    const size_t floats = (size_t)TN_BENCH_KEYS * m.record.width;
    float *rows = tn_alloc(floats, sizeof *rows, "rows");
    float *grads = tn_alloc(floats, sizeof *grads, "gradients");
    memset(rows, 1, floats * sizeof *rows);
    for (size_t i = 0; i < floats; i++) {
        grads[i] = 1e-3F * (float)(i % 7);
    }
    tn_table *t = tn_bench_table(&m, n_keys, b, rows, &f->insert);
    uint64_t s = tn_stream2(2, TN_RNG_GENERATE, n_keys);
    for (uint32_t i = 0; i < BATCHES_MAX; i++) {
        tn_bench_batch_fill(&b[i], n_keys, s, (uint64_t)i * TN_BENCH_KEYS, &m.layout);
    }
    time_steps(t, b, grads, rows, f);
    f->bytes = (double)tn_table_bytes(t) / (double)tn_table_rows(t);
    f->of_row = tn_table_stride(t, 0);
    tn_table_free(t);
    tn_free(b);
    tn_free(rows);
    tn_free(grads);
    tn_arena_free(arena);
}

/* ---- counting: one batch of keys in a table of 65,536 rows ---- */

typedef struct counted_job {
    tn_table *t;
    tn_keyset keys;
    float *rows;
} counted_job;

static void pull(void *job)
{
    const counted_job *j = job;
    tn_status status = tn_table_pull(j->t, NULL, &j->keys, j->rows, NULL);
    TN_ASSERT(status == TN_OK);
}

static void push(void *job)
{
    const counted_job *j = job;
    const tn_push p = {.weight_sum = 1, .lr_factor = 1};
    (void)tn_table_push_whole(j->t, NULL, &j->keys, j->rows, &p, false);
}

enum { COUNTED_KEYS = 4 * TN_BENCH_KEYS, COUNTED_DIM = 8 };

static void count(void (*work)(void *job), bool pulled, uint64_t stream)
{
    tn_bench_model m;
    tn_samples insert = {0};
    tn_arena *arena = tn_arena_new(1 << 16);
    tn_bench_model_init(&m, COUNTED_DIM, NULL, arena);
    tn_bench_batch *b = tn_alloc(1, sizeof *b, "a batch");
    float *rows = tn_alloc((size_t)TN_BENCH_KEYS * m.record.width, sizeof *rows, "rows");
    tn_table *t = tn_bench_table(&m, COUNTED_KEYS, b, rows, &insert);
    tn_bench_batch_fill(b, COUNTED_KEYS, stream, COUNTED_KEYS, &m.layout);
    counted_job job = {t, tn_bench_keyset(b), rows};
    if (pulled) {
        pull(&job);
    }
    tn_count(work, &job);
    tn_table_free(t);
    tn_free(b);
    tn_free(rows);
    tn_arena_free(arena);
}

static void count_insert(void)
{
    count(pull, false, 0);
}

static void count_pull(void)
{
    count(pull, false, 1);
}

static void count_push(void)
{
    count(push, true, 1);
}

static void count_push_alone(void)
{
    count(push, false, 1);
}

static const tn_counted counted[] = {{"insert", count_insert},
                                     {"pull", count_pull},
                                     {"push", count_push},
                                     {"push_alone", count_push_alone},
                                     {NULL, NULL}};

/* ---- what is printed ---- */

typedef struct report {
    uint64_t n_keys;
    uint32_t dim;
    bool json;
} report;

static void print(const report *r, tn_figure f, const char *what, const char *unit)
{
    char text[96];
    (void)snprintf(text, sizeof text, "%s, %" PRIu64 " keys, dim %u", what, r->n_keys, r->dim);
    f.row = f.row != NULL ? f.row : "P8";
    f.what = text;
    f.unit = unit;
    tn_figure_print(&f, r->json);
}

static void print_rates(const report *r, const figures *f, uint32_t lines)
{
    static const char unit[] = "M keys/s";
    uint64_t bytes = r->n_keys * lines * TN_LINE;
    double read = tn_random_rows(bytes, TN_BENCH_KEYS, lines, false);
    double change = tn_random_rows(bytes, TN_BENCH_KEYS, lines, true);
    bool aimed = r->n_keys == 10000000 && r->dim == 8;
    double none = (double)NAN;
    print(r,
          (tn_figure){.is = tn_spread_of(&f->pull),
                      .limit = read,
                      .limit_is = "rows of two lines at random places read",
                      .target = aimed ? 25 : none},
          "pull", unit);
    print(r,
          (tn_figure){.is = tn_spread_of(&f->push),
                      .limit = change,
                      .limit_is = "rows of two lines at random places changed",
                      .target = aimed ? 20 : none},
          "push after a pull", unit);
    print(r,
          (tn_figure){.is = tn_spread_of(&f->alone),
                      .limit = change,
                      .limit_is = "rows of two lines at random places changed",
                      .target = none},
          "push alone", unit);
    print(r, (tn_figure){.is = tn_spread_of(&f->norm), .target = none}, "norm", unit);
    print(r,
          (tn_figure){.is = tn_spread_of(&f->insert),
                      .limit = tn_first_touch() / f->bytes * 1e3,
                      .limit_is = "first touch of memory",
                      .target = aimed ? 5 : none},
          "insert", unit);
}

static void print_bytes(const report *r, const figures *f)
{
    bool aimed = r->n_keys == 10000000 && r->dim == 16;
    const struct {
        const char *what;
        double bytes;
    } part[] = {
        {"header", ROW_HEADER},
        {"weights and state", f->of_row - ROW_HEADER},
        {"index and room for more rows", f->bytes - f->of_row},
    };
    print(r,
          (tn_figure){
              .is = tn_spread_one(f->bytes), .target = aimed ? 100 : (double)NAN, .at_most = true},
          "all of a key", "bytes");
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        print(r, (tn_figure){.is = tn_spread_one(part[i].bytes), .target = (double)NAN},
              part[i].what, "bytes per key");
    }
}

/* Prints one size and returns the median time of a pull, in ns per key. */
static double run(const report *r)
{
    static figures f;
    f = (figures){0};
    measure(r->n_keys, r->dim, NULL, &f);
    print_rates(r, &f, 2);
    print_bytes(r, &f);
    return 1e3 / tn_spread_of(&f.pull).median;
}

/* Nanoseconds of a row in the fastest batch, and its bytes; `optim` NULL: under the rule of the
 * default model. */
static double push_ns(const report *r, const tn_optim *optim, double *bytes)
{
    static figures f;
    f = (figures){.rules = true};
    measure(r->n_keys, r->dim, optim, &f);
    *bytes = f.of_row;
    return 1e3 / tn_spread_of(&f.push).most;
}

/* What a row takes under each rule, with its own defaults, beside the rule of the default model
 * measured right before it; and what changing as many bytes takes without a rule. */
static void run_rules(const report *r)
{
    for (size_t i = 0; tn_all_optims[i] != NULL; i++) {
        double bytes = 0;
        char what[64];
        const double usual = push_ns(r, NULL, &bytes);
        const double ns = push_ns(r, tn_all_optims[i], &bytes);
        const uint32_t lines = ((uint32_t)bytes + TN_LINE - 1) / TN_LINE;
        const uint64_t room = r->n_keys * lines * TN_LINE;
        (void)snprintf(what, sizeof what, "push by %s, %.0f bytes a row",
                       tn_all_optims[i]->choice.name, bytes);
        print(r,
              (tn_figure){.is = tn_spread_one(ns),
                          .yardstick = usual,
                          .yardstick_is = "the default rule",
                          .limit = 1e3 / tn_random_rows(room, TN_BENCH_KEYS, lines, true),
                          .limit_is = "its lines changed",
                          .target = 1.3,
                          .aim = TN_AIM_YARDSTICK,
                          .at_most = true},
              what, "ns per row");
    }
}

/* The sizes with one dim, and what growing costs. */
static void run_sizes(const char *const *size, uint32_t dim, bool json)
{
    double first = 0;
    for (uint32_t i = 0; size[i] != NULL; i++) {
        report r = {strtoull(size[i], NULL, 10), dim, json};
        double ns = run(&r);
        if (i == 0) {
            first = ns;
            continue;
        }
        print(&r,
              (tn_figure){
                  .row = "P19", .is = tn_spread_one(ns / first), .target = 3, .at_most = true},
              "pull", "x as long as in the first table");
    }
}

int main(int argc, char **argv)
{
    static const char *const usual[] = {"100000", "1000000", "10000000", NULL};
    tn_flush_denormals();
    if (tn_counted_main(argc, argv, counted)) {
        return 0;
    }
    bool json = tn_json_wanted(&argc, argv);
    uint64_t only = 0;
    if (argc > 2 && strcmp(argv[1], "--dim") == 0) {
        only = strtoull(argv[2], NULL, 10);
        argv += 2;
        argc -= 2;
    }
    const char *const *size = argc > 1 ? (const char *const *)argv + 1 : usual;
    tn_machine_print(json);
    if (argc > 1 && strcmp(argv[1], "--rules") == 0) {
        run_rules(&(report){.n_keys = 100000, .dim = 8, .json = json});
        return 0;
    }
    for (uint32_t dim = 8; dim <= 16; dim += 8) {
        if (only == 0 || only == dim) {
            run_sizes(size, dim, json);
        }
    }
    return 0;
}
