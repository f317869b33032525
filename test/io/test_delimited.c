/* test_delimited.c - csv, tsv and criteo: headers, quotes, nulls, lists, and rows that do not fit.
 */
#include "base/math/key.h"
#include "io/rows/rows.h"
#include "setup.h"
#include "support/test.h"

static const char csv[] = "{data: {format: csv}, slots: [{name: a}, {name: b, type: str}]}";

static void assert_begins(const char *text, const char *prefix)
{
    if (strncmp(text, prefix, strlen(prefix)) != 0) {
        assert_string_equal(text, prefix);
    }
}

static const tn_rows *parse(const setup *s, const char *text, tn_parsed *out)
{
    setup_parse_str(s, text, out);
    if (out->n_messages > 0) {
        print_message("%s\n", tn_parsed_message(out, 0));
    }
    assert_int_equal(out->fault, TN_OK);
    assert_int_equal(out->n_bad, 0);
    return out->rows;
}

static uint64_t sign_of(const setup *s, const tn_rows *rows, uint32_t entry)
{
    const tn_slot_spec *spec = s->schema->slot[rows->entry[entry].slot];
    return tn_sign_of(rows->entry[entry].key, spec->salt);
}

static bool is_text(const setup *s, const tn_rows *rows, uint32_t entry, const char *text)
{
    return sign_of(s, rows, entry) == tn_xxh64(text, strlen(text), 0);
}

TEST(a_header_names_columns_in_any_order)
{
    tn_parsed parsed;
    OPEN(setup, s, csv);
    const tn_rows *rows = parse(&s,
                                "\xef\xbb\xbf"
                                "b,other,label,a\nx y,\"\",1,7\r\n\xe4\xb8\xad,,0,\n",
                                &parsed);
    assert_int_equal(rows->n, 2);
    assert_int_equal(sign_of(&s, rows, 0), 7);
    assert_true(is_text(&s, rows, 1, "x y"));
    assert_true(sign_of(&s, rows, 2) == UINT64_C(0x8a90d911229e52c9));
    assert_int_equal(rows->n_entries, 3);
    setup_parsed_free(&parsed);
}

TEST(headers_that_miss_or_repeat_a_column_are_errors)
{
    OPEN(setup, s, csv);
    assert_string_equal(
        setup_fault(&s, "a,label\n1,1\n"),
        "parsed:1:1: error: there is no column 'b', which 'slots' names\n  a,label\n  ^\n"
        "hint: the columns are a, label");
    assert_string_equal(setup_fault(&s, "a,b,lable\n"),
                        "parsed:1:1: error: there is no column 'label', which data.label names "
                        "(did you mean 'lable'?)\n  a,b,lable\n  ^\n"
                        "hint: the columns are a, b, lable");
    assert_non_null(strstr(setup_fault(&s, "a b label\n"), "hint: the line is one column; "));
    assert_string_equal(
        setup_fault(&s, "a,label,b,a\n"),
        "parsed:1:11: error: column 'a' stands twice\n  a,label,b,a\n            ^");
    assert_string_equal(setup_fault(&s, ""), "");
}

TEST(quotes_follow_rfc_4180)
{
    tn_parsed parsed;
    OPEN(setup, s, csv);
    const tn_rows *rows = parse(&s,
                                "a,b,label\n"
                                "1,\"x,\"\"y\"\"\",1\n"
                                "2,\"\",1\n"
                                "\"3\",p\"q,\"0\"\n"
                                "4,\"\"\"\",1\n",
                                &parsed);
    assert_int_equal(rows->n, 4);
    assert_true(is_text(&s, rows, 1, "x,\"y\""));
    assert_true(is_text(&s, rows, 3, "")); /* a quoted "" is a text, not null */
    assert_true(is_text(&s, rows, 5, "p\"q"));
    assert_true(is_text(&s, rows, 7, "\""));
    setup_parsed_free(&parsed);
    assert_string_equal(setup_fault(&s, "a,b,label\n1,\"x\"y,1\n"),
                        "parsed:2:6: error: text behind a closing quote\n  1,\"x\"y,1\n       ^");
    assert_string_equal(setup_fault(&s, "a,b,label\n1,\"x,1\n"),
                        "parsed:2:3: error: quote is not closed\n  1,\"x,1\n    ^\n"
                        "hint: 'data.quote: multiline' lets quoted text go on in the next line");
}

