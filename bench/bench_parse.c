/* bench_parse.c - reading: bytes of a file to rows on one core, and to batches through the reader.
 *
 *     bench_parse [rows [repeats [format]]]
 *
 * One JSON line per format: medians of rows/s and MB/s of cut + parse + transpose on one thread,
 * and of the reader with one parser; `limit` is the target of docs/performance on one core.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/flow.h"
#include "base/key.h"
#include "base/proto.h"
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

enum { INTEGERS = 13, CATEGORIES = 26, FIELDS = 39, BATCH = 1024, REPEATS_MAX = 101 };

typedef struct config {
    tn_data_opts data;
    tn_tables slots;
} config;

static const tn_field config_fields[] = {
    TN_FIELD_TABLE(config, data, tn_data_opts, tn_data_fields, "data"),
    TN_FIELD_TABLES(config, slots, tn_slot_opts, "[]", tn_slot_fields, "slots"),
    TN_FIELD_END,
};

typedef struct subject {
    const char *name;
    const char *limit; /* of the target */
    void (*add_row)(tn_text *out, uint64_t row);
    void (*add_config)(tn_text *out);
} subject;

/* A small number most of the time, as counts and popular ids are. */
static uint64_t skewed(uint64_t x, uint32_t bits)
{
    return tn_mix(x) >> (64 - 1 - tn_mix(x ^ 0x5bd1) % bits);
}

static void criteo_row(tn_text *out, uint64_t row)
{
    tn_text_adds(out, tn_mix(row) % 4 == 0 ? "1" : "0");
    for (uint64_t i = 0; i < INTEGERS; i++) {
        uint64_t x = tn_mix(row * FIELDS + i);
        tn_text_addc(out, '\t');
        if (x % 5 != 0) {
            tn_text_add_u64(out, skewed(x, 10));
        }
    }
    for (uint64_t i = 0; i < CATEGORIES; i++) {
        uint64_t x = tn_mix(row * FIELDS + INTEGERS + i);
        tn_text_addc(out, '\t');
        if (x % 9 != 0) {
            tn_text_addf(out, "%08" PRIx64, tn_mix(skewed(x, 20)) >> 32);
        }
    }
    tn_text_addc(out, '\n');
}

static void criteo_config(tn_text *out)
{
    tn_text_adds(out, "{data: {format: criteo, readers: 1}, slots: [");
    for (uint32_t i = 1; i <= INTEGERS; i++) {
        tn_text_addf(out, "{name: I%u, type: int, transform: ln2_bucket}, ", i);
    }
    for (uint32_t i = 1; i <= CATEGORIES; i++) {
        tn_text_addf(out, "%s{name: C%u, type: hex}", i > 1 ? ", " : "", i);
    }
    tn_text_adds(out, "]}");
}

static void libsvm_row(tn_text *out, uint64_t row)
{
    tn_text_adds(out, tn_mix(row) % 4 == 0 ? "1" : "0");
    for (uint64_t i = 0; i < FIELDS; i++) {
        tn_text_addc(out, ' ');
        tn_text_add_u64(out, i * 100000 + skewed(tn_mix(row * FIELDS + i), 16));
        tn_text_adds(out, ":1");
    }
    tn_text_addc(out, '\n');
}

static void libsvm_config(tn_text *out)
{
    tn_text_adds(out, "{data: {format: libsvm, readers: 1}}");
}

static void libffm_row(tn_text *out, uint64_t row)
{
    tn_text_adds(out, tn_mix(row) % 4 == 0 ? "1" : "0");
    for (uint64_t i = 0; i < FIELDS; i++) {
        tn_text_addc(out, ' ');
        tn_text_add_u64(out, i);
        tn_text_addc(out, ':');
        tn_text_add_u64(out, tn_mix(skewed(tn_mix(row * FIELDS + i), 20)) >> 1);
        tn_text_adds(out, ":1");
    }
    tn_text_addc(out, '\n');
}

static void libffm_config(tn_text *out)
{
    tn_text_adds(out, "{data: {format: libffm, readers: 1}, slots: [");
    for (uint32_t i = 0; i < FIELDS; i++) {
        tn_text_addf(out, "%s{name: f%u, field: %u}", i > 0 ? ", " : "", i, i);
    }
    tn_text_adds(out, "]}");
}

static void add_int64(tn_text *out, const char *name, uint64_t value)
{
    size_t entry = tn_proto_begin(out, 1);
    tn_proto_add_str(out, 1, name);
    size_t feature = tn_proto_begin(out, 2);
    size_t list = tn_proto_begin(out, 3);
    size_t packed = tn_proto_begin(out, 1);
    tn_proto_add_varint(out, value);
    tn_proto_end(out, packed);
    tn_proto_end(out, list);
    tn_proto_end(out, feature);
    tn_proto_end(out, entry);
}

static void tfrecord_row(tn_text *out, uint64_t row)
{
    static const char zeros[12] = {0};
    size_t begin = out->size;
    tn_text_add(out, zeros, sizeof zeros);
    size_t features = tn_proto_begin(out, 1);
    add_int64(out, "label", tn_mix(row) % 4 == 0);
    for (uint64_t i = 0; i < FIELDS; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "%u", (unsigned)i);
        add_int64(out, name, tn_mix(skewed(tn_mix(row * FIELDS + i), 20)) >> 33);
    }
    tn_proto_end(out, features);
    uint64_t n = out->size - begin - sizeof zeros;
    tn_store_u64(out->data + begin, n);
    tn_store_u32(out->data + begin + 8, tn_crc_mask(tn_crc32c(0, out->data + begin, 8)));
    tn_text_add_u32le(out, tn_crc_mask(tn_crc32c(0, out->data + begin + sizeof zeros, n)));
}

