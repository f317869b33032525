/* test_jsonl.c - JSON objects as rows: values of all kinds, paths, what is no JSON, and the way
 * back. */
#include "io/datasets.h"
#include "io/rows/rows.h"
#include "io/setup.h"
#include "support/test.h"

#define SLOTS                                                                                      \
    "slots: [{name: a}, {name: s, type: str}, {name: m, values: mx}, {name: u.id, column: u.id}, " \
    "{name: p, as: value, transform: identity}, {name: h, type: hex}, {name: i, type: int}]}"

static const char config[] = "{data: {format: jsonl, weight: w, group: g, record_id: id}, " SLOTS;

static uint64_t word(const char *text)
{
    return tn_xxh64(text, strlen(text), 0);
}

/* The entries of a line, as slot:sign:x, then the numbers. */
static void dump(const char *yaml, const char *line, size_t size, tn_text *out)
{
    tn_parsed parsed CLEANUP(setup_parsed_free);
    OPEN(setup, s, yaml);
    setup_parse(&s, line, size, &parsed);
    fail_if(parsed.n_bad > 0, "%s: %s", line, setup_fault(&s, line));
    const tn_rows *rows = parsed.rows;
    assert_int_equal(rows->n, 1);
    for (uint32_t i = 0; i < rows->n_entries; i++) {
        const tn_entry *e = &rows->entry[i];
        const tn_slot_spec *spec = s.schema->slot[e->slot];
        tn_text_addf(out, "%s:%llx:%g ", spec->name,
                     (unsigned long long)tn_sign_of(e->key, spec->salt), (double)e->value);
    }
    for (uint32_t i = 0; i < s.schema->n_numeric; i++) {
        tn_text_addf(out, "= %g", (double)rows->numeric[i]);
    }
}

static void check_row(const char *line, const char *want)
{
    tn_text have CLEANUP(tn_text_done) = {0};
    dump(config, line, strlen(line), &have);
    assert_string_equal(tn_text_str(&have), want);
}

static void check_word(const char *line, const char *want)
{
    char text[100];
    (void)snprintf(text, sizeof text, "s:%llx:1 = 0", (unsigned long long)word(want));
    check_row(line, text);
}

TEST(values_of_all_kinds_are_taken)
{
    check_row("{\"label\":1,\"a\":7,\"p\":-1.5e1,\"h\":\"ff\",\"i\":-3}\n",
              "a:7:1 h:ff:1 i:fffffffffffffffd:1 = -15");
    check_row(" {\t\"a\" : \"7\" , \"label\" : true }\r\n", "a:7:1 = 0");
    check_row("{\"label\":0,\"a\":18446744073709551615}\n", "a:ffffffffffffffff:1 = 0");
    check_row("{\"label\":0,\"a\":1.0,\"i\":false,\"p\":true}\n", "a:1:1 i:0:1 = 1");
    check_row("{\"label\":0,\"a\":null,\"s\":\"\",\"p\":NaN,\"i\":[]}\n", "= 0");
    check_row("{\"label\":0,\"a\":[7,8,null,7]}\n", "a:7:1 a:8:1 a:7:1 = 0");
    check_row("{\"label\":0,\"m\":[1, 2 ,3],\"mx\":[0.5,2,-1]}\n", "m:1:0.5 m:2:2 m:3:-1 = 0");
    check_row("{\"label\":0,\"mx\":2,\"m\":4}\n", "m:4:2 = 0");
    check_row("{\"label\":0}", "= 0");
    check_row("{\"label\":0,\"s\":NaN}", "= 0");
}

TEST(a_null_in_a_list_of_a_sequence_keeps_its_place)
{
    static const char yaml[] = "{data: {format: jsonl}, slots: [{name: a, sequence: c, max_len: "
                               "3}, {name: s, type: str, sequence: c, max_len: 3}]}";
    static const char line[] = "{\"label\":0,\"a\":[1,null,3,4],\"s\":[\"x\",\"x\",\"\",null]}\n";
    tn_text have CLEANUP(tn_text_done) = {0};
    char want[200];
    const unsigned long long null = word("");
    dump(yaml, line, sizeof line - 1, &have);
    (void)snprintf(want, sizeof want, "a:%llx:1 a:3:1 a:4:1 s:%llx:1 s:%llx:1 s:%llx:1 ", null,
                   (unsigned long long)word("x"), null, null);
    assert_string_equal(tn_text_str(&have), want);
    OPEN(setup, s, yaml);
    assert_string_equal(setup_fault(&s, "{\"label\":0,\"a\":null,\"s\":null}\n"), "");
    assert_non_null(strstr(setup_fault(&s, "{\"label\":0,\"a\":null,\"s\":[\"x\"]}\n"),
                           "1 values of 's', 0 of 'a'"));
}

