/* test_arrow_cells.c - arrays of every type become the cells that their values are. */
#include "io/arrow/arrow_cells.h"

#include "io/arrow/cells.h"
#include "support/arrow_kit.h"
#include "support/test.h"

/* ---- a table, and its cells as text ---- */

typedef struct table {
    struct ArrowSchema schema;
    struct ArrowArray batch;
} table;

static void table_open(table *t, int64_t rows)
{
    kit_schema(&t->schema, "+s", "");
    kit_array(&t->batch, rows, NULL);
}

static void table_close(table *t)
{
    t->schema.release(&t->schema);
    t->batch.release(&t->batch);
    assert_int_equal(kit_live, 0);
}

static void dump_cell(tn_bytes *in, tn_text *out)
{
    const tn_arrow_cell cell = tn_arrow_cell_take(in);
    assert_false(in->failed);
    switch (cell.kind) {
    case TN_CELL_NONE:
        tn_text_adds(out, "-");
        break;
    case TN_CELL_TEXT:
        tn_text_addf(out, "'%.*s'", (int)cell.bytes.size, cell.bytes.data);
        break;
    case TN_CELL_INT:
        tn_text_addf(out, "%lld", (long long)cell.whole);
        break;
    case TN_CELL_REAL:
        tn_text_addf(out, "%.17gr", cell.real);
        break;
    case TN_CELL_SINGLE:
        tn_text_addf(out, "%.9gs", cell.real);
        break;
    case TN_CELL_LIST:
        tn_text_adds(out, "[");
        for (tn_bytes items = cell.bytes; items.size > 0;) {
            dump_cell(&items, out);
            tn_text_adds(out, items.size > 0 ? " " : "");
        }
        tn_text_adds(out, "]");
    }
}

/* Rows as "a,b: 0: 1 'x' | 1: - 'y'". */
static void dump_cells(tn_bytes in, tn_text *out)
{
    assert_memory_equal(tn_get(&in, TN_CELLS_MAGIC_BYTES), TN_CELLS_MAGIC, TN_CELLS_MAGIC_BYTES);
    const uint32_t n = tn_get_u32(&in);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t size = tn_get_u32(&in);
        tn_text_addf(out, "%s%.*s", i > 0 ? "," : "", (int)size, tn_get(&in, size));
        assert_int_equal(tn_get_u32(&in), 0);
    }
    for (uint32_t row = 0; in.size > 0; row++) {
        const uint32_t size = tn_get_u32(&in);
        tn_bytes cells = {tn_get(&in, size), size, false};
        assert_false(in.failed);
        tn_text_addf(out, "%s%llu:", row > 0 ? " | " : ": ",
                     (unsigned long long)tn_get_u64(&cells));
        for (uint32_t i = 0; i < n; i++) {
            tn_text_addc(out, ' ');
            dump_cell(&cells, out);
        }
        assert_int_equal(cells.size, 0);
    }
}

/* What a reader of the first column that is not read is told; "": all are read. */
static void find_reason(tn_bytes head, tn_text *out)
{
    (void)tn_get(&head, TN_CELLS_MAGIC_BYTES);
    const uint32_t n = tn_get_u32(&head);
    for (uint32_t i = 0; i < n && out->size == 0; i++) {
        char name[100];
        const uint32_t size = tn_get_u32(&head);
        (void)snprintf(name, sizeof name, "%.*s", (int)size, tn_get(&head, size));
        tn_make_printable(name, "");
        const uint32_t why_size = tn_get_u32(&head);
        const char *why = tn_get(&head, why_size);
        if (why_size > 0) {
            tn_text_addf(out, "memory:t: error: column '%s' %.*s", name, (int)why_size, why);
        }
    }
    assert_false(head.failed);
}

/* The cells of rows [from, to), or the sentence that refuses them. */
static void read_rows(const table *t, uint64_t from, uint64_t to, tn_text *out)
{
    tn_error err = {0};
    tn_arrow_cells *cells = NULL;
    tn_text bytes = {0};
    tn_text reason = {0};
    tn_status status = tn_arrow_cells_new(&cells, &t->schema, "memory:t", &err);
    assert_true((cells == NULL) == (status != TN_OK));
    if (status == TN_OK) {
        status = tn_arrow_cells_head(cells, &bytes, &err);
    }
    if (status == TN_OK) {
        find_reason((tn_bytes){bytes.data, bytes.size, false}, &reason);
    }
    if (status == TN_OK && reason.size == 0) {
        const size_t before = bytes.size;
        status =
            tn_arrow_cells_rows(cells, &t->batch, (tn_arrow_rows){from, to, from}, &bytes, &err);
        assert_true(status == TN_OK || bytes.size == before);
    }
    if (status == TN_OK && reason.size == 0) {
        dump_cells((tn_bytes){bytes.data, bytes.size, false}, out);
    } else {
        assert_int_equal(status, reason.size > 0 ? TN_OK : TN_E_DATA);
        tn_text_adds(out, reason.size > 0 ? tn_text_str(&reason) : err.text);
    }
    tn_text_done(&reason);
    tn_arrow_cells_free(cells);
    tn_text_done(&bytes);
}

