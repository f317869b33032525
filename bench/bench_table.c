/* bench_table.c - the table of rows on one core: pull, push, insert, bytes per key (P8, P19).
 *
 *     bench_table [--json] [KEYS ..]      default 100000 1000000 10000000
 *     bench_table --list | NAME           for .ci/check-instructions
 *
 * Rows of a deep segment under row-wise Adagrad: dim 8 (64 bytes) and dim 16 (96 bytes). Batches of
 * 16,384 different keys, each timed alone; medians. "push" is that of a step: the keyset was pulled
 * before, 64 MB of other memory were written in between. "alone": of a keyset that was not pulled.
 * Limits, measured in the same run: the lines of as many rows at random places of an array as large
 * as all rows, fetched 64 ahead and read (pull) or changed (push); for insert, the first touch of
 * fresh memory, which the system clears.
 */
#include "counted.h"
#include "touch.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/rng.h"
#include "base/threads.h"
#include "ps/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BATCH = 16384, BATCHES_MAX = 256, FLUSH = 64 << 20 };

/* One segment "deep" of some dim. */
typedef struct model {
    tn_record record;
    tn_group group;
    tn_layout layout;
    tn_rule rule[TN_SEGMENTS_MAX];
    tn_rules rules;
} model;

typedef struct batch {
    uint64_t key[BATCH];
    uint16_t group[BATCH];
    uint32_t at[BATCH + 1], show[BATCH], click[BATCH];
    uint32_t first[TN_PARTITIONS + 2];
} batch;

static const uint32_t whole[] = {0, TN_PARTITIONS};
static const tn_owners owner = {1, TN_PARTITIONS, whole};

static uint64_t resident(void)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f != NULL) {
        if (fscanf(f, "%*u %lu", &pages) != 1) { // NOLINT(cert-err34-c): the kernel's own number
            pages = 0;
        }
        (void)fclose(f);
    }
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Keys of numbers in the order that `stream` gives them: 0 .. n-1 permuted by a bijection. */
static void fill(batch *b, uint64_t n_keys, uint64_t stream, uint64_t from, uint32_t dim)
{
    uint64_t seen[BATCH];
    memset(b->first, 0, sizeof b->first);
    for (uint32_t i = 0; i < BATCH; i++) {
        uint64_t number = stream != 0 ? tn_below(tn_draw(stream, from + i), n_keys) : from + i;
        seen[i] = tn_mix(number + 1);
        b->first[tn_partition_of(seen[i], TN_PARTITIONS) + 2]++;
    }
    for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
        b->first[p + 2] += b->first[p + 1];
    }
    for (uint32_t i = 0; i < BATCH; i++) {
        b->key[b->first[tn_partition_of(seen[i], TN_PARTITIONS) + 1]++] = seen[i];
        b->show[i] = 1;
        b->click[i] = i % 4 == 0;
        b->group[i] = 0;
        b->at[i + 1] = b->at[i] + dim;
    }
}

static tn_keyset keyset_of(const batch *b)
{
    return (tn_keyset){.owners = &owner,
                       .n = BATCH,
                       .key = b->key,
                       .group = b->group,
                       .at = b->at,
                       .show = b->show,
                       .click = b->click,
                       .first = b->first};
}

static void make_model(model *m, uint32_t dim, tn_arena *arena)
{
    const tn_optim *adagrad = tn_optim_find("adagrad");
    const tn_origin here = {.source = "bench"};
    tn_diag diag = {0};
    tn_binder binder = {.arena = arena, .diag = &diag};
    tn_tree *map = tn_tree_new(arena, TN_TREE_MAP, here);
    tn_tree_put(arena, map, "rowwise", tn_tree_scalar(arena, "true", here));
    void *opts = tn_arena_alloc(arena, 1, adagrad->choice.size, TN_CACHE_LINE);
    tn_fields_bind(&binder, adagrad->choice.fields, map, opts);
    TN_ASSERT(diag.n_errors == 0);
    *m = (model){.record = {.width = dim, .n_segments = 1, .segment = {{"deep", 0, dim}}},
                 .group = {.name = "slot"}};
    m->layout = (tn_layout){1, &m->group, 1, &m->record};
    m->rule[0] = (tn_rule){.optim = adagrad,
                           .opts = opts,
                           .clip_row = (double)INFINITY,
                           .clip_value = (double)INFINITY,
                           .init = {TN_INIT_UNIFORM, -.01, .01}};
    m->rules = (tn_rules){.layout = &m->layout, .rule = m->rule, .clip_global = (double)INFINITY};
}

