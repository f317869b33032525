/* test_libsvm.c - lines of libsvm and libffm files, right and wrong ones. */
#include "base/math/key.h"
#include "io/rows/rows.h"
#include "setup.h"
#include "support/test.h"

static const char one_slot[] = "{data: {format: libsvm}}";

static const tn_rows *parse(const setup *s, const char *text, tn_parsed *out)
{
    setup_parse_str(s, text, out);
    assert_int_equal(out->fault, TN_OK);
    assert_int_equal(out->n_bad, 0);
    return out->rows;
}

static uint64_t sign_of(const setup *s, const tn_rows *rows, uint32_t entry)
{
    const tn_slot_spec *spec = s->schema->slot[rows->entry[entry].slot];
    return tn_sign_of(rows->entry[entry].key, spec->salt);
}

TEST(labels_weights_and_repeated_keys_are_read_as_they_are)
{
    tn_parsed parsed CLEANUP(setup_parsed_free);
    OPEN(setup, s, one_slot);
    const tn_rows *rows = parse(&s, "-1:2.5 7 3:1 3:2\n+1 \n.25\t9:-1.5e1  10\n", &parsed);
    assert_int_equal(rows->n, 3);
    assert_true(rows->row[0].label == 0 && rows->row[0].weight == 2.5F);
    assert_int_equal(sign_of(&s, rows, 0), 7);
    assert_int_equal(sign_of(&s, rows, 1), 3);
    assert_int_equal(sign_of(&s, rows, 2), 3);
    assert_true(rows->entry[0].value == 1 && rows->entry[2].value == 2);
    assert_true(rows->row[1].label == 1 && tn_rows_end_of(rows, 1) == rows->row[1].first);
    assert_true(rows->row[2].label == 0.25F && rows->entry[3].value == -15);
    assert_int_equal(sign_of(&s, rows, 4), 10);
}

TEST(blanks_comments_and_line_ends_are_what_they_should_be)
{
    tn_parsed parsed;
    OPEN(setup, s, one_slot);
    const tn_rows *rows =
        parse(&s, "\xef\xbb\xbf# note\n\n \t\n1 2 # 3:x\r\n0 4:1\r\n  # 5\n1 6", &parsed);
    assert_int_equal(rows->n, 3);
    assert_int_equal(parsed.blank, 4);
    assert_int_equal(rows->n_entries, 3);
    assert_int_equal(sign_of(&s, rows, 2), 6);
    setup_parsed_free(&parsed);
}

TEST(ids_keep_all_their_bits)
{
    tn_parsed parsed;
    OPEN(setup, s, one_slot);
    const tn_rows *rows = parse(
        &s, "1 16777217 9007199254740993 18446744073709551615 00000000000000000007 0\n", &parsed);
    assert_true(sign_of(&s, rows, 0) == 16777217);
    assert_true(sign_of(&s, rows, 1) == UINT64_C(9007199254740993));
    assert_true(sign_of(&s, rows, 2) == UINT64_MAX);
    assert_true(sign_of(&s, rows, 3) == 7);
    assert_true(sign_of(&s, rows, 4) == 0);
    setup_parsed_free(&parsed);
}

TEST(libsvm_short_pair_is_an_error)
{
    OPEN(setup, s, one_slot);
    assert_string_equal(setup_fault(&s, "1 3:"), "parsed:1:5: error: expected a value after ':'\n"
                                                 "  1 3:\n"
                                                 "      ^");
    assert_string_equal(setup_fault(&s, "1 :5"), "parsed:1:3: error: expected an index, found ':'\n"
                                                 "  1 :5\n"
                                                 "    ^");
    assert_string_equal(setup_fault(&s, "0 1\n1 3 :1\n"),
                        "parsed:2:5: error: expected an index, found ':'\n"
                        "  1 3 :1\n"
                        "      ^");
    assert_string_equal(setup_fault(&s, "1 3:1:2"),
                        "parsed:1:6: error: expected a blank after the value, found ':'\n"
                        "  1 3:1:2\n"
                        "       ^\n"
                        "hint: 'data.format: libffm' reads FIELD:INDEX:VALUE");
    assert_string_equal(setup_fault(&s, "1,3:1"),
                        "parsed:1:2: error: expected a blank or ':' after the label, found ','\n"
                        "  1,3:1\n"
                        "   ^");
    assert_string_equal(setup_fault(&s, "1 -3:1"),
                        "parsed:1:3: error: expected an index, found '-'\n"
                        "  1 -3:1\n"
                        "    ^");
    assert_string_equal(setup_fault(&s, "1 18446744073709551616:1"),
                        "parsed:1:3: error: index too large, found \"18446744073709551616\"\n"
                        "  1 18446744073709551616:1\n"
                        "    ^");
    assert_string_equal(setup_fault(&s, "1 7x:1"),
                        "parsed:1:4: error: expected a blank or ':' after the index, found 'x'\n"
                        "  1 7x:1\n"
                        "     ^");
}