TEST(texts_are_unescaped)
{
    check_word("{\"label\":0,\"s\":\"a b\"}", "a b");
    check_word("{\"label\":0,\"s\":\"a\\\"\\\\\\/\\n\\t\\u0041\"}", "a\"\\/\n\tA");
    check_word("{\"label\":0,\"s\":\"\\u00e9\\ud83d\\ude00\"}", "\xc3\xa9\xf0\x9f\x98\x80");
    check_word("{\"label\":0,\"s\":\"\xc3\xa9 and more than eight bytes\"}",
               "\xc3\xa9 and more than eight bytes");
    check_word("{\"label\":0,\"\\u0073\":\"x\"}", "x");
    check_word("{\"label\":0,\"s\":12}", "12");
    check_word("{\"label\":0,\"s\":true}", "true");
    check_word("{\"label\":0,\"s\":[\"\"]}", "");
    tn_text have CLEANUP(tn_text_done) = {0};
    char want[100];
    (void)snprintf(want, sizeof want, "s:%llx:1 = 0", (unsigned long long)tn_xxh64("\0x", 2, 0));
    static const char line[] = "{\"label\":0,\"s\":\"\\u0000x\"}";
    dump(config, line, sizeof line - 1, &have);
    assert_string_equal(tn_text_str(&have), want);
}

TEST(members_of_objects_are_columns_by_their_path)
{
    check_row("{\"label\":0,\"u\":{\"id\":5,\"a\":9},\"a\":7}\n", "a:7:1 u.id:5:1 = 0");
    check_row("{\"label\":0,\"u.id\":5}\n", "u.id:5:1 = 0");
    check_row("{\"label\":0,\"x\":{\"y\":{\"a\":1}},\"\\u0075\":{\"id\":6}}\n", "u.id:6:1 = 0");
    check_row("{\"label\":0,\"x\":[{\"a\":1,\"a\":2},[[]],{\"a\":4}],\"a\":3}\n", "a:3:1 = 0");
}

TEST(what_only_the_row_reads_is_read)
{
    tn_parsed parsed;
    OPEN(setup, s, config);
    setup_parse_str(&s,
                    "{\"label\":0.25,\"w\":2.5,\"g\":\"77\",\"id\":\"r\\u0031\"}\n\n \n"
                    "{\"id\":12,\"label\":\"1\",\"w\":null,\"g\":null}\n",
                    &parsed);
    assert_int_equal(parsed.n_bad, 0);
    assert_int_equal(parsed.blank, 2);
    const tn_rows *rows = parsed.rows;
    assert_int_equal(rows->n, 2);
    assert_true(rows->row[0].label == 0.25F && rows->row[0].weight == 2.5F);
    assert_true(rows->row[0].group == 77 && rows->row[1].group == TN_NO_GROUP);
    assert_true(rows->row[1].label == 1 && rows->row[1].weight == 1);
    assert_memory_equal(rows->text + rows->row[0].id.at, "r1", 2);
    assert_memory_equal(rows->text + rows->row[1].id.at, "12", 2);
    setup_parsed_free(&parsed);
}

/* Keys in another order than before are found all the same. */
TEST(the_order_of_members_does_not_matter)
{
    tn_parsed parsed;
    OPEN(setup, s, "{data: {format: jsonl}, slots: [a, ab, b]}");
    setup_parse_str(
        &s,
        "{\"label\":0,\"a\":1,\"ab\":2,\"b\":3}\n{\"ab\":2,\"label\":0,\"b\":3,\"a\":1}\n"
        "{\"a\":1,\"b\":3,\"x\":9,\"label\":0,\"ab\":2}\n",
        &parsed);
    assert_int_equal(parsed.n_bad, 0);
    assert_int_equal(parsed.rows->n_entries, 9);
    for (uint32_t i = 0; i < 9; i++) {
        const tn_entry *e = &parsed.rows->entry[i];
        assert_int_equal(e->slot, i % 3);
        assert_int_equal(tn_sign_of(e->key, s.schema->slot[e->slot]->salt), i % 3 + 1);
    }
    setup_parsed_free(&parsed);
}

