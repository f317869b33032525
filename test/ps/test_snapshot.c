/* test_snapshot.c - shard files: exact bytes, round trips, and every kind of damage. */
#include "support/test.h"

#include "base/core/failpoint.h"
#include "base/math/crc32c.h"
#include "ps/shardfiles.h"

enum { SEED = 20261121 };

FIXTURE(shard_set_up, shard_tear_down);

TEST_ON(const shard_place *p, golden_tns_196_bytes)
{
    static const char hex[] =
        "544e53310d0a1a0a01000000400000000807060504030201e02e00000000000000000000000000008877665544"
        "33221100044a024a020000000000003143e06f2c0000002c000000010000004a02000179c0c6a135adaa920000"
        "00005ba25f1279c0c6a135adaa9200000100070000000000000000000840000000000000f03f000080be000000"
        "3f0000004040000000000000004c0000000000000001000000000000008c000000000000000100000000000000"
        "01000000544e5346f74ccac7ff0961ea";
    tn_snapshot_done done = {0};
    write_golden(p->path, &done);
    tn_map map = {0};
    assert_int_equal(tn_map_file(&map, p->path, NULL), TN_OK);
    assert_int_equal(map.size, GOLDEN_BYTES);
    for (size_t i = 0; i < map.size; i++) {
        char two[3];
        (void)snprintf(two, sizeof two, "%02x", (unsigned)(unsigned char)map.data[i]);
        assert_memory_equal(two, hex + 2 * i, 2);
    }
    assert_int_equal(tn_crc32c(0, map.data, map.size), 0x8f812bed);
    assert_int_equal(done.crc, 0x8f812bed);
    assert_int_equal(done.bytes, GOLDEN_BYTES);
    assert_int_equal(done.rows, 1);
    tn_unmap(&map);
}

static tn_status keep_row(void *arg, const tn_row_view *row, tn_error *err)
{
    (void)err;
    tn_row_view *kept = arg;
    assert_int_equal(row->n_floats, 3);
    assert_memory_equal(row->data, golden_values, sizeof golden_values);
    *kept = *row;
    kept->data = NULL;
    return TN_OK;
}

TEST_ON(const shard_place *p, golden_tns_is_read_back)
{
    tn_snapshot_done done = {0};
    write_golden(p->path, &done);
    tn_snapshot *s = NULL;
    tn_row_view row = {0};
    assert_int_equal(tn_snapshot_open(&s, p->path, NULL), TN_OK);
    assert_memory_equal(tn_snapshot_head_of(s)->schema, golden_head.schema, 8);
    assert_int_equal(tn_snapshot_head_of(s)->run_id, golden_head.run_id);
    assert_int_equal(tn_snapshot_head_of(s)->step, 12000);
    assert_int_equal(tn_snapshot_head_of(s)->partitions, 1024);
    assert_int_equal(tn_snapshot_rows(s), 1);
    assert_int_equal(tn_snapshot_read(s, 586, &shard_schema, keep_row, &row, NULL), TN_OK);
    assert_int_equal(row.key, golden_row.key);
    assert_int_equal(row.present, 1);
    assert_int_equal(row.last_seen, 7);
    assert_true(row.show >= 3 && row.show <= 3 && row.click >= 1 && row.click <= 1);
    assert_false(row.removed);
    tn_snapshot_close(s);
    tn_snapshot_close(NULL);
}

static tn_status compare_row(void *arg, const tn_row_view *row, tn_error *err)
{
    (void)err;
    uint32_t *i = arg;
    float values[3 + BIG_WORDS];
    tn_row_view want = big_row(*i, values);
    while (big_row_is_left_out(want.key)) {
        want = big_row(++*i, values);
    }
    assert_int_equal(row->key, want.key);
    assert_int_equal(row->group, want.group);
    assert_int_equal(row->present, want.present);
    assert_int_equal(row->last_seen, want.last_seen);
    assert_memory_equal(&row->show, &want.show, sizeof row->show);
    assert_memory_equal(&row->click, &want.click, sizeof row->click);
    assert_int_equal(row->n_floats, want.n_floats);
    assert_memory_equal(row->data, want.data, want.n_floats * sizeof(float));
    ++*i;
    return TN_OK;
}