TEST(labels_and_weights_out_of_range_are_errors)
{
    OPEN(setup, s, one_slot);
    const char *bad[] = {"2 1", "-0.5 1", "nan 1", "inf 1", "1:-1 1", "1:nan 1", "1:1048577 1",
                         "x 1", "1: 1",   ":1 1",  "1e 1",  "0x1 1",  "1:2:3 1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_string_not_equal(setup_fault(&s, bad[i]), "");
    }
    const char *good[] = {"1:0 1", "1:1048576 1", "-1 1", "0.999 1", "1e-3 1", "+0 1", "-0 1"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_string_equal(setup_fault(&s, good[i]), "");
    }
    assert_string_equal(setup_fault(&s, "2 1"),
                        "parsed:1:1: error: expected a label, found \"2\"\n"
                        "  2 1\n"
                        "  ^\n"
                        "hint: 'label: {threshold: T}' makes numbers "
                        "above T clicks; losses of numbers take them as they "
                        "are: tnet-train --list-losses");
}

TEST(zeros_stay_and_nan_is_an_error_unless_told_otherwise)
{
    setup s;
    tn_parsed parsed;
    setup_open(&s, one_slot);
    assert_int_equal(parse(&s, "1 3:0 4:0.0 5\n", &parsed)->n_entries, 3);
    setup_parsed_free(&parsed);
    assert_string_equal(setup_fault(&s, "1 3:nan"),
                        "parsed:1:5: error: number is not finite, found \"nan\"\n"
                        "  1 3:nan\n"
                        "      ^");
    setup_close(&s);
    setup_open(&s, "{data: {format: libsvm}, slots: [{name: a, drop_zero: true, "
                   "non_finite: absent}]}");
    assert_int_equal(parse(&s, "1 3:0 4:-inf 5 6:NaN 7:0e5\n", &parsed)->n_entries, 1);
    assert_int_equal(sign_of(&s, parsed.rows, 0), 5);
    setup_parsed_free(&parsed);
    setup_close(&s);
}

TEST(ranges_cut_the_index_space_into_slots)
{
    tn_parsed parsed;
    OPEN(setup, s,
         "{data: {format: libsvm}, slots: [{name: b, range: [100, 200]}, "
         "{name: a, range: [0, 100]}, {name: x, range: [200, 201], as: value}]}");
    const tn_rows *rows = parse(&s, "1 0 99 100:2 199 200:-7.5\n0 100\n", &parsed);
    assert_int_equal(rows->entry[0].slot, 1);
    assert_int_equal(rows->entry[1].slot, 1);
    assert_int_equal(rows->entry[2].slot, 0);
    assert_int_equal(rows->entry[3].slot, 0);
    assert_int_equal(sign_of(&s, rows, 2), 100);
    assert_true(rows->numeric[0] == -7.5F && rows->numeric[1] == 0);
    setup_parsed_free(&parsed);
    assert_string_equal(setup_fault(&s, "1 201"), "parsed:1:3: error: no slot takes index 201\n"
                                                  "  1 201\n"
                                                  "    ^");
    assert_string_equal(setup_fault(&s, "1 200:1 200:2"),
                        "parsed:1:13: error: a second value for a number, found \"2\"\n"
                        "  1 200:1 200:2\n"
                        "              ^");
}

TEST(groups_come_from_qid)
{
    tn_parsed parsed;
    OPEN(setup, s, one_slot);
    const tn_rows *rows = parse(&s, "1 qid:7 3:1\n0 3:1\n1 qid:0\n", &parsed);
    assert_int_equal(rows->row[0].group, 7);
    assert_true(rows->row[1].group == TN_NO_GROUP);
    assert_int_equal(rows->row[2].group, 0);
    assert_int_equal(rows->n_entries, 2);
    setup_parsed_free(&parsed);
    assert_string_not_equal(setup_fault(&s, "1 qid:x 3"), "");
}

