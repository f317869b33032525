/* test_fast_paths.c - the fast paths of parsers end where the long ones do.
 *
 * Rows that keep the text of tokens go the slow path. Records as files have them, and damaged
 * ones, are parsed both ways: rows, entries and faults must be the same.
 */
#include "base/codec/proto.h"
#include "base/math/key.h"
#include "io/format/format.h"
#include "io/rows/rows.h"
#include "setup.h"
#include "support/test.h"

#include <inttypes.h>

enum { ROUNDS = 6000, FIELDS = 21 };

/* Writes record number `round`, made of nothing but `seed`. */
typedef void (*maker)(tn_text *out, uint64_t seed);

/* Both ways to a row. */
typedef struct paths {
    setup s;
    const tn_format *format;
    tn_head head;
    tn_rows *quick, *slow;
    tn_rows *bare; /* quick, without entries where that can be */
    uint64_t good, bad, grids;
} paths;

static void open_paths(paths *r, const char *config, const char *head)
{
    *r = (paths){.good = 0};
    setup_open(&r->s, config);
    const tn_schema *schema = r->s.schema;
    r->format = tn_format_find(schema->data->format);
    if (r->format->head != NULL) {
        const tn_record_location place = {.source = "test", .line = 1};
        tn_bytes window = {head, strlen(head), false};
        r->head.column = tn_alloc(schema->columns != NULL ? 256 : 1, sizeof(uint32_t), "a head");
        assert_int_equal(r->format->head(&window, true, schema, &place, &r->head, &r->s.err),
                         TN_OK);
    }
    assert_int_equal(tn_rows_new(&r->quick, schema, TN_ROWS_IDS, &r->s.err), TN_OK);
    assert_int_equal(tn_rows_new(&r->bare, schema, TN_ROWS_IDS | TN_ROWS_BARE, &r->s.err), TN_OK);
    assert_int_equal(tn_rows_new(&r->slow, schema, TN_ROWS_IDS | TN_ROWS_SIGNS, &r->s.err), TN_OK);
}

static void close_paths(paths *r)
{
    tn_rows_free(r->quick);
    tn_rows_free(r->bare);
    tn_rows_free(r->slow);
    tn_free(r->head.column);
    setup_close(&r->s);
}

/* As bits: labels may be NAN. */
static bool same_float(float a, float b)
{
    uint32_t x;
    uint32_t y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    return x == y;
}

static bool same_entries(const tn_rows *a, const tn_rows *b)
{
    for (uint32_t i = 0; i < a->n_entries; i++) {
        const tn_entry *x = &a->entry[i];
        const tn_entry *y = &b->entry[i];
        if (x->key != y->key || x->slot != y->slot || !same_float(x->value, y->value)) {
            return false;
        }
    }
    return true;
}

/* A grid and the entries it stands for. */
static bool same_grid(const tn_rows *a, const tn_rows *b)
{
    const tn_bare *grid = tn_rows_bare(a);
    uint32_t at = 0;
    for (uint32_t r = 0; r < b->n; r++) {
        const uint64_t there = grid->key[(size_t)r * grid->stride];
        for (uint32_t slot = 0; slot < b->schema->n_slots; slot++) {
            if ((there >> slot & 1) == 0) {
                continue;
            }
            const tn_entry *e = &b->entry[at++];
            if (at > b->n_entries || e->key != tn_rows_grid_key(a, r, slot) || e->slot != slot ||
                !same_float(e->value, 1)) {
                return false;
            }
        }
    }
    return at == b->n_entries;
}

static bool same_rows(const tn_rows *a, const tn_rows *b)
{
    const tn_bare *bare = tn_rows_bare(a);
    if (a->n != b->n || a->n_entries != b->n_entries || a->duplicate_key != b->duplicate_key ||
        !(bare != NULL ? same_grid(a, b) : same_entries(a, b))) {
        return false;
    }
    for (uint32_t i = 0; i < a->n; i++) {
        const tn_parsed_row *x = &a->row[i];
        const tn_parsed_row *y = &b->row[i];
        if (!same_float(x->label, y->label) || !same_float(x->weight, y->weight) ||
            x->group != y->group || x->first != y->first || x->id.size != y->id.size) {
            return false;
        }
    }
    uint32_t n = a->n * a->schema->n_numeric;
    return n == 0 || memcmp(a->numeric, b->numeric, n * sizeof(float)) == 0;
}