TEST(null_words_are_those_of_the_configuration)
{
    tn_text have CLEANUP(tn_text_done) = {0};
    static const char line[] = "{\"label\":0,\"a\":\"NA\",\"s\":[\"NA\",\"\"],\"b\":-1}";
    dump("{data: {format: jsonl, null: [NA, '-1']}, slots: [a, {name: s, type: str}, b]}", line,
         sizeof line - 1, &have);
    char want[100];
    (void)snprintf(want, sizeof want, "s:%llx:1 s:%llx:1 ", (unsigned long long)word("NA"),
                   (unsigned long long)word(""));
    assert_string_equal(tn_text_str(&have), want);
}

static const char *const faults[][2] = {
    {"{\"label\":1,\"a\":\"x\"}\n", ":1:17: error: expected a decimal integer, found \"x\"\n  "
                                    "{\"label\":1,\"a\":\"x\"}\n                  ^\nhint: slot "
                                    "'a' with 'type: str'"},
    {"{\"label\":1,\"a\":\"\\u0078\"}\n", ":1:16: error: expected a decimal integer, found"},
    {"{\"a\":1}\n", ":1:1: error: the label is missing"},
    {"{\"label\":null}\n", "the label is missing"},
    {"{\"label\":3}\n", ":1:10: error: expected a label, found \"3\""},
    {"{\"label\":[1]}\n", ":1:10: error: column 'label' holds a list, expected one value"},
    {"{\"label\":1,\"w\":-1}\n", "expected a weight from 0 to 1048576, found \"-1\""},
    {"{\"label\":1,\"a\":{\"b\":1}}\n", ":1:16: error: column 'a' is an object"},
    {"{\"label\":1,\"a\":[[1]]}\n", ":1:17: error: column 'a' holds a list or an object within"},
    {"{\"label\":1,\"a\":[{}]}\n", "column 'a' holds a list or an object within a list"},
    {"{\"label\":1,\"a\":1,\"a\":2}\n", ":1:18: error: a key stands twice"},
    {"{\"label\":1,\"u\":{\"id\":1},\"u.id\":2}\n", ":1:25: error: a key stands twice"},
    {"{\"label\":1,\"p\":[1,2]}\n", "a second value for a number"},
    {"{\"label\":1,\"p\":Infinity}\n", "number is not finite, found \"Infinity\""},
    {"{\"label\":1,\"p\":-Infinity}\n", "number is not finite"},
    {"{\"label\":1,\"m\":[1,2],\"mx\":[1]}\n", "column 'mx' has fewer values than 'm'"},
    {"{\"label\":1,\"m\":[1],\"mx\":[1,2]}\n", ":1:25: error: column 'mx' has more values than"},
    {"{\"label\":1,\"m\":null,\"mx\":2}\n", "column 'mx' has more values than 'm'"},
    {"{\"label\":1,\"m\":1}\n", "column 'mx' has fewer values than 'm'"},
    {"{\"label\":1,\"m\":1,\"mx\":null}\n", "expected a number, found \"null\""},
    {"[1]\n", ":1:1: error: expected a JSON object"},
    {"label,a\n", "expected a JSON object"},
    {"{\n", ":1:2: error: the line ends within an object, expected a key in quotes"},
    {"{\"a\n", "the line ends within an object, in a text: a record is one line"},
    {"{\"a\":\n", "the line ends within an object, expected a value"},
    {"{\"x\":1\n", "the line ends within an object, expected ',' or '}'"},
    {"{\"x\":[1\n", "the line ends within an object, expected ',' or ']'"},
    {"{\"label\":1} x\n", ":1:13: error: something stands behind the object"},
    {"{\"label\":1}{}\n", "something stands behind the object"},
    {"{\"label\":1,}\n", ":1:12: error: expected a key in quotes"},
    {"{label:1}\n", "expected a key in quotes"},
    {"{\"label\" 1}\n", ":1:10: error: expected ':' behind a key"},
    {"{\"x\":01}\n", ":1:6: error: malformed number"},
    {"{\"x\":1.}\n", "malformed number"},
    {"{\"x\":.5}\n", "expected a value"},
    {"{\"x\":-}\n", "malformed number"},
    {"{\"x\":1e}\n", "malformed number"},
    {"{\"x\":+1}\n", "expected a value"},
    {"{\"x\":1x}\n", "malformed number"},
    {"{\"x\":tru}\n", "expected a value"},
    {"{\"x\":nullx}\n", "expected ',' or '}'"},
    {"{\"x\":[1,]}\n", "expected a value"},
    {"{\"x\":[1 2]}\n", "expected ',' or ']'"},
    {"{\"x\":\"\\x\"}\n", ":1:7: error: unknown escape in a text"},
    {"{\"x\":\"\\ud800\"}\n", "unknown escape in a text"},
    {"{\"x\":\"\\u12g4\"}\n", "unknown escape in a text"},
    {"{\"x\":\"a\tb\"}\n", ":1:8: error: control character in a text"},
    {"{\"x\":\"a\xff\"}\n", ":1:8: error: invalid UTF-8"},
    {"{\"x\":\"12345678\xc0\x80\"}\n", ":1:15: error: invalid UTF-8"},
    {"{\"x\":\"\xed\xa0\x80\"}\n", "invalid UTF-8"},
    {"{\"\xff\":1}\n", ":1:3: error: invalid UTF-8"},
    {"{\"x\":1\r2}\n", "carriage return inside a line"},
};