TEST(without_labels_a_row_begins_with_its_first_pair)
{
    tn_parsed parsed CLEANUP(setup_parsed_free);
    OPEN(setup, s, "{data: {format: libsvm, label: none}}");
    const tn_rows *rows = parse(&s, "3:2 4\n\n5\n", &parsed);
    assert_int_equal(rows->n, 2);
    assert_true(isnan(rows->row[0].label));
    assert_int_equal(sign_of(&s, rows, 0), 3);
    assert_int_equal(parsed.blank, 1);
}

TMPDIR_UNPACKED(golden, "rows");

/* Data options for the golden rows, with `more` of them. */
static const char *golden_ffm(const char *more)
{
    static char yaml[400];
    (void)snprintf(yaml, sizeof yaml, "{data: {format: libffm, %strain: %s/rows.ffm}}", more,
                   golden);
    return yaml;
}

TEST(the_index_base_is_taken_off_and_decided_once)
{
    setup s;
    tn_parsed parsed;
    setup_open(&s, "{data: {format: libsvm, index_base: 1}}");
    assert_int_equal(sign_of(&s, parse(&s, "1 3\n", &parsed), 0), 2);
    setup_parsed_free(&parsed);
    assert_string_equal(setup_fault(&s, "1 0"),
                        "parsed:1:3: error: index 0 with index_base 1, found \"0\"\n"
                        "  1 0\n"
                        "    ^");
    setup_close(&s);
    setup_open(&s, "{data: {format: libsvm, index_base: 1}, slots: [{name: a, type: int}]}");
    assert_int_equal(sign_of(&s, parse(&s, "1 3\n", &parsed), 0), 2);
    setup_parsed_free(&parsed);
    assert_true(strstr(setup_fault(&s, "1 9223372036854775809"), "integer beyond 64 bits") != NULL);
    setup_close(&s);
    setup_open(&s, "{data: {format: libsvm, index_base: auto, train: test/io/data/base1.svm}}");
    assert_int_equal(s.schema->index_base, 1);
    setup_close(&s);
    setup_open(&s, golden_ffm("index_base: auto, "));
    assert_int_equal(s.schema->index_base, 0);
    setup_close(&s);
}

TEST(libffm_fields_feed_their_slots)
{
    tn_parsed parsed;
    OPEN(setup, s,
         "{data: {format: libffm}, slots: [{name: u, field: 4}, "
         "{name: p, field: 2, type: int, transform: ln2_bucket}, "
         "{name: w, field: 7, as: weighted}]}");
    const tn_rows *rows = parse(&s, "1:3 4:5 7:0:0.5 4:6:2 2:9:100\n", &parsed);
    assert_int_equal(rows->n_entries, 4);
    assert_true(rows->row[0].weight == 3);
    assert_int_equal(rows->entry[0].slot, 0);
    assert_int_equal(sign_of(&s, rows, 0), 5);
    assert_int_equal(sign_of(&s, rows, 1), 0);
    assert_true(rows->entry[1].value == 0.5F && rows->entry[2].value == 2);
    assert_int_equal(rows->entry[3].slot, 1);
    assert_int_equal(sign_of(&s, rows, 3), 21);
    setup_parsed_free(&parsed);
    assert_string_equal(setup_fault(&s, "1 5:1"), "parsed:1:3: error: no slot takes field '5'\n"
                                                  "  1 5:1\n"
                                                  "    ^");
    assert_string_equal(setup_fault(&s, "1 3"), "parsed:1:4: error: expected ':' after the field\n"
                                                "  1 3\n"
                                                "     ^");
    assert_string_equal(setup_fault(&s, "1 4:"),
                        "parsed:1:5: error: expected an index at the end of the line\n"
                        "  1 4:\n"
                        "      ^");
    assert_string_not_equal(setup_fault(&s, "1 65536:1"), "");
}

