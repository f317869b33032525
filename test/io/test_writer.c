/* test_writer.c - rows in every format that is written: the exact text, and what is refused. */
#include "base/core/bytes.h"
#include "base/math/crc32c.h"
#include "datasets.h"
#include "io/write/write_kind.h"
#include "io/write/writer.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

static int set_up(void **state)
{
    static datasets d;
    datasets_open(&d, 2);
    *state = &d;
    return 0;
}

static int tear_down(void **state)
{
    datasets_close(*state);
    return 0;
}

FIXTURE(set_up, tear_down);

/* One line in, one line out. */
static void check(void **state, const char *from, const char *line, const char *to,
                  const char *expected)
{
    datasets *d = *state;
    const char *got = datasets_line(d, from, line, to, 0);
    if (strcmp(got, expected) != 0) {
        fail_msg("expected '%s', got '%s' (%s)", expected, got, d->err.text);
    }
}

static void check_refused(void **state, const char *from, const char *line, const char *to,
                          const char *why)
{
    datasets *d = *state;
    assert_string_equal(datasets_line(d, from, line, to, 0), "");
    if (strstr(d->err.text, why) == NULL && strstr(tn_text_str(&d->diag.text), why) == NULL) {
        fail_msg("'%s' does not say '%s'", d->err.text, why);
    }
}

#define SVM "{data: {format: libsvm}}"
#define FFM "{data: {format: libffm}, slots: [{name: a, field: 0}, {name: b, field: 1}]}"
#define CSV                                                                                        \
    "{data: {format: csv, weight: w, record_id: id}, slots: [{name: a}, {name: t, type: str}, "    \
    "{name: h, list: \"|\", values: hx}, {name: p, type: float, as: value, absent: 3}, "           \
    "{name: c, type: int, transform: ln2_bucket}]}"
#define CSV_HEAD "id,label,w,a,t,h,hx,p,c\n"
#define CSV_OUT "label,w,id,a,t,h,hx,p,c\n"

TEST(libsvm_keeps_labels_weights_order_and_values)
{
    check(state, SVM, "-1:2.5 7 3:1 3:2\n", "{format: libsvm}",
          "0:2.5 7:1 3:1 3:2\n"); /* others want every value */
    check(state, SVM, "+1 \n", "{format: libsvm}", "1\n");
    check(state, SVM, "0.25 18446744073709551615:-1e-3 007\n", "{format: libsvm}",
          "0.25 18446744073709551615:-0.001 7:1\n");
    check(state, SVM, "1 qid:12 5\n", "{format: libsvm}", "1 qid:12 5:1\n");
}

TEST(libffm_writes_every_value)
{
    check(state, FFM, "1:3 1:9 0:4:0.5 0:4\n", "{format: libffm}", "1:3 1:9:1 0:4:0.5 0:4:1\n");
}

TEST(csv_keeps_texts_as_they_were_read)
{
    check(state, CSV, CSV_HEAD "r1,1,0.5,12,x y,3|3|4,1|-2|0.3,1.50,-2\n", "{format: csv}",
          CSV_OUT "1,0.5,r1,12,x y,3|3|4,1|-2|0.3,1.50,-2\n");
    check(state, CSV, CSV_HEAD "r1,0,1,,,,,,\n", "{format: csv}", CSV_OUT "0,1,r1,,,,,,\n");
}

TEST(csv_quotes_what_would_read_otherwise)
{
    check(state, CSV, CSV_HEAD "r1,0,1,,\"a,b\",,,,\n", "{format: csv}",
          CSV_OUT "0,1,r1,,\"a,b\",,,,\n");
    check(state, CSV, CSV_HEAD "r1,0,1,,\"say \"\"hi\"\"\",,,,\n", "{format: csv}",
          CSV_OUT "0,1,r1,,\"say \"\"hi\"\"\",,,,\n");
    check(state, CSV, CSV_HEAD "r1,0,1,,\"\",,,,\n", "{format: csv}",
          CSV_OUT "0,1,r1,,\"\",,,,\n"); /* an empty text is not a missing one */
    check(state, CSV, CSV_HEAD "r1,0,1,,\"a,b\",,,,\n", "{format: csv, delimiter: \";\"}",
          "label;w;id;a;t;h;hx;p;c\n0;1;r1;;a,b;;;;\n");
    check(state, CSV, CSV_HEAD "r1,0,1,,x,,,,\n", "{format: csv, \"null\": [\"\", x]}",
          CSV_OUT "0,1,r1,,\"x\",,,,\n");
}

