/* test_vw.c - lines of Vowpal Wabbit's text, right and wrong ones, and those of its other kinds. */
#include "base/math/key.h"
#include "io/datasets.h"
#include "io/format/format.h"
#include "io/rows/rows.h"
#include "io/setup.h"
#include "io/write/writer.h"
#include "support/test.h"

#define SLOTS                                                                                      \
    "slots: [{name: user}, {name: page, type: str}, {name: _, type: str}, {name: price, as: "      \
    "value, transform: identity}, {name: age, type: int, transform: ln2_bucket}]}"

static const char several[] = "{data: {format: vw}, " SLOTS;

static const tn_rows *parse(const setup *s, const char *text, tn_parsed *out)
{
    setup_parse_str(s, text, out);
    assert_int_equal(out->fault, TN_OK);
    fail_if(out->n_bad > 0, "%s: %s", text, setup_fault(s, text));
    return out->rows;
}

/* The keys of the first row, as slot:sign:x, words by name. */
static void check_row(const char *config, const char *line, const char *want)
{
    tn_parsed parsed CLEANUP(setup_parsed_free);
    tn_text have CLEANUP(tn_text_done) = {0};
    OPEN(setup, s, config);
    const tn_rows *rows = parse(&s, line, &parsed);
    assert_int_equal(rows->n, 1);
    for (uint32_t i = 0; i < rows->n_entries; i++) {
        const tn_entry *e = &rows->entry[i];
        const tn_slot_spec *spec = s.schema->slot[e->slot];
        tn_text_addf(&have, "%s%s:%llx:%g", i > 0 ? " " : "", spec->name,
                     (unsigned long long)tn_sign_of(e->key, spec->salt), (double)e->value);
    }
    for (uint32_t i = 0; i < s.schema->n_numeric; i++) {
        tn_text_addf(&have, " = %g", (double)rows->numeric[i]);
    }
    assert_string_equal(tn_text_str(&have), want);
}

static void check_fault(const char *config, const char *line, const char *want)
{
    OPEN(setup, s, config);
    const char *said = setup_fault(&s, line);
    fail_if(strstr(said, want) == NULL, "%s: said '%s', wanted '%s'", line, said, want);
}

TEST(labels_weights_and_tags_stand_in_front)
{
    static const struct {
        const char *line;
        float label, weight;
        const char *id;
    } lines[] = {
        {"1 |user 7\n", 1, 1, ""},
        {"-1 2.5 tag|user 7\n", 0, 2.5F, "tag"},
        {"0.25 'r1 |user 7\n", 0.25F, 1, "r1"},
        {"0 20 'a'b|user 7\n", 0, 20, "a'b"},
        {" \t1\t3\t'r2\r\n", 1, 3, "r2"},
        {"1", 1, 1, ""},
        {"1 2 ''|user 1\n", 1, 2, "'"},
    };
    for (uint32_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        tn_parsed parsed CLEANUP(setup_parsed_free);
        OPEN(setup, s, several);
        const tn_rows *rows = parse(&s, lines[i].line, &parsed);
        assert_int_equal(rows->n, 1);
        assert_true(rows->row[0].label == lines[i].label);
        assert_true(rows->row[0].weight == lines[i].weight);
        assert_int_equal(rows->row[0].id.size, strlen(lines[i].id));
        if (lines[i].id[0] != '\0') {
            assert_memory_equal(rows->text + rows->row[0].id.at, lines[i].id, strlen(lines[i].id));
        }
    }
}

TEST(namespaces_select_slots_and_scale_their_values)
{
    check_row(several, "1 |user 7 8:2 9:-0.5\n", "user:7:1 user:8:2 user:9:-0.5 = 0");
    check_row(several, "1 |user:2 7 8:2|user 9\n", "user:7:2 user:8:4 user:9:1 = 0");
    check_row(several, "1 |price:2 :19.5 |user 1\n", "user:1:1 = 39");
    check_row(several, "1 |price whatever:19.5\n", " = 19.5");
    check_row(several, "1 |price whatever\n", " = 1");
    check_row(several, "1 |age :3\n", "age:1:1 = 0");
}