TEST(libffm_without_slots_finds_its_fields)
{
    OPEN(setup, s, golden_ffm(""));
    assert_int_equal(s.schema->n_slots, 7);
    assert_string_equal(s.schema->slot[0]->name, "f0");
    assert_string_equal(s.schema->slot[6]->name, "f6");
    assert_int_equal(s.schema->slot[6]->field, 6);
}

TEST(libffm_row_norm_survives_empty_rows_and_long_lines)
{
    tn_parsed parsed;
    OPEN(setup, s, "{data: {format: libffm, row_norm: true}, slots: [{name: a, field: 0}]}");
    const tn_rows *rows = parse(&s, "1\n0 0:1:3 0:2:4\n1 0:1:0\n", &parsed);
    assert_int_equal(rows->n, 3);
    assert_true(fabsf(rows->entry[0].value - 0.6F) < 1e-6F);
    assert_true(fabsf(rows->entry[1].value - 0.8F) < 1e-6F);
    assert_true(rows->entry[2].value == 0);
    setup_parsed_free(&parsed);
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_text_adds(&text, "1");
    for (uint32_t i = 0; i < 50000; i++) { /* 400 kB in a line */
        tn_text_addf(&text, " 0:%u", i);
    }
    rows = parse(&s, text.data, &parsed);
    assert_int_equal(rows->n_entries, 50000);
    setup_parsed_free(&parsed);
}

TEST(small_ids_are_even_over_partitions)
{
    enum { PARTITIONS = 1024, IDS = 100000 };
    static uint32_t n[PARTITIONS];
    uint64_t salt = tn_salt("user");
    for (uint64_t id = 1; id <= IDS; id++) {
        n[tn_key_of(id, salt) >> 54]++;
    }
    for (uint32_t q = 0; q < PARTITIONS; q++) {
        assert_in_range(n[q], 97 - 60, 97 + 60); /* 6 deviations */
    }
}

TEST(equal_ids_of_two_slots_differ_unless_shared)
{
    tn_parsed parsed CLEANUP(setup_parsed_free);
    OPEN(setup, s,
         "{data: {format: libffm}, slots: [{name: a, field: 0}, {name: b, field: 1}, "
         "{name: c, field: 2, share: a}]}");
    const tn_rows *rows = parse(&s, "1 0:7 1:7 2:7\n", &parsed);
    assert_true(rows->entry[0].key != rows->entry[1].key);
    assert_true(rows->entry[0].key == rows->entry[2].key);
    assert_int_equal(s.schema->n_groups, 2);
}

TEST(odd_bytes_and_long_lines_are_shown_cut_and_escaped)
{
    char line[400];
    OPEN(setup, s, one_slot);
    assert_string_equal(setup_fault(&s, "1 \xe4\xb8\xad:1"),
                        "parsed:1:3: error: expected an index, found '?'\n"
                        "  1 \\xe4\\xb8\\xad:1\n"
                        "    ^");
    assert_string_equal(setup_fault(&s, "1\033[1m 3"),
                        "parsed:1:2: error: expected a blank or ':' after the label, found '?'\n"
                        "  1\\x1b[1m 3\n"
                        "   ^");
    memset(line, '1', sizeof line);
    memcpy(line, "1 ", 2);
    for (size_t i = 5; i < 300; i += 4) {
        line[i] = ' ';
    }
    line[203] = 'y';
    line[301] = '\0';
    const char *fault = setup_fault(&s, line);
    assert_memory_equal(fault, "parsed:1:204: error: ", 21);
    assert_true(strlen(fault) < 300);
    assert_string_equal(setup_fault(&s, "1 2\r3"),
                        "parsed:1:4: error: carriage return inside a line\n"
                        "  1 2\\x0d3\n"
                        "     ^");
}

TEST(binary_data_and_utf16_are_named)
{
    tn_parsed parsed;
    OPEN(setup, s, one_slot);
    setup_parse(&s, "1 2\n1\0 3\n", 9, &parsed);
    assert_int_equal(parsed.n_bad, 1);
    assert_non_null(
        strstr(tn_parsed_message(&parsed, 0), "2:2: error: binary data in a text format"));
    setup_parsed_free(&parsed);
    setup_parse(&s,
                "\xff\xfe"
                "1\0 \0",
                6, &parsed);
    assert_int_equal(parsed.fault, TN_E_DATA);
    assert_non_null(strstr(parsed.err.text, "looks like UTF-16"));
    setup_parsed_free(&parsed);
}
