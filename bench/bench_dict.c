/* bench_dict.c - writing an inference dictionary and looking keys up in it, on one core (P17).
 *
 *     bench_dict [--json] [ROWS] [DIM] [FOLDER]      default 10000000 8 /tmp
 *
 * Rows of two segments, wide (1) and deep (DIM), f32, group arrays on; the rows come from memory,
 * so what is timed is the writer. Beside it, in turns with it: as many bytes written and
 * fsynced plainly; for look-ups, one dependent read at a random place of the file. Keys are half
 * present, half absent, in random order; the file is in the page cache.
 */
#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/file/file.h"
#include "base/keys/keyset.h"
#include "base/keys/record.h"
#include "base/math/key.h"
#include "dict/dict.h"
#include "dict/dictwrite.h"
#include "figure.h"
#include "machine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOKUPS = 500000, PLAIN_BYTES = 1 << 20, WRITES = 3, TURNS = 7 };

typedef struct rows {
    uint64_t n;
    uint64_t *key; /* ascending */
    float values[1 + 4096];
} rows;

typedef struct figures {
    double bytes;
    tn_samples write, cpu, plain, open; /* GB/s */
    tn_samples one, many, read;         /* ns */
} figures;

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The first row of a partition. */
static uint64_t first_of(const rows *r, uint32_t partition)
{
    uint64_t from = 0;
    uint64_t to = r->n;
    while (from < to) {
        uint64_t middle = from + (to - from) / 2;
        bool before = tn_partition_of(r->key[middle], TN_PARTITIONS) < partition;
        from = before ? middle + 1 : from;
        to = before ? to : middle;
    }
    return from;
}

static tn_status walk(void *arg, uint32_t piece, tn_dict_visit *visit, void *visitor, tn_error *err)
{
    const rows *r = arg;
    uint64_t end = first_of(r, piece + 1);
    for (uint64_t i = first_of(r, piece); i < end; i++) {
        const tn_dict_entry e = {.key = r->key[i], .present = 3, .values = r->values};
        TN_TRY(visit(visitor, &e, err));
    }
    return TN_OK;
}

static tn_status write_plain(const char *path, uint64_t bytes, tn_error *err)
{
    static char piece[PLAIN_BYTES];
    tn_file *f = NULL;
    TN_TRY(tn_file_create(&f, path, err));
    for (uint64_t at = 0; at < bytes; at += sizeof piece) {
        tn_status status = tn_file_write(f, piece, sizeof piece, err);
        if (status != TN_OK) {
            tn_file_abandon(f);
            return status;
        }
    }
    TN_TRY(tn_file_commit(f, err));
    return tn_remove_file(path, err);
}

static tn_status time_writing(rows *r, const tn_dict_spec *spec, const char *path, figures *out,
                              tn_error *err)
{
    char plain[TN_PATH_SIZE];
    (void)snprintf(plain, sizeof plain, "%.4000s.plain", path);
    const tn_dict_source source = {.n_pieces = TN_PARTITIONS, .walk = walk, .arg = r};
    tn_dict_written done;
    for (int i = 0; i < WRITES; i++) {
        TN_TRY(tn_remove_file(path, err));
        double begin = tn_clock_s();
        double cpu = tn_machine_cpu_s();
        TN_TRY(tn_dict_write(path, spec, &source, &done, err));
        out->bytes = (double)done.bytes;
        tn_sample(&out->write, 1e-9 * out->bytes / (tn_clock_s() - begin));
        tn_sample(&out->cpu, 1e-9 * out->bytes / (tn_machine_cpu_s() - cpu));
        begin = tn_clock_s();
        TN_TRY(write_plain(plain, done.bytes, err));
        tn_sample(&out->plain, 1e-9 * out->bytes / (tn_clock_s() - begin));
    }
    return TN_OK;
}

static uint64_t query_key(const rows *r, uint64_t turn, uint64_t i)
{
    uint64_t x = tn_mix(turn * LOOKUPS + i + 77);
    return i % 2 == 0 ? r->key[x % r->n] : x;
}

static tn_status time_one(const tn_dict *d, const rows *r, uint64_t turn, figures *out,
                          tn_error *err)
{
    float w[4096];
    double sum = 0;
    double begin = tn_clock_s();
    for (uint64_t i = 0; i < LOOKUPS; i++) {
        tn_dict_row row;
        TN_TRY(tn_dict_find_all(d, 1, &(tn_dict_query){query_key(r, turn, i), 0}, &row, err));
        (void)tn_dict_get(&row, 0, 1, w);
        sum += (double)w[0];
    }
    tn_sample(&out->one, (tn_clock_s() - begin) * 1e9 / LOOKUPS);
    return sum >= 0 ? TN_OK : TN_END;
}

static tn_status time_many(const tn_dict *d, const rows *r, uint64_t turn, figures *out,
                           tn_error *err)
{
    enum { AT_ONCE = 39 };
    double sum = 0;
    double begin = tn_clock_s();
    for (uint64_t i = 0; i + AT_ONCE <= LOOKUPS; i += AT_ONCE) {
        tn_dict_query query[AT_ONCE];
        tn_dict_row row[AT_ONCE];
        for (uint32_t k = 0; k < AT_ONCE; k++) {
            query[k] = (tn_dict_query){query_key(r, turn, i + k), 0};
        }
        TN_TRY(tn_dict_find_all(d, AT_ONCE, query, row, err));
        for (uint32_t k = 0; k < AT_ONCE; k++) {
            float w[1];
            (void)tn_dict_get(&row[k], 0, 1, w);
            sum += (double)w[0];
        }
    }
    tn_sample(&out->many, (tn_clock_s() - begin) * 1e9 / LOOKUPS);
    return sum >= 0 ? TN_OK : TN_END;
}