TEST(multiline_quotes_may_hold_line_breaks)
{
    tn_parsed parsed;
    OPEN(setup, s,
         "{data: {format: csv, quote: multiline}, slots: [{name: b, type: str}, "
         "{name: a}]}");
    const tn_rows *rows =
        parse(&s, "a,b,label\n1,\"x\r\ny\",1\r\n2,\"\n\"\"\n\",0\n3,\"\",1", &parsed);
    assert_int_equal(rows->n, 3);
    assert_true(is_text(&s, rows, 0, "x\r\ny"));
    assert_true(is_text(&s, rows, 2, "\n\"\n"));
    setup_parsed_free(&parsed);
    assert_begins(setup_fault(&s, "a,b,label\n1,\"x\ny\",1\nz,b,1\n"),
                  "parsed:4:1: error: expected a decimal integer, found \"z\"");
    assert_begins(setup_fault(&s, "a,b,label\r\n1,x\ry,1\r\n"),
                  "parsed:2:4: error: carriage return inside a line");
}

TEST(a_quote_behind_blanks_may_hold_line_breaks_when_they_are_trimmed)
{
    tn_parsed parsed CLEANUP(setup_parsed_free);
    OPEN(setup, s,
         "{data: {format: csv, quote: multiline, trim: true}, slots: [{name: b, type: "
         "str}, {name: a}]}");
    const tn_rows *rows = parse(&s, "a,b,label\n1, \t\"x\ny\" ,1\n \"2\",z,0\n", &parsed);
    assert_int_equal(rows->n, 2);
    assert_true(is_text(&s, rows, 0, "x\ny"));
    assert_true(is_text(&s, rows, 2, "z"));
}

TEST(a_header_may_stand_below_comments_and_blank_lines)
{
    setup s;
    tn_parsed parsed;
    setup_open(&s, "{data: {format: csv, comment: '#'}, slots: [{name: a}]}");
    assert_int_equal(parse(&s, "# made by hand\n\r\n  \na,label\n# x\n1,0\n", &parsed)->n, 1);
    setup_parsed_free(&parsed);
    assert_begins(setup_fault(&s, "#\n\na,label\n#\nx,1\n"),
                  "parsed:5:1: error: expected a decimal integer, found \"x\"");
    assert_begins(setup_fault(&s, "#\n\na,b\n1,1\n"),
                  "parsed:3:1: error: there is no column 'label'");
    assert_int_equal(parse(&s, "# nothing else\n", &parsed)->n, 0);
    setup_parsed_free(&parsed);
    setup_close(&s);
    setup_open(&s, "{data: {format: csv, record_bytes_max: 10B}, slots: [{name: a}]}");
    assert_begins(setup_fault(&s, "\na,label,nothing\n1,0,0\n"),
                  "parsed:2:1: error: record longer than record_bytes_max (10)");
    setup_close(&s);
}

TEST(rows_that_are_too_long_or_too_short_are_errors)
{
    setup s;
    tn_parsed parsed;
    setup_open(&s, csv);
    assert_begins(setup_fault(&s, "a,b,label\n1,2\n"),
                  "parsed:2:4: error: too few fields (expected 3, found 2)");
    assert_non_null(
        strstr(setup_fault(&s, "a,b,label\n1;2;1\n"),
               "hint: ';' stands in the line, and format 'csv' has another delimiter; "));
    assert_non_null(strstr(setup_fault(&s, "a,b,label\n1,2;1\n"),
                           "hint: 'short_rows: pad' in 'data' takes what is missing for no value"));
    assert_non_null(strstr(setup_fault(&s, "1,tv,0.5\n"),
                           "hint: the first line looks like data: 'header: false'"));
    assert_null(strstr(setup_fault(&s, "a,c,label\n"), "looks like data"));
    assert_begins(setup_fault(&s, "a,b,label\n1,2,1,\n"),
                  "parsed:2:7: error: too many fields (expected 3)");
    setup_close(&s);
    setup_open(&s, "{data: {format: csv, short_rows: pad}, slots: [{name: a}, {name: b}]}");
    assert_int_equal(parse(&s, "label,a,b\n1,2\n0,3,4\n1\n", &parsed)->n_entries, 3);
    setup_parsed_free(&parsed);
    assert_begins(setup_fault(&s, "label,a,b\n1,2,3,\n"), "parsed:2:7: error: too many");
    setup_close(&s);
}

