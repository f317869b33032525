/* test_list_lengths.c - lists of a sequence: one length, cut together, nulls in their places. */
#include "base/codec/proto.h"
#include "base/core/bytes.h"
#include "base/math/crc32c.h"
#include "io/rows/rows.h"
#include "io/setup.h"
#include "support/test.h"

#define SEQUENCE ", list: '|', sequence: c, max_len: 3"
#define CSV(more)                                                                                  \
    "{data: {format: csv}, slots: [{name: u}, {name: a" SEQUENCE more "}, {name: b" SEQUENCE more  \
    "}]}"

/* The keys of a row by slot: "a 1 2 - b 4 5 6", where - stands for nothing. */
static void put_row(const setup *s, const tn_rows *rows, uint32_t row, tn_text *out)
{
    for (uint32_t slot = 0; slot < s->schema->n_slots; slot++) {
        tn_text_addf(out, "%s%s", slot > 0 ? " " : "", s->schema->slot[slot]->name);
        for (uint32_t i = rows->row[row].first; i < tn_rows_end_of(rows, row); i++) {
            const tn_entry *e = &rows->entry[i];
            const uint64_t sign = tn_sign_of(e->key, s->schema->slot[slot]->salt);
            if (e->slot == slot && sign == tn_xxh64("", 0, 0)) {
                tn_text_adds(out, " -");
            } else if (e->slot == slot) {
                tn_text_addf(out, " %llu", (unsigned long long)sign);
            }
        }
    }
}

/* The first row of some bytes, or what is wrong with it. */
static void check(const char *config, const char *bytes, size_t size, const char *want)
{
    tn_parsed parsed CLEANUP(setup_parsed_free);
    tn_text have CLEANUP(tn_text_done) = {0};
    OPEN(setup, s, config);
    setup_parse(&s, bytes, size, &parsed);
    if (parsed.n_bad > 0) {
        tn_text_adds(&have, tn_parsed_message(&parsed, 0));
        fail_if(strstr(tn_text_str(&have), want) == NULL, "%s: %s", want, tn_text_str(&have));
        return;
    }
    put_row(&s, parsed.rows, 0, &have);
    assert_string_equal(tn_text_str(&have), want);
}

static void check_csv(const char *config, const char *values, const char *want)
{
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_text_addf(&text, "label,u,a,b\n1,%s\n", values);
    check(config, text.data, text.size, want);
}

TEST(lists_of_a_sequence_are_cut_together)
{
    check_csv(CSV(""), "9,1|2|3|4,5|6|7|8", "u 9 a 2 3 4 b 6 7 8");
    check_csv(CSV(", keep: first"), "9,1|2|3|4,5|6|7|8", "u 9 a 1 2 3 b 5 6 7");
    check_csv(CSV(""), "9,1|2|3,5|6|7", "u 9 a 1 2 3 b 5 6 7");
    check_csv(CSV(""), "9,1,5", "u 9 a 1 b 5");
    check_csv(CSV(""), "9,,", "u 9 a b");
}

TEST(a_null_within_a_list_keeps_its_place)
{
    check_csv(CSV(""), "9,1||3,5|6|", "u 9 a 1 - 3 b 5 6 -");
    check_csv(CSV(""), "9,1|2||4,|||8", "u 9 a 2 - 4 b - - 8");
    check_csv(CSV(""), "9,|,5|6", "u 9 a - - b 5 6");
}

TEST(lists_of_several_lengths_are_a_fault_with_names_and_lengths)
{
    check_csv(CSV(""), "9,1|2|3,5|6",
              ":2:1: error: the lists of sequence 'c' have several lengths: 2 values of 'b', 3 of "
              "'a'\nhint: 'uneven: cut' of the sequence");
    check_csv(CSV(""), "9,1|2|3|4|5,5|6|7|8", "4 values of 'b', 5 of 'a'"); /* before the cut */
    check_csv(CSV(""), "9,1,", "0 values of 'b', 1 of 'a'");
}

TEST(lists_of_several_lengths_can_be_cut_to_the_shortest)
{
    check_csv(CSV(", uneven: cut"), "9,1|2|3,5|6", "u 9 a 2 3 b 5 6");
    check_csv(CSV(", uneven: cut, keep: first"), "9,1|2|3,5|6", "u 9 a 1 2 b 5 6");
    check_csv(CSV(", uneven: cut"), "9,1|2|3|4|5,5|6|7|8", "u 9 a 3 4 5 b 6 7 8");
    check_csv(CSV(", uneven: cut"), "9,1|2|3,", "u 9 a b");
}

