/* test_cache.c - a binary cache gives the batches of the data it was made of, bit for bit. */
#include "io/read/cache.h"

#include "base/core/alloc.h"
#include "base/file/file.h"
#include "io/rows/rows.h"
#include "setup.h"
#include "support/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { FILES = 3 };

#define GOLDEN_HEAD                                                                                \
    "544e42310d0a1a0a0100000004030201a4010000b8d3e4c00000000400000000010000000000000000000000"     \
    "00000000000000000000000000000000ddccd922"
#define GOLDEN_REST                                                                                \
    "0fc5d26eb8000000020000000300000005000000000000000200000000000000000000000000000012000000"     \
    "0000000014000000000000000000000000000000000000000000000000000000000000000000000000000000"     \
    "0000000000000000000000000000000081be7ca21d6e7d4a81be7ca21d6e7d4a5df928c6a3dfbdce00000000"     \
    "000000000000803f0000003f0000803f0000000001000000030000000000803f000000000000803f00000040"     \
    "0000000006000000010000000100000001000000000000000200000000000000ffffffffffffffff00000000"     \
    "0000000001010000010000002d00000000010000000000000000000000ffffffffffffffffe8010000000000"     \
    "000200000000000000b8000000a0020000000000005d00000000000000d5b8c2f59e0ae297544e4231656e64"     \
    "0a"

/* A format, how its rows are read, and how they are written. */
typedef struct subject {
    const char *config; /* %u: part_bytes */
    void (*add_row)(tn_text *out, uint32_t i);
    const char *head; /* of each file */
} subject;

static void add_libsvm(tn_text *out, uint32_t i)
{
    tn_text_addf(out, "%u:%g qid:%u", i % 3 == 0, i % 7 == 0 ? 0.0 : 1.5, i / 5);
    for (uint32_t k = 0; k < i % 4; k++) {
        tn_text_addf(out, " %u:%u", i * 31 + k, 1 + k);
    }
    tn_text_adds(out, i % 50 == 49 ? "\n\n" : "\n"); /* a blank line now and then */
}

/* All x_j are 1 but in the last rows, so that blocks of both kinds meet in a batch; slots do not
 * ascend in some rows. */
static void add_ones(tn_text *out, uint32_t i)
{
    tn_text_addf(out, "%u", i & 1);
    for (uint32_t k = 0; k < i % 5; k++) {
        uint32_t slot = i % 100 == 0 ? 2 - k % 3 : k * 3 / (i % 5);
        tn_text_addf(out, " %u", slot * 1000 + i % 1000);
        tn_text_adds(out, i > 800 ? ":2" : "");
    }
    tn_text_addc(out, '\n');
}

static void add_libffm(tn_text *out, uint32_t i)
{
    tn_text_addf(out, "%u 0:%u:1 3:%u:0.5 7:%u:1\n", i & 1, i + 1, i * 7 + 1, i % 11 + 1);
}

static void add_csv(tn_text *out, uint32_t i)
{
    if (i % 97 == 13) {
        tn_text_adds(out, "1,2,bad\n"); /* too few fields */
        return;
    }
    tn_text_addf(out, "%g,row-%u,%u,%s,%u|%u|%u,%g,%u\n", (i % 10) / 9.0, i, i % 19,
                 i % 5 == 0 ? "" : "some word", i, i % 3, i % 3, i * 0.25, i % 4);
}

static void add_criteo(tn_text *out, uint32_t i)
{
    tn_text_addf(out, "%u", i % 4 == 0);
    for (uint32_t k = 0; k < 13; k++) {
        tn_text_addf(out, "\t%u", i * k);
    }
    for (uint32_t k = 0; k < 26; k++) {
        tn_text_addf(out, "\t%08x", i * 2654435761U + k);
    }
    tn_text_addc(out, '\n');
}

