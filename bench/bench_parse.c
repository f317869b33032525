/* bench_parse.c - reading: bytes of a file to rows on one core, and to batches through the reader.
 *
 *     bench_parse [--json] [rows [repeats [format]]]
 *     bench_parse --list | FORMAT      for .ci/check-instructions
 *
 * Per format: cut + parse on one thread (`parsing`), the same with the transposition into batches
 * (`batches`), and the reader with one parser (`reader`): medians [lowest highest]. The limit is
 * what memory allows: a sum over the same bytes, the best of the repeats. CPU time of the thread
 * but for the reader, whose threads work side by side.
 */
#include "counted.h"
#include "figure.h"
#include "io/read/fileset.h"
#include "logs.h"
#include "machine.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/file/file.h"
#include "base/thread/threads.h"
#include "io/read/block_reader.h"
#include "io/read/reader.h"
#include "io/rows/batch_builder.h"
#include "io/rows/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 1024, REPEATS_MAX = TN_SAMPLES_MAX };

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
    tn_block_reader *reader;
    tn_batch_builder *builder;
    tn_block block;
    tn_parsed parsed;
    double cut_s, parse_s, fill_s; /* CPU time so far */
} stages;

static stages open_stages(const tn_log_file *log)
{
    tn_error err = {0};
    const tn_schema *schema = log->schema;
    stages s = {.schema = schema};
    const char *path = log->path;
    must(tn_fileset_new(&s.files, &(tn_strs){1, &path}, schema, 1, &err), &err);
    must(tn_block_reader_new(&s.reader, schema, s.files, NULL, &err), &err);
    must(tn_rows_new(&s.parsed.rows, schema, TN_ROWS_BARE, &err), &err);
    must(tn_batch_builder_new(&s.builder, schema, BATCH, false, &err), &err);
    return s;
}

static void close_stages(stages *s)
{
    tn_block_done(&s->block);
    tn_rows_free(s->parsed.rows);
    tn_parsed_done(&s->parsed);
    tn_batch_builder_free(s->builder);
    tn_block_reader_free(s->reader);
    tn_fileset_free(s->files);
}

static void fill_batches(stages *s)
{
    tn_error err = {0};
    for (uint32_t i = 0; i < s->parsed.rows->n; i++) {
        if (tn_batch_builder_rows(s->builder) == BATCH) {
            must(tn_batch_builder_settle(s->builder, &err), &err);
            (void)tn_batch_builder_end(s->builder);
            tn_batch_builder_clear(s->builder);
        }
        must(tn_batch_builder_add(s->builder, s->parsed.rows, i, 0, &err), &err);
    }
    must(tn_batch_builder_settle(s->builder, &err), &err); /* the rows go now */
}

static void go(void *job)
{
    stages *s = job;
    for (uint32_t part = 0; part < s->files->n_parts; part++) {
        tn_block_reader_go(s->reader, part);
        do {
            double start = tn_machine_thread_s();
            tn_block_reader_next(s->reader, &s->block);
            double cut = tn_machine_thread_s();
            tn_block_parse(&s->block, s->schema, s->files, 1, &s->parsed);
            double parsed = tn_machine_thread_s();
            must(s->parsed.fault, &s->parsed.err);
            fill_batches(s);
            s->cut_s += cut - start;
            s->parse_s += parsed - cut;
            s->fill_s += tn_machine_thread_s() - parsed;
        } while (!s->block.last);
    }
}

static double run_reader(const tn_log_file *log)
{
    const char *path = log->path;
    tn_error err = {0};
    tn_reader *reader = NULL;
    tn_batch *batch = NULL;
    const tn_reader_opts opts = {
        .paths = {1, &path}, .batch_rows = BATCH, .training = true, .seed = 1, .prefetch = 4};
    double start = tn_clock_s();
    must(tn_reader_open(&reader, log->schema, &opts, &err), &err);
    tn_status status;
    while ((status = tn_reader_next(reader, &batch, &err)) == TN_OK) {
        tn_reader_recycle(reader, batch);
    }
    must(status == TN_END ? TN_OK : status, &err);
    double seconds = tn_clock_s() - start;
    tn_reader_close(reader);
    return seconds;
}

/* Sums the words of the text, the least there is to do with it. */
static double scan(const char *bytes, size_t size)
{
    static volatile uint64_t kept;
    uint64_t sum = 0;
    double start = tn_machine_thread_s();
    for (size_t i = 0; i + sizeof sum <= size; i += sizeof sum) {
        uint64_t word;
        memcpy(&word, bytes + i, sizeof word);
        sum += word;
    }
    kept = sum;
    (void)kept;
    return tn_machine_thread_s() - start;
}

