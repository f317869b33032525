/* test_cache_damage.c - binary caches that are cut, changed, old or of something else. */
#include "io/read/cache.h"

#include "base/core/alloc.h"
#include "base/file/file.h"
#include "base/math/crc32c.h"
#include "io/rows/rows.h"
#include "setup.h"
#include "support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char config[] = "{data: {format: libsvm, part_bytes: 64B}}";
static const char data[] = "1 3:1 3:2 5:1\n0:2 18446744073709551615:1\n\n1 qid:9 7:0.5\n";

/* A cache of the rows above, and its bytes. */
typedef struct cache {
    setup s;
    const char *source;
    const char *path;
    tn_text bytes;
} cache;

static void open_cache(cache *c)
{
    tn_error err = {0};
    memset(c, 0, sizeof *c);
    setup_open(&c->s, config);
    c->source = setup_file(&c->s, "rows", data, sizeof data - 1);
    c->path = setup_file(&c->s, "rows.tnb", "", 0);
    const tn_reader_opts opts = {
        .paths = {1, &c->source}, .batch_rows = 8, .prefetch = 1, .make_cache = c->path};
    assert_int_equal(setup_drain(&c->s, &opts, &err), TN_END);
    assert_int_equal(tn_file_read_all(c->path, 1 << 20, &c->bytes, &err), TN_OK);
}

static void close_cache(cache *c)
{
    tn_text_done(&c->bytes);
    setup_close(&c->s);
}

/* Reads what the file holds now. */
static tn_status read_cache(const cache *c, tn_error *err)
{
    const tn_reader_opts opts = {.paths = {1, &c->path}, .batch_rows = 8, .prefetch = 1};
    memset(err, 0, sizeof *err);
    return setup_drain(&c->s, &opts, err);
}

static void put(cache *c, const char *bytes, size_t size)
{
    c->path = setup_file(&c->s, "rows.tnb", bytes, size);
}

/* The checksum of the header, after a change. */
static void sign_header(char *bytes)
{
    tn_store_u32(bytes + TN_CACHE_HEADER - 4, tn_crc32c(0, bytes, TN_CACHE_HEADER - 4));
}

TEST(a_cache_is_whole_or_refused_wherever_it_is_cut)
{
    cache c;
    tn_error err;
    open_cache(&c);
    assert_int_equal(read_cache(&c, &err), TN_END);
    for (size_t size = 0; size < c.bytes.size; size += size < 200 ? 1 : 37) {
        put(&c, c.bytes.data, size);
        assert_int_equal(read_cache(&c, &err), TN_E_DATA);
        assert_non_null(strstr(err.text, "rows.tnb"));
    }
    close_cache(&c);
}

TEST(every_flipped_bit_is_noticed)
{
    cache c;
    tn_error err;
    open_cache(&c);
    uint32_t passed = 0;
    for (size_t i = 0; i < c.bytes.size; i++) {
        c.bytes.data[i] = (char)(c.bytes.data[i] ^ 1 << i % 8);
        put(&c, c.bytes.data, c.bytes.size);
        tn_status status = read_cache(&c, &err);
        passed += status == TN_END;
        assert_true(status == TN_E_DATA || status == TN_END);
        c.bytes.data[i] = (char)(c.bytes.data[i] ^ 1 << i % 8);
    }
    assert_true(passed < 8); /* the zeros that fill up the shape say nothing, and minor may rise */
    close_cache(&c);
}

TEST(a_damaged_block_is_named_by_file_and_place)
{
    cache c;
    tn_error err;
    char expected[64];
    tn_cache *t = NULL;
    open_cache(&c);
    assert_int_equal(tn_cache_open(&t, c.path, &err), TN_OK);
    uint64_t at = t->part[0].at;
    tn_cache_close(t);
    c.bytes.data[at + TN_CACHE_BLOCK] ^= 1;
    put(&c, c.bytes.data, c.bytes.size);
    assert_int_equal(read_cache(&c, &err), TN_E_DATA);
    (void)snprintf(expected, sizeof expected, "rows.tnb:@%llu: damaged block (crc ",
                   (unsigned long long)at);
    assert_non_null(strstr(err.text, expected));
    close_cache(&c);
}

TEST(other_versions_and_byte_orders_are_refused_by_name)
{
    cache c;
    tn_error err;
    open_cache(&c);
    tn_store_u16(c.bytes.data + 8, TN_CACHE_MAJOR + 1);
    sign_header(c.bytes.data);
    put(&c, c.bytes.data, c.bytes.size);
    assert_int_equal(read_cache(&c, &err), TN_E_DATA);
    assert_non_null(strstr(err.text, "has version 2, and this TNet reads 1"));
    tn_store_u16(c.bytes.data + 8, TN_CACHE_MAJOR);
    tn_store_u32(c.bytes.data + 12, __builtin_bswap32(TN_CACHE_ORDER));
    sign_header(c.bytes.data);
    put(&c, c.bytes.data, c.bytes.size);
    assert_int_equal(read_cache(&c, &err), TN_E_DATA);
    assert_non_null(strstr(err.text, "of the other byte order"));
    put(&c, data, sizeof data - 1);
    assert_int_equal(read_cache(&c, &err), TN_E_DATA);
    assert_non_null(strstr(err.text, "is not a binary cache"));
    close_cache(&c);
}

