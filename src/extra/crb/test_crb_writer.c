/* test_crb_writer.c - rows in blocks of crb: their bytes, the way back, and what is refused. */
#include "base/core/bytes.h"
#include "io/datasets.h"
#include "io/write/write_kind.h"
#include "support/test.h"

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

static void check_refused(void **state, const char *from, const char *line, const char *to,
                          const char *why)
{
    datasets *d = *state;
    assert_string_equal(datasets_line(d, from, line, to, 0), "");
    fail_if(strstr(d->err.text, why) == NULL && strstr(tn_text_str(&d->diag.text), why) == NULL,
            "'%s' does not say '%s'", d->err.text, why);
}

#define SVM "{data: {format: libsvm}}"
#define FFM "{data: {format: libffm}, slots: [{name: a, field: 0}, {name: b, field: 1}]}"
#define CSV                                                                                        \
    "{data: {format: csv, weight: w, record_id: id}, slots: [{name: a}, {name: t, type: str}, "    \
    "{name: h, list: \"|\", values: hx}, {name: p, type: float, as: value, absent: 3}, "           \
    "{name: c, type: int, transform: ln2_bucket}]}"
#define CSV_HEAD "id,label,w,a,t,h,hx,p,c\n"

/* `line` of libsvm as crb, and that as libsvm again. */
static const tn_text *check_crb(datasets *d, const char *from, const char *line, const char *label)
{
    char yaml[64];
    tn_dataset *in = datasets_bind(d, from, TN_DATASET_AS_READ);
    tn_dataset *packed = datasets_target(d, in, "{format: crb}", 0);
    (void)snprintf(yaml, sizeof yaml, "{data: {format: crb%s}}", label);
    tn_dataset *again = datasets_bind(d, yaml, TN_DATASET_AS_READ);
    datasets_write(d, "line.in", line, strlen(line));
    if (datasets_convert(d, in, "line.in", packed, "crb", 0) != TN_OK ||
        datasets_convert(d, again, "crb", datasets_target(d, again, "{format: libsvm}", 0), "back",
                         0) != TN_OK) {
        fail_msg("%s", d->err.text);
    }
    assert_string_equal(datasets_read(d, "back")->data, line);
    return datasets_read(d, "crb");
}

/* An array of less than 13 bytes is never shortened: a token n << 4 and n bytes. The offsets are.
 */
TEST_ON(datasets *d, crb_holds_rows_in_a_block)
{
    static const char head[] = "\xc7\xa8\x4b\x47\x08\0\0\0\x01\0\0\0"
                               "\x05\0\0\0\x40\0\0\x80\x3f";        /* label 1 */
    static const char tail[] = "\x09\0\0\0\x80\x03\0\0\0\0\0\0\x01" /* index 2^56 + 3 */
                               "\0\0\0\0\0\0\0\0";                  /* values, weights */
    enum { HEAD = sizeof head - 1, TAIL = sizeof tail - 1 };
    const tn_text *crb = check_crb(d, SVM, "1 72057594037927939:1\n", "");
    const size_t size = HEAD + 4 + tn_load_u32(crb->data + 8 + HEAD) + TAIL;
    assert_int_equal(tn_load_u32(crb->data), 0xced7230a);
    assert_int_equal(tn_load_u32(crb->data + 4), size);
    assert_memory_equal(crb->data + 8, head, HEAD);
    assert_memory_equal(crb->data + 8 + size - TAIL, tail, TAIL);
    assert_int_equal(crb->size, 8 + (size + 3) / 4 * 4);
    check_crb(d, SVM, "0:2.5 7:1 3:1 3:2\n1\n0.25 18446744073709551615:-0.001 7:1\n", "");
    crb = check_crb(d, "{data: {format: libsvm, label: none}}", "3:1 4:1\n", ", label: none");
    assert_int_equal(tn_load_u32(crb->data + 20), 0);
    assert_string_equal(datasets_line(d, SVM, "", "{format: crb}", 0), "");
    assert_string_equal(d->err.text, "");
}

/* 16 bytes a row, 1 MiB and what is left. */
TEST_ON(datasets *d, crb_has_more_blocks_for_more_rows)
{
    enum { ROWS = 100000, FULL = (1 << 20) / 16 };
    static char lines[2 * ROWS + 1];
    for (size_t i = 0; i < ROWS; i++) {
        lines[2 * i] = i % 3 == 0 ? '1' : '0';
        lines[2 * i + 1] = '\n';
    }
    const tn_text *crb = check_crb(d, SVM, lines, "");
    const uint32_t second = 8 + (tn_load_u32(crb->data + 4) + 3) / 4 * 4;
    assert_int_equal(tn_load_u32(crb->data + 16), FULL);
    assert_int_equal(tn_load_u32(crb->data + second), 0xced7230a);
    assert_int_equal(tn_load_u32(crb->data + second + 16), ROWS - FULL);
}