TEST(nulls_trim_and_comments_are_as_configured)
{
    tn_parsed parsed;
    OPEN(setup, s,
         "{data: {format: csv, trim: true, comment: '#', null: ['', NA, '\\N']}, "
         "slots: [{name: a}, {name: b, type: str}]}");
    const tn_rows *rows =
        parse(&s, " a , b, label\n# c,d\n 1 ,\tNA , 1\n\\N, \"x\" ,0\nNA,\"NA\",0\n", &parsed);
    assert_int_equal(rows->n, 3);
    assert_int_equal(rows->n_entries, 3);
    assert_int_equal(sign_of(&s, rows, 0), 1);
    assert_true(is_text(&s, rows, 1, "x"));
    assert_true(is_text(&s, rows, 2, "NA"));
    setup_parsed_free(&parsed);
}

TEST(lists_and_their_values_go_side_by_side)
{
    tn_parsed parsed;
    OPEN(setup, s,
         "{data: {format: tsv, header: true, list: ','}, slots: [{name: t, values: x}, "
         "{name: u, type: str, list: '|'}]}");
    const tn_rows *rows = parse(&s, "label\tt\tx\tu\n1\t3,4\t.5,-2\ta|b,c|\n0\t\t\t\n", &parsed);
    assert_int_equal(rows->n_entries, 4);
    assert_true(rows->entry[0].value == 0.5F && rows->entry[1].value == -2);
    assert_true(is_text(&s, rows, 3, "b,c"));
    setup_parsed_free(&parsed);
    assert_begins(setup_fault(&s, "label\tt\tx\tu\n1\t3,4\t.5\t\n"),
                  "parsed:2:7: error: column 'x' has fewer values than 't'");
    assert_begins(setup_fault(&s, "label\tt\tx\tu\n1\t3\t.5,1\t\n"),
                  "parsed:2:5: error: column 'x' has more values than 't'");
    assert_begins(setup_fault(&s, "label\tt\tx\tu\n1\t3\tz\t\n"),
                  "parsed:2:5: error: expected a number, found \"z\"");
}

TEST(items_without_text_and_words_for_nothing_are_no_values)
{
    setup s;
    tn_parsed parsed;
    setup_open(&s,
               "{data: {format: csv, null: [NA, '\\N']}, slots: [{name: t, list: '|', values: x}"
               "]}");
    const tn_rows *rows = parse(&s,
                                "label,t,x\n1,|3||NA|4|,9|1|||2|\n0,,\n0,\"\",\"\"\n0,||,||\n"
                                "0,NA|NA,1|1\n0,\"\\N|7\",|.5\n",
                                &parsed);
    assert_int_equal(parsed.n_messages, 0);
    assert_int_equal(rows->n, 6);
    assert_int_equal(rows->n_entries, 3);
    assert_int_equal(sign_of(&s, rows, 0), 3);
    assert_int_equal(sign_of(&s, rows, 1), 4);
    assert_int_equal(sign_of(&s, rows, 2), 7);
    assert_true(rows->entry[0].value == 1 && rows->entry[1].value == 2 &&
                rows->entry[2].value == 0.5F);
    setup_parsed_free(&parsed);
    setup_close(&s);

    setup_open(&s, "{data: {format: csv}, slots: [{name: u, type: str, list: '|'}, {name: v, type: "
                   "str}]}");
    rows = parse(&s, "label,u,v\n1,a|b|,NA\n0,||,\"\"\n0,|a,\n", &parsed);
    assert_int_equal(rows->n_entries, 5);
    assert_true(is_text(&s, rows, 0, "a") && is_text(&s, rows, 1, "b"));
    assert_true(is_text(&s, rows, 2, "NA") && is_text(&s, rows, 3, "") &&
                is_text(&s, rows, 4, "a"));
    setup_parsed_free(&parsed);
    setup_close(&s);
}

static void assert_hint(const setup *s, const char *text, const char *hint)
{
    const char *fault = setup_fault(s, text);
    const char *found = strstr(fault, "^\nhint: ");
    assert_string_equal(found != NULL ? found + strlen("^\nhint: ") : fault, hint);
}