static void tfrecord_config(tn_text *out)
{
    tn_text_adds(out, "{data: {format: tfrecord, readers: 1}, slots: [");
    for (uint32_t i = 0; i < FIELDS; i++) {
        tn_text_addf(out, "%s{name: '%u'}", i > 0 ? ", " : "", i);
    }
    tn_text_adds(out, "]}");
}

static const subject subjects[] = {
    {"criteo", "4.0 M rows/s", criteo_row, criteo_config},
    {"libsvm", "1000 MB/s", libsvm_row, libsvm_config},
    {"libffm", "1000 MB/s", libffm_row, libffm_config},
    {"tfrecord", "2.5 M rows/s", tfrecord_row, tfrecord_config},
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

/* Cut, parse and transpose, one after another on this thread; returns the seconds. */
static double run_stages(const tn_schema *schema, const tn_strs *paths)
{
    tn_error err = {0};
    tn_fileset *files = NULL;
    tn_feed *feed = NULL;
    tn_filling *filling = NULL;
    tn_block block = {.n_records = 0};
    tn_parsed parsed = {.rows = NULL};
    must(tn_fileset_new(&files, paths, schema, &err), &err);
    must(tn_feed_new(&feed, schema, files, NULL, &err), &err);
    must(tn_rows_new(&parsed.rows, schema, 0, &err), &err);
    must(tn_filling_new(&filling, schema, BATCH, false, &err), &err);
    double start = thread_s();
    for (uint32_t part = 0; part < files->n_parts; part++) {
        tn_feed_go(feed, part);
        do {
            tn_feed_next(feed, &block);
            tn_block_parse(&block, schema, files, 1, &parsed);
            must(parsed.fault, &parsed.err);
            for (uint32_t i = 0; i < parsed.rows->n; i++) {
                if (tn_filling_rows(filling) == BATCH) {
                    (void)tn_filling_end(filling);
                    tn_filling_clear(filling);
                }
                must(tn_filling_add(filling, parsed.rows, i, 0, &err), &err);
            }
        } while (!block.last);
    }
    double seconds = thread_s() - start;
    tn_block_done(&block);
    tn_rows_free(parsed.rows);
    tn_parsed_done(&parsed);
    tn_filling_free(filling);
    tn_feed_free(feed);
    tn_fileset_free(files);
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

static void measure(const subject *s, uint64_t rows, uint32_t repeats)
{
    tn_error err = {0};
    tn_text text = {0};
    char path[64];
    for (uint64_t i = 0; i < rows; i++) {
        s->add_row(&text, i);
    }
    (void)snprintf(path, sizeof path, "/tmp/bench_parse.%d", (int)getpid());
    must(tn_text_check(&text, "rows", &err), &err);
    must(tn_file_replace(path, text.data, text.size, &err), &err);
    double megabytes = (double)text.size / 1e6;
    tn_text_clear(&text);
    s->add_config(&text);
    tn_arena *arena = tn_arena_new(1 << 16);
    tn_diag diag = {0};
    tn_binder b = {.arena = arena, .diag = &diag};
    config c;
    const tn_schema *schema = NULL;
    tn_fields_bind(&b, config_fields, tn_flow_read(arena, text.data, "bench"), &c);
    must(tn_schema_new(&schema, &c.data, &c.slots, &b, &err), &err);
    const char *const item = path;
    const tn_strs paths = {1, &item};
    double stages[REPEATS_MAX] = {0};
    double reader[REPEATS_MAX] = {0};
    for (uint32_t i = 0; i < repeats; i++) {
        stages[i] = run_stages(schema, &paths);
        reader[i] = run_reader(schema, &paths);
    }
    double one = median(stages, repeats);
    double all = median(reader, repeats);
    printf("{\"bench\":\"parse\",\"format\":\"%s\",\"rows\":%" PRIu64
           ",\"rows_per_s\":%.0f,\"mb_per_s\":%.0f,\"limit\":\"%s\",\"reader_rows_per_s\":%.0f,"
           "\"reader_mb_per_s\":%.0f}\n",
           s->name, rows, (double)rows / one, megabytes / one, s->limit, (double)rows / all,
           megabytes / all);
    (void)unlink(path);
    tn_diag_done(&diag);
    tn_arena_free(arena);
    tn_text_done(&text);
}

int main(int argc, char **argv)
{
    uint64_t rows = argc > 1 ? strtoull(argv[1], NULL, 10) : 300000;
    uint64_t repeats = argc > 2 ? strtoull(argv[2], NULL, 10) : 5;
    repeats = repeats < 1 ? 1 : repeats > REPEATS_MAX ? REPEATS_MAX : repeats;
    tn_flush_denormals();
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        if (argc > 3 && strcmp(argv[3], subjects[i].name) != 0) {
            continue;
        }
        measure(&subjects[i], rows, (uint32_t)repeats);
    }
    return 0;
}