/* One index is stored as it is, so one of the four places in it is aligned in the record. */
TEST_ON(datasets *d, crb_is_cut_where_it_holds_the_magic)
{
    uint32_t pieces[4] = {0};
    for (uint32_t shift = 0; shift < 32; shift += 8) {
        char line[64];
        (void)snprintf(line, sizeof line, "1 %llu:1\n", 0xced7230aULL << shift);
        const tn_text *crb = check_crb(d, SVM, line, "");
        for (size_t at = 0; at < crb->size;) {
            const uint32_t word = tn_load_u32(crb->data + at + 4);
            assert_int_equal(tn_load_u32(crb->data + at), 0xced7230a);
            pieces[word >> 29]++;
            at += 8 + ((word & 0x1fffffff) + 3) / 4 * 4;
            assert_true(at <= crb->size);
        }
    }
    assert_int_equal(pieces[0], 3);
    assert_int_equal(pieces[1], 1);
    assert_int_equal(pieces[3], 1);
}

TEST_ON(datasets *d, crb_has_fields_in_bits_of_indices)
{
    static const char slots[] =
        "slots: [{name: a, field: 1}, {name: p, type: int, transform: "
        "ln2_bucket, field: 2}, {name: q, type: float, as: value, field: 3}]";
    static const char rows[] = "label,a,p,q\n1,5,16777216,-0.1\n0,,7,\n";
    static const char *const bits[] = {"low 2", "high 10"};
    datasets_write(d, "in", rows, sizeof rows - 1);
    for (uint32_t i = 0; i < 2; i++) {
        char yaml[300];
        (void)snprintf(yaml, sizeof yaml, "{data: {format: csv}, %s}", slots);
        tn_dataset *in = datasets_bind(d, yaml, TN_DATASET_AS_READ);
        (void)snprintf(yaml, sizeof yaml, "{format: crb, slot_bits: %s}", bits[i]);
        tn_dataset *packed = datasets_target(d, in, yaml, 0);
        (void)snprintf(yaml, sizeof yaml, "{data: {format: crb, slot_bits: %s}, %s}", bits[i],
                       slots);
        tn_dataset *again = datasets_bind(d, yaml, TN_DATASET_AS_READ);
        tn_dataset *out = datasets_target(d, again, "{format: csv}", 0);
        assert_int_equal(datasets_convert(d, in, "in", packed, "crb", 0),
                         i == 0 ? TN_OK : TN_E_DATA);
        if (i == 0) {
            assert_int_equal(datasets_convert(d, again, "crb", out, "out", 0), TN_OK);
            assert_string_equal(datasets_read(d, "out")->data, rows);
        }
    }
    assert_non_null(strstr(d->err.text, "index 5 of slot 'a' is not within its field"));
}

/* The bytes of an index in each block of a file, as digits. */
static const char *index_bytes(const tn_text *crb, char out[8])
{
    uint32_t n = 0;
    for (size_t at = 0; at < crb->size && n < 7;) {
        out[n++] = (char)('0' + tn_load_u32(crb->data + at + 12));
        at += 8 + ((tn_load_u32(crb->data + at + 4) & 0x1fffffff) + 3) / 4 * 4;
    }
    out[n] = '\0';
    return out;
}

