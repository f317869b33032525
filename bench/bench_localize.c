/* bench_localize.c - keys to positions: nanoseconds per key of a batch, with and without the way
 * back.
 *
 *     bench_localize [repeats] [rows]
 *     bench_localize --list | NAME      for .ci/check-instructions
 *
 * One JSON line per batch size: 39 slots of one key each, skewed as click logs are (about 14.6
 * different keys per row at 1024 rows). CPU time of one thread, medians; `limit` is the figure of
 * docs/performance for numbering alone.
 */
#include "counted.h"

#include "base/alloc.h"
#include "base/key.h"
#include "base/threads.h"
#include "io/localize.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SLOTS = 39, PARTITIONS = 1024, REPEATS_MAX = 1001 };

typedef struct sample {
    tn_batch batch;
    tn_slot slot[SLOTS];
} sample;

static void must(tn_status status, const tn_error *err)
{
    if (status != TN_OK) {
        (void)fprintf(stderr, "bench_localize: %s\n", err->text);
        _Exit(1);
    }
}

static double thread_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void sample_make(sample *s, uint32_t rows, uint64_t seed)
{
    float *label = tn_alloc(rows, sizeof *label, "labels");
    for (uint32_t r = 0; r < rows; r++) {
        label[r] = (float)(tn_mix(seed + r) % 4 == 0);
    }
    for (uint32_t k = 0; k < SLOTS; k++) {
        uint32_t *offset = tn_alloc((size_t)rows + 1, sizeof *offset, "offsets");
        uint64_t *key = tn_alloc(rows, sizeof *key, "keys");
        double bits =
            4 + 20.0 * k / SLOTS; /* from 16 ids to 16 million, uniform in the logarithm */
        for (uint32_t r = 0; r < rows; r++) {
            double u = (double)(tn_mix(seed * SLOTS + (uint64_t)r * SLOTS + k) >> 11) * 0x1p-53;
            key[r] = tn_mix((uint64_t)exp2(u * bits) + ((uint64_t)k << 32));
            offset[r + 1] = r + 1;
        }
        s->slot[k] = (tn_slot){offset, key, NULL};
    }
    s->batch = (tn_batch){.rows = rows, .n_slots = SLOTS, .label = label, .slot = s->slot};
}

static void sample_done(sample *s)
{
    for (uint32_t k = 0; k < SLOTS; k++) {
        tn_free(s->slot[k].key);
        tn_free(s->slot[k].offset);
    }
    tn_free(s->batch.label);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static tn_localizer *localizer(bool occurrences)
{
    static uint16_t group[SLOTS];
    static bool used[SLOTS];
    static tn_group groups[SLOTS];
    static const uint32_t from[2] = {0, PARTITIONS};
    static const tn_owners owners = {1, PARTITIONS, from};
    static const tn_record record = {.width = 9};
    static const tn_layout layout = {SLOTS, groups, 1, &record};
    for (uint32_t k = 0; k < SLOTS; k++) {
        group[k] = (uint16_t)k;
        used[k] = true;
        groups[k].record = 0;
    }
    const tn_localizer_opts opts = {&owners, &layout, group, used, SLOTS, occurrences};
    tn_localizer *l = NULL;
    tn_error err = {0};
    must(tn_localizer_new(&l, &opts, &err), &err);
    return l;
}

/* Nanoseconds per key, and how many keys differ. */
static double measure(const sample *samples, uint32_t n, bool occurrences, uint32_t repeats,
                      uint32_t *unique)
{
    tn_localizer *l = localizer(occurrences);
    tn_error err = {0};
    const tn_local *local = NULL;
    double ns[REPEATS_MAX] = {0};
    for (uint32_t i = 0; i < repeats + n; i++) {
        double start = thread_s();
        must(tn_localize(l, &samples[i % n].batch, &local, &err), &err);
        double seconds = thread_s() - start;
        if (i >= n) { /* the first round warms up */
            ns[i - n] = 1e9 * seconds / ((double)samples[0].batch.rows * SLOTS);
        }
    }
    *unique = local != NULL ? local->keys.n : 0;
    tn_localizer_free(l);
    qsort(ns, repeats, sizeof *ns, by_value);
    return ns[repeats / 2];
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

static void count(bool occurrences)
{
    enum { ROWS = 1024 };
    sample samples[2];
    tn_localizer *l = localizer(occurrences);
    for (uint32_t k = 0; k < 2; k++) {
        sample_make(&samples[k], ROWS, k * UINT64_C(1000003));
    }
    localize(&(counted_job){l, &samples[0].batch});
    tn_count(localize, &(counted_job){l, &samples[1].batch});
    tn_localizer_free(l);
    sample_done(&samples[0]);
    sample_done(&samples[1]);
}

static void count_numbering(void)
{
    count(false);
}

static void count_training(void)
{
    count(true);
}

static const tn_counted rows[] = {
    {"numbering", count_numbering}, {"training", count_training}, {NULL, NULL}};

int main(int argc, char **argv)
{
    static const uint32_t sizes[] = {128, 1024, 4096, 65536};
    enum { SAMPLES = 4 };
    if (tn_counted_main(argc, argv, rows)) {
        return 0;
    }
    uint64_t repeats = argc > 1 ? strtoull(argv[1], NULL, 10) : 101;
    repeats = repeats < 1 ? 1 : repeats > REPEATS_MAX ? REPEATS_MAX : repeats;
    uint64_t only = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    tn_flush_denormals();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (only != 0 && only != sizes[i]) {
            continue;
        }
        sample samples[SAMPLES];
        uint32_t unique = 0;
        for (uint32_t k = 0; k < SAMPLES; k++) {
            sample_make(&samples[k], sizes[i], k * UINT64_C(1000003));
        }
        double forward = measure(samples, SAMPLES, false, (uint32_t)repeats, &unique);
        double both = measure(samples, SAMPLES, true, (uint32_t)repeats, &unique);
        printf("{\"bench\":\"localize\",\"rows\":%" PRIu32 ",\"keys\":%" PRIu32
               ",\"unique\":%" PRIu32
               ",\"ns_per_key\":%.2f,\"ns_per_key_training\":%.2f,\"limit\":\"5.5-6.9 ns per "
               "key\"}\n",
               sizes[i], sizes[i] * SLOTS, unique, forward, both);
        for (uint32_t k = 0; k < SAMPLES; k++) {
            sample_done(&samples[k]);
        }
    }
    return 0;
}