TEST(faults_have_their_place)
{
    OPEN(setup, s, config);
    for (uint32_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        const char *said = setup_fault(&s, faults[i][0]);
        fail_if(strstr(said, faults[i][1]) == NULL, "%s: said '%s', wanted '%s'", faults[i][0],
                said, faults[i][1]);
    }
}

TEST(depth_has_a_limit)
{
    tn_text text CLEANUP(tn_text_done) = {0};
    OPEN(setup, s, config);
    for (uint32_t lists = 31; lists <= 32; lists++) {
        tn_text_clear(&text);
        tn_text_adds(&text, "{\"label\":1,\"x\":");
        for (uint32_t i = 0; i < lists; i++) {
            tn_text_addc(&text, '[');
        }
        for (uint32_t i = 0; i < lists; i++) {
            tn_text_addc(&text, ']');
        }
        tn_text_adds(&text, "}\n");
        const char *said = setup_fault(&s, text.data);
        assert_true(lists == 31 ? said[0] == '\0' : strstr(said, "nested deeper than 32") != NULL);
    }
}

/* ---- writing ---- */

TEST(rows_come_back_as_they_were)
{
    static const char *const lines[] = {
        ("{\"label\":1,\"w\":2.5,\"id\":\"r\\n1\",\"g\":77,\"a\":7,\"s\":\"a\\\"b\\u0001\","
         "\"m\":[1,2],\"mx\":[0.5,2],\"u.id\":5,\"p\":1.5,\"h\":\"ff\",\"i\":-3}\n"),
        "{\"label\":0,\"w\":1,\"a\":[7,8],\"s\":[\"\"],\"m\":4,\"mx\":2}\n",
        "{\"label\":0,\"w\":1,\"a\":\"007\",\"s\":[\"\",\"\xc3\xa9\"],\"p\":\"+1.5\"}\n",
        "{\"label\":0,\"w\":1,\"a\":18446744073709551615,\"p\":-1e-7}\n",
    };
    OPEN(datasets, d, 1);
    for (uint32_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        assert_string_equal(datasets_line(&d, config, lines[i], "{format: jsonl}", 0), lines[i]);
    }
    static const char tsv[] = "{data: {format: tsv, header: true}, slots: [{name: s, type: str}]}";
    assert_string_equal(datasets_line(&d, tsv, "label\ts\n1\t\xff\n", "{format: jsonl}", 0), "");
    assert_non_null(strstr(d.err.text, "a value of column 's' is not UTF-8"));
    assert_string_equal(
        datasets_line(&d, tsv, "label\ts\n1\tNA\n", "{format: jsonl, null: ['NA']}", 0),
        "{\"label\":1,\"s\":[\"NA\"]}\n");
}