TEST_ON(const shard_place *p, many_rows_come_back_from_many_blocks)
{
    tn_snapshot_done done = {0};
    uint32_t i = 0;
    assert_int_equal(write_big_file(p->path, &done, NULL), TN_OK);
    assert_int_equal(read_file(p->path, compare_row, &i, NULL), TN_OK);
    assert_true(i >= BIG_ROWS - 1 - BIG_ROWS / BIG_PARTITIONS && i <= BIG_ROWS);
    tn_map map = {0};
    assert_int_equal(tn_map_file(&map, p->path, NULL), TN_OK);
    assert_int_equal(map.size, done.bytes);
    assert_int_equal(tn_crc32c(0, map.data, map.size), done.crc);
    tn_unmap(&map);
}

TEST_ON(const shard_place *p, an_empty_file_holds_no_rows)
{
    tn_snapshot_writer *w = NULL;
    tn_snapshot_done done = {.rows = 9};
    const tn_snapshot_head head = {.partitions = 65536, .first = 0, .last = 65535};
    assert_int_equal(tn_snapshot_create(&w, p->path, &head, NULL), TN_OK);
    assert_int_equal(tn_snapshot_commit(w, &done, NULL), TN_OK);
    assert_int_equal(done.rows, 0);
    assert_int_equal(done.bytes, 64 + 24 * 65536 + 32);
    assert_int_equal(read_file(p->path, NULL, NULL, NULL), TN_OK);
}

TEST_ON(const shard_place *p, a_delta_may_hold_removed_rows)
{
    tn_snapshot_writer *w = NULL;
    tn_snapshot_done done = {0};
    const tn_snapshot_head head = {.partitions = 1, .delta = true, .step = 5, .base_step = 4};
    const tn_row_view gone = {.key = 5, .group = 1, .last_seen = 3, .removed = true};
    const tn_row_view bare = {.key = 6, .group = 1, .last_seen = 4};
    assert_int_equal(tn_snapshot_create(&w, p->path, &head, NULL), TN_OK);
    assert_int_equal(tn_snapshot_begin(w, 0, NULL), TN_OK);
    assert_int_equal(tn_snapshot_add(w, &gone, NULL), TN_OK);
    assert_int_equal(tn_snapshot_add(w, &bare, NULL), TN_OK);
    assert_int_equal(tn_snapshot_commit(w, &done, NULL), TN_OK);
    assert_int_equal(done.bytes, 64 + 32 + 16 + 32 + 24 + 32);
    assert_int_equal(read_file(p->path, NULL, NULL, NULL), TN_OK);
}

TEST_ON(const shard_place *p, a_row_larger_than_a_block_is_refused)
{
    tn_error err = {0};
    tn_snapshot_writer *w = NULL;
    tn_row_view row = golden_row;
    row.n_floats = TN_SNAPSHOT_BLOCK_MAX / 4;
    assert_int_equal(tn_snapshot_create(&w, p->path, &golden_head, &err), TN_OK);
    assert_int_equal(tn_snapshot_begin(w, 586, &err), TN_OK);
    assert_int_equal(tn_snapshot_add(w, &row, &err), TN_E_LIMIT);
    tn_snapshot_abandon(w);
    assert_false(tn_path_exists(p->path));
}

static tn_status refuse_row(void *arg, const tn_row_view *row, tn_error *err)
{
    (void)arg;
    (void)row;
    return tn_fail(err, TN_E_LIMIT, "table is full");
}

TEST_ON(const shard_place *p, a_visitor_can_stop)
{
    tn_snapshot_done done = {0};
    tn_error err = {0};
    write_golden(p->path, &done);
    assert_int_equal(read_file(p->path, refuse_row, NULL, &err), TN_E_LIMIT);
    assert_string_equal(err.text, "table is full");
}

TEST_ON(const shard_place *p, every_failing_call_is_reported)
{
    tn_error err = {0};
    uint64_t before = tn_failpoint_passed();
    tn_snapshot_done done = {0};
    assert_int_equal(write_big_file(p->path, &done, &err), TN_OK);
    assert_int_equal(read_file(p->path, NULL, NULL, &err), TN_OK);
    uint64_t points = tn_failpoint_passed() - before;
    assert_true(points > 10);
    for (uint64_t k = 1; k <= points; k++) {
        char rule[32];
        (void)snprintf(rule, sizeof rule, "io#%u+:EIO", (unsigned)k);
        assert_int_equal(tn_remove_file(p->path, &err), TN_OK);
        assert_int_equal(tn_failpoint_set(rule, &err), TN_OK);
        tn_status written = write_big_file(p->path, &done, &err);
        tn_status read = written == TN_OK ? read_file(p->path, NULL, NULL, &err) : TN_OK;
        assert_int_equal(tn_failpoint_set(NULL, &err), TN_OK);
        /* k == points is the reader's close, which nothing hangs on */
        assert_true(k == points || written == TN_E_IO || read == TN_E_IO);
    }
}