/* A copy that ends where its memory ends. */
static void compare(paths *r, const char *bytes, size_t size)
{
    size_t whole = (size + TN_CACHE_LINE) / TN_CACHE_LINE * TN_CACHE_LINE;
    char *block FREED(tn_free) = tn_alloc(whole, 1, "a record");
    char *at = block + whole - size;
    memcpy(at, bytes, size);
    const tn_record_location place = {.source = "test",
                                      .line = r->format->binary ? 0 : 7,
                                      .head = r->format->head != NULL ? &r->head : NULL};
    const tn_bytes record = {at, size, false};
    tn_error quick = {0};
    tn_error slow = {0};
    if (r->quick->n >= 3) {
        tn_rows_clear(r->quick);
        tn_rows_clear(r->slow);
        tn_rows_clear(r->bare);
    }
    tn_status status = r->format->parse(record, r->s.schema, &place, r->quick, &quick);
    tn_status want = r->format->parse(record, r->s.schema, &place, r->slow, &slow);
    fail_if(status != want || strcmp(quick.text, slow.text) != 0 || !same_rows(r->quick, r->slow),
            "%d, not %d, or other rows: '%.*s'\n%s\n%s", status, want, (int)size, bytes, quick.text,
            slow.text);
    tn_status third = r->format->parse(record, r->s.schema, &place, r->bare, &quick);
    fail_if(third != want || strcmp(quick.text, slow.text) != 0 || !same_rows(r->bare, r->slow),
            "%d, not %d, or another grid: '%.*s'", third, want, (int)size, bytes);
    r->grids += r->bare->n > 1 && tn_rows_bare(r->bare) != NULL;
    r->good += status == TN_OK;
    r->bad += status == TN_E_DATA;
}

/* Records as they are, then with some bytes changed, inserted or cut off. */
static void compare_all(const char *config, const char *head, maker make, bool grids)
{
    static const char likely[] = "\t \t:#\r\n\0,\"0123456789abcdefx-+.eq\1\xff";
    paths r;
    tn_text text CLEANUP(tn_text_done) = {0};
    open_paths(&r, config, head);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        tn_text_clear(&text);
        make(&text, round);
        uint64_t changes = round % 4 == 0 ? 0 : tn_draw(71, round) % 3;
        for (uint64_t i = 0; i < changes && text.size > 0; i++) {
            uint64_t x = tn_draw(72 + i, round);
            uint64_t byte = x % 3 == 0 ? x >> 8 : (uint64_t)likely[(x >> 8) % (sizeof likely - 1)];
            text.data[(x >> 32) % text.size] = (char)byte;
        }
        uint64_t x = tn_draw(80, round);
        size_t size = x % 9 == 0 ? (size_t)((x >> 16) % (text.size + 1)) : text.size;
        compare(&r, tn_text_str(&text), size);
    }
    assert_true(r.good > ROUNDS / 10);
    assert_true(r.bad > ROUNDS / 20);
    assert_int_equal(r.grids > ROUNDS / 100, grids);
    close_paths(&r);
}

/* Whole numbers of 1 to 21 digits, most of them short. */
static void add_number(tn_text *out, uint64_t x)
{
    uint64_t digits = x % 5 != 0 ? x % 7 : x % (x % 59 == 0 ? 21 : 18);
    for (uint64_t i = 0; i <= digits; i++) {
        tn_text_addc(out, (char)('0' + (tn_mix(x + i) % 10)));
    }
}

/* As dataframes write numbers, and nearly so. */
static const char *frame_word(uint64_t x)
{
    static const char *const word[] = {"1.0",  "NaN", "True", "false", "0.00", "nan",
                                       "-4.0", "1.5", ".0",   "nana",  "inf",  "123456789012.0"};
    return word[x % (sizeof word / sizeof *word)];
}

/* Integers, then hexadecimal ones, then ids; some are missing. */
static void tsv_field(tn_text *out, uint64_t i, uint64_t x)
{
    if (x % 5 == 0 || (i == 3 && x % 3 == 0)) {
        return;
    }
    if (x % 61 == 0) {
        tn_text_adds(out, frame_word(x / 61));
        return;
    }
    if (i < 7) {
        tn_text_adds(out, x % 23 == 0 && i < 4 ? "-" : "");
        tn_text_addf(out, "%" PRIu64, (x >> 20) % (x % 11 == 0 ? 100000 : 5000));
    } else if (i < 14) {
        tn_text_addf(out, x % 17 == 0 ? "%" PRIx64 : "%08" PRIx64, x >> 32);
    } else {
        add_number(out, x);
    }
}