TEST(names_are_words_and_a_text_behind_one_is_part_of_the_word)
{
    char want[200];
    (void)snprintf(
        want, sizeof want, "page:%llx:1 page:%llx:3 page:%llx:1 _:%llx:1 = 0",
        (unsigned long long)tn_xxh64("12", 2, 0), (unsigned long long)tn_xxh64("news", 4, 0),
        (unsigned long long)tn_xxh64("lang=en", 7, 0), (unsigned long long)tn_xxh64("a", 1, 0));
    check_row(several, "1 |page 12 news:3 lang:en| a\n", want);
    (void)snprintf(want, sizeof want, "page:%llx:1 page:%llx:0.5 = 0", /* a scale is of numbers */
                   (unsigned long long)tn_xxh64("lang=en", 7, 0),
                   (unsigned long long)tn_xxh64("x", 1, 0));
    check_row(several, "1 |page:0.5 lang:en x\n", want);
    (void)snprintf(want, sizeof want, "page:%llx:1 = 0",
                   (unsigned long long)tn_xxh64("\xc3\xa9#1", 4, 0));
    check_row(several, "1 |page \xc3\xa9#1\n", want);
}

TEST(anonymous_features_are_numbered_in_their_namespace)
{
    check_row(several, "1 |page :2 :3 |user :4 9 :5|page :6\n",
              "page:0:2 page:1:3 user:0:4 user:9:1 user:1:5 page:0:6 = 0");
}

TEST(each_slot_of_a_namespace_reads_it)
{
    check_row("{data: {format: vw}, slots: [{name: a, column: n}, {name: b, column: n, type: "
              "int}]}",
              "1 |n 5 :2 6\n", "a:5:1 a:0:2 a:6:1 b:5:1 b:0:2 b:6:1");
}

TEST(rules_of_slots_hold)
{
    static const char rules[] = "{data: {format: vw, unknown_field: ignore}, slots: [{name: a, "
                                "drop_zero: true, non_finite: absent}]}";
    check_row(rules, "1 |a 1:0 2:nan 3:inf 4 |other x:y\n", "a:4:1");
}

TEST(slots_are_the_namespaces_when_none_are_listed)
{
    const char *path = NULL;
    OPEN(setup, s, several);
    path = setup_file(&s, "a.vw", "1 |b x |a:2 y\n\n0 | z|b w\r\n-1\n1 |a|c\n", 35);
    char config[400];
    (void)snprintf(config, sizeof config, "{data: {format: vw, train: '%s'}}", path);
    OPEN(setup, found, config);
    static const char *const names[] = {"b", "a", "_", "c"};
    assert_int_equal(found.schema->n_specs, 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_string_equal(found.schema->spec[i].name, names[i]);
        assert_int_equal(found.schema->spec[i].type, TN_SIGN_STR);
    }
}

TEST(faults_name_the_place_and_what_is_wrong)
{
    static const char *const faults[][2] = {
        {"1 |user 7: 8\n", "expected a value after ':'"},
        {"1 |user 7:1:2\n", ":1:12: error: expected a blank after the value, found ':'"},
        {"1 |user x\n", ":1:9: error: expected a decimal integer, found \"x\"\n  1 |user x\n      "
                        "    ^\nhint: slot 'user' with 'type: str' takes any text"},
        {"1 |user 7:x\n", ":1:11: error: expected a number, found \"x\""},
        {"1 |user 7:nan\n", "number is not finite"},
        {"1 |user 7:1e39\n", "number too large for a float"},
        {"1 |user 7:1.1e18\n", "value too large to train on (at most 1e18), found \"1.1e18\""},
        {"1 |user:1e9 7:-2e9\n", "value too large to train on (at most 1e18)"},
        {"1 |price:1e30 :1e30\n", "number too large for a float"},
        {"1 |user:x 7\n", "expected a number, found \"x\""},
        {"1 |user:nan 7\n", "number is not finite"},
        {"1 |user: 7\n", ":1:9: error: expected a scale after ':'"},
        {"1 |:2 7\n", "expected the name of a namespace, found ':'"},
        {"1 |price :1 :2\n", "a second value for a number"},
        {"1 |price a b\n", ":1:12: error: a second value for a number, found \"b\""},
        {"1 |age :3.5\n", "expected an integer, found \"3.5\""},
        {"1 |nobody 7\n", ":1:4: error: no slot takes namespace 'nobody'"},
        {"1|user 7\n", ":1:1: error: the label is missing; what stands here is a tag"},
        {"|user 7\n", ":1:1: error: the label is missing\n"},
        {"2 |user 7\n", "expected a label, found \"2\""},
        {"1 -2 |user 7\n", "expected a weight from 0 to 1048576, found \"-2\""},
        {"1 'a b |user 7\n", ":1:6: error: expected '|' after the tag"},
        {"1 |user 7\r8\n", "carriage return inside a line"},
    };
    for (uint32_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        check_fault(several, faults[i][0], faults[i][1]);
    }
    check_fault("{data: {format: vw}, slots: [user]}", "1 | a\n",
                ":1:3: error: no slot takes features without a namespace");
}

