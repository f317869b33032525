/* bench_parse.c - reading: bytes of a file to rows on one core, and to batches through the reader.
 *
 *     bench_parse [rows [repeats [format]]]
 *     bench_parse --list | FORMAT      for .ci/check-instructions
 *
 * One JSON line per format: medians of rows/s and MB/s of cut + parse + transpose on one thread,
 * and of the reader with one parser; `limit` is the target of docs/performance on one core.
 */
#include "counted.h"
#include "logs.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/flow.h"
#include "base/threads.h"
#include "io/batchfill.h"
#include "io/blockparse.h"
#include "io/reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 1024, REPEATS_MAX = 101 };

typedef struct config {
    tn_data_opts data;
    tn_tables slots;
} config;

static const tn_field config_fields[] = {
    TN_FIELD_TABLE(config, data, tn_data_opts, tn_data_fields, "data"),
    TN_FIELD_TABLES(config, slots, tn_slot_opts, "[]", tn_slot_fields, "slots"),
    TN_FIELD_END,
};

/* CPU time of this thread: what is measured is one core, whoever else uses the machine. */
static double thread_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(tn_status status, const tn_error *err)
{
    if (status != TN_OK) {
        (void)fprintf(stderr, "bench_parse: %s\n", err->text);
        _Exit(1);
    }
}

/* Cut, parse and transpose, one after another on this thread. */
typedef struct stages {
    const tn_schema *schema;
    tn_fileset *files;
    tn_feed *feed;
    tn_filling *filling;
    tn_block block;
    tn_parsed parsed;
} stages;

static stages open_stages(const tn_schema *schema, const tn_strs *paths)
{
    tn_error err = {0};
    stages s = {.schema = schema};
    must(tn_fileset_new(&s.files, paths, schema, &err), &err);
    must(tn_feed_new(&s.feed, schema, s.files, NULL, &err), &err);
    must(tn_rows_new(&s.parsed.rows, schema, 0, &err), &err);
    must(tn_filling_new(&s.filling, schema, BATCH, false, &err), &err);
    return s;
}

static void close_stages(stages *s)
{
    tn_block_done(&s->block);
    tn_rows_free(s->parsed.rows);
    tn_parsed_done(&s->parsed);
    tn_filling_free(s->filling);
    tn_feed_free(s->feed);
    tn_fileset_free(s->files);
}

static void fill_batches(stages *s)
{
    tn_error err = {0};
    for (uint32_t i = 0; i < s->parsed.rows->n; i++) {
        if (tn_filling_rows(s->filling) == BATCH) {
            (void)tn_filling_end(s->filling);
            tn_filling_clear(s->filling);
        }
        must(tn_filling_add(s->filling, s->parsed.rows, i, 0, &err), &err);
    }
}

static void go(void *job)
{
    stages *s = job;
    for (uint32_t part = 0; part < s->files->n_parts; part++) {
        tn_feed_go(s->feed, part);
        do {
            tn_feed_next(s->feed, &s->block);
            tn_block_parse(&s->block, s->schema, s->files, 1, &s->parsed);
            must(s->parsed.fault, &s->parsed.err);
            fill_batches(s);
        } while (!s->block.last);
    }
}

static double run_stages(const tn_schema *schema, const tn_strs *paths)
{
    stages s = open_stages(schema, paths);
    double start = thread_s();
    go(&s);
    double seconds = thread_s() - start;
    close_stages(&s);
    return seconds;
}

static double run_reader(const tn_schema *schema, const tn_strs *paths)
{
    tn_error err = {0};
    tn_reader *reader = NULL;
    tn_batch *batch = NULL;
    const tn_reader_opts opts = {
        .paths = *paths, .batch_rows = BATCH, .training = true, .seed = 1, .prefetch = 4};
    double start = tn_clock_s();
    must(tn_reader_open(&reader, schema, &opts, &err), &err);
    tn_status status;
    while ((status = tn_reader_next(reader, &batch, &err)) == TN_OK) {
        tn_reader_recycle(reader, batch);
    }
    must(status == TN_END ? TN_OK : status, &err);
    double seconds = tn_clock_s() - start;
    tn_reader_close(reader);
    return seconds;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *seconds, uint32_t n)
{
    qsort(seconds, n, sizeof *seconds, by_value);
    return seconds[n / 2];
}

