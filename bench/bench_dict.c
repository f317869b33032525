/* bench_dict.c - writing an inference dictionary and looking keys up in it, on one core (P17).
 *
 *     bench_dict [--json] [ROWS] [DIM] [FOLDER]      default 10000000 8 /tmp
 *
 * Rows of two segments, wide (1) and deep (DIM), f32, group arrays on; the rows come from memory,
 * so what is timed is the writer. Limits, measured in the same run: as many bytes written and
 * fsynced plainly; for look-ups, one dependent read at a random place of an array as large as the
 * file. Keys are half present, half absent, in random order; the file is in the page cache.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/key.h"
#include "base/keyset.h"
#include "io/dict.h"
#include "io/dictwrite.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOKUPS = 2000000, PLAIN_BYTES = 1 << 20 };

typedef struct rows {
    uint64_t n;
    uint64_t *key; /* ascending */
    float values[1 + 4096];
} rows;

typedef struct figures {
    double bytes, write_s, plain_s;
    double one_ns, many_ns, read_ns, open_s;
} figures;

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static tn_status walk(void *arg, tn_dict_visit *visit, void *visitor, tn_error *err)
{
    const rows *r = arg;
    for (uint64_t i = 0; i < r->n; i++) {
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
    const tn_dict_source source = {.walk = walk, .arg = r};
    tn_dict_written done;
    double begin = tn_clock_s();
    TN_TRY(tn_dict_write(path, spec, &source, &done, err));
    out->write_s = tn_clock_s() - begin;
    out->bytes = (double)done.bytes;
    begin = tn_clock_s();
    TN_TRY(write_plain(plain, done.bytes, err));
    out->plain_s = tn_clock_s() - begin;
    return TN_OK;
}

static uint64_t query_key(const rows *r, uint64_t i)
{
    uint64_t x = tn_mix(i + 77);
    return i % 2 == 0 ? r->key[x % r->n] : x;
}

static tn_status time_one(const tn_dict *d, const rows *r, figures *out, tn_error *err)
{
    float w[4096];
    double sum = 0;
    double begin = tn_clock_s();
    for (uint64_t i = 0; i < LOOKUPS; i++) {
        tn_dict_row row;
        TN_TRY(tn_dict_find(d, 0, query_key(r, i), &row, err));
        (void)tn_dict_get(&row, 0, 1, w);
        sum += (double)w[0];
    }
    out->one_ns = (tn_clock_s() - begin) * 1e9 / LOOKUPS;
    return sum >= 0 ? TN_OK : TN_END;
}

static tn_status time_many(const tn_dict *d, const rows *r, figures *out, tn_error *err)
{
    enum { AT_ONCE = 39 };
    double sum = 0;
    double begin = tn_clock_s();
    for (uint64_t i = 0; i + AT_ONCE <= LOOKUPS; i += AT_ONCE) {
        tn_dict_query query[AT_ONCE];
        tn_dict_row row[AT_ONCE];
        for (uint32_t k = 0; k < AT_ONCE; k++) {
            query[k] = (tn_dict_query){query_key(r, i + k), 0};
        }
        TN_TRY(tn_dict_find_all(d, AT_ONCE, query, row, err));
        for (uint32_t k = 0; k < AT_ONCE; k++) {
            float w[1];
            (void)tn_dict_get(&row[k], 0, 1, w);
            sum += (double)w[0];
        }
    }
    out->many_ns = (tn_clock_s() - begin) * 1e9 / LOOKUPS;
    return sum >= 0 ? TN_OK : TN_END;
}

/* One cache miss: what a look-up cannot do without. */
static tn_status time_read(const char *path, figures *out, tn_error *err)
{
    tn_map map = {0};
    TN_TRY(tn_map_file(&map, path, err));
    uint64_t at = 1;
    double begin = tn_clock_s();
    for (uint64_t i = 0; i < LOOKUPS; i++) {
        at = tn_mix(at + i) % (map.size - 1);
        at += (uint8_t)map.data[at] & 1;
    }
    out->read_ns = (tn_clock_s() - begin) * 1e9 / LOOKUPS;
    tn_unmap(&map);
    return at > 0 ? TN_OK : TN_END;
}

static tn_status measure(rows *r, const tn_dict_spec *spec, const char *path, figures *out,
                         tn_error *err)
{
    TN_TRY(time_writing(r, spec, path, out, err));
    tn_dict *d = NULL;
    double begin = tn_clock_s();
    TN_TRY(tn_dict_open(&d, path, TN_VERIFY_FULL, err));
    out->open_s = tn_clock_s() - begin;
    tn_status status = time_one(d, r, out, err);
    if (status == TN_OK) {
        status = time_many(d, r, out, err);
    }
    tn_dict_close(d);
    if (status == TN_OK) {
        status = time_read(path, out, err);
    }
    tn_status removed = tn_remove_file(path, err);
    return status == TN_OK ? removed : status;
}

static void print(const figures *f, const rows *r, bool json)
{
    double gb = f->bytes / 1e9;
    if (json) {
        (void)printf("{\"rows\":%" PRIu64 ",\"bytes\":%.0f,\"write_gb_s\":%.3f,"
                     "\"plain_gb_s\":%.3f,\"lookup_ns\":%.1f,\"batched_ns\":%.1f,"
                     "\"one_read_ns\":%.1f,\"verify_gb_s\":%.2f}\n",
                     r->n, f->bytes, gb / f->write_s, gb / f->plain_s, f->one_ns, f->many_ns,
                     f->read_ns, gb / f->open_s);
        return;
    }
    (void)printf("%" PRIu64 " rows, %.0f MB\n", r->n, f->bytes / 1e6);
    (void)printf("write     %.2f GB/s   plain write and fsync %.2f   target 1\n", gb / f->write_s,
                 gb / f->plain_s);
    (void)printf("open      %.2f GB/s   all checksums and keys\n", gb / f->open_s);
    (void)printf("look-up   %.0f ns     one cache miss %.0f ns   target 200\n", f->one_ns,
                 f->read_ns);
    (void)printf("39 at a time  %.0f ns each\n", f->many_ns);
}

int main(int argc, char **argv)
{
    bool json = argc > 1 && strcmp(argv[1], "--json") == 0;
    char **arg = argv + (json ? 2 : 1);
    int n_args = argc - (json ? 2 : 1);
    uint32_t dim = n_args > 1 ? (uint32_t)strtoul(arg[1], NULL, 10) : 8;
    static rows r;
    r.n = n_args > 0 ? strtoull(arg[0], NULL, 10) : 10000000;
    tn_record record = {
        .width = 1 + dim, .n_segments = 2, .segment = {{"wide", 0, 1}, {"deep", 1, dim}}};
    const tn_group group = {.name = "g", .salt = 7};
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
    figures f = {0};
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