TEST(a_fault_says_what_would_take_the_field)
{
    setup s;
    setup_open(&s, "{data: {format: csv}, slots: [{name: sex, column: a}, {name: b, type: int}]}");
    assert_hint(&s, "label,a,b\n1,M,1\n", "slot 'sex' with 'type: str' takes any text");
    assert_hint(&s, "label,a,b\n1,-3,1\n", "slot 'sex' with 'type: int' takes such numbers");
    assert_hint(&s, "label,a,b\n1,\"2.5\",1\n", "slot 'sex' with 'type: float' takes such numbers");
    assert_hint(&s, "label,a,b\n1,1,x\n", "slot 'b' with 'type: str' takes any text");
    assert_hint(
        &s, "label,a,b\n2,1,1\n",
        "'label: {threshold: T}' makes numbers above T clicks; losses of numbers take them as they "
        "are: tnet-train --list-losses");
    assert_hint(&s, "label,a,b\nno,1,1\n",
                "'label: {values: {TEXT: 1, OTHER: 0}}' says which texts are clicks");
    setup_close(&s);
    setup_open(&s, "{data: {format: csv, label: y}, slots: [a]}");
    assert_hint(&s, "y,a\n2,1\n",
                "'label: {column: y, threshold: T}' makes numbers above T clicks; losses of "
                "numbers take them as they are: tnet-train --list-losses");
    setup_close(&s);
    setup_open(&s, "{data: {format: csv, label: {values: {yes: 1}}}, slots: [a]}");
    assert_hint(&s, "label,a\nno,1\n", "name it, too, in 'values' of data.label");
    setup_close(&s);
}

TEST(labels_map_texts_and_thresholds)
{
    setup s;
    tn_parsed parsed;
    setup_open(&s, "{data: {format: csv, trim: true, label: {column: y, values: {'>50K': 1, "
                   "'<=50K': 0, '>50K.': 1, '<=50K.': 0}}}, slots: [{name: a}]}");
    const tn_rows *rows = parse(&s, "a, y\n1, >50K\n2, <=50K.\n", &parsed);
    assert_true(rows->row[0].label == 1 && rows->row[1].label == 0);
    setup_parsed_free(&parsed);
    assert_begins(setup_fault(&s, "a,y\n1,50K\n"),
                  "parsed:2:3: error: expected a label, found \"50K\"");
    assert_begins(setup_fault(&s, "a,y\n1,\n"),
                  "parsed:2:3: error: the label is missing, found \"\"");
    setup_close(&s);
    setup_open(&s, "{data: {format: csv, label: {column: r, threshold: 3}}, slots: [{name: a}]}");
    rows = parse(&s, "a,r\n1,3\n2,3.5\n3,-8\n", &parsed);
    assert_true(rows->row[0].label == 0 && rows->row[1].label == 1 && rows->row[2].label == 0);
    setup_parsed_free(&parsed);
    setup_close(&s);
}

TEST(a_text_that_a_slot_does_not_take_is_told_with_what_does)
{
    static const struct {
        const char *fields, *hint;
    } at[] = {
        {"NA,1,1", "'null: [\"\", \"NA\"]' in 'data' takes it for no value"},
        {"1,null,1", "'null: [\"\", \"null\"]' in 'data' takes it for no value"},
        {"-1,1,1", "slot 'a' with 'type: int' takes such numbers"},
        {"1.5,1,1", "slot 'a' with 'type: float' takes such numbers"},
        {"18446744073709551616,1,1", "slot 'a' with 'type: str' takes any text"},
        {"x,1,1", "slot 'a' with 'type: str' takes any text"},
        {"1,tv,1", "slot 'b' with 'type: str' takes any text"},
        {"1,1,inf", "slot 'c' with 'non_finite: absent' takes it for no value"},
    };
    OPEN(setup, s,
         "{data: {format: csv, columns: [label, a, b, c], header: false}, slots: [{name: "
         "a}, {name: b, type: float, transform: {buckets: [1]}}, {name: c, as: value}]}");
    for (uint32_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        char line[80];
        char want[120];
        (void)snprintf(line, sizeof line, "1,%s\n", at[i].fields);
        (void)snprintf(want, sizeof want, "^\nhint: %s", at[i].hint);
        const char *said = setup_fault(&s, line);
        assert_says(said, want);
    }
}