/* One cache miss: what a look-up cannot do without. */
static tn_status time_read(const tn_map *map, uint64_t turn, figures *out)
{
    uint64_t at = turn + 1;
    double begin = tn_clock_s();
    for (uint64_t i = 0; i < LOOKUPS; i++) {
        at = tn_mix(at + i) % (map->size - 1);
        at += (uint8_t)map->data[at] & 1;
    }
    tn_sample(&out->read, (tn_clock_s() - begin) * 1e9 / LOOKUPS);
    return at > 0 ? TN_OK : TN_END;
}

static tn_status time_lookups(const tn_dict *d, const rows *r, const char *path, figures *out,
                              tn_error *err)
{
    tn_map map = {0};
    TN_TRY(tn_map_file(&map, path, err));
    tn_status status = TN_OK;
    for (uint64_t i = 0; i < TURNS && status == TN_OK; i++) {
        status = time_one(d, r, i, out, err);
        status = status == TN_OK ? time_read(&map, i, out) : status;
        status = status == TN_OK ? time_many(d, r, i, out, err) : status;
    }
    tn_unmap(&map);
    return status;
}

static tn_status measure(rows *r, const tn_dict_spec *spec, const char *path, figures *out,
                         tn_error *err)
{
    TN_TRY(time_writing(r, spec, path, out, err));
    tn_dict *d = NULL;
    double begin = tn_clock_s();
    TN_TRY(tn_dict_open(&d, path, TN_VERIFY_FULL, err));
    tn_sample(&out->open, 1e-9 * out->bytes / (tn_clock_s() - begin));
    tn_status status = time_lookups(d, r, path, out, err);
    tn_dict_close(d);
    tn_status removed = tn_remove_file(path, err);
    return status == TN_OK ? removed : status;
}

static void print(const figures *f, const rows *r, bool json)
{
    char what[64];
    const tn_spread write = tn_spread_of(&f->write);
    const tn_spread plain = tn_spread_of(&f->plain);
    const tn_spread read = tn_spread_of(&f->read);
    (void)snprintf(what, sizeof what, "dictionary of %.3g M rows, %.0f MB", 1e-6 * (double)r->n,
                   1e-6 * f->bytes);
    tn_figure all[] = {
        {.what = what,
         .is = write,
         .yardstick = plain.median,
         .yardstick_is = "plain write and fsync",
         .target = 1},
        {.what = "the same, of processor time", .is = tn_spread_of(&f->cpu), .target = 1},
        {.what = "opening it, all checksums and keys",
         .is = tn_spread_of(&f->open),
         .target = (double)NAN},
        {.what = "look-up",
         .is = tn_spread_of(&f->one),
         .yardstick = read.median,
         .yardstick_is = "one dependent cache miss",
         .target = 200},
        {.what = "look-up, 39 at a time",
         .is = tn_spread_of(&f->many),
         .yardstick = read.median,
         .yardstick_is = "one dependent cache miss",
         .target = 200},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        all[i].row = "P17";
        all[i].unit = i < 3 ? "GB/s" : "ns";
        all[i].at_most = i >= 3;
        tn_figure_print(&all[i], json);
    }
}

int main(int argc, char **argv)
{
    bool json = tn_json_wanted(&argc, argv);
    char **arg = argv + 1;
    int n_args = argc - 1;
    uint32_t dim = n_args > 1 ? (uint32_t)strtoul(arg[1], NULL, 10) : 8;
    static rows r;
    r.n = n_args > 0 ? strtoull(arg[0], NULL, 10) : 10000000;
    tn_record record = {
        .width = 1 + dim, .n_segments = 2, .segment = {{"wide", 0, 1}, {"deep", 1, dim}}};
    const tn_share_group group = {.name = "g", .salt = 7};
    const tn_layout layout = {.n_groups = 1, .group = &group, .n_records = 1, .record = &record};
    const tn_dict_spec spec = {.layout = &layout,
                               .check_groups = true,
                               .json = "{}",
                               .partitions = TN_PARTITIONS,
                               .last = TN_PARTITIONS - 1};
    char path[TN_PATH_SIZE];
    (void)snprintf(path, sizeof path, "%.4000s/bench-%d.tnd", n_args > 2 ? arg[2] : "/tmp",
                   (int)(tn_random_id() % 100000));
    tn_error err = {0};
    static figures f;
    r.key = tn_try_alloc((size_t)r.n, sizeof *r.key, "keys", &err);
    if (r.key == NULL || dim == 0 || dim > 4095 || r.n == 0) {
        (void)fprintf(stderr, "usage: bench_dict [--json] [ROWS] [DIM] [FOLDER]\n");
        return 2;
    }
    for (uint64_t i = 0; i < r.n; i++) {
        r.key[i] = tn_mix(i);
    }
    qsort(r.key, (size_t)r.n, sizeof *r.key, ascending);
    if (measure(&r, &spec, path, &f, &err) != TN_OK) {
        (void)fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    print(&f, &r, json);
    tn_free(r.key);
    return 0;
}