static void assert_rows(const table *t, const char *wanted)
{
    tn_text found = {0};
    read_rows(t, 0, (uint64_t)t->batch.length, &found);
    assert_string_equal(tn_text_str(&found), wanted);
    tn_text_done(&found);
}

/* The same, after which the table is closed. */
static void assert_table(table *t, const char *wanted)
{
    assert_rows(t, wanted);
    table_close(t);
}

static void assert_refused(table *t, const char *sentence)
{
    tn_text found = {0};
    read_rows(t, 0, t->batch.length > 0 ? (uint64_t)t->batch.length : 0, &found);
    assert_says(tn_text_str(&found), "memory:t: ");
    assert_says(tn_text_str(&found), sentence);
    tn_text_done(&found);
    table_close(t);
}

#define COLUMN(t, format, valid, type, ...)                                                        \
    kit_column(&(t)->schema, &(t)->batch, format, valid, (const type[]){__VA_ARGS__},              \
               sizeof((const type[]){__VA_ARGS__}))

/* ---- numbers ---- */

TEST(whole_numbers_of_each_width_are_read)
{
    table t;
    table_open(&t, 2);
    (void)COLUMN(&t, "c", "01", int8_t, -7, -128);
    (void)COLUMN(&t, "s", NULL, int16_t, -300, 32767);
    (void)COLUMN(&t, "i", NULL, int32_t, INT32_MIN, 5);
    (void)COLUMN(&t, "l", NULL, int64_t, INT64_MIN, INT64_MAX);
    (void)COLUMN(&t, "C", NULL, uint8_t, 200, 0);
    (void)COLUMN(&t, "S", NULL, uint16_t, 65535, 1);
    (void)COLUMN(&t, "I", NULL, uint32_t, UINT32_MAX, 2);
    (void)COLUMN(&t, "L", NULL, uint64_t, INT64_MAX, UINT64_MAX);
    assert_table(&t, "a,b,c,d,e,f,g,h: 0: - -300 -2147483648 -9223372036854775808 200 65535 "
                     "4294967295 9223372036854775807 | 1: -128 32767 5 9223372036854775807 0 1 2 "
                     "'18446744073709551615'");
}

TEST(floats_of_each_width_are_read_and_nan_stays_a_number)
{
    table t;
    table_open(&t, 4);
    (void)COLUMN(&t, "e", NULL, uint16_t, 0x3c00, 0xfbff, 0x0001, 0x7c00);
    (void)COLUMN(&t, "f", "1101", float, .1F, NAN, 0, -INFINITY);
    (void)COLUMN(&t, "g", NULL, double, .1, (double)NAN, -0., 1e300);
    (void)COLUMN(&t, "e", NULL, uint16_t, 0x7e00, 0x8000, 0x3555, 0xc248);
    assert_table(&t, "a,b,c,d: 0: 1s 0.100000001s 0.10000000000000001r nans | "
                     "1: -65504s nans nanr -0s | 2: 5.96046448e-08s - -0r 0.333251953s | "
                     "3: infs -infs 1.0000000000000001e+300r -3.140625s");
}

TEST(bools_are_words_from_any_bit_on)
{
    table t;
    table_open(&t, 3);
    (void)kit_schema_child(&t.schema, "b", "a");
    struct ArrowArray *a = kit_child(&t.batch, 3, "0000000001101");
    kit_bits(a, "0000000001011");
    a->offset = 9;
    assert_table(&t, "a: 0: 'True' | 1: 'False' | 2: -");
}

/* ---- texts ---- */

TEST(texts_of_each_layout_are_read)
{
    table t;
    table_open(&t, 3);
    (void)kit_schema_child(&t.schema, "u", "a");
    struct ArrowArray *a = kit_child(&t.batch, 3, "110");
    kit_buffer(a, (const int32_t[]){0, 4, 4, 4}, 16);
    kit_buffer(a, "Oslo", 4);
    (void)kit_schema_child(&t.schema, "U", "b");
    a = kit_child(&t.batch, 3, NULL);
    kit_buffer(a, (const int64_t[]){2, 3, 5, 9}, 32);
    kit_buffer(a, "..xyzTrom", 9);
    (void)kit_schema_child(&t.schema, "w:3", "c");
    a = kit_child(&t.batch, 3, "011");
    kit_buffer(a, "AAABBBC\nC", 9);
    (void)kit_schema_child(&t.schema, "Z", "d");
    a = kit_child(&t.batch, 3, NULL);
    kit_buffer(a, (const int64_t[]){0, 0, 0, 0}, 32);
    kit_buffer(a, NULL, 0);
    (void)kit_schema_child(&t.schema, "w:0", "e");
    a = kit_child(&t.batch, 3, NULL);
    kit_buffer(a, NULL, 0);
    (void)kit_schema_child(&t.schema, "n", "f");
    a = kit_child(&t.batch, 3, NULL);
    a->n_buffers = 0;
    assert_table(&t, "a,b,c,d,e,f: 0: 'Oslo' 'x' - '' '' - | 1: '' 'yz' 'BBB' '' '' - | "
                     "2: - 'Trom' 'C\nC' '' '' -");
}