static void tsv_line(tn_text *out, uint64_t seed)
{
    uint64_t x = tn_draw(1, seed);
    tn_text_adds(out, x % 50 == 0   ? ""
                      : x % 3 == 0  ? "1"
                      : x % 40 == 1 ? "0.25"
                      : x % 7 == 1  ? frame_word(x / 7)
                                    : "0");
    for (uint64_t i = 0; i < FIELDS; i++) {
        tn_text_addc(out, '\t');
        tsv_field(out, i, tn_draw(seed + 2, i));
    }
    tn_text_adds(out, seed % 13 == 0 ? "\r" : "");
}

static const char ints[] = "{name: a1, type: int, transform: ln2_bucket}, {name: a2, type: int}, "
                           "{name: a3, type: int, transform: ln2_bucket}, {name: a4, type: id}, ";
static const char rest[] =
    "{name: a5, type: int, transform: log, as: value}, {name: a6, type: float, as: value}, "
    "{name: b1, type: hex}, {name: b2, type: hex}, {name: b3, type: str}, {name: b4, type: hex}, "
    "{name: b5, type: hex}, {name: c1, type: id}, {name: c2, type: id, share: c1}, "
    "{name: c3, type: id, drop_zero: true}, {name: c4, type: int}, {name: c5, type: id}";
static const char columns[] =
    "columns: [label, a1, a2, a3, a4, a5, a6, x1, b1, b2, b3, b4, b5, x2, "
    "x3, c1, c2, c3, c4, c5, x4, x5]";

TEST(fields_between_tabs)
{
    char config[2000];
    (void)snprintf(config, sizeof config, "{data: {format: tsv, %s}, slots: [%s%s]}", columns, ints,
                   rest);
    compare_all(config, "", tsv_line, true);
    (void)snprintf(config, sizeof config,
                   "{data: {format: tsv, group: x2, record_id: x3, weight: x1, %s}, slots: [%s%s]}",
                   columns, ints, rest);
    compare_all(config, "", tsv_line, true);
    (void)snprintf(config, sizeof config,
                   "{data: {format: tsv, quote: line, %s}, slots: [%s{name: b1, max_len: 1}]}",
                   columns, ints);
    compare_all(config, "", tsv_line, false);
}

/* Rows as a public log has them: columns of slots side by side, in order. */
static void criteo_line(tn_text *out, uint64_t seed)
{
    tn_text_adds(out, seed % 3 == 0 ? "1" : "0");
    for (uint64_t i = 0; i < 39; i++) {
        tn_text_addc(out, '\t');
        tsv_field(out, i < 13 ? i % 4 : 8, tn_draw(seed + 3, i));
    }
}

static void add_criteo(tn_text *config, const char *numbers, uint32_t from)
{
    tn_text_clear(config);
    tn_text_adds(config, "{data: {format: criteo}, slots: [");
    for (uint32_t i = from; i <= 13; i++) {
        tn_text_addf(config, "{name: I%u, type: int, %s}, ", i, numbers);
    }
    for (uint32_t i = 1; i <= 26; i++) {
        tn_text_addf(config, "%s{name: C%u, type: hex}", i > 1 ? ", " : "", i);
    }
    tn_text_adds(config, "]}");
}

TEST(rows_of_criteo)
{
    tn_text config CLEANUP(tn_text_done) = {0};
    add_criteo(&config, "transform: ln2_bucket", 1);
    compare_all(tn_text_str(&config), "", criteo_line, true);
    add_criteo(&config, "transform: ln2_bucket", 5);
    compare_all(tn_text_str(&config), "", criteo_line, true);
    add_criteo(&config, "transform: log, as: value", 1);
    compare_all(tn_text_str(&config), "", criteo_line, true);
}

static void svm_pair(tn_text *out, uint64_t seed, uint64_t x)
{
    tn_text_adds(out, x % 101 == 0 ? "\t" : " ");
    add_number(out, x);
    if (x % 53 != 0 || seed % 2 == 0) {
        tn_text_adds(out, x % 7 == 0 ? ":0.125" : x % 397 == 0 ? ":nan" : ":1");
    }
}

static void svm_line(tn_text *out, uint64_t seed)
{
    uint64_t x = tn_draw(1, seed);
    tn_text_adds(out, x % 3 == 0 ? "1" : x % 3 == 1 ? "-1" : "0");
    tn_text_adds(out, x % 31 == 0 ? ":2.5" : x % 37 == 0 ? "  " : "");
    if (seed % 5 == 0) {
        tn_text_addf(out, " qid:%" PRIu64, x % 100000);
    }
    for (uint64_t i = 0; i < FIELDS - seed % 9; i++) {
        svm_pair(out, seed, tn_draw(seed + 2, i));
    }
    tn_text_adds(out, seed % 13 == 0 ? " \r" : seed % 17 == 0 ? " # 1:1" : "");
}