/* What is reported of a format, in rows/s and MB/s. */
typedef struct result {
    const tn_log *log;
    uint64_t rows;
    double megabytes;
    tn_samples scan, cut, parsing, fill, batches, reader; /* seconds */
} result;

static void print_json(result *r, const char *what, const tn_samples *t)
{
    const tn_spread s = tn_spread_of(t);
    double rows = (double)r->rows;
    printf(",\"%s\":{\"rows_per_s\":%.0f,\"lowest\":%.0f,\"highest\":%.0f,\"mb_per_s\":%.0f,"
           "\"ns_per_row\":%.1f}",
           what, rows / s.median, rows / s.most, rows / s.least, r->megabytes / s.median,
           s.median * 1e9 / rows);
}

static void print_line(result *r, const char *what, const tn_samples *t)
{
    const tn_spread s = tn_spread_of(t);
    double rows = (double)r->rows / 1e6;
    printf("  %-8s %7.2f M rows/s [%.2f %.2f] %7.0f MB/s [%.0f %.0f] %8.1f ns per row\n", what,
           rows / s.median, rows / s.most, rows / s.least, r->megabytes / s.median,
           r->megabytes / s.most, r->megabytes / s.least, s.median * 1e3 / rows);
}

static void print_result(result *r, bool json)
{
    struct {
        const char *name;
        const tn_samples *t;
    } rows[] = {{"parsing", &r->parsing}, {"batches", &r->batches}, {"cut", &r->cut},
                {"fill", &r->fill},       {"reader", &r->reader},   {"limit", &r->scan}};
    if (json) {
        printf("{\"bench\":\"parse\",\"format\":\"%s\",\"rows\":%" PRIu64 ",\"target\":\"%s\"",
               r->log->name, r->rows, r->log->limit);
    } else {
        printf("%s: %" PRIu64 " rows of %.0f bytes; target of parsing: %s\n", r->log->name, r->rows,
               r->megabytes * 1e6 / (double)r->rows, r->log->limit);
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        (json ? print_json : print_line)(r, rows[i].name, rows[i].t);
    }
    (void)fputs(json ? "}\n" : "", stdout);
}

/* Bytes of a file, for the limit. */
static double scan_file(const char *path)
{
    tn_error err = {0};
    tn_text text = {0};
    must(tn_file_read_all(path, SIZE_MAX, &text, &err), &err);
    double seconds = scan(text.data, text.size);
    tn_text_done(&text);
    return seconds;
}

static void measure(const tn_log *log, uint64_t rows, uint32_t repeats, bool json)
{
    tn_log_file s;
    tn_error err = {0};
    must(tn_log_file_write(&s, log, rows, &err), &err);
    static result r;
    r = (result){.log = log, .rows = rows, .megabytes = (double)s.bytes / 1e6};
    stages all = open_stages(&s);
    go(&all); /* memory grows once */
    for (uint32_t i = 0; i < repeats; i++) {
        all.cut_s = 0;
        all.parse_s = 0;
        all.fill_s = 0;
        go(&all);
        tn_sample(&r.cut, all.cut_s);
        tn_sample(&r.parsing, all.cut_s + all.parse_s);
        tn_sample(&r.fill, all.fill_s);
        tn_sample(&r.batches, all.cut_s + all.parse_s + all.fill_s);
        tn_sample(&r.reader, run_reader(&s));
        tn_sample(&r.scan, scan_file(s.path));
    }
    const double least = tn_spread_of(&r.scan).least;
    r.scan.n = 0;
    tn_sample(&r.scan, least);
    print_result(&r, json);
    close_stages(&all);
    tn_log_file_done(&s);
}

/* ---- counting: a file of 2000 rows by stages that have read it before ---- */

static void count(const tn_log *log)
{
    enum { ROWS = 2000 };
    tn_log_file s;
    tn_error err = {0};
    must(tn_log_file_write(&s, log, ROWS, &err), &err);
    stages all = open_stages(&s);
    go(&all);
    tn_count(go, &all);
    close_stages(&all);
    tn_log_file_done(&s);
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
    bool json = argc > 1 && strcmp(argv[1], "--json") == 0;
    argc -= json;
    argv += json;
    uint64_t rows = argc > 1 ? strtoull(argv[1], NULL, 10) : 300000;
    uint64_t repeats = argc > 2 ? strtoull(argv[2], NULL, 10) : 5;
    repeats = repeats < 1 ? 1 : repeats > REPEATS_MAX ? REPEATS_MAX : repeats;
    for (const tn_log *log = tn_logs; log->name != NULL; log++) {
        if (argc <= 3 || strcmp(argv[3], log->name) == 0) {
            measure(log, rows, (uint32_t)repeats, json);
        }
    }
    return 0;
}