TEST(a_row_after_one_at_fault_is_whole)
{
    tn_parsed parsed CLEANUP(setup_parsed_free);
    tn_text have CLEANUP(tn_text_done) = {0};
    OPEN(setup, s, CSV(""));
    setup_parse_str(&s, "label,u,a,b\n1,9,1|2,5\n1,8,3|4,6|7\n", &parsed);
    assert_int_equal(parsed.n_bad, 1);
    assert_int_equal(parsed.rows->n, 1);
    put_row(&s, parsed.rows, 0, &have);
    assert_string_equal(tn_text_str(&have), "u 8 a 3 4 b 6 7");
}

TEST(two_sequences_have_a_length_each)
{
    check_csv("{data: {format: csv}, slots: [{name: u, list: '|', sequence: d}, {name: a" SEQUENCE
              "}, {name: b" SEQUENCE "}]}",
              "7|8|9|1,1|2,5|6", "u 7 8 9 1 a 1 2 b 5 6");
}

TEST(values_of_a_field_make_a_sequence_in_libffm)
{
    static const char config[] = "{data: {format: libffm}, slots: [{name: a, field: 0, sequence: "
                                 "c, max_len: 2}, {name: b, field: 1, sequence: c, max_len: 2}]}";
    static const char line[] = "1 0:5 1:9 0:6 1:8 1:7 0:4\n";
    check(config, line, sizeof line - 1, "a 6 4 b 8 7");
    static const char uneven[] = "1 0:5 1:9 0:6\n";
    check(config, uneven, sizeof uneven - 1, "1 values of 'b', 2 of 'a'");
}

/* ---- tf.SequenceExample ---- */

static void add_int_feature(tn_text *out, uint64_t value)
{
    size_t feature = tn_proto_begin(out, 1);
    size_t list = tn_proto_begin(out, 3);
    char packed = (char)value;
    tn_proto_add_bytes(out, 1, &packed, 1);
    tn_proto_end(out, list);
    tn_proto_end(out, feature);
}

/* A feature list of single values. */
static void add_list(tn_text *out, const char *name, const char *values)
{
    size_t entry = tn_proto_begin(out, 1);
    tn_proto_add_bytes(out, 1, name, strlen(name));
    size_t list = tn_proto_begin(out, 2);
    for (; *values != '\0'; values++) {
        add_int_feature(out, (uint64_t)(*values - '0'));
    }
    tn_proto_end(out, list);
    tn_proto_end(out, entry);
}

static void check_example(const char *a, const char *b, const char *want)
{
    tn_text message CLEANUP(tn_text_done) = {0};
    tn_text file CLEANUP(tn_text_done) = {0};
    char header[12];
    size_t context = tn_proto_begin(&message, 1);
    size_t entry = tn_proto_begin(&message, 1);
    tn_proto_add_bytes(&message, 1, "label", strlen("label"));
    tn_proto_add_bytes(&message, 2, "\x1a\x03\x0a\x01\x01", 5);
    tn_proto_end(&message, entry);
    tn_proto_end(&message, context);
    size_t lists = tn_proto_begin(&message, 2);
    add_list(&message, "a", a);
    add_list(&message, "b", b);
    tn_proto_end(&message, lists);
    tn_store_u64(header, message.size);
    tn_store_u32(header + 8, tn_crc_mask(tn_crc32c(0, header, 8)));
    tn_text_add(&file, header, sizeof header);
    tn_text_add(&file, message.data, message.size);
    tn_text_add_u32le(&file, tn_crc_mask(tn_crc32c(0, message.data, message.size)));
    check("{data: {format: tfrecord}, slots: [{name: a, sequence: c, max_len: 3}, {name: b, "
          "sequence: c, max_len: 3}]}",
          file.data, file.size, want);
}

TEST(feature_lists_of_a_sequence_example_make_a_sequence)
{
    check_example("12", "34", "a 1 2 b 3 4");
    check_example("1234", "5678", "a 2 3 4 b 6 7 8");
    check_example("", "", "a b");
    check_example("12", "3", "the lists of sequence 'c' have several lengths: 1 values of 'b', 2");
}

/* ---- what a schema refuses ---- */

static void refuses(const char *options, const char *fault)
{
    setup s CLEANUP(setup_close);
    tn_text config CLEANUP(tn_text_done) = {0};
    tn_text_addf(&config, "{data: {format: csv}, slots: [{name: a, sequence: c, %s}]}", options);
    assert_int_equal(setup_try(&s, config.data), TN_E_CONFIG);
    fail_if(strstr(tn_text_str(&s.diag.text), fault) == NULL, "%s", tn_text_str(&s.diag.text));
}

TEST(what_changes_the_length_of_one_list_is_refused)
{
    refuses("drop_zero: true", "slot 'a' is part of sequence 'c', whose lists have one length: it "
                               "has no 'drop_zero'");
    refuses("duplicates: sum", "it has no 'duplicates'");
    refuses("absent: key", "it has no 'absent: key'");
    refuses("as: weighted", "it has 'as: key' alone");
}