static const subject subjects[] = {
    {"{data: {format: libsvm, shuffle: 50, part_bytes: %uB, negative_sampling: 0.6}}", add_libsvm,
     ""},
    {"{data: {format: libsvm, shuffle: 50, part_bytes: %uB}, slots: [{name: a, range: [0, 1000]}, "
     "{name: b, range: [1000, 2000]}, {name: c, range: [2000, 3000]}]}",
     add_ones, ""},
    {"{data: {format: libffm, shuffle: 64, part_bytes: %uB, index_base: 1}, slots: [{name: a, "
     "field: 0}, {name: b, field: 3}, {name: c, field: 7, absent: key}]}",
     add_libffm, ""},
    {"{data: {format: csv, shuffle: 40, part_bytes: %uB, bad_records_max: 50, record_id: id, "
     "group: user, label: y}, slots: [{name: user}, {name: word, type: str, absent: key}, {name: "
     "tags, list: '|', max_len: 2, duplicates: sum}, {name: price, as: value, type: float, "
     "transform: log}, {name: heavy, as: weighted}]}",
     add_csv, "y,id,user,word,tags,price,heavy\n"},
    {"{data: {format: criteo, shuffle: 100, part_bytes: %uB}, slots: [{name: I1, type: int, "
     "transform: ln2_bucket}, {name: I2, type: int, as: value}, {name: C1, type: hex}, {name: C26, "
     "type: hex}]}",
     add_criteo, ""},
};

enum { SUBJECTS = sizeof subjects / sizeof *subjects };

static void make_files(const setup *s, const subject *what, uint32_t rows, const char *paths[FILES])
{
    for (uint32_t f = 0; f < FILES; f++) {
        char name[16];
        tn_text text = {0};
        (void)snprintf(name, sizeof name, "rows%u", f);
        tn_text_adds(&text, what->head);
        for (uint32_t i = rows * f / FILES; i < rows * (f + 1) / FILES; i++) {
            what->add_row(&text, i);
        }
        paths[f] = setup_file(s, name, tn_text_str(&text), text.size);
        tn_text_done(&text);
    }
}

static void open_subject(setup *s, const subject *what, uint32_t part_bytes)
{
    char text[512];
    tn_text format = {0};
    const char *at = strstr(what->config, "%u");
    tn_text_add(&format, what->config, (size_t)(at - what->config));
    (void)snprintf(text, sizeof text, "%s%u%s", tn_text_str(&format), part_bytes, at + 2);
    tn_text_done(&format);
    setup_open(s, text);
}

/* Every bit a batch holds, and where it stands. */
static void dump_batch(const tn_batch *b, tn_text *out)
{
    tn_text_addf(out, "rows %u keys %u values %d weights %d groups %d ids %d\n", b->rows, b->n_keys,
                 b->n_slots > 0 && b->slot[0].value != NULL, b->weight != NULL, b->group != NULL,
                 b->id_offset != NULL);
    setup_dump_batch(b, out);
    for (uint32_t r = 0; b->source != NULL && r < b->rows; r++) {
        tn_text_addf(out, " %u:%" PRIu64, b->source[r], b->source_at[r]);
    }
    tn_text_addf(out, "\nat %u %u %" PRIu64 " %" PRIu64 "\n", b->progress.epoch, b->progress.part,
                 b->progress.position, b->progress.records);
}