TEST(names_of_columns_are_quoted_like_values)
{
    const char *in = "{data: {format: csv}, slots: [{name: a, column: 'x,y'}]}";
    check(state, in, "label,\"x,y\"\n1,2\n", "{format: csv}", "label,\"x,y\"\n1,2\n");
    check(state, in, "label,\"x,y\"\n1,2\n", "{format: tsv, header: true}", "label\tx,y\n1\t2\n");
    check(state, in, "label,\"x,y\"\n1,2\n", "{format: csv, header: false}", "1,2\n");
    check_refused(state, in, "label,\"x,y\"\n1,2\n", "{format: csv, quote: none}",
                  "the name of column 'x,y' would read back otherwise in format 'csv'");
}

TEST(columns_stand_in_the_order_asked_for)
{
    check(state, CSV, CSV_HEAD "r1,1,0.5,12,x,3|4,1|2,1.5,-2\n",
          "{format: tsv, columns: [c, p, hx, h, t, a, free, id, w, label]}",
          "-2\t1.5\t1|2\t3|4\tx\t12\t\tr1\t0.5\t1\n");
    check_refused(state, CSV, CSV_HEAD "r1,1,1,,,,,,\n",
                  "{format: tsv, columns: [a, h, hx, p, c, id, w, label]}", "no column 't'");
}

TEST(what_a_format_cannot_say_is_an_error)
{
    const char *id = CSV_HEAD "r1,1,1,1,x,,,,\n";
    check_refused(state, CSV, id, "{format: libffm}", "'libffm' has no record ids");
    check_refused(state, CSV, id, "{format: libffm, record_id: ~}", "slot 't' holds words");
    check_refused(state, CSV, id, "{format: criteo, record_id: ~}", "no column 'w'");
    check_refused(state, CSV, CSV_HEAD "r1,1,1,,\"a\tb\",,,,\n",
                  "{format: tsv, columns: [id, label, w, a, t, h, hx, p, c]}",
                  "would read back otherwise");
    check_refused(state, SVM, "1:2 3\n", "{format: csv}", "the row weighs 2");
    check_refused(state, SVM, "1 qid:4 3\n", "{format: csv}", "the row belongs to group 4");
    check_refused(state, SVM, "1 3 4\n", "{format: csv}", "several values");
    check_refused(state, SVM, "1 3:0.5\n", "{format: csv}", "x = 0.5");
    check_refused(state, FFM, "1 0:3\n", "{format: libsvm}", "shares indices with another slot");
    check_refused(state, SVM, "1 3\n", "{format: xml}", "xml");
}

TEST(a_row_that_would_be_blank_is_an_error)
{
    check_refused(state,
                  "{data: {format: csv, label: none}, slots: [{name: a}, {name: b, type: str}]}",
                  "a,b\n,\n", "{format: tsv, columns: [a, b]}", "blank line");
}

TEST(ranges_and_numbers_fit_into_libsvm)
{
    const char *from = "{data: {format: csv}, slots: [{name: a, range: [0, 10]}, "
                       "{name: b, range: [10, 20]}, {name: p, type: float, as: weighted, range: "
                       "[20, 21]}, {name: q, type: float, as: value, range: [21, 22]}]}";
    check(state, from, "label,a,b,p,q\n1,3,15,0.25,-7e2\n", "{format: libsvm}",
          "1 3:1 15:1 20:0.25 21:-7e2\n");
    check(state, from, "label,a,b,p,q\n1,,,,\n", "{format: libsvm}", "1\n");
    check_refused(state, from, "label,a,b,p,q\n1,13,15,,\n", "{format: libsvm}",
                  "index 13 of slot 'a' is not within its range");
}

