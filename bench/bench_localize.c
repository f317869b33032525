/* bench_localize.c - keys to positions: nanoseconds per key of a batch, with and without blocks for
 * the way back.
 *
 *     bench_localize [--json] [REPEATS [ROWS [SLOTS]]]
 *     bench_localize --list | NAME      for .ci/check-instructions
 *
 * Slots of one key each, skewed as click logs are (about 14.6 different keys per row at 1024 rows
 * and 39 slots): batches of 128 to 65,536 rows, then of 10 to 1000 slots, where time must grow as
 * keys do (P19). CPU time of one thread.
 */
#include "counted.h"
#include "figure.h"
#include "io/rows/batch.h"
#include "machine.h"

#include "base/core/alloc.h"
#include "base/keys/record.h"
#include "base/math/key.h"
#include "base/thread/threads.h"
#include "io/localize/localize.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 39, SLOTS_MAX = 1000, PARTITIONS = 1024, BLOCKS = 16, REPEATS_MAX = 1001 };

typedef struct sample {
    tn_batch batch;
    tn_slot slot[SLOTS_MAX];
} sample;

static void must(tn_status status, const tn_error *err)
{
    if (status != TN_OK) {
        (void)fprintf(stderr, "bench_localize: %s\n", err->text);
        _Exit(1);
    }
}

static void sample_make(sample *s, uint32_t rows, uint32_t slots, uint64_t seed)
{
    float *label = tn_alloc(rows, sizeof *label, "labels");
    for (uint32_t r = 0; r < rows; r++) {
        label[r] = (float)(tn_mix(seed + r) % 4 == 0);
    }
    for (uint32_t k = 0; k < slots; k++) {
        uint32_t *offset = tn_alloc((size_t)rows + 1, sizeof *offset, "offsets");
        uint64_t *key = tn_alloc(rows, sizeof *key, "keys");
        double bits =
            4 + 20.0 * k / slots; /* from 16 ids to 16 million, uniform in the logarithm */
        for (uint32_t r = 0; r < rows; r++) {
            double u = (double)(tn_mix(seed * slots + (uint64_t)r * slots + k) >> 11) * 0x1p-53;
            key[r] = tn_mix((uint64_t)exp2(u * bits) + ((uint64_t)k << 32));
            offset[r + 1] = r + 1;
        }
        s->slot[k] = (tn_slot){offset, key, NULL};
    }
    s->batch = (tn_batch){.rows = rows, .n_slots = slots, .label = label, .slot = s->slot};
}

static void sample_done(sample *s)
{
    for (uint32_t k = 0; k < s->batch.n_slots; k++) {
        tn_free(s->slot[k].key);
        tn_free(s->slot[k].offset);
    }
    tn_free(s->batch.label);
}

static tn_localizer *localizer(uint32_t slots, uint32_t n_blocks)
{
    static uint16_t group[SLOTS_MAX];
    static bool used[SLOTS_MAX];
    static tn_share_group groups[SLOTS_MAX];
    static const uint32_t from[2] = {0, PARTITIONS};
    static const tn_owners owners = {1, PARTITIONS, from};
    static const tn_record record = {.width = 9};
    static tn_layout layout = {0, groups, 1, &record};
    for (uint32_t k = 0; k < slots; k++) {
        group[k] = (uint16_t)k;
        used[k] = true;
        groups[k].record = 0;
    }
    layout.n_groups = slots;
    const tn_localizer_opts opts = {&owners, &layout, group, used, slots, n_blocks};
    tn_localizer *l = NULL;
    tn_error err = {0};
    must(tn_localizer_new(&l, &opts, &err), &err);
    return l;
}

/* Nanoseconds per key. */
static tn_spread measure(const sample *samples, uint32_t n, uint32_t n_blocks, uint32_t repeats)
{
    static tn_samples ns;
    const tn_batch *first = &samples[0].batch;
    tn_localizer *l = localizer(first->n_slots, n_blocks);
    tn_error err = {0};
    const tn_local *local = NULL;
    ns.n = 0;
    for (uint32_t i = 0; i < repeats + n; i++) {
        double start = tn_machine_thread_s();
        must(tn_localize(l, &samples[i % n].batch, &local, &err), &err);
        double seconds = tn_machine_thread_s() - start;
        if (i >= n) { /* the first round warms up */
            tn_sample(&ns, 1e9 * seconds / ((double)first->rows * first->n_slots));
        }
    }
    tn_localizer_free(l);
    return tn_spread_of(&ns);
}