/* A log in a file of its own, and what describes it. */
typedef struct subject {
    char path[64];
    const char *item;
    tn_strs paths;
    size_t bytes;
    tn_arena *arena;
    config config;
    const tn_schema *schema; /* of config */
} subject;

static void open_subject(subject *s, const tn_log *log, uint64_t rows)
{
    tn_error err = {0};
    tn_text text = {0};
    for (uint64_t i = 0; i < rows; i++) {
        log->add_row(&text, i);
    }
    (void)snprintf(s->path, sizeof s->path, "/tmp/bench_parse.%d", (int)getpid());
    must(tn_text_check(&text, "rows", &err), &err);
    must(tn_file_replace(s->path, text.data, text.size, &err), &err);
    s->item = s->path;
    s->paths = (tn_strs){1, &s->item};
    s->bytes = text.size;
    tn_text_clear(&text);
    log->add_config(&text);
    s->arena = tn_arena_new(1 << 16);
    tn_diag diag = {0};
    tn_binder b = {.arena = s->arena, .diag = &diag};
    tn_fields_bind(&b, config_fields, tn_flow_read(s->arena, text.data, "bench"), &s->config);
    must(tn_schema_new(&s->schema, &s->config.data, &s->config.slots, &b, &err), &err);
    tn_diag_done(&diag);
    tn_text_done(&text);
}

static void close_subject(const subject *s)
{
    (void)unlink(s->path);
    tn_arena_free(s->arena);
}

static void measure(const tn_log *log, uint64_t rows, uint32_t repeats)
{
    subject s = {.bytes = 0};
    open_subject(&s, log, rows);
    double one_by_one[REPEATS_MAX] = {0};
    double reader[REPEATS_MAX] = {0};
    for (uint32_t i = 0; i < repeats; i++) {
        one_by_one[i] = run_stages(s.schema, &s.paths);
        reader[i] = run_reader(s.schema, &s.paths);
    }
    double megabytes = (double)s.bytes / 1e6;
    double one = median(one_by_one, repeats);
    double all = median(reader, repeats);
    printf("{\"bench\":\"parse\",\"format\":\"%s\",\"rows\":%" PRIu64
           ",\"rows_per_s\":%.0f,\"mb_per_s\":%.0f,\"limit\":\"%s\",\"reader_rows_per_s\":%.0f,"
           "\"reader_mb_per_s\":%.0f}\n",
           log->name, rows, (double)rows / one, megabytes / one, log->limit, (double)rows / all,
           megabytes / all);
    close_subject(&s);
}

/* ---- counting: a file of 2000 rows by stages that have read it before ---- */

static void count(const tn_log *log)
{
    enum { ROWS = 2000 };
    subject s = {.bytes = 0};
    open_subject(&s, log, ROWS);
    stages all = open_stages(s.schema, &s.paths);
    go(&all);
    tn_count(go, &all);
    close_stages(&all);
    close_subject(&s);
}

/* The formats are the rows. */
static bool answered(int argc, char **argv)
{
    bool list = argc == 2 && strcmp(argv[1], "--list") == 0;
    for (const tn_log *log = tn_logs; argc == 2 && log->name != NULL; log++) {
        if (list) {
            (void)puts(log->name);
        } else if (strcmp(argv[1], log->name) == 0) {
            count(log);
            return true;
        }
    }
    return list;
}

int main(int argc, char **argv)
{
    tn_flush_denormals();
    if (answered(argc, argv)) {
        return 0;
    }
    uint64_t rows = argc > 1 ? strtoull(argv[1], NULL, 10) : 300000;
    uint64_t repeats = argc > 2 ? strtoull(argv[2], NULL, 10) : 5;
    repeats = repeats < 1 ? 1 : repeats > REPEATS_MAX ? REPEATS_MAX : repeats;
    for (const tn_log *log = tn_logs; log->name != NULL; log++) {
        if (argc <= 3 || strcmp(argv[3], log->name) == 0) {
            measure(log, rows, (uint32_t)repeats);
        }
    }
    return 0;
}