TEST(other_kinds_of_examples_are_refused_by_name)
{
    static const char *const kinds[][2] = {
        {"1 1 0.5 |user 7\n", "base values (a third number) of VW are not read here"},
        {"1:2.5 2:0.5 |user 7\n", "cost-sensitive labels of VW are not read here"},
        {"1:2:0.5 |user 7\n", "contextual bandit labels of VW"},
        {"ca 185.1:0.6:0.2 |user 7\n", "contextual bandit labels of VW"},
        {"ccb shared |user 7\n", "contextual bandit labels of VW"},
        {"shared |user 7\n", "multi-line examples of VW"},
        {"1,3 |user 7\n", "multilabels of VW"},
        {"{\"_label\":1} |user 7\n", "JSON examples of VW"},
    };
    for (uint32_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        check_fault(several, kinds[i][0], kinds[i][1]);
    }
}

TEST(without_labels_one_may_stand_there)
{
    static const char none[] = "{data: {format: vw, label: none}, slots: [user]}";
    check_row(none, "|user 7\n", "user:7:1");
    check_row(none, "'r1 |user 7\n", "user:7:1");
    check_row(none, "1 2 'r1|user 7\n", "user:7:1");
    check_fault(none, "yes |user 7\n", "expected a label, found \"yes\"");
    check_row("{data: {format: vw, label: {values: {yes: 1, 'a:b': 0}}}, slots: [user]}",
              "a:b |user 7\n", "user:7:1");
}

/* ---- writing ---- */

GROUP_SET_UP
{
    static datasets d;
    datasets_open(&d, 1);
    *state = &d;
}

GROUP_TEAR_DOWN
{
    datasets_close(*state);
}

/* Returns the line in the other format, or the fault. */
static const char *converted(datasets *d, const char *line, const char *to, uint32_t flags)
{
    const char *out = datasets_line(d,
                                    "{data: {format: vw, record_id: id}, slots: [{name: a, type: "
                                    "str, list: '|'}, {name: v, as: value}]}",
                                    line, to, flags);
    return out[0] != '\0' ? out : d->err.text;
}

TEST(rows_come_back_as_they_were)
{
    static const char *const lines[] = {
        "1 2.5 'r1 |a x y:0.5 lang=en |v :19.5\n",
        "-1\n",
        "0.25 |v :1e-7\n",
    };
    for (uint32_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        assert_string_equal(converted(*state, lines[i], "{format: vw}", 0), lines[i]);
    }
    assert_string_equal(converted(*state, "0 r2|v:2 x:3 |a k:t z\n", "{format: vw}", 0),
                        "-1 'r2 |a k=t z |v :6\n");
}

TEST(what_other_formats_cannot_say_is_refused)
{
    const char *said = converted(*state, "1 |a :2\n",
                                 "{format: csv, header: false, columns: [label, id, "
                                 "a, v]}",
                                 0);
    assert_non_null(strstr(said, "feature 0 of slot 'a' is anonymous, and format 'csv' has no"));
    assert_string_equal(converted(*state, "1 |a :1\n", "{format: vw}", TN_WRITE_SIGNS), "1 |a 0\n");
}

TEST_ON(datasets *d, words_with_blanks_are_not_written)
{
    static const char csv[] = "{data: {format: csv, header: false, columns: [label, a, i], "
                              "record_id: i}, slots: [{name: a, type: str}]}";
    static const char *const lines[] = {"1,a b,\n", "1,a:b,\n", "1,a|b,\n", "1,a,b c\n"};
    for (uint32_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        assert_string_equal(datasets_line(d, csv, lines[i], "{format: vw}", 0), "");
        assert_non_null(strstr(d->err.text, "is empty or holds a blank, ':' or '|'"));
    }
    assert_string_equal(datasets_line(d, csv, "1,a,b\n", "{format: vw}", 0), "1 'b |a a\n");
    assert_string_equal(datasets_line(d, "{data: {format: csv}, slots: [{name: a, column: 'x y'}]}",
                                      "label,x y\n1,2\n", "{format: vw}", 0),
                        "");
    assert_non_null(strstr(d->err.text, "column 'x y' of slot 'a' cannot be the name of a"));
}