typedef struct figures {
    double pull, push, alone, norm, insert; /* millions of keys per second */
    double bytes, rss;                      /* per key */
} figures;

static tn_table *filled(const model *m, uint64_t n_keys, batch *b, float *rows, figures *f)
{
    tn_table *t = NULL;
    tn_table_opts opts = {.rules = &m->rules, .seed = 1, .huge_pages = true};
    tn_status status = tn_table_new(&t, &opts, NULL);
    TN_ASSERT(status == TN_OK);
    uint64_t before = resident();
    uint64_t ns = 0;
    for (uint64_t from = 0; from < n_keys; from += BATCH) {
        fill(b, n_keys, 0, from, m->record.width);
        tn_keyset keys = keyset_of(b);
        uint64_t start = tn_clock_ns();
        status = tn_table_pull(t, NULL, &keys, rows, NULL);
        ns += tn_clock_ns() - start;
        TN_ASSERT(status == TN_OK);
    }
    double n = (double)tn_table_rows(t);
    f->insert = n / (double)ns * 1e3;
    f->bytes = (double)tn_table_bytes(t) / n;
    f->rss = (double)(resident() - before) / n;
    return t;
}

static double rate(double *ns)
{
    return BATCH / tn_bench_median(ns, BATCHES_MAX) * 1e3;
}

static void time_steps(tn_table *t, const batch *b, const float *grads, float *rows, figures *f)
{
    static double took[4][BATCHES_MAX];
    static tn_keyset unknown; /* never pulled under this address */
    char *other = tn_alloc(1, FLUSH, "other memory");
    batch *now = tn_alloc(1, sizeof *now, "a batch");
    tn_push p = {.weight_sum = 1, .lr_factor = 1};
    for (uint32_t i = 0; i < BATCHES_MAX; i++) {
        memcpy(now, &b[i], sizeof *now); /* as the localizer leaves it: in the cache */
        tn_keyset keys = keyset_of(now);
        unknown = keys;
        uint64_t start = tn_clock_ns();
        tn_status status = tn_table_pull(t, NULL, &keys, rows, NULL);
        took[0][i] = (double)(tn_clock_ns() - start);
        TN_ASSERT(status == TN_OK);
        memset(other, (int)i, FLUSH);
        start = tn_clock_ns();
        double sum = tn_table_norm2(t, NULL, &keys, grads, &p);
        uint64_t middle = tn_clock_ns();
        tn_table_push(t, NULL, &keys, grads, &p, sum >= 0 ? 1 : 0);
        took[1][i] = (double)(tn_clock_ns() - middle);
        took[2][i] = (double)(middle - start);
        memset(other, (int)i, FLUSH);
        start = tn_clock_ns();
        tn_table_push(t, NULL, &unknown, grads, &p, 1);
        took[3][i] = (double)(tn_clock_ns() - start);
    }
    f->pull = rate(took[0]);
    f->push = rate(took[1]);
    f->norm = rate(took[2]);
    f->alone = rate(took[3]);
    tn_free(now);
    tn_free(other);
}