/* ---- every kind of damage ---- */

/* Puts `size` bytes at `path` in place of what was there, without the file module. */
static void put(const char *path, const char *data, size_t size)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static void assert_detected(const char *path, const char *data, size_t size, size_t place)
{
    tn_error err = {0};
    put(path, data, size);
    tn_status status = read_file(path, NULL, NULL, &err);
    fail_if(status != TN_E_CKPT && status != TN_E_IO, "damage at %zu of %zu bytes gives status %d",
            place, size, (int)status);
    assert_non_null(strstr(err.text, path));
}

static char *load(const char *path, size_t *size)
{
    tn_text text CLEANUP(tn_text_done) = {0};
    assert_int_equal(tn_file_read_all(path, 64 << 20, &text, NULL), TN_OK);
    *size = text.size;
    char *copy = malloc(text.size);
    assert_non_null(copy);
    memcpy(copy, text.data, text.size);
    return copy;
}

TEST_ON(const shard_place *p, every_cut_and_every_bit_of_a_small_file_is_detected)
{
    tn_snapshot_done done = {0};
    size_t size;
    write_golden(p->path, &done);
    char *data = load(p->path, &size);
    for (size_t cut = 0; cut < size; cut++) {
        assert_detected(p->path, data, cut, cut);
    }
    for (size_t bit = 0; bit < 8 * size; bit++) {
        data[bit / 8] = (char)(data[bit / 8] ^ (1 << bit % 8));
        assert_detected(p->path, data, size, bit / 8);
        data[bit / 8] = (char)(data[bit / 8] ^ (1 << bit % 8));
    }
    free(data);
}

TEST_ON(const shard_place *p, cuts_flips_and_zeroed_pages_of_a_large_file_are_detected)
{
    tn_snapshot_done done = {0};
    size_t size;
    assert_int_equal(write_big_file(p->path, &done, NULL), TN_OK);
    char *data = load(p->path, &size);
    for (size_t cut = 0; cut < size; cut += 4096) {
        assert_detected(p->path, data, cut, cut);
    }
    print_message("flips: seed %d\n", SEED);
    uint64_t dice = SEED;
    for (uint32_t i = 0; i < 200; i++) {
        dice = dice * 6364136223846793005U + 1442695040888963407U;
        size_t bit = (size_t)(dice >> 20) % (8 * size);
        data[bit / 8] = (char)(data[bit / 8] ^ (1 << bit % 8));
        assert_detected(p->path, data, size, bit / 8);
        data[bit / 8] = (char)(data[bit / 8] ^ (1 << bit % 8));
    }
    for (size_t at = 0; at + 4096 <= size; at += (size_t)40 * 4096) {
        char page[4096];
        memcpy(page, data + at, sizeof page);
        memset(data + at, 0, sizeof page);
        assert_detected(p->path, data, size, at);
        memcpy(data + at, page, sizeof page);
    }
    put(p->path, data, size);
    assert_int_equal(read_file(p->path, NULL, NULL, NULL), TN_OK);
    free(data);
}

static void store_le(char *at, uint64_t value, size_t bytes)
{
    memcpy(at, &value, bytes);
}

/* Repairs every crc of a one-partition file, so that what stands in it is what gets judged. */
static void repair(char *data, size_t size)
{
    uint32_t stored;
    memcpy(&stored, data + 64, 4);
    store_le(data + 60, tn_crc32c(0, data, 60), 4);
    if (64 + 32 + (uint64_t)stored + 24 + 32 <= size) {
        uint32_t crc = tn_crc32c(0, data + 64, 28);
        store_le(data + 92, tn_crc32c(crc, data + 96, stored), 4);
    }
    store_le(data + size - 8, tn_crc32c(0, data + size - 56, 24), 4);
    store_le(data + size - 4, tn_crc32c(0, data + size - 32, 28), 4);
}

