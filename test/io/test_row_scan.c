/* test_row_scan.c - every record once, in order, whatever the size of blocks; faults with their
 * place.
 */
#include "base/core/bytes.h"
#include "datasets.h"
#include "io/read/row_scan.h"
#include "io/rows/rows.h"
#include "support/test.h"

typedef struct seen {
    tn_text text;   /* raw records, '|' between */
    tn_text faults; /* one on a line */
    uint64_t rows;
    uint64_t at; /* where the next record should begin; checked when `line` is set */
    size_t line;
} seen;

SET_UP
{
    static datasets d;
    datasets_open(&d, 2);
    *state = &d;
}

TEAR_DOWN
{
    datasets_close(*state);
}

static tn_status see_block(void *ctx, const tn_row_scan_block *block, tn_error *err)
{
    seen *s = ctx;
    (void)err;
    for (uint32_t r = 0; r < block->rows->n; r++, s->rows++) {
        if (s->line > 0) {
            assert_int_equal(block->rows->row[r].at, s->at);
            assert_int_equal(block->raw[r].size, s->line);
            s->at += s->line + 1;
        } else {
            tn_text_add(&s->text, block->raw[r].data, block->raw[r].size);
            tn_text_addc(&s->text, '|');
        }
    }
    return TN_OK;
}

static tn_status see_fault(void *ctx, const char *text, tn_error *err)
{
    seen *s = ctx;
    (void)err;
    tn_text_adds(&s->faults, text);
    tn_text_addc(&s->faults, '\n');
    return TN_OK;
}

static void seen_done(seen *s)
{
    tn_text_done(&s->text);
    tn_text_done(&s->faults);
    *s = (seen){0};
}

static tn_status run(datasets *d, const char *yaml, const char *name, seen *s,
                     tn_row_scan_counts *counts)
{
    tn_dataset *set = datasets_bind(d, yaml, 0);
    const char *path = datasets_path(d, name);
    const tn_strs paths = {1, &path};
    const tn_row_scan_in in = {.schema = set->schema, .paths = &paths, .team = d->team};
    const tn_row_scan_visitor visitor = {.ctx = s, .block = see_block, .fault = see_fault};
    return tn_row_scan_run(&in, &visitor, counts, &d->err);
}

TEST_ON(datasets *d, records_come_in_order_with_their_bytes)
{
    seen s = {0};
    tn_row_scan_counts n;
    static const char text[] = "\xef\xbb\xbf# note\n1 5\r\n\n0 6:2 # x\n  \n1 7";
    datasets_write(d, "a", text, sizeof text - 1);
    assert_int_equal(run(d, "{data: {format: libsvm}}", "a", &s, &n), TN_OK);
    assert_string_equal(s.text.data, "1 5\r|0 6:2 # x|1 7|");
    assert_int_equal(n.rows, 3);
    assert_int_equal(n.blank, 3);
    assert_int_equal(n.bad, 0);
    assert_int_equal(n.bytes, sizeof text - 1 - 3 - 5); /* without mark and line ends */
    seen_done(&s);
}

/* More than one block, and records across their borders. */
TEST_ON(datasets *d, blocks_join_without_a_seam)
{
    enum { LINE = 41, N = 250000 };
    tn_text text CLEANUP(tn_text_done) = {0};
    for (uint32_t i = 0; i < N; i++) {
        tn_text_addf(&text, "1 %039u\n", i);
    }
    memset(text.data + 2, ' ', 20); /* index of 19 digits, so that it fits */
    for (uint32_t i = 0; i < N; i++) {
        memset(text.data + (size_t)i * (LINE + 1) + 2, ' ', 20);
    }
    datasets_write(d, "a", text.data, text.size);
    seen s = {.line = LINE};
    tn_row_scan_counts n;
    assert_int_equal(run(d, "{data: {format: libsvm}}", "a", &s, &n), TN_OK);
    assert_int_equal(n.rows, N);
    assert_int_equal(n.bad, 0);
    assert_int_equal(s.at, text.size);
    seen_done(&s);
}

