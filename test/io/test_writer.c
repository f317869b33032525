/* test_writer.c - rows in every format that is written: the exact text, and what is refused. */
#include "base/core/bytes.h"
#include "base/math/crc32c.h"
#include "datasets.h"
#include "io/write/write_kind.h"
#include "io/write/writer.h"
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

/* One line in, one line out. */
static void check(void **state, const char *from, const char *line, const char *to,
                  const char *expected)
{
    datasets *d = *state;
    const char *got = datasets_line(d, from, line, to, 0);
    fail_if(strcmp(got, expected) != 0, "expected '%s', got '%s' (%s)", expected, got, d->err.text);
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

TEST_ON(datasets *d, signs_stand_for_words_and_negative_numbers)
{
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

TEST_ON(datasets *d, tfrecord_lists_are_packed_and_in_one_piece)
{
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

TEST_ON(datasets *d, a_frame_holds_length_and_both_crcs)
{
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
