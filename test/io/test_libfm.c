/* test_libfm.c - format libfm: libsvm's rows, and the dialect with fields, whose base counts for
 * fields too. */
#include "datasets.h"
#include "io/rows/rows.h"
#include "setup.h"
#include "support/test.h"

/* The entries of a text, as slot:sign:x. */
static void check_rows(const setup *s, const char *text, const char *want)
{
    tn_parsed parsed CLEANUP(setup_parsed_free);
    tn_text have CLEANUP(tn_text_done) = {0};
    setup_parse_str(s, text, &parsed);
    assert_int_equal(parsed.n_bad, 0);
    for (uint32_t i = 0; i < parsed.rows->n_entries; i++) {
        const tn_entry *e = &parsed.rows->entry[i];
        const tn_slot_spec *spec = s->schema->slot[e->slot];
        tn_text_addf(&have, "%s%s:%llu:%g", i > 0 ? " " : "", spec->name,
                     (unsigned long long)tn_sign_of(e->key, spec->salt), (double)e->value);
    }
    assert_string_equal(tn_text_str(&have), want);
}

static void check(const char *config, const char *text, const char *want)
{
    OPEN(setup, s, config);
    check_rows(&s, text, want);
}

TEST(slots_tell_which_of_the_two_is_read)
{
    check("{data: {format: libfm}, slots: [a]}", "1 3:2 4\n", "a:3:2 a:4:1");
    check("{data: {format: libfm}, slots: [{name: a, range: [0, 10]}, {name: b, range: [10, 20]}]}",
          "1:2 3:2 14\n", "a:3:2 b:14:1");
    check("{data: {format: libfm}, slots: [{name: a, field: 3}, {name: b, field: 4}]}",
          "1:2 3:2 4:5:0.5\n", "a:2:1 b:5:0.5");
}

TEST(a_base_counts_for_fields_and_indices)
{
    setup s;
    setup_open(&s, "{data: {format: libfm, index_base: 1}, slots: [{name: a, field: 0}, {name: b, "
                   "field: 1}]}");
    check_rows(&s, "1 1:7:2 2:1:1 \n1 2:9\n", "a:6:2 b:0:1 b:8:1");
    assert_non_null(strstr(setup_fault(&s, "1 0:7\n"), "no slot takes field '0'"));
    assert_non_null(strstr(setup_fault(&s, "1 3:7\n"), "no slot takes field '3'"));
    assert_non_null(strstr(setup_fault(&s, "1 1:0\n"), "index 0 with index_base 1"));
    setup_close(&s);
    check("{data: {format: libffm, index_base: 1}, slots: [{name: a, field: 0}]}", "1 0:7:2\n",
          "a:6:2");
}

TEST(slots_and_base_are_found_in_the_data)
{
    static const char *const files[][3] = {
        {"1 1:3:1 4:7\n0 2:1:1\n", "0", "f1:3:1 f4:7:1 f2:1:1"},
        {"1 1:3:1 4:7\n0 2:1:1\n", "auto", "f0:2:1 f3:6:1 f1:0:1"},
        {"1 0:3:1 4:7\n0 2:1:1\n", "auto", "f0:3:1 f4:7:1 f2:1:1"},
        {"1 1:3:1 4:7\n0 2:0:1\n", "auto", "f1:3:1 f4:7:1 f2:0:1"},
        {"1 3:1 4:7\n0 2:1\n", "auto", "_:2:1 _:3:7 _:1:1"},
        {"1\n1 3:1 0\n", "auto", "_:3:1 _:0:1"},
    };
    OPEN(setup, at, "{data: {format: libfm}, slots: [a]}");
    for (uint32_t i = 0; i < sizeof files / sizeof *files; i++) {
        char config[500];
        const char *path = setup_file(&at, "found", files[i][0], strlen(files[i][0]));
        (void)snprintf(config, sizeof config,
                       "{data: {format: libfm, train: '%s', index_base: %s}}", path, files[i][1]);
        check(config, files[i][0], files[i][2]);
    }
}

TEST(rows_are_written_in_both_ways)
{
    OPEN(datasets, d, 1);
    static const char csv[] = "{data: {format: csv, list: '|'}, slots: [a, b]}";
    assert_string_equal(datasets_line(&d, csv, "label,a,b\n1,2,3|4\n", "{format: libfm}", 0),
                        "1 0:2:1 1:3:1 1:4:1\n");
    assert_string_equal(datasets_line(&d, "{data: {format: csv}, slots: [a]}", "label,a\n1,2\n",
                                      "{format: libfm}", 0),
                        "1 2:1\n");
    assert_string_equal(
        datasets_line(&d,
                      "{data: {format: csv}, slots: [{name: a, range: [0, 10]}, {name: b, "
                      "range: [10, 20]}]}",
                      "label,a,b\n1,2,13\n", "{format: libfm}", 0),
        "1 2:1 13:1\n");
    assert_string_equal(
        datasets_line(&d, csv, "label,a,b\n1,2,3\n", "{format: libfm, index_base: 1}", 0), "");
    assert_non_null(strstr(d.err.text, "written from 0"));
}