/* Written over a good file of one row, whose checksums are then repaired. */
static const struct {
    size_t at;
    uint64_t value;
    size_t bytes;
    const char *why;
    bool newer; /* it may be right, but not for this build */
} lie[] = {
    {8, 2, 2, "newer version", true},
    {8, 0, 2, "no version 0", false},
    {12, 63, 4, "header size", false},
    {12, 65, 4, "header size", false},
    {48, 500, 2, "partitions out of range", false},
    {50, 587, 2, "partitions out of range", false},
    {52, 1000, 2, "does not fit", false},
    {54, 2, 2, "unknown flags", false},
    {56, 1, 4, "unknown flags", false},
    {64, UINT32_MAX, 4, "past its partition", false},
    {64, 40, 4, "makes no sense", false},
    {68, UINT32_MAX, 4, "past its partition", false},
    {68, 48, 4, "makes no sense", false},
    {72, 0, 4, "makes no sense", false},
    {72, 2, 4, "past its block", false},
    {76, 585, 2, "makes no sense", false},
    {78, 1, 1, "codec", true},
    {79, 2, 1, "makes no sense", false},
    {80, 1, 8, "first key", false},
    {88, 1, 4, "makes no sense", false},
    {96, 0, 8, "another partition", false},
    {104, 2, 2, "unknown group", false},
    {104, 1, 2, "last row", false}, /* group 1: one word only */
    {104, 0x8000, 2, "removed row", false},
    {106, 4, 2, "unknown group or segment", false},
    {106, 2, 2, "past its block", false},
    {112, 0x7ff0000000000000, 8, "no count", false},
    {120, 0x8000000000000001, 8, "no count", false},
    {140, 65, 8, "index", false},
    {140, 0, 8, "index", false},
    {148, 75, 8, "index", false},
    {148, UINT64_MAX, 8, "index", false},
    {156, 2, 8, "index", false},
    {156, UINT64_MAX, 8, "index", false},
    {164, 139, 8, "trailer", false},
    {164, UINT64_MAX, 8, "trailer", false},
    {172, 2, 8, "index", false},
    {180, 2, 4, "trailer", false},
    {180, UINT32_MAX, 4, "trailer", false},
};

TEST_ON(const shard_place *p, right_checksums_do_not_make_a_file_right)
{
    tn_snapshot_done done = {0};
    size_t size;
    write_golden(p->path, &done);
    char *data = load(p->path, &size);
    for (size_t i = 0; i < sizeof lie / sizeof lie[0]; i++) {
        char copy[GOLDEN_BYTES];
        tn_error err = {0};
        memcpy(copy, data, sizeof copy);
        store_le(copy + lie[i].at, lie[i].value, lie[i].bytes);
        repair(copy, sizeof copy);
        put(p->path, copy, sizeof copy);
        tn_status want = lie[i].newer ? TN_E_LIMIT : TN_E_CKPT;
        assert_int_equal(read_file(p->path, NULL, NULL, &err), want);
        assert_int_equal(err.code, want);
        fail_if(strstr(err.text, lie[i].why) == NULL, "lie %zu at byte %zu: %s", i, lie[i].at,
                err.text);
    }
    free(data);
}

TEST_ON(const shard_place *p, keys_that_do_not_ascend_are_detected)
{
    tn_error err = {0};
    tn_snapshot_writer *w = NULL;
    tn_snapshot_done done = {0};
    const tn_snapshot_head head = {.partitions = 1};
    tn_row_view row = {.key = 5, .group = 1};
    assert_int_equal(tn_snapshot_create(&w, p->path, &head, &err), TN_OK);
    assert_int_equal(tn_snapshot_begin(w, 0, &err), TN_OK);
    assert_int_equal(tn_snapshot_add(w, &row, &err), TN_OK);
    row.key = 6;
    assert_int_equal(tn_snapshot_add(w, &row, &err), TN_OK);
    assert_int_equal(tn_snapshot_commit(w, &done, &err), TN_OK);
    size_t size;
    char *data = load(p->path, &size);
    store_le(data + 96 + 32, 5, 8); /* the same key again */
    repair(data, size);
    put(p->path, data, size);
    assert_int_equal(read_file(p->path, NULL, NULL, &err), TN_E_CKPT);
    assert_non_null(strstr(err.text, "at byte 128: keys do not ascend"));
    free(data);
}