static figures measure(uint64_t n_keys, uint32_t dim)
{
    figures f = {0};
    model m;
    tn_arena *arena = tn_arena_new(1 << 16);
    make_model(&m, dim, arena);
    batch *b = tn_alloc(BATCHES_MAX, sizeof *b, "batches");
    float *rows = tn_alloc((size_t)BATCH * dim, sizeof *rows, "rows");
    float *grads = tn_alloc((size_t)BATCH * dim, sizeof *grads, "gradients");
    memset(rows, 1, (size_t)BATCH * dim * sizeof *rows);
    for (size_t i = 0; i < (size_t)BATCH * dim; i++) {
        grads[i] = 1e-3F * (float)(i % 7);
    }
    tn_table *t = filled(&m, n_keys, b, rows, &f);
    uint64_t s = tn_stream2(2, TN_RNG_GENERATE, n_keys);
    for (uint32_t i = 0; i < BATCHES_MAX; i++) {
        fill(&b[i], n_keys, s, (uint64_t)i * BATCH, dim);
    }
    time_steps(t, b, grads, rows, &f);
    tn_table_free(t);
    tn_free(b);
    tn_free(rows);
    tn_free(grads);
    tn_arena_free(arena);
    return f;
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
    tn_table_push(j->t, NULL, &j->keys, j->rows, &p, 1);
}

enum { COUNTED_KEYS = 4 * BATCH, COUNTED_DIM = 8 };

static void count(void (*work)(void *job), bool pulled, uint64_t stream)
{
    model m;
    figures f = {0};
    tn_arena *arena = tn_arena_new(1 << 16);
    make_model(&m, COUNTED_DIM, arena);
    batch *b = tn_alloc(1, sizeof *b, "a batch");
    float *rows = tn_alloc((size_t)BATCH * COUNTED_DIM, sizeof *rows, "rows");
    tn_table *t = filled(&m, COUNTED_KEYS, b, rows, &f);
    fill(b, COUNTED_KEYS, stream, COUNTED_KEYS, COUNTED_DIM);
    counted_job job = {t, keyset_of(b), rows};
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

static void report(uint64_t n_keys, uint32_t dim, bool json)
{
    const uint32_t bytes[] = {64, 96};
    uint32_t row = bytes[dim > 8];
    uint32_t lines = row > TN_LINE ? 2 : 1;
    figures f = measure(n_keys, dim);
    double read = tn_random_lines(n_keys * row, lines * BATCH, false) / lines;
    double change = tn_random_lines(n_keys * row, lines * BATCH, true) / lines;
    double insert = tn_first_touch() / f.bytes * 1e3;
    (void)printf(
        json ? "{\"bench\":\"table\",\"keys\":%" PRIu64 ",\"dim\":%u,\"pull\":%.1f,\"read\":%.1f,"
               "\"push\":%.1f,\"alone\":%.1f,\"change\":%.1f,\"norm\":%.0f,\"insert\":%.1f,"
               "\"touch\":%.1f,\"bytes\":%.1f,\"rss\":%.1f}\n"
             : "%9" PRIu64 " keys dim %2u   pull %5.1f of %5.1f M/s   push %5.1f alone %5.1f of "
               "%5.1f   norm %4.0f   insert %4.1f of %4.1f   %5.1f bytes/key (resident %.1f)\n",
        n_keys, dim, f.pull, read, f.push, f.alone, change, f.norm, f.insert, insert, f.bytes,
        f.rss);
}

int main(int argc, char **argv)
{
    static const char *const usual[] = {"100000", "1000000", "10000000", NULL};
    bool json = argc > 1 && strcmp(argv[1], "--json") == 0;
    const char *const *size = usual;
    if (argc > 1 + json) {
        size = (const char *const *)argv + 1 + json;
    }
    tn_flush_denormals();
    if (tn_counted_main(argc, argv, counted)) {
        return 0;
    }
    if (!json) {
        (void)puts("limits: random lines of memory, in the same run. P8, 10 M keys: pull >= 25, "
                   "push >= 20, "
                   "insert >= 5 M/s, <= 100 bytes/key at dim 16");
    }
    for (; *size != NULL; size++) {
        uint64_t n = strtoull(*size, NULL, 10);
        report(n, 8, json);
        report(n, 16, json);
    }
    return 0;
}