TEST(signs_stand_for_words_and_negative_numbers)
{
    datasets *d = *state;
    const char *from = "{data: {format: csv}, slots: [{name: a, type: str}, {name: b, type: hex}, "
                       "{name: c, type: int}, {name: e, type: int, transform: ln2_bucket}]}";
    /* XXH64("a"); 0x68fd1e64; 2^64 - 1; the bucket of 100 */
    assert_string_equal(
        datasets_line(d, from, "label,a,b,c,e\n1,a,68fd1e64,-1,100\n", "{format: libffm}",
                      TN_WRITE_SIGNS),
        "1 0:15154266338359012955:1 1:1761418852:1 2:18446744073709551615:1 3:21:1\n");
}

TEST(an_index_base_is_taken_off)
{
    check(state, "{data: {format: libsvm, index_base: 1}}", "1 5 1\n", "{format: libsvm}",
          "1 4:1 0:1\n");
    check_refused(state, SVM, "1 5\n", "{format: libsvm, index_base: 1}", "written from 0");
}

TEST(label_none_writes_no_label)
{
    check(state, "{data: {format: libsvm, label: none}}", "3 4\n", "{format: libsvm}", "3:1 4:1\n");
    check(
        state,
        "{data: {format: csv, label: none}, slots: [{name: C1, type: hex}, {name: I2, type: int}]}",
        "C1,I2\nff,-2\n", "{format: criteo}",
        "\t-2"
        "\t\t\t\t\t\t\t\t\t\t\t"
        "\tff"
        "\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\n");
}

TEST(a_row_without_a_label_gets_none)
{
    const char *in = "{data: {format: libsvm, label: none}}";
    check_refused(state, in, "3 4\n", "{format: libsvm, label: y}", "the row has no label");
    check_refused(state, in, "3\n", "{format: tsv, label: y}", "the row has no label");
}

TEST(tfrecord_lists_are_packed_and_in_one_piece)
{
    datasets *d = *state;
    const char *from = "{data: {format: csv}, slots: [{name: ids, type: int, list: \"|\"}, "
                       "{name: none}, {name: x, type: float, as: value}, "
                       "{name: s, type: str, list: \"|\"}]}";
    const char *line = "label,ids,none,x,s\n1,3|300|-1,,0.5,a|bc\n";
    (void)datasets_line(d, from, line, "{format: tfrecord}", 0);
    static const unsigned char features[] =
        /* label: float list */
        "\x0a\x11\x0a\x05label\x12\x08\x12\x06\x0a\x04\x00\x00\x80\x3f"
        /* ids: int64 list, as in the vector of docs/formats.md */
        "\x0a\x18\x0a\x03ids\x12\x11\x1a\x0f\x0a\x0d\x03\xac\x02\xff\xff\xff\xff\xff\xff\xff\xff"
        "\xff\x01"
        /* x: float list */
        "\x0a\x0d\x0a\x01x\x12\x08\x12\x06\x0a\x04\x00\x00\x00\x3f"
        /* s: bytes list, as in the vector */
        "\x0a\x0e\x0a\x01s\x12\x09\x0a\x07\x0a\x01"
        "a\x0a\x02"
        "bc";
    size_t size = sizeof features - 1;
    const tn_text *file = datasets_read(d, "line.out");
    assert_int_equal(file->size, 12 + 2 + size + 4);
    assert_int_equal((unsigned char)file->data[0], 2 + size);
    assert_memory_equal(file->data + 12, "\x0a", 1);
    assert_int_equal((unsigned char)file->data[13], size);
    assert_memory_equal(file->data + 14, features, size);
}

TEST(a_frame_holds_length_and_both_crcs)
{
    datasets *d = *state;
    /* no label, no value: an empty Features, "0a00", framed */
    (void)datasets_line(d, "{data: {format: csv, label: none, record_id: i}, slots: [{name: a}]}",
                        "a,i\n,x\n", "{format: tfrecord, record_id: ~}", 0);
    const tn_text *file = datasets_read(d, "line.out");
    assert_int_equal(file->size, 12 + 2 + 4);
    assert_memory_equal(file->data, "\x02\0\0\0\0\0\0\0", 8);
    assert_memory_equal(file->data + 12, "\x0a\0", 2);
    assert_int_equal(tn_load_u32(file->data + 8), tn_crc_mask(tn_crc32c(0, file->data, 8)));
    assert_int_equal(tn_load_u32(file->data + 14), tn_crc_mask(tn_crc32c(0, "\x0a\0", 2)));
}