/* Field 3 in the high 2 bits begins at 2^62 + 2^63, or at 2^30 + 2^31 of 4 bytes. */
TEST_ON(datasets *d, crb_has_blocks_of_short_indices_where_their_fields_are)
{
    static const char slots[] = "slots: [{name: a, field: 0}, {name: q, type: float, as: value, "
                                "field: 1}, {name: b, field: 3}]";
    static const struct {
        const char *rows, *sizes;
    } cases[] = {
        {"1 0:7:0.5 3:3221225477:1 1:0:0.25\n", "4"},
        {"1 0:7:1 3:13835058055282163717:1 1:0:2.5\n", "8"},
        {"0 0:7:1\n1\n1 3:3221225477:1\n0 0:9:1 1:0:-2\n", "4"},
        {"1 3:3221225477:1\n0 0:9:1\n1 3:13835058055282163717:1\n1 1:0:3\n1 3:3221225472:2\n",
         "484"},
        {"1 0:7:1\n0 0:4294967296:1\n", "8"},
    };
    char yaml[300];
    (void)snprintf(yaml, sizeof yaml, "{data: {format: libffm}, %s}", slots);
    tn_dataset *in = datasets_bind(d, yaml, TN_DATASET_AS_READ);
    tn_dataset *packed = datasets_target(d, in, "{format: crb, slot_bits: high 2}", 0);
    (void)snprintf(yaml, sizeof yaml, "{data: {format: crb, slot_bits: high 2}, %s}", slots);
    tn_dataset *again = datasets_bind(d, yaml, TN_DATASET_AS_READ);
    tn_dataset *out = datasets_target(d, again, "{format: libffm}", 0);
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char sizes[8];
        datasets_write(d, "in", cases[i].rows, strlen(cases[i].rows));
        assert_int_equal(datasets_convert(d, in, "in", packed, "crb", 0), TN_OK);
        assert_int_equal(datasets_convert(d, again, "crb", out, "out", 0), TN_OK);
        assert_string_equal(datasets_read(d, "out")->data, cases[i].rows);
        assert_string_equal(index_bytes(datasets_read(d, "crb"), sizes), cases[i].sizes);
        assert_int_equal(
            datasets_convert(d, again, "crb",
                             datasets_target(d, again, "{format: crb, slot_bits: high 2}", 0),
                             "twice", 0),
            TN_OK);
        const tn_text *twice = datasets_read(d, "twice");
        assert_int_equal(twice->size, datasets_read(d, "crb")->size);
        assert_memory_equal(twice->data, datasets_read(d, "crb")->data, twice->size);
    }
}

/* Such a row is only ever copied. */
TEST_ON(datasets *d, a_row_that_no_block_of_crb_may_have_is_an_error)
{
    enum { N = 5 << 20 };
    tn_text rows CLEANUP(tn_text_done) = {0};
    tn_text_add_u32le(&rows, 12 + 8 * N);
    memset(tn_text_grow(&rows, 12 + 8 * (size_t)N), 0, 12 + 8 * (size_t)N);
    tn_store_u32(rows.data + 12, N);
    assert_int_equal(tn_write_pack(tn_write_kind_find("crb"), &rows, &d->err), TN_E_LIMIT);
    assert_non_null(strstr(d->err.text, "a row is too long for a block of crb: 41943056 bytes"));
}

TEST(what_crb_cannot_say_is_an_error)
{
    const char *id = CSV_HEAD "r1,1,1,1,x,,,,\n";
    const char *number =
        "{data: {format: csv}, slots: [{name: c, type: int, transform: ln2_bucket}]}";
    const char *bits = "{format: crb, slot_bits: low 1}";
    check_refused(state, "{data: {format: csv, record_id: id}, slots: [a]}", "id,label,a\n7,1,2\n",
                  "{format: crb}", "'crb' has no record ids");
    check_refused(state, CSV, id, "{format: crb, record_id: ~}",
                  "shares indices with another slot");
    check_refused(state, "{data: {format: csv}, slots: [{name: t, type: str}]}", "label,t\n1,x\n",
                  "{format: crb}", "slot 't' holds words");
    check_refused(state, SVM, "1 qid:4 3\n", "{format: crb}",
                  "has no groups, the row is of group 4");
    check_refused(state, "{data: {format: csv}, slots: [{name: i, type: int}]}", "label,i\n1,-3\n",
                  "{format: crb}", "'-3' of slot 'i' is not an index");
    check_refused(state, number, "label,c\n1,16777217\n", "{format: crb}",
                  "'16777217' of slot 'c' is no float");
    check_refused(state, SVM, "1 3\n", bits, "slot '_' has no 'field'");
    check_refused(state, FFM, "1 0:2 1:4\n", bits, "index 4 of slot 'b' is not within its field");
    check_refused(state,
                  "{data: {format: libffm}, slots: [{name: a, field: 0}, {name: b, field: 4}]}",
                  "1 4:4294967296\n", "{format: crb, slot_bits: high 2}",
                  "index 4294967296 of slot 'b' is not within its field");
    check_refused(state, FFM, "1 1:2147483648 1:9223372036854775808\n",
                  "{format: crb, slot_bits: high 1}",
                  "index 9223372036854775808 of slot 'b' is within its field with 8 bytes, others "
                  "of the row with 4");
    check_refused(state, FFM, "1 0:4294967296 1:2147483648\n", "{format: crb, slot_bits: high 1}",
                  "index 2147483648 of slot 'b' is within its field with 4 bytes, others of the "
                  "row with 8");
    check_refused(state, "{data: {format: csv}, slots: [{name: a, range: [3, 10]}]}",
                  "label,a\n1,10\n", "{format: crb}",
                  "index 10 of slot 'a' is not within its range");
}