TEST_ON(datasets *d, a_record_larger_than_a_block_is_read)
{
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_text_adds(&text, "1 1\n0");
    for (uint32_t i = 0; i < 900000; i++) {
        tn_text_addf(&text, " %u:0.5", 1000000 + i);
    }
    tn_text_adds(&text, "\n1 2\n");
    assert_true(text.size > 10 << 20);
    datasets_write(d, "a", text.data, text.size);
    seen s = {0};
    tn_row_scan_counts n;
    assert_int_equal(run(d, "{data: {format: libsvm}}", "a", &s, &n), TN_OK);
    assert_int_equal(n.rows, 3);
    seen_done(&s);
    assert_int_equal(run(d, "{data: {format: libsvm, record_bytes_max: 1MB}}", "a", &s, &n), TN_OK);
    assert_int_equal(n.rows, 2);
    assert_int_equal(n.bad, 1);
    assert_non_null(strstr(s.faults.data, "a:2:1: error: record longer than record_bytes_max"));
    seen_done(&s);
}

TEST_ON(datasets *d, every_fault_is_told_with_its_line)
{
    tn_text text CLEANUP(tn_text_done) = {0};
    for (uint32_t i = 1; i <= 300000; i++) {
        tn_text_adds(&text, i % 100000 == 7 ? "1 x 222222222222222\n" : "1 4 222222222222222\n");
    }
    datasets_write(d, "a", text.data, text.size);
    seen s = {.line = 19};
    s.line = 0;
    tn_row_scan_counts n;
    assert_int_equal(run(d, "{data: {format: libsvm}}", "a", &s, &n), TN_OK);
    assert_int_equal(n.bad, 3);
    assert_int_equal(n.rows, 299997);
    const char *at = s.faults.data;
    for (uint32_t i = 0; i < 3; i++) {
        char place[64];
        (void)snprintf(place, sizeof place, "a:%u:3: error: expected an index, found 'x'",
                       i * 100000 + 7);
        at = strstr(at, place);
        assert_non_null(at);
    }
    seen_done(&s);
}

TEST_ON(datasets *d, without_a_listener_the_first_fault_ends_the_pass)
{
    datasets_write(d, "a", "1 3\n1 y\n1 z\n", 12);
    tn_dataset *set = datasets_bind(d, "{data: {format: libsvm}}", 0);
    const char *path = datasets_path(d, "a");
    const tn_strs paths = {1, &path};
    const tn_row_scan_in in = {.schema = set->schema, .paths = &paths, .team = d->team};
    const tn_row_scan_visitor visitor = {.ctx = NULL};
    tn_row_scan_counts n;
    assert_int_equal(tn_row_scan_run(&in, &visitor, &n, &d->err), TN_E_DATA);
    assert_non_null(strstr(d->err.text, "a:2:3: error"));
}

TEST_ON(datasets *d, odd_files_are_told_apart)
{
    seen s = {0};
    tn_row_scan_counts n;
    datasets_write(d, "empty", "", 0);
    assert_int_equal(run(d, "{data: {format: csv}, slots: [{name: a}]}", "empty", &s, &n), TN_OK);
    assert_int_equal(n.rows, 0);
    datasets_write(d, "utf16",
                   "\xff\xfe"
                   "1\0",
                   4);
    assert_int_equal(run(d, "{data: {format: libsvm}}", "utf16", &s, &n), TN_E_DATA);
    assert_non_null(strstr(d->err.text, "looks like UTF-16"));
    datasets_write(d, "head", "label,b\n1,2\n", 12);
    assert_int_equal(run(d, "{data: {format: csv}, slots: [{name: a}]}", "head", &s, &n),
                     TN_E_DATA);
    assert_non_null(strstr(d->err.text, "there is no column 'a'"));
    assert_int_equal(run(d, "{data: {format: libsvm}}", "absent", &s, &n), TN_E_DATA);
    seen_done(&s);
}