/* Else whoever reads the slot finds a text where an integer was written before. */
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
TEST(crb_holds_rows_in_a_block)
{
    static const char head[] = "\xc7\xa8\x4b\x47\x08\0\0\0\x01\0\0\0"
                               "\x05\0\0\0\x40\0\0\x80\x3f";        /* label 1 */
    static const char tail[] = "\x09\0\0\0\x80\x03\0\0\0\0\0\0\x01" /* index 2^56 + 3 */
                               "\0\0\0\0\0\0\0\0";                  /* values, weights */
    enum { HEAD = sizeof head - 1, TAIL = sizeof tail - 1 };
    datasets *d = *state;
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
TEST(crb_has_more_blocks_for_more_rows)
{
    enum { ROWS = 100000, FULL = (1 << 20) / 16 };
    static char lines[2 * ROWS + 1];
    datasets *d = *state;
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
TEST(crb_is_cut_where_it_holds_the_magic)
{
    datasets *d = *state;
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

TEST(crb_has_fields_in_bits_of_indices)
{
    static const char slots[] =
        "slots: [{name: a, field: 1}, {name: p, type: int, transform: "
        "ln2_bucket, field: 2}, {name: q, type: float, as: value, field: 3}]";
    static const char rows[] = "label,a,p,q\n1,5,16777216,-0.1\n0,,7,\n";
    static const char *const bits[] = {"low 2", "high 10"};
    datasets *d = *state;
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
TEST(crb_has_blocks_of_short_indices_where_their_fields_are)
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
    datasets *d = *state;
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
TEST(a_row_that_no_block_of_crb_may_have_is_an_error)
{
    datasets *d = *state;
    enum { N = 5 << 20 };
    tn_text rows = {0};
    tn_text_add_u32le(&rows, 12 + 8 * N);
    memset(tn_text_grow(&rows, 12 + 8 * (size_t)N), 0, 12 + 8 * (size_t)N);
    tn_store_u32(rows.data + 12, N);
    assert_int_equal(tn_write_pack(tn_write_kind_find("crb"), &rows, &d->err), TN_E_LIMIT);
    assert_non_null(strstr(d->err.text, "a row is too long for a block of crb: 41943056 bytes"));
    tn_text_done(&rows);
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

TEST(a_record_id_that_is_a_slot_is_written_as_the_slot)
{
    datasets *d = *state;
    static const char *const from[] = {
        "{data: {format: csv, record_id: n}, slots: [{name: n, type: id}]}",
        "{data: {format: csv, record_id: n}, slots: [{name: n, type: int}]}",
        "{data: {format: csv, record_id: n}, slots: [{name: n, type: str}]}",
        "{data: {format: csv, record_id: n}, slots: [{name: n, type: float, as: value}]}",
    };
    static const char integer[] = "\x0a\x0b\x0a\x01n\x12\x06\x1a\x04\x0a\x02\xac\x02";
    static const char text[] = "\x0a\x0c\x0a\x01n\x12\x07\x0a\x05\x0a\x03"
                               "300";
    for (size_t i = 0; i < 3; i++) {
        const char *got = datasets_line(d, from[i], "label,n\n1,300\n", "{format: tfrecord}", 0);
        size_t size = i == 2 ? sizeof text - 1 : sizeof integer - 1;
        /* behind 12 bytes of frame, 2 of features, 19 of the label */
        assert_memory_equal(got + 12 + 2 + 19, i == 2 ? text : integer, size);
    }
    check_refused(state, from[3], "label,n\n1,300\n", "{format: tfrecord}",
                  "whose floats do not keep its text");
    assert_string_equal(
        datasets_line(d, from[2], "label,n\n1,a\n", "{format: tfrecord}", TN_WRITE_SIGNS), "");
    assert_non_null(strstr(d->err.text, "whose signs do not keep its text"));
}