/* ---- counting: one batch by a localizer that has seen another ---- */

typedef struct counted_job {
    tn_localizer *l;
    const tn_batch *batch;
} counted_job;

static void localize(void *job)
{
    const counted_job *j = job;
    tn_error err = {0};
    const tn_local *local = NULL;
    must(tn_localize(j->l, j->batch, &local, &err), &err);
}

static void count(uint32_t n_blocks)
{
    enum { ROWS = 1024 };
    static sample samples[2];
    tn_localizer *l = localizer(SLOTS, n_blocks);
    for (uint32_t k = 0; k < 2; k++) {
        sample_make(&samples[k], ROWS, SLOTS, k * UINT64_C(1000003));
    }
    localize(&(counted_job){l, &samples[0].batch});
    tn_count(localize, &(counted_job){l, &samples[1].batch});
    tn_localizer_free(l);
    sample_done(&samples[0]);
    sample_done(&samples[1]);
}

static void count_numbering(void)
{
    count(0);
}

static void count_training(void)
{
    count(BLOCKS);
}

static const tn_counted counted[] = {
    {"numbering", count_numbering}, {"training", count_training}, {NULL, NULL}};

typedef struct sizes {
    uint32_t rows, slots, repeats;
    bool json;
} sizes;

/* Prints a figure of one size. */
static void print(const sizes *z, const char *what, tn_figure f)
{
    char text[96];
    (void)snprintf(text, sizeof text, "%s, %" PRIu32 " rows of %" PRIu32 " slots", what, z->rows,
                   z->slots);
    f.row = "P19";
    f.what = text;
    f.at_most = true;
    tn_figure_print(&f, z->json);
}

/* Returns nanoseconds per key, with the way back. */
static double run(const sizes *z)
{
    enum { SAMPLES = 4 };
    static sample samples[SAMPLES];
    for (uint32_t k = 0; k < SAMPLES; k++) {
        sample_make(&samples[k], z->rows, z->slots, k * UINT64_C(1000003));
    }
    static const char unit[] = "ns per key";
    tn_spread forward = measure(samples, SAMPLES, 0, z->repeats);
    tn_spread both = measure(samples, SAMPLES, BLOCKS, z->repeats);
    print(z, "numbering", (tn_figure){.is = forward, .unit = unit, .target = (double)NAN});
    print(z, "with the way back", (tn_figure){.is = both, .unit = unit, .target = (double)NAN});
    for (uint32_t k = 0; k < SAMPLES; k++) {
        sample_done(&samples[k]);
    }
    return both.median;
}

static void run_all(uint32_t repeats, bool json)
{
    static const uint32_t rows[] = {128, 1024, 4096, 65536};
    static const uint32_t slots[] = {10, 100, 1000};
    const uint32_t usual = 1024;
    const double most = 1.5; /* what farther caches may cost */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sizes z = {rows[i], SLOTS, repeats, json};
        (void)run(&z);
    }
    double first = 0;
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
        sizes z = {usual, slots[i], repeats, json};
        double ns = run(&z);
        if (i == 0) {
            first = ns;
        } else {
            print(&z, "a key, with the way back",
                  (tn_figure){.is = tn_spread_one(ns / first),
                              .unit = "x as long as with 10 slots",
                              .target = most});
        }
    }
}

static uint32_t number(const char *text, uint32_t most)
{
    uint64_t n = strtoull(text, NULL, 10);
    return n < 1 ? 1 : n > most ? most : (uint32_t)n;
}

int main(int argc, char **argv)
{
    enum { ROWS_MAX = 1 << 20, REPEATS = 101 };
    if (tn_counted_main(argc, argv, counted)) {
        return 0;
    }
    bool json = tn_json_wanted(&argc, argv);
    uint32_t repeats = argc > 1 ? number(argv[1], REPEATS_MAX) : REPEATS;
    tn_flush_denormals();
    tn_machine_print(json);
    if (argc > 2) {
        uint32_t slots = argc > 3 ? number(argv[3], SLOTS_MAX) : SLOTS;
        (void)run(&(sizes){number(argv[2], ROWS_MAX), slots, repeats, json});
    } else {
        run_all(repeats, json);
    }
    return 0;
}