TEST(fields_as_dataframes_write_them)
{
    setup s;
    tn_parsed parsed;
    setup_open(&s,
               "{data: {format: csv, group: u}, slots: [{name: u}, {name: i, type: int}, "
               "{name: x, type: hex}, {name: f, as: value, absent: -9}, {name: t, type: str}]}");
    const tn_rows *rows = parse(&s,
                                "label,u,i,x,f,t\n"
                                "1.0,7.0,-3.00,ff,True,nan\n"
                                "True,nan,NaN,NaN,NaN,1.0\n"
                                "FALSE,TRUE,false,a,false,True\n"
                                "0,7,-3,ff,2.5,a\n",
                                &parsed);
    assert_int_equal(rows->n, 4);
    const float label[] = {1, 1, 0, 0};
    const float number[] = {1, -9, 0, 2.5F};
    const uint32_t first[] = {0, 4, 5, 9};
    for (uint32_t r = 0; r < 4; r++) {
        assert_true(rows->row[r].label == label[r] && rows->numeric[r] == number[r]);
        assert_int_equal(rows->row[r].first, first[r]);
    }
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(rows->entry[i].key, rows->entry[9 + i].key);
    }
    assert_int_equal(sign_of(&s, rows, 0), 7);
    assert_int_equal(sign_of(&s, rows, 5), 1);
    assert_int_equal(sign_of(&s, rows, 6), 0);
    assert_int_equal(rows->row[0].group, rows->row[3].group);
    assert_true(rows->row[1].group == TN_NO_GROUP);
    setup_parsed_free(&parsed);
    assert_begins(setup_fault(&s, "label,u,i,x,f,t\nNaN,1,1,1,1,1\n"),
                  "parsed:2:1: error: the label is missing, found \"NaN\"");
    assert_begins(setup_fault(&s, "label,u,i,x,f,t\n1,1.5,1,1,1,1\n"),
                  "parsed:2:3: error: expected a decimal integer, found \"1.5\"");
    assert_begins(setup_fault(&s, "label,u,i,x,f,t\n1,-1.0,1,1,1,1\n"),
                  "parsed:2:3: error: expected a decimal integer, found \"-1.0\"");
    assert_begins(setup_fault(&s, "label,u,i,x,f,t\n1,.0,1,1,1,1\n"),
                  "parsed:2:3: error: expected a decimal integer, found \".0\"");
    assert_begins(setup_fault(&s, "label,u,i,x,f,t\n1,1,1,1,inf,1\n"),
                  "parsed:2:9: error: number is not finite, found \"inf\"");
    setup_close(&s);
    setup_open(&s,
               "{data: {format: tsv, columns: [y, a], label: {column: y, values: {1: 0, 2: 1}}}, "
               "slots: [{name: a}]}");
    rows = parse(&s, "2.0\t1\nTrue\t1\n2\t1\n", &parsed);
    assert_true(rows->row[0].label == 1 && rows->row[1].label == 0 && rows->row[2].label == 1);
    setup_parsed_free(&parsed);
    setup_close(&s);
}

TEST(numbers_and_their_absence)
{
    tn_parsed parsed;
    OPEN(setup, s,
         "{data: {format: csv}, slots: [{name: p, as: value, transform: log, absent: -9},"
         " {name: q, type: int, as: value, transform: {minmax: [0, 10]}},"
         " {name: w, as: weighted}, {name: h, type: int, transform: {buckets: [18, 25]}},"
         " {name: k, absent: key}, {name: n, as: value, non_finite: absent}]}");
    const tn_rows *rows = parse(&s,
                                "label,p,q,w,h,k,n\n"
                                "1,-1.5,5,2.5,18,7,nan\n"
                                "0,,,,,,\n"
                                "1,0,-3,0,17,,1e2\n",
                                &parsed);
    assert_true(rows->numeric[0] < -0.9162F && rows->numeric[0] > -0.9164F);
    assert_true(rows->numeric[1] == 0.5F && rows->numeric[2] == 0);
    assert_true(rows->numeric[3] == -9 && rows->numeric[4] == 0);
    assert_true(rows->numeric[6] == 0 && rows->numeric[7] == 0 && rows->numeric[8] == 100);
    assert_int_equal(sign_of(&s, rows, 0), 0);
    assert_true(rows->entry[0].value == 2.5F);
    assert_int_equal(sign_of(&s, rows, 1), 1);
    assert_int_equal(rows->row[2].first - rows->row[1].first, 1);
    assert_true(sign_of(&s, rows, rows->row[1].first) == TN_NO_GROUP); /* the key of no text */
    setup_parsed_free(&parsed);
    assert_begins(setup_fault(&s, "label,p,q,w,h,k,n\n1,0x1,,,,,\n"),
                  "parsed:2:3: error: expected a number, found \"0x1\"");
    assert_begins(setup_fault(&s, "label,p,q,w,h,k,n\n1,1e39,,,,,\n"),
                  "parsed:2:3: error: number too large for a float");
    assert_begins(setup_fault(&s, "label,p,q,w,h,k,n\n1,inf,,,,,\n"),
                  "parsed:2:3: error: number is not finite");
}