TEST(texts_of_every_length_are_copied_whole)
{
    static const char all[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ";
    for (int32_t size = 0; size < (int32_t)sizeof all; size++) {
        table t;
        char wanted[100];
        table_open(&t, 1);
        (void)kit_schema_child(&t.schema, "u", "a");
        struct ArrowArray *a = kit_child(&t.batch, 1, NULL);
        kit_buffer(a, (const int32_t[]){0, size}, 8);
        kit_buffer(a, all, (size_t)size);
        (void)snprintf(wanted, sizeof wanted, "a: 0: '%.*s'", (int)size, all);
        assert_table(&t, wanted);
    }
}

/* A view of a text of a buffer. */
typedef struct view {
    int32_t size;
    char start[4];
    int32_t buffer;
    int32_t offset;
} view;

static struct ArrowArray *add_views(table *t, const view *v, size_t n)
{
    (void)kit_schema_child(&t->schema, "vu", "a");
    struct ArrowArray *a = kit_child(&t->batch, (int64_t)n, NULL);
    kit_buffer(a, v, n * sizeof *v);
    kit_buffer(a, "a first long text", 17);
    kit_buffer(a, "and another long one", 20);
    kit_view_sizes(a);
    return a;
}

TEST(views_are_read_from_themselves_and_from_their_buffers)
{
    table t;
    view v[4] = {{.size = 12}, {17, "a fi", 0, 0}, {16, "anot", 1, 4}, {.size = 0}};
    memcpy((char *)v + sizeof v[0].size, "twelve bytes", 12);
    table_open(&t, 4);
    (void)add_views(&t, v, 4);
    assert_table(&t, "a: 0: 'twelve bytes' | 1: 'a first long text' | 2: 'another long one' | "
                     "3: ''");
}

TEST(a_view_beyond_its_buffer_is_refused)
{
    static const view wrong[] = {{17, "", 0, 1}, {17, "", 2, 0},  {17, "", -1, 0},
                                 {-1, "", 0, 0}, {17, "", 0, -1}, {INT32_MAX, "", 1, INT32_MAX}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        table t;
        table_open(&t, 1);
        (void)add_views(&t, &wrong[i], 1);
        assert_refused(&t, "row 0: error: column 'a' has a view of a text that is in none of its "
                           "buffers");
    }
}

/* ---- decimals, dates, times ---- */

TEST(decimals_keep_their_digits)
{
    table t;
    table_open(&t, 3);
    (void)COLUMN(&t, "d:9,2,32", NULL, int32_t, 1250, -5, 0);
    (void)COLUMN(&t, "d:18,0,64", NULL, int64_t, -7, INT64_MAX, 0);
    (void)COLUMN(&t, "d:38,30", "101", uint64_t, 1, 0, 0, 0, UINT64_MAX, UINT64_MAX);
    (void)COLUMN(&t, "d:5,-3", NULL, int64_t, 12, 0, -1, -1, 0, 0);
    (void)COLUMN(&t, "d:76,1,256", NULL, uint64_t, 0, 0, 0, UINT64_C(1) << 62, 0, 0, 0,
                 UINT64_C(1) << 63, 15, 0, 0, 0);
    assert_table(
        &t, "a,b,c,d,e: "
            "0: '12.50' '-7' '0.000000000000000000000000000001' '12000' "
            "'2894802230932904885589274625217197696331749616641014100986439600197828240998.4' | "
            "1: '-0.05' '9223372036854775807' - '-1000' "
            "'-5789604461865809771178549250434395392663499233282028201972879200395656481996.8' | "
            "2: '0.00' '0' '-0.000000000000000000000000000001' '0' '1.5'");
}

TEST(days_become_dates)
{
    table t;
    table_open(&t, 6);
    (void)COLUMN(&t, "tdD", NULL, int32_t, 20787, 0, -1, 11016, -719529, INT32_MAX);
    (void)COLUMN(&t, "tdm", "111110", int64_t, INT64_C(20787) * 86400000, -1, 86399999, 0,
                 INT64_MIN, 0);
    assert_table(&t, "a,b: 0: '2026-11-30' '2026-11-30' | 1: '1970-01-01' '1969-12-31' | "
                     "2: '1969-12-31' '1970-01-01' | 3: '2000-02-29' '1970-01-01' | "
                     "4: '-0001-12-31' '-292275055-05-16' | 5: '5881580-07-11' -");
}

TEST(times_are_written_in_the_zone_of_their_type)
{
    enum { NOON = 1764500400 }; /* 2025-11-30 11:00:00 UTC */
    table t;
    table_open(&t, 3);
    (void)COLUMN(&t, "tss:", NULL, int64_t, NOON, INT64_MIN, -1);
    (void)COLUMN(&t, "tsm:UTC", "110", int64_t, NOON * INT64_C(1000), -1, 0);
    (void)COLUMN(&t, "tsu:+05:30", NULL, int64_t, NOON * INT64_C(1000000) + 7, 0, -1);
    (void)COLUMN(&t, "tsn:-08:00", NULL, int64_t, NOON * INT64_C(1000000000) + 1, INT64_MIN, 0);
    (void)COLUMN(&t, "tts", NULL, int32_t, 0, 86399, 27000);
    (void)COLUMN(&t, "ttm", NULL, int32_t, 1, 27000500, 0);
    (void)COLUMN(&t, "ttu", NULL, int64_t, 1, 0, INT64_C(86399999999));
    (void)COLUMN(&t, "ttn", NULL, int64_t, 1, INT64_C(1000000000), 0);
    assert_table(
        &t, "a,b,c,d,e,f,g,h: "
            "0: '2025-11-30 11:00:00' '2025-11-30 11:00:00' '2025-11-30 16:30:00.000007' "
            "'2025-11-30 03:00:00.000000001' '00:00:00' '00:00:00.001' '00:00:00.000001' "
            "'00:00:00.000000001' | "
            "1: '-292277022657-01-27 08:29:52' '1969-12-31 23:59:59.999' '1970-01-01 05:30:00' "
            "'1677-09-20 16:12:43.145224192' '23:59:59' '07:30:00.500' '00:00:00' '00:00:01' | "
            "2: '1969-12-31 23:59:59' - '1970-01-01 05:29:59.999999' '1969-12-31 16:00:00' "
            "'07:30:00' '00:00:00' '23:59:59.999999' '00:00:00'");
}

/* ---- lists, dictionaries, runs ---- */

TEST(lists_of_each_layout_are_read)
{
    table t;
    table_open(&t, 3);
    struct ArrowSchema *s = kit_schema_child(&t.schema, "+l", "a");
    (void)kit_schema_child(s, "u", "item");
    struct ArrowArray *a = kit_child(&t.batch, 3, "101");
    kit_buffer(a, (const int32_t[]){0, 2, 2, 2}, 16);
    a = kit_child(a, 2, "10");
    kit_buffer(a, (const int32_t[]){0, 1, 1}, 12);
    kit_buffer(a, "x", 1);
    s = kit_schema_child(&t.schema, "+L", "b");
    (void)kit_schema_child(s, "i", "item");
    a = kit_child(&t.batch, 3, NULL);
    kit_buffer(a, (const int64_t[]){1, 1, 2, 4}, 32);
    a = kit_child(a, 4, NULL);
    kit_buffer(a, (const int32_t[]){9, 8, 7, 6}, 16);
    s = kit_schema_child(&t.schema, "+vl", "c");
    (void)kit_schema_child(s, "c", "item");
    a = kit_child(&t.batch, 3, "110");
    kit_buffer(a, (const int32_t[]){1, 0, 99}, 12);
    kit_buffer(a, (const int32_t[]){2, 3, 99}, 12);
    a = kit_child(a, 3, NULL);
    kit_buffer(a, (const int8_t[]){1, 2, 3}, 3);
    s = kit_schema_child(&t.schema, "+vL", "d");
    (void)kit_schema_child(s, "c", "item");
    a = kit_child(&t.batch, 3, NULL);
    kit_buffer(a, (const int64_t[]){2, 0, 1}, 24);
    kit_buffer(a, (const int64_t[]){0, 1, 1}, 24);
    a = kit_child(a, 2, NULL);
    kit_buffer(a, (const int8_t[]){4, 5}, 2);
    s = kit_schema_child(&t.schema, "+w:2", "e");
    (void)kit_schema_child(s, "g", "item");
    a = kit_child(&t.batch, 3, "101");
    a = kit_child(a, 6, "011111");
    kit_buffer(a, (const double[]){1, 2, 3, 4, 5, 6}, 48);
    assert_table(&t, "a,b,c,d,e: 0: ['x' -] [] [2 3] [] [- 2r] | 1: - [8] [1 2 3] [4] - | "
                     "2: [] [7 6] - [5] [5r 6r]");
}

TEST(a_dictionary_gives_values_and_not_codes)
{
    table t;
    table_open(&t, 4);
    struct ArrowSchema *s = kit_schema_child(&t.schema, "c", "a");
    (void)kit_schema_dictionary(s, "u");
    struct ArrowArray *a = kit_child(&t.batch, 4, "1101");
    kit_buffer(a, (const int8_t[]){2, 0, 99, 1}, 4);
    a = kit_dictionary(a, 3, "101");
    kit_buffer(a, (const int32_t[]){0, 3, 3, 8}, 16);
    kit_buffer(a, "redgreen", 8);
    s = kit_schema_child(&t.schema, "+l", "b");
    s = kit_schema_child(s, "S", "item");
    (void)kit_schema_dictionary(s, "l");
    a = kit_child(&t.batch, 4, NULL);
    kit_buffer(a, (const int32_t[]){0, 1, 1, 1, 3}, 20);
    a = kit_child(a, 3, NULL);
    kit_buffer(a, (const uint16_t[]){1, 0, 1}, 6);
    a = kit_dictionary(a, 2, NULL);
    kit_buffer(a, (const int64_t[]){-5, 70}, 16);
    assert_table(&t, "a,b: 0: 'green' [70] | 1: 'red' [] | 2: - [] | 3: - [-5 70]");
}

TEST(runs_are_read_from_any_row_on)
{
    table t;
    table_open(&t, 6);
    struct ArrowSchema *s = kit_schema_child(&t.schema, "+r", "a");
    (void)kit_schema_child(s, "s", "run_ends");
    (void)kit_schema_child(s, "u", "values");
    struct ArrowArray *a = kit_child(&t.batch, 6, NULL);
    a->n_buffers = 0;
    a->offset = 2;
    struct ArrowArray *ends = kit_child(a, 3, NULL);
    kit_buffer(ends, (const int16_t[]){1, 3, 7, 9}, 8);
    ends->offset = 1;
    struct ArrowArray *values = kit_child(a, 3, "101");
    kit_buffer(values, (const int32_t[]){0, 1, 1, 3}, 16);
    kit_buffer(values, "xyz", 3);
    tn_text found = {0};
    read_rows(&t, 5, 6, &found);
    read_rows(&t, 0, 2, &found);
    assert_string_equal(tn_text_str(&found), "a: 5: 'yz'a: 0: 'x' | 1: -");
    tn_text_done(&found);
    assert_table(&t, "a: 0: 'x' | 1: - | 2: - | 3: - | 4: - | 5: 'yz'");
}

TEST(runs_are_read_backwards_where_lists_overlap)
{
    table t;
    table_open(&t, 3);
    struct ArrowSchema *s = kit_schema_child(&t.schema, "+vl", "a");
    s = kit_schema_child(s, "+r", "item");
    (void)kit_schema_child(s, "i", "run_ends");
    (void)kit_schema_child(s, "C", "values");
    struct ArrowArray *a = kit_child(&t.batch, 3, NULL);
    kit_buffer(a, (const int32_t[]){3, 0, 1}, 12);
    kit_buffer(a, (const int32_t[]){2, 2, 3}, 12);
    a = kit_child(a, 5, NULL);
    a->n_buffers = 0;
    kit_buffer(kit_child(a, 3, NULL), (const int32_t[]){1, 3, 5}, 12);
    kit_buffer(kit_child(a, 3, NULL), "\1\2\3", 3);
    assert_table(&t, "a: 0: [3 3] | 1: [1 2] | 2: [2 2 3]");
}

/* ---- slices ---- */

TEST(offsets_of_a_batch_and_of_its_columns_add_up)
{
    table t;
    table_open(&t, 2);
    t.batch.offset = 3;
    struct ArrowArray *a = COLUMN(&t, "i", "0011101011", int32_t, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9);
    a->offset = 4;
    (void)kit_schema_child(&t.schema, "u", "b");
    a = kit_child(&t.batch, 5, NULL);
    kit_buffer(a, (const int32_t[]){0, 0, 0, 0, 0, 2, 5}, 28);
    kit_buffer(a, "abcde", 5);
    a->offset = 1;
    struct ArrowSchema *s = kit_schema_child(&t.schema, "+w:2", "c");
    (void)kit_schema_child(s, "C", "item");
    a = kit_child(&t.batch, 5, NULL);
    a->offset = 1;
    a = kit_child(a, 12, NULL);
    kit_buffer(a, "0123456789abcd", 14);
    a->offset = 1;
    assert_table(&t, "a,b,c: 0: - 'ab' [57 97] | 1: 8 'cde' [98 99]");
}

TEST(rows_that_are_null_as_a_whole_have_no_values)
{
    table t;
    kit_schema(&t.schema, "+s", "");
    kit_array(&t.batch, 3, "101");
    (void)COLUMN(&t, "i", NULL, int32_t, 1, 2, 3);
    assert_table(&t, "a: 0: 1 | 1: - | 2: 3");
}

TEST(an_empty_batch_needs_no_buffers)
{
    table t;
    table_open(&t, 0);
    (void)kit_column(&t.schema, &t.batch, "l", NULL, NULL, 0);
    (void)kit_schema_child(&t.schema, "u", "b");
    struct ArrowArray *a = kit_child(&t.batch, 0, NULL);
    kit_buffer(a, NULL, 0);
    kit_buffer(a, NULL, 0);
    (void)kit_schema_dictionary(kit_schema_child(&t.schema, "i", "c"), "b");
    a = kit_child(&t.batch, 0, NULL);
    kit_buffer(a, NULL, 0);
    kit_buffer(kit_dictionary(a, 0, NULL), NULL, 0);
    assert_table(&t, "a,b,c");
}

static bool is_named(void *arg, const char *name, size_t size)
{
    return strlen(arg) == size && memcmp(arg, name, size) == 0;
}

TEST(columns_that_nobody_wants_are_left_out)
{
    table t;
    tn_error err = {0};
    tn_arrow_cells *cells = NULL;
    tn_text bytes = {0};
    tn_text found = {0};
    table_open(&t, 1);
    (void)COLUMN(&t, "i", NULL, int32_t, 1);
    (void)kit_schema_child(&t.schema, "+m", "unread");
    (void)kit_child(&t.batch, 0, NULL);
    (void)COLUMN(&t, "i", NULL, int32_t, 3);
    assert_ok(tn_arrow_cells_new(&cells, &t.schema, "t", &err), err.text);
    tn_arrow_cells_choose(cells, is_named, (char[]){"c"});
    assert_ok(tn_arrow_cells_head(cells, &bytes, &err), err.text);
    assert_ok(tn_arrow_cells_rows(cells, &t.batch, (tn_arrow_rows){0, 1, 7}, &bytes, &err),
              err.text);
    dump_cells((tn_bytes){bytes.data, bytes.size, false}, &found);
    assert_string_equal(tn_text_str(&found), "c: 7: 3");
    tn_arrow_cells_free(cells);
    tn_text_done(&bytes);
    tn_text_done(&found);
    table_close(&t);
}

/* ---- what does not fit ---- */

TEST(types_that_are_not_read_are_refused_by_name)
{
    static const struct {
        const char *format;
        const char *sentence;
    } wrong[] = {
        {"+s", "error: column 'a' holds structs (Arrow's format '+s'), which are not read\nhint: "},
        {"+m", "column 'a' holds maps"},
        {"+ud:1,2", "column 'a' holds unions"},
        {"tDs", "column 'a' holds durations"},
        {"tin", "column 'a' holds intervals"},
        {"tss:Europe/Rome", "column 'a' holds times of the zone 'Europe/Rome', whose hours are not "
                            "known here\nhint: "},
        {"tss:a\nb", "of the zone 'a?b'"},
        {"tss:+1:00", "of the zone '+1:00'"},
        {"tss:+25:00", "of the zone '+25:00'"},
        {"tss:+", "of the zone '+'"},
        {"tss", "column 'a' has Arrow's format 'tss', which is not known"},
        {"ts", "format 'ts'"},
        {"tsx:", "format 'tsx:'"},
        {"t", "format 't'"},
        {"", "format ''"},
        {"v", "format 'v'"},
        {"+", "format '+'"},
        {"+v", "format '+v'"},
        {"+w", "format '+w'"},
        {"+w:", "format '+w:'"},
        {"+w:-1", "format '+w:-1'"},
        {"w:", "format 'w:'"},
        {"w:3x", "format 'w:3x'"},
        {"w:99999999999", "format 'w:99999999999'"},
        {"d:", "format 'd:'"},
        {"d:9", "format 'd:9'"},
        {"d:9,", "format 'd:9,'"},
        {"d:9,2,", "format 'd:9,2,'"},
        {"d:9,2,48", "format 'd:9,2,48'"},
        {"d:0,2", "format 'd:0,2'"},
        {"d:9,101", "format 'd:9,101'"},
        {"d:9,-101", "format 'd:9,-101'"},
        {"ll", "format 'll'"},
        {"+l", "column 'a' has a schema of lists without a type of their items"},
        {"+r", "column 'a' has a schema of run-end encoding without ends and values"},
        {NULL, "column 'a' has a schema without a format"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        table t;
        table_open(&t, 0);
        (void)kit_schema_child(&t.schema, wrong[i].format, "a");
        (void)kit_child(&t.batch, 0, NULL);
        assert_refused(&t, wrong[i].sentence);
    }
}

/* A column of a format with children or a dictionary. */
static void assert_type_refused(const char *format, const char *const *child, int n,
                                const char *dictionary, const char *sentence)
{
    table t;
    table_open(&t, 0);
    struct ArrowSchema *s = kit_schema_child(&t.schema, format, "x\ny");
    for (int i = 0; i < n; i++) {
        struct ArrowSchema *of = kit_schema_child(s, child[i], "");
        if (child[i][0] == '+') {
            (void)kit_schema_child(of, "i", "");
        }
    }
    if (dictionary != NULL) {
        (void)kit_schema_dictionary(s, dictionary);
    }
    (void)kit_child(&t.batch, 0, NULL);
    assert_refused(&t, sentence);
}

TEST(types_made_of_others_are_looked_through)
{
    assert_type_refused("+l", (const char *const[]){"+l"}, 1, NULL,
                        "error: column 'x?y' holds lists of lists, which are not read");
    assert_type_refused("+w:2", (const char *const[]){"+vl"}, 1, NULL, "lists of lists");
    assert_type_refused("+l", (const char *const[]){"tDs"}, 1, NULL, "holds durations");
    assert_type_refused("+l", (const char *const[]){"i", "i"}, 2, NULL, "lists without a type");
    assert_type_refused("u", NULL, 0, "u", "a dictionary whose codes are no whole numbers");
    assert_type_refused("c", NULL, 0, "tiM", "holds intervals");
    assert_type_refused("+r", (const char *const[]){"u", "u"}, 2, NULL,
                        "run-end encoding whose ends are no whole numbers");
    assert_type_refused("+r", (const char *const[]){"i", "+s"}, 2, NULL, "holds structs");
}

TEST(a_schema_of_endless_levels_is_refused)
{
    table t;
    table_open(&t, 0);
    struct ArrowSchema *s = kit_schema_child(&t.schema, "i", "a");
    for (int i = 0; i < 12; i++) {
        s = kit_schema_dictionary(s, "i");
    }
    (void)kit_child(&t.batch, 0, NULL);
    assert_refused(&t, "column 'a' has a schema of more levels than are read");
}

TEST(what_is_no_table_is_refused)
{
    table t;
    table_open(&t, 0);
    t.schema.format = "i";
    assert_refused(&t, "memory:t: error: this is no table");
    table_open(&t, 0);
    t.schema.n_children = -1;
    assert_refused(&t, "this is no table");
    table_open(&t, 0);
    t.schema.n_children = INT64_C(1) << 60;
    assert_refused(&t, "1152921504606846976 columns, at most 1048576 are read");
    table_open(&t, 0);
    (void)kit_schema_child(&t.schema, "i", "a");
    assert_refused(&t, "a batch of 0 columns and 0 rows from offset 0 does not fit the schema of 1 "
                       "columns");
    table_open(&t, 0);
    t.batch.length = -1;
    assert_refused(&t, "a batch of 0 columns and -1 rows");
    table_open(&t, 0);
    t.batch.offset = -1;
    assert_refused(&t, "0 rows from offset -1");
}

/* A batch of 2 rows, a column of texts, and one of int32 with codes of a dictionary of 3. */
static struct ArrowArray *two_columns(table *t)
{
    table_open(t, 2);
    (void)kit_schema_child(&t->schema, "u", "a");
    struct ArrowArray *a = kit_child(&t->batch, 2, NULL);
    kit_buffer(a, (const int32_t[]){0, 2, 3}, 12);
    kit_buffer(a, "abc", 3);
    struct ArrowSchema *s = kit_schema_child(&t->schema, "i", "b");
    (void)kit_schema_dictionary(s, "c");
    struct ArrowArray *b = kit_child(&t->batch, 2, NULL);
    kit_buffer(b, (const int32_t[]){2, 0}, 8);
    kit_buffer(kit_dictionary(b, 3, NULL), "\1\2\3", 3);
    return t->batch.children[0];
}

TEST(arrays_of_impossible_sizes_are_refused)
{
    table t;
    (void)two_columns(&t);
    assert_table(&t, "a,b: 0: 'ab' 3 | 1: 'c' 1");
    two_columns(&t)->length = -2;
    assert_refused(&t, "error: column 'a' has an array of length -2 from offset 0");
    two_columns(&t)->offset = -1;
    assert_refused(&t, "column 'a' has an array of length 2 from offset -1");
    two_columns(&t)->length = INT64_MAX;
    assert_refused(&t, "column 'a' has an array of length 9223372036854775807");
    two_columns(&t)->length = 1;
    assert_refused(&t, "column 'a' has an array of 1 values, expected 2");
    two_columns(&t)->n_buffers = 2;
    assert_refused(&t, "column 'a' has an array of 2 buffers, expected 3");
    two_columns(&t)->n_buffers = -1;
    assert_refused(&t, "column 'a' has an array of -1 buffers, expected 3");
    two_columns(&t)->buffers = NULL;
    assert_refused(&t, "column 'a' has an array of 3 buffers, expected 3");
    two_columns(&t)->buffers += 3; /* where the kit has none */
    assert_refused(&t, "column 'a' has an array without its buffer of values");
    two_columns(&t)->null_count = 1;
    assert_refused(&t, "column 'a' has an array with nulls that does not say where");
    (void)two_columns(&t);
    t.batch.offset = INT64_MAX;
    assert_refused(&t, "does not fit the schema");
    (void)two_columns(&t);
    t.batch.offset = 1;
    assert_refused(&t, "column 'a' has an array of 2 values, expected 3");
    (void)two_columns(&t);
    t.batch.n_children = 1;
    assert_refused(&t,
                   "a batch of 1 columns and 2 rows from offset 0 does not fit the schema of 2");
    (void)two_columns(&t);
    t.batch.children = NULL;
    assert_refused(&t, "does not fit the schema");
}

TEST(offsets_that_go_back_are_refused_with_their_row)
{
    static const int32_t wrong[][4] = {{-1, 2, 3, 3}, {0, 2, 1, 3},  {0, 4, 4, 3},
                                       {3, 2, 3, 3},  {0, 0, 0, -1}, {0, 1, 3, 2}};
    static const char *const row[] = {"row 0", "row 1", "row 0", "row 0", "row 0", "row 1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        table t;
        char sentence[100];
        table_open(&t, 3);
        (void)kit_schema_child(&t.schema, "z", "a");
        struct ArrowArray *a = kit_child(&t.batch, 3, NULL);
        kit_buffer(a, wrong[i], sizeof wrong[i]);
        kit_buffer(a, "abc", 3);
        (void)snprintf(sentence, sizeof sentence,
                       "memory:t: %s: error: column 'a' has an array whose offsets go back",
                       row[i]);
        assert_refused(&t, sentence);
    }
}

/* A column of one list of int8, of a layout. */
static void assert_list_refused(const char *format, const void *from, const void *size, size_t n,
                                int64_t items, const char *sentence)
{
    table t;
    table_open(&t, 1);
    (void)kit_schema_child(kit_schema_child(&t.schema, format, "a"), "c", "item");
    struct ArrowArray *a = kit_child(&t.batch, 1, NULL);
    if (from != NULL) {
        kit_buffer(a, from, n);
    }
    if (size != NULL) {
        kit_buffer(a, size, n);
    }
    a = kit_child(a, items, NULL);
    kit_buffer(a, "0123456789", (size_t)items);
    assert_refused(&t, sentence);
}

TEST(lists_beyond_their_items_are_refused)
{
    static const char all[] = "row 0: error: column 'a' has a list whose items are not all there";
    static const char back[] = "row 0: error: column 'a' has an array whose offsets go back";
    assert_list_refused("+l", (const int32_t[]){0, 3}, NULL, 8, 2, all);
    assert_list_refused("+l", (const int32_t[]){3, 2}, NULL, 8, 4, back);
    assert_list_refused("+L", (const int64_t[]){-1, 2}, NULL, 16, 4, back);
    assert_list_refused("+L", (const int64_t[]){INT64_MAX, INT64_MAX}, NULL, 16, 4, all);
    assert_list_refused("+vl", (const int32_t[]){1}, (const int32_t[]){2}, 4, 2, all);
    assert_list_refused("+vl", (const int32_t[]){1}, (const int32_t[]){-1}, 4, 2, all);
    assert_list_refused("+vl", (const int32_t[]){-1}, (const int32_t[]){1}, 4, 2, all);
    assert_list_refused("+vL", (const int64_t[]){3}, (const int64_t[]){0}, 8, 2, all);
    assert_list_refused("+w:3", NULL, NULL, 0, 2,
                        "error: column 'a' has an array of 2 values, expected 3");
}

TEST(items_before_a_slice_of_lists_count_too)
{
    table t;
    table_open(&t, 1);
    (void)kit_schema_child(kit_schema_child(&t.schema, "+w:2", "a"), "c", "item");
    struct ArrowArray *a = kit_child(&t.batch, 1, NULL);
    a->offset = 2;
    kit_buffer(kit_child(a, 5, NULL), "12345", 5);
    assert_refused(&t, "column 'a' has an array of 5 values, expected 6");
}

TEST(codes_that_no_dictionary_has_are_refused)
{
    table t;
    (void)two_columns(&t);
    t.batch.children[1]->buffers[1] = (const int32_t[]){0, 3};
    assert_refused(&t, "row 1: error: column 'b' has code 3, but its dictionary has 3 values");
    (void)two_columns(&t);
    t.batch.children[1]->buffers[1] = (const int32_t[]){-1, 0};
    assert_refused(&t, "row 0: error: column 'b' has code -1");
    (void)two_columns(&t);
    struct ArrowArray *dictionary = t.batch.children[1]->dictionary;
    t.batch.children[1]->dictionary = NULL;
    tn_text found = {0};
    read_rows(&t, 0, 2, &found);
    assert_says(tn_text_str(&found), "error: column 'b' has an array without its dictionary");
    t.batch.children[1]->dictionary = dictionary;
    tn_text_done(&found);
    table_close(&t);
}

static void assert_runs_refused(const char *ends_valid, int64_t n, int64_t n_values,
                                const char *sentence)
{
    table t;
    table_open(&t, 4);
    struct ArrowSchema *s = kit_schema_child(&t.schema, "+r", "a");
    (void)kit_schema_child(s, "i", "run_ends");
    (void)kit_schema_child(s, "C", "values");
    struct ArrowArray *a = kit_child(&t.batch, 4, NULL);
    kit_buffer(kit_child(a, n, ends_valid), (const int32_t[]){1, 3}, 8);
    kit_buffer(kit_child(a, n_values, NULL), "12", (size_t)n_values);
    assert_refused(&t, sentence);
}

TEST(runs_that_do_not_cover_their_rows_are_refused)
{
    assert_runs_refused(NULL, 2, 2, "row 3: error: column 'a' has runs that end before its array");
    assert_runs_refused(NULL, 0, 0, "column 'a' has an array of 0 values, expected 1");
    assert_runs_refused(NULL, 2, 1, "column 'a' has an array of 1 values, expected 2");
    assert_runs_refused("11", 2, 2, "column 'a' has runs whose ends are null");
}

TEST(what_was_released_is_refused)
{
    table t;
    table_open(&t, 0);
    void (*release)(struct ArrowSchema *) = t.schema.release;
    t.schema.release = NULL;
    tn_text found = {0};
    read_rows(&t, 0, 0, &found);
    assert_says(tn_text_str(&found), "this is no table");
    t.schema.release = release;
    tn_text_done(&found);
    table_close(&t);
}

TEST(memory_that_runs_out_anywhere_is_reported_and_nothing_is_appended)
{
    table t;
    tn_text bytes = {0};
    uint64_t nth = 1;
    (void)two_columns(&t);
    for (tn_status status = TN_E_MEMORY; status != TN_OK; nth++) {
        tn_error err = {0};
        tn_arrow_cells *cells = NULL;
        tn_alloc_fail_at(nth);
        tn_text_done(&bytes);
        status = tn_arrow_cells_new(&cells, &t.schema, "t", &err);
        status = status == TN_OK ? tn_arrow_cells_head(cells, &bytes, &err) : status;
        const size_t before = bytes.size;
        if (status == TN_OK) {
            status = tn_arrow_cells_rows(cells, &t.batch, (tn_arrow_rows){0, 2, 0}, &bytes, &err);
            assert_true(status == TN_OK || bytes.size == before);
        }
        assert_true(status == TN_OK || (status == TN_E_MEMORY && err.text[0] != '\0'));
        tn_arrow_cells_free(cells);
    }
    assert_true(nth > 8);
    tn_alloc_fail_at(0);
    tn_text_done(&bytes);
    table_close(&t);
}