TEST(pairs_of_libsvm)
{
    compare_all("{data: {format: libsvm, index_base: 0}}", "", svm_line, false);
    compare_all("{data: {format: libsvm, index_base: 1}, slots: [{name: a, range: [0, 500]}, "
                "{name: b, range: [500, 100000]}, {name: c, range: [200000, 1e15], max_len: 2}]}",
                "", svm_line, false);
    compare_all("{data: {format: libsvm, index_base: 0, label: none}}", "", svm_line, false);
}

static void ffm_line(tn_text *out, uint64_t seed)
{
    uint64_t x = tn_draw(1, seed);
    tn_text_adds(out, x % 3 == 0 ? "1" : "0");
    for (uint64_t i = 0; i < FIELDS; i++) {
        x = tn_draw(seed + 2, i);
        tn_text_addf(out, " %" PRIu64 ":", x % 601 == 0 ? x % 90000 : i % 4);
        add_number(out, x);
        tn_text_adds(out, x % 7 == 0 ? ":0.5" : x % 43 == 0 ? "" : ":1");
    }
}

TEST(pairs_of_libffm)
{
    compare_all("{data: {format: libffm, index_base: 0}, slots: [{name: a, field: 0}, {name: b, "
                "field: 1}, {name: c, field: 2, type: str}, {name: d, field: 3}]}",
                "", ffm_line, false);
    compare_all("{data: {format: libffm, index_base: 1, row_norm: true, unknown_field: ignore}, "
                "slots: [{name: a, field: 0}, {name: b, field: 1}, {name: d, field: 3}]}",
                "", ffm_line, false);
}

static void add_feature(tn_text *out, const char *name, uint64_t x, uint64_t value)
{
    size_t entry = tn_proto_begin(out, 1);
    tn_proto_add_bytes(out, 1, name, strlen(name));
    size_t feature = tn_proto_begin(out, 2);
    size_t list = tn_proto_begin(out, x % 41 == 0 ? 2 : 3);
    if (x % 29 != 0) {
        size_t packed = tn_proto_begin(out, 1);
        tn_proto_add_varint(out, value >> (x % 64));
        if (x % 31 == 0) {
            tn_proto_add_varint(out, 5);
        }
        tn_proto_end(out, packed);
    }
    tn_proto_end(out, list);
    tn_proto_end(out, feature);
    tn_proto_end(out, entry);
}

static void example(tn_text *out, uint64_t seed)
{
    static const char *const names[] = {
        "label", "a", "user_recent_clicks", "b", "nobody_reads", "c12345678", "d", "e"};
    size_t features = tn_proto_begin(out, 1);
    uint64_t from = seed % 11 == 0 ? tn_draw(3, seed) % 8 : 0;
    for (uint64_t i = 0; i < 8; i++) {
        uint64_t x = tn_draw(seed + 4, i);
        uint64_t which = x % 47 == 0 ? x % 8 : (i + from) % 8;
        if (seed % 7 == 0 && x % 6 == 0) {
            continue;
        }
        add_feature(out, names[which], which == 0 ? 1 : x,
                    which == 0 ? seed & 2 : tn_draw(seed + 5, i));
    }
    tn_proto_end(out, features);
}

TEST(features_of_examples)
{
    compare_all("{data: {format: tfrecord}, slots: [{name: a}, {name: b, type: int}, {name: d}, "
                "{name: user_recent_clicks}, {name: c12345678, share: a}, {name: e}]}",
                "", example, true);
    compare_all("{data: {format: tfrecord, group: d}, slots: [{name: a}, {name: b}, {name: c, "
                "column: label}, {name: e, max_len: 1}]}",
                "", example, false);
}

TEST(a_line_too_long_for_the_fast_path)
{
    paths r;
    tn_text text CLEANUP(tn_text_done) = {0};
    open_paths(&r, "{data: {format: libsvm, index_base: 0}}", "");
    tn_text_addc(&text, '1');
    for (uint64_t i = 0; text.size < 70000; i++) {
        tn_text_addf(&text, " %" PRIu64 ":1", i);
        if (text.size > 65400) {
            compare(&r, tn_text_str(&text), text.size);
        }
    }
    assert_true(r.good > 100);
    close_paths(&r);
}
