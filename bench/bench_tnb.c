/* bench_tnb.c - batches as training sees them: from text, and from its binary cache.
 *
 *     bench_tnb [rows [repeats [format]]]
 *
 * One JSON line per format: medians [least most] of rows/s through the reader with one parser, by
 * the processor time of all its threads, so that it is one core whoever else uses the machine; the
 * ratio of both; and `bytes`, rows/s of reading the bytes of the cache and checking them, no more.
 */
#include "figure.h"
#include "logs.h"
#include "machine.h"

#include "base/file/file.h"
#include "base/math/crc32c.h"
#include "io/read/cache.h"
#include "io/read/reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BATCH = 1024 };

static void must(tn_status status, const tn_error *err)
{
    if (status != TN_OK) {
        (void)fprintf(stderr, "bench_tnb: %s\n", err->text);
        _Exit(1);
    }
}

/* One epoch with a shuffle, as while training; `make`: NULL, or the cache to make on the way. */
static double read_all(const tn_log_file *s, const char *path, const char *make)
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
    double start = tn_machine_cpu_s();
    must(tn_reader_open(&reader, s->schema, &opts, &err), &err);
    while ((status = tn_reader_next(reader, &batch, &err)) == TN_OK) {
        tn_reader_recycle(reader, batch);
    }
    must(status == TN_END ? TN_OK : status, &err);
    double seconds = tn_machine_cpu_s() - start;
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
    double start = tn_machine_cpu_s();
    must(tn_infile_open(&file, path, &err), &err);
    uint64_t size = tn_infile_size(file);
    for (uint64_t at = 0; at < size; at += sizeof piece) {
        size_t n = size - at < sizeof piece ? (size_t)(size - at) : sizeof piece;
        must(tn_infile_read(file, at, piece, n, &err), &err);
        crc = tn_crc32c(crc, piece, n);
    }
    double seconds = tn_machine_cpu_s() - start;
    tn_infile_close(file);
    return crc == 1 ? seconds + 1e-9 : seconds; /* so that it is computed */
}

static double print_rate(const char *name, const tn_samples *seconds, uint64_t rows)
{
    const tn_spread s = tn_spread_of(seconds);
    const double n = (double)rows;
    printf(",\"%s\":%.0f,\"%s_range\":[%.0f,%.0f]", name, n / s.median, name, n / s.most,
           n / s.least);
    return n / s.median;
}

static void measure(const tn_log *log, uint64_t rows, uint64_t repeats)
{
    tn_log_file s;
    tn_error err = {0};
    char cache_path[sizeof s.path + 4];
    static tn_samples text;
    static tn_samples cache;
    static tn_samples bytes;
    text.n = cache.n = bytes.n = 0;
    must(tn_log_file_write(&s, log, rows, &err), &err);
    (void)snprintf(cache_path, sizeof cache_path, "%s.tnb", s.path);
    (void)read_all(&s, s.path, cache_path);
    for (uint64_t i = 0; i < repeats; i++) {
        tn_sample(&text, read_all(&s, s.path, NULL));
        tn_sample(&cache, read_all(&s, cache_path, NULL));
        tn_sample(&bytes, read_bytes(cache_path));
    }
    printf("{\"bench\":\"tnb\",\"format\":\"%s\",\"rows\":%" PRIu64, log->name, rows);
    double slow = print_rate("text_rows_per_s", &text, rows);
    double fast = print_rate("tnb_rows_per_s", &cache, rows);
    (void)print_rate("bytes", &bytes, rows);
    printf(",\"ratio\":%.2f}\n", fast / slow);
    (void)fflush(stdout);
    (void)unlink(cache_path);
    tn_log_file_done(&s);
}

int main(int argc, char **argv)
{
    uint64_t rows = argc > 1 ? strtoull(argv[1], NULL, 10) : 300000;
    uint64_t repeats = argc > 2 ? strtoull(argv[2], NULL, 10) : 5;
    repeats = repeats < 1 ? 1 : repeats;
    for (const tn_log *log = tn_logs; log->name != NULL; log++) {
        if (argc <= 3 || strcmp(argv[3], log->name) == 0) {
            measure(log, rows, repeats);
        }
    }
    return 0;
}