/* All batches, and what the reader says of itself. */
static void dump(const setup *s, const tn_reader_opts *opts, tn_text *out)
{
    tn_reader *reader = NULL;
    tn_batch *batch = NULL;
    tn_error err = {0};
    tn_status status = tn_reader_open(&reader, s->schema, opts, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(status, TN_OK);
    while ((status = tn_reader_next(reader, &batch, &err)) == TN_OK) {
        dump_batch(batch, out);
        tn_reader_recycle(reader, batch);
    }
    assert_int_equal(status, TN_END);
    tn_prior prior;
    tn_read_counts n;
    assert_int_equal(tn_reader_prior(reader, &prior, &err), TN_OK);
    tn_reader_counts(reader, &n);
    tn_text_addf(out, "prior %a records %" PRIu64 " bytes %" PRIu64 " blank %" PRIu64,
                 prior.clicks / prior.weight, n.records, n.bytes, n.blank);
    tn_text_addf(out, " duplicate %" PRIu64 " weightless %" PRIu64 " out %" PRIu64 " bad %" PRIu64,
                 n.duplicate_key, n.zero_weight, n.sampled_out, n.bad);
    tn_text_addf(out, " sources %u total %" PRIu64 " done %" PRIu64 "\n", n.sources,
                 tn_reader_total_bytes(reader), tn_reader_done_bytes(reader));
    tn_reader_counts_of(reader, UINT32_MAX, &n, out);
    for (uint32_t i = 0; i < tn_reader_n_sources(reader); i++) {
        tn_text_addf(out, " %s", tn_reader_source(reader, i));
    }
    for (uint32_t i = 0; i < tn_reader_n_parts(reader); i++) {
        tn_part_info p = tn_reader_part(reader, i);
        tn_text_addf(out, "\npart %u %" PRIu64 " %" PRIu64, p.source, p.first, p.end);
    }
    tn_reader_close(reader);
}

static const char *make_cache(const setup *s, const char *const *paths, const char *name)
{
    char *path = tn_arena_alloc(s->arena, 4096, 1, 1);
    tn_error err = {0};
    (void)snprintf(path, 4096, "%s/%s", s->dir, name);
    const tn_reader_opts opts = {
        .paths = {FILES, paths}, .batch_rows = 100, .prefetch = 2, .make_cache = path};
    tn_status status = setup_drain(s, &opts, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(status, TN_END);
    return path;
}

static void assert_same(const setup *s, const char *const *paths, const char *cache,
                        tn_reader_opts opts)
{
    tn_text text = {0};
    tn_text binary = {0};
    opts.paths = (tn_strs){FILES, paths};
    dump(s, &opts, &text);
    opts.paths = (tn_strs){1, &cache};
    dump(s, &opts, &binary);
    assert_int_equal(text.size, binary.size);
    assert_memory_equal(text.data, binary.data, text.size);
    tn_text_done(&text);
    tn_text_done(&binary);
}

TEST(batches_are_those_of_the_text)
{
    for (uint32_t i = 0; i < SUBJECTS; i++) {
        for (uint32_t part_bytes = 1000; part_bytes <= 1000000; part_bytes *= 1000) {
            setup s;
            const char *paths[FILES];
            open_subject(&s, &subjects[i], part_bytes);
            make_files(&s, &subjects[i], 1000, paths);
            const char *cache = make_cache(&s, paths, "all.tnb");
            tn_reader_opts opts = {.batch_rows = 33, .prefetch = 2, .seed = 7, .want_ids = true};
            assert_same(&s, paths, cache, opts);
            opts.training = true;
            assert_same(&s, paths, cache, opts);
            opts.want_ids = false;
            opts.from.epoch = 3;
            assert_same(&s, paths, cache, opts);
            setup_close(&s);
        }
    }
}

/* The places where a stream may be taken up again. */
static uint32_t places_of(const setup *s, const tn_reader_opts *opts, tn_progress *at, uint32_t max)
{
    tn_reader *reader = NULL;
    tn_batch *batch = NULL;
    uint32_t n = 0;
    assert_int_equal(tn_reader_open(&reader, s->schema, opts, NULL), TN_OK);
    while (tn_reader_next(reader, &batch, NULL) == TN_OK) {
        assert_true(n < max);
        at[n++] = batch->progress;
        tn_reader_recycle(reader, batch);
    }
    tn_reader_close(reader);
    return n;
}

TEST(reading_goes_on_in_the_middle_of_an_epoch)
{
    enum { PLACES_MAX = 64 };
    setup s;
    const char *paths[FILES];
    tn_progress at[PLACES_MAX];
    open_subject(&s, &subjects[0], 700);
    make_files(&s, &subjects[0], 600, paths);
    const char *cache = make_cache(&s, paths, "all.tnb");
    tn_reader_opts opts = {.paths = {1, &cache},
                           .batch_rows = 11,
                           .prefetch = 2,
                           .seed = 7,
                           .training = true,
                           .from = {.epoch = 1}};
    uint32_t n = places_of(&s, &opts, at, PLACES_MAX);
    assert_true(n > 10);
    for (uint32_t i = 0; i + 1 < n; i += 3) { /* behind the last there is no row, and no prior */
        opts.from = at[i];
        assert_same(&s, paths, cache, opts);
    }
    setup_close(&s);
}

TEST(several_caches_are_read_one_after_another)
{
    setup s;
    const char *paths[FILES];
    const char *caches[FILES];
    tn_text text = {0};
    tn_text binary = {0};
    open_subject(&s, &subjects[4], 5000);
    make_files(&s, &subjects[4], 300, paths);
    for (uint32_t f = 0; f < FILES; f++) {
        char name[16];
        char *path = tn_arena_alloc(s.arena, 4096, 1, 1);
        (void)snprintf(name, sizeof name, "c%u.tnb", f);
        (void)snprintf(path, 4096, "%s/%s", s.dir, name);
        const tn_reader_opts one = {
            .paths = {1, &paths[f]}, .batch_rows = 8, .prefetch = 2, .make_cache = path};
        assert_int_equal(setup_drain(&s, &one, NULL), TN_END);
        caches[f] = path;
    }
    tn_reader_opts opts = {.paths = {FILES, paths},
                           .batch_rows = 32,
                           .prefetch = 2,
                           .seed = 9,
                           .training = true,
                           .want_ids = true};
    dump(&s, &opts, &text);
    opts.paths = (tn_strs){FILES, caches};
    dump(&s, &opts, &binary);
    assert_string_equal(text.data, binary.data);
    tn_text_done(&text);
    tn_text_done(&binary);
    setup_close(&s);
}

TEST(slots_that_were_found_in_the_data_are_found_in_its_cache)
{
    setup s;
    setup again;
    const char *paths[FILES];
    char text[1024];
    open_subject(&s, &subjects[2], 2000);
    make_files(&s, &subjects[2], 200, paths);
    (void)snprintf(text, sizeof text,
                   "{data: {format: libffm, index_base: auto, train: ['%s', '%s', '%s']}}",
                   paths[0], paths[1], paths[2]);
    setup_open(&again, text);
    assert_int_equal(again.schema->n_slots, 3);
    const char *cache = make_cache(&again, paths, "found.tnb");
    (void)snprintf(text, sizeof text, "{data: {format: libffm, index_base: auto, train: '%s'}}",
                   cache);
    setup by_cache;
    setup_open(&by_cache, text);
    assert_int_equal(by_cache.schema->n_slots, 3);
    assert_string_equal(by_cache.schema->slot[2]->name, "f7");
    assert_int_equal(by_cache.schema->index_base, again.schema->index_base);
    const tn_reader_opts opts = {.batch_rows = 32, .prefetch = 2};
    assert_same(&by_cache, paths, cache, opts);
    setup_close(&by_cache);
    setup_close(&again);
    setup_close(&s);
}

/* docs/formats.md shows these bytes: all but the shape, which stands between them in words. */
TEST(golden_tnb)
{
    static const char head[] = GOLDEN_HEAD;
    static const char rest[] = GOLDEN_REST;
    setup s;
    tn_parsed parsed;
    tn_text block = {0};
    tn_text bytes = {0};
    tn_text hex = {0};
    tn_cache_writer *w = NULL;
    tn_error err = {0};
    char path[512];
    setup_open(&s, "{data: {format: libsvm}}");
    setup_parse_str(&s, "1 7:1\n0:2 7:0.5 9:1\n", &parsed);
    parsed.taken = 20;
    const tn_file_entry stream = {
        .path = "-", .size = UINT64_MAX, .compression = TN_COMPRESSION_NONE, .once = true};
    const tn_part_info part = {.source = 0, .first = 0, .end = UINT64_MAX};
    const tn_fileset files = {.n = 1, .file = &stream, .n_parts = 1, .part = &part};
    tn_cache_pack(&parsed, &block);
    (void)snprintf(path, sizeof path, "%s/golden.tnb", s.dir);
    assert_int_equal(tn_cache_create(&w, path, NULL, s.schema, &files, &err), TN_OK);
    assert_int_equal(tn_cache_add(w, 0, &block, parsed.rows->n, &err), TN_OK);
    assert_int_equal(tn_cache_commit(w, &err), TN_OK);
    assert_int_equal(tn_file_read_all(path, 1 << 20, &bytes, &err), TN_OK);
    uint32_t shape = tn_load_u32(bytes.data + 16);
    size_t from = 64 + (shape + 7) / 8 * 8;
    for (size_t i = 0; i < bytes.size; i = i == 63 ? from : i + 1) {
        tn_text_addf(&hex, "%02x", (unsigned char)bytes.data[i]);
    }
    assert_int_equal(hex.size, strlen(head) + strlen(rest));
    assert_memory_equal(hex.data, head, strlen(head));
    assert_string_equal(hex.data + strlen(head), rest);
    tn_text_done(&block);
    tn_text_done(&bytes);
    tn_text_done(&hex);
    setup_parsed_free(&parsed);
    setup_close(&s);
}