static void add_criteo_slots(tn_text *out)
{
    for (uint32_t i = 1; i <= 13; i++) {
        tn_text_addf(out, "{name: I%u, type: int, transform: ln2_bucket}, ", i);
    }
    for (uint32_t i = 1; i <= 26; i++) {
        tn_text_addf(out, "{name: C%u, type: hex}, ", i);
    }
}

static void open_criteo(setup *s, const char *options)
{
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_text_addf(&text, "{data: {format: criteo%s}, slots: [", options);
    add_criteo_slots(&text);
    text.size -= 2; /* the last comma */
    tn_text_adds(&text, "]}");
    setup_open(s, text.data);
}

TEST(a_column_that_criteo_lacks_is_told_beside_those_it_has)
{
    setup s CLEANUP(setup_close);
    open_criteo(&s, ", group: user");
    assert_non_null(
        strstr(setup_fault(&s, "1\t1\n"), "there is no column 'user', which data.group names"));
    assert_non_null(strstr(setup_fault(&s, "1\t1\n"),
                           "\nhint: beside the label the columns are I1 .. I13 and C1 .. C26"));
}

TEST(criteo_rows_become_buckets_and_signs)
{
    setup s CLEANUP(setup_close);
    tn_parsed parsed;
    open_criteo(&s, "");
    const tn_rows *rows = parse(&s,
                                "1\t1\t-1\t100\t\t65535\t\t\t\t\t\t\t\t4096\t68fd1e64\tABCDEF01"
                                "\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t0\n",
                                &parsed);
    assert_int_equal(rows->n, 1);
    assert_int_equal(rows->n_entries, 8);
    assert_true(sign_of(&s, rows, 0) == UINT64_C(0x100000001));
    assert_true(sign_of(&s, rows, 1) == UINT64_C(0x1ffffffff));
    assert_int_equal(sign_of(&s, rows, 2), 21);
    assert_int_equal(sign_of(&s, rows, 3), 122);
    assert_int_equal(sign_of(&s, rows, 4), 69);
    assert_true(rows->entry[5].key == UINT64_C(0xe9cf42eea5831d4b));
    assert_true(sign_of(&s, rows, 6) == UINT64_C(0xabcdef01));
    assert_int_equal(rows->entry[7].slot, 38);
    setup_parsed_free(&parsed);
}