TEST(a_source_that_changed_later_is_noticed_and_one_that_is_gone_is_not_missed)
{
    cache c;
    tn_error err;
    open_cache(&c);
    const struct timespec later[2] = {{.tv_sec = 2000000000}, {.tv_sec = 2000000000}};
    assert_int_equal(utimensat(AT_FDCWD, c.source, later, 0), 0);
    assert_int_equal(read_cache(&c, &err), TN_E_DATA);
    assert_non_null(strstr(err.text, "has changed since binary cache"));
    assert_int_equal(tn_remove_file(c.source, &err), TN_OK);
    assert_int_equal(read_cache(&c, &err), TN_END);
    close_cache(&c);
}

/* Reads the cache with a schema of its own; the status, and why. */
static tn_status read_as(const cache *c, const char *text, tn_error *err)
{
    setup s;
    const tn_reader_opts opts = {.paths = {1, &c->path}, .batch_rows = 8, .prefetch = 1};
    setup_open(&s, text);
    tn_status status = setup_drain(&s, &opts, err);
    setup_close(&s);
    return status;
}

TEST(another_configuration_is_refused_and_the_difference_shown)
{
    cache c;
    tn_error err = {0};
    open_cache(&c);
    assert_int_equal(read_as(&c,
                             "{data: {format: libsvm, part_bytes: 64B, shuffle: 5, readers: 2, "
                             "bad_records_max: 7, negative_sampling: 0.5}}",
                             &err),
                     TN_END);
    static const struct {
        const char *config, *told;
    } others[] = {
        {"{data: {format: libsvm, part_bytes: 65B}}", "data.part_bytes 64, not 65"},
        {"{data: {format: libsvm, part_bytes: 64B, index_base: 1}}", "now    index_base: 1"},
        {"{data: {format: libsvm, part_bytes: 64B, label: none}}", "cache  label: column label"},
        {"{data: {format: libsvm, part_bytes: 64B}, slots: [{name: _, max_len: 1}]}", "slot _:"},
        {"{data: {format: libsvm, part_bytes: 64B}, slots: [{name: x}]}", "now    slot x:"},
        {"{data: {format: libsvm, part_bytes: 64B}, slots: [{name: _, range: [0, 10]}, {name: y, "
         "range: [10, 20]}]}",
         "slot _:"},
        {"{data: {format: libffm, part_bytes: 64B}, slots: [{name: _}]}", "cache  format: libsvm"},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_int_equal(read_as(&c, others[i].config, &err), TN_E_CONFIG);
        assert_non_null(strstr(err.text, others[i].told));
    }
    close_cache(&c);
}

TEST(caches_and_data_do_not_mix)
{
    cache c;
    tn_error err = {0};
    open_cache(&c);
    const char *paths[] = {c.path, c.source};
    const tn_reader_opts opts = {.paths = {2, paths}, .batch_rows = 8, .prefetch = 1};
    assert_int_equal(setup_drain(&c.s, &opts, &err), TN_E_DATA);
    assert_non_null(strstr(err.text, "stands among binary caches"));
    const tn_reader_opts again = {
        .paths = {1, &c.path}, .batch_rows = 8, .prefetch = 1, .make_cache = c.path};
    assert_int_equal(setup_drain(&c.s, &again, &err), TN_E_USAGE);
    close_cache(&c);
}

/* Blocks whose counts lie, with checksums that hold. */
TEST(a_signed_block_that_lies_is_refused)
{
    static const struct {
        uint32_t at;
        uint32_t value;
    } lies[] = {
        {8, 4},
        {8, UINT32_MAX},
        {12, 4},
        {12, 0x80000001},
        {16, 16},
        {20, 1},
        {84, 1},
        {88, 1},
        {92, 1},
        {TN_CACHE_BLOCK + 40, 1},
        {TN_CACHE_BLOCK + 40 + 16 + 24, 9},
    };
    cache c;
    tn_error err = {0};
    tn_cache *t = NULL;
    tn_parsed parsed = {.rows = NULL};
    open_cache(&c);
    assert_int_equal(tn_cache_open(&t, c.path, &err), TN_OK);
    assert_int_equal(t->n_blocks, 1);
    tn_bytes block = {c.bytes.data + t->part[0].at, t->block_bytes[0], false};
    assert_int_equal(tn_rows_new(&parsed.rows, c.s.schema, 0, &err), TN_OK);
    assert_int_equal(tn_cache_unpack(block, &parsed, &err), TN_OK);
    assert_int_equal(parsed.rows->n, 3);
    char *copy = tn_try_alloc(block.size, 1, "a block", &err);
    assert_non_null(copy);
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        memcpy(copy, block.data, block.size);
        tn_store_u32(copy + lies[i].at, lies[i].value);
        tn_store_u32(copy, tn_crc32c(0, copy + 4, block.size - 4));
        tn_status status = tn_cache_unpack((tn_bytes){copy, block.size, false}, &parsed, &err);
        assert_int_equal(status, TN_E_DATA);
        assert_int_equal(parsed.rows->n, 0);
    }
    tn_free(copy);
    tn_rows_free(parsed.rows);
    tn_parsed_done(&parsed);
    tn_cache_close(t);
    close_cache(&c);
}
