/* bench_tnb.c - batches as training sees them: from text, and from its binary cache.
 *
 *     bench_tnb [rows [repeats [format]]]
 *
 * One JSON line per format: medians [least most] of rows/s through the reader with one parser, by
 * the processor time of all its threads, so that it is one core whoever else uses the machine; the
 * ratio of both; and `bytes`, rows/s of reading the bytes of the cache and checking them, no more.
 */
#include "base/core/arena.h"
#include "config/field.h"
#include "logs.h"

#include "base/core/clock.h"
#include "base/file/file.h"
#include "base/math/crc32c.h"
#include "config/diag.h"
#include "config/tree.h"
#include "io/read/cache.h"
#include "io/read/dataset.h"
#include "io/read/reader.h"
#include "io/read/schema_inference.h"
#include "io/schema/dataopts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 1024, REPEATS_MAX = 101, PATHS = 64 };

static void must(tn_status status, const tn_error *err)
{
    if (status != TN_OK) {
        (void)fprintf(stderr, "bench_tnb: %s\n", err->text);
        _Exit(1);
    }
}

static double cpu_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A log as text and as a cache. */
typedef struct subject {
    char text[PATHS], cache[PATHS];
    tn_arena *arena;
    tn_dataset config;
    const tn_schema *schema;
} subject;

/* One epoch with a shuffle, as while training; `make`: NULL, or the cache to make on the way. */
static double read_all(const subject *s, const char *path, const char *make)
{
    tn_error err = {0};
    tn_reader *reader = NULL;
    tn_batch *batch = NULL;
    tn_status status;
    const tn_reader_opts opts = {.paths = {1, &path},
                                 .batch_rows = BATCH,
                                 .training = true,
                                 .seed = 1,
                                 .prefetch = 4,
                                 .make_cache = make};
    double start = cpu_s();
    must(tn_reader_open(&reader, s->schema, &opts, &err), &err);
    while ((status = tn_reader_next(reader, &batch, &err)) == TN_OK) {
        tn_reader_recycle(reader, batch);
    }
    must(status == TN_END ? TN_OK : status, &err);
    double seconds = cpu_s() - start;
    tn_reader_close(reader);
    return seconds;
}

/* Bytes off the disk, or out of its cache, and their checksum. */
static double read_bytes(const char *path)
{
    static char piece[1 << 18];
    tn_error err = {0};
    tn_infile *file = NULL;
    uint32_t crc = 0;
    double start = cpu_s();
    must(tn_infile_open(&file, path, &err), &err);
    uint64_t size = tn_infile_size(file);
    for (uint64_t at = 0; at < size; at += sizeof piece) {
        size_t n = size - at < sizeof piece ? (size_t)(size - at) : sizeof piece;
        must(tn_infile_read(file, at, piece, n, &err), &err);
        crc = tn_crc32c(crc, piece, n);
    }
    double seconds = cpu_s() - start;
    tn_infile_close(file);
    return crc == 1 ? seconds + 1e-9 : seconds; /* so that it is computed */
}

static void open_subject(subject *s, const tn_log *log, uint64_t rows)
{
    tn_error err = {0};
    tn_text text = {0};
    tn_diag diag = {0};
    for (uint64_t i = 0; i < rows; i++) {
        log->add_row(&text, i);
    }
    (void)snprintf(s->text, sizeof s->text, "/tmp/bench_tnb.%d", (int)getpid());
    (void)snprintf(s->cache, sizeof s->cache, "/tmp/bench_tnb.%d.tnb", (int)getpid());
    must(tn_text_check(&text, "rows", &err), &err);
    must(tn_file_replace(s->text, text.data, text.size, &err), &err);
    tn_text_clear(&text);
    log->add_config(&text);
    s->arena = tn_arena_new(1 << 16);
    tn_binder b = {.arena = s->arena, .diag = &diag};
    tn_fields_bind(&b, tn_dataset_fields, tn_tree_read_flow(s->arena, text.data, "bench"),
                   &s->config);
    must(tn_schema_new(&s->schema, &s->config.data, &s->config.slots, &b, &err), &err);
    tn_diag_done(&diag);
    tn_text_done(&text);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double print_rate(const char *name, double *seconds, uint64_t n, uint64_t rows)
{
    qsort(seconds, n, sizeof *seconds, by_value);
    double median = (double)rows / seconds[n / 2];
    printf(",\"%s\":%.0f,\"%s_range\":[%.0f,%.0f]", name, median, name,
           (double)rows / seconds[n - 1], (double)rows / seconds[0]);
    return median;
}

static void measure(const tn_log *log, uint64_t rows, uint64_t repeats)
{
    subject s = {.arena = NULL};
    double text[REPEATS_MAX] = {0};
    double cache[REPEATS_MAX] = {0};
    double bytes[REPEATS_MAX] = {0};
    open_subject(&s, log, rows);
    (void)read_all(&s, s.text, s.cache);
    for (uint64_t i = 0; i < repeats; i++) {
        text[i] = read_all(&s, s.text, NULL);
        cache[i] = read_all(&s, s.cache, NULL);
        bytes[i] = read_bytes(s.cache);
    }
    printf("{\"bench\":\"tnb\",\"format\":\"%s\",\"rows\":%" PRIu64, log->name, rows);
    double slow = print_rate("text_rows_per_s", text, repeats, rows);
    double fast = print_rate("tnb_rows_per_s", cache, repeats, rows);
    (void)print_rate("bytes", bytes, repeats, rows);
    printf(",\"ratio\":%.2f}\n", fast / slow);
    (void)fflush(stdout);
    (void)unlink(s.text);
    (void)unlink(s.cache);
    tn_arena_free(s.arena);
}

int main(int argc, char **argv)
{
    uint64_t rows = argc > 1 ? strtoull(argv[1], NULL, 10) : 300000;
    uint64_t repeats = argc > 2 ? strtoull(argv[2], NULL, 10) : 5;
    repeats = repeats < 1 ? 1 : repeats > REPEATS_MAX ? REPEATS_MAX : repeats;
    for (const tn_log *log = tn_logs; log->name != NULL; log++) {
        if (argc <= 3 || strcmp(argv[3], log->name) == 0) {
            measure(log, rows, repeats);
        }
    }
    return 0;
}