TEST(criteo_tokens_and_short_rows_never_end_the_program)
{
    setup s;
    tn_parsed parsed;
    open_criteo(&s, "");
    assert_begins(setup_fault(&s, "1\t2\t3\n"),
                  "parsed:1:6: error: too few fields (expected 40, found 3)");
    assert_non_null(strstr(setup_fault(&s, "1,2,3\n"),
                           "hint: ',' stands in the line, and format 'criteo' has another"));
    char line[128] = "0";
    for (uint32_t i = 0; i < 39; i++) {
        line[1 + i] = '\t';
    }
    (void)snprintf(line + 40, sizeof line - 40, "68fd1e6");
    assert_int_equal(parse(&s, line, &parsed)->n_entries, 1);
    assert_int_equal(sign_of(&s, parsed.rows, 0), 0x68fd1e6);
    setup_parsed_free(&parsed);
    (void)snprintf(line + 40, sizeof line - 40, "68fd1e6g");
    assert_begins(setup_fault(&s, line),
                  "parsed:1:41: error: expected 1 to 16 hex digits, found \"68fd1e6g\"");
    (void)snprintf(line + 40, sizeof line - 40, "0123456789abcdef0");
    assert_begins(setup_fault(&s, line), "parsed:1:41: error: expected 1 to 16 hex");
    setup_close(&s);
    open_criteo(&s, ", short_rows: pad");
    assert_int_equal(parse(&s, "1\t2\t3\n0\n", &parsed)->n, 2);
    setup_parsed_free(&parsed);
    setup_close(&s);
    open_criteo(&s, ", label: none");
    line[39] = '\0';
    assert_int_equal(parse(&s, line + 1, &parsed)->n, 0); /* tabs alone are a blank line */
    setup_parsed_free(&parsed);
    line[0] = '5';
    assert_int_equal(parse(&s, line, &parsed)->n, 1);
    setup_parsed_free(&parsed);
    setup_close(&s);
}

TEST(every_byte_of_eight_hex_digits_counts)
{
    setup s CLEANUP(setup_close);
    open_criteo(&s, "");
    char line[64] = "0";
    memset(line + 1, '\t', 39);
    for (uint32_t c = 1; c < 256; c++) {
        for (uint32_t at = 0; at < 8; at++) {
            memcpy(line + 40, "0a9fF1c2", 9);
            line[40 + at] = (char)c;
            bool digit = strchr("0123456789abcdefABCDEF", (int)c) != NULL;
            if (c == '\n' || c == '\t' || (c == '\r' && at == 7)) {
                continue;
            }
            assert_true((setup_fault(&s, line)[0] == '\0') == digit);
        }
    }
}

TEST(ln2_buckets_begin_where_the_document_says)
{
    static const uint32_t first[] = {3,  5,  6,  8,  10, 12, 15, 17, 21, 24,
                                     28, 32, 37, 43, 49, 55, 62, 70, 79, 88};
    setup s CLEANUP(setup_close);
    open_criteo(&s, "");
    const tn_transform *t = &s.schema->spec[0].transform;
    for (uint32_t i = 0; i < 20; i++) {
        assert_int_equal(tn_transform_sign(t, first[i]), i + 1);
        assert_int_equal(tn_transform_sign(t, first[i] - 1), i == 0 ? TN_LN2_OFFSET + 2 : i);
    }
    assert_int_equal(tn_transform_sign(t, 1000), 47);
    assert_int_equal(tn_transform_sign(t, 1e6), 190);
    assert_int_equal(tn_transform_sign(t, 2147483647), 461);
    assert_true(tn_transform_sign(t, -1e30) == TN_LN2_OFFSET + 0x80000000U);
    assert_true(tn_transform_sign(t, 1.9) == TN_LN2_OFFSET + 1);
}

TEST(plain_and_careful_splitting_agree)
{
    setup careful; /* trim changes nothing here, but takes the other way */
    OPEN(setup, plain,
         "{data: {format: tsv, columns: [label, a, b]}, slots: [{name: a, type: str},"
         " {name: b, type: str}]}");
    setup_open(&careful, "{data: {format: tsv, columns: [label, a, b], null: ['', zzz]}, slots: "
                         "[{name: a, type: str}, {name: b, type: str}]}");
    for (uint32_t i = 0; i < 40; i++) {
        for (uint32_t j = 0; j < 20; j++) {
            tn_text text CLEANUP(tn_text_done) = {0};
            tn_parsed x CLEANUP(setup_parsed_free);
            tn_parsed y CLEANUP(setup_parsed_free);
            tn_text_addf(&text, "1\t%.*s\t%.*s\n", (int)i,
                         "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst", (int)j,
                         "0123456789ABCDEFGHIJKLMNOP");
            setup_parse_str(&plain, text.data, &x);
            setup_parse_str(&careful, text.data, &y);
            assert_int_equal(x.rows->n, 1);
            assert_int_equal(x.rows->n_entries, (i > 0) + (j > 0));
            assert_int_equal(x.rows->n_entries, y.rows->n_entries);
            assert_memory_equal(x.rows->entry, y.rows->entry, x.rows->n_entries * sizeof(tn_entry));
        }
    }
    setup_close(&careful);
}
