/* test_avazu.c - rows of the Avazu set: hours in parts, ids of 20 digits, the test file without a
 * label, and the way back. */
#include "datasets.h"
#include "io/format/format.h"
#include "io/rows/rows.h"
#include "setup.h"
#include "support/test.h"

#define HEADER                                                                                     \
    "id,click,hour,C1,banner_pos,site_id,site_domain,site_category,app_id,app_domain,"             \
    "app_category,device_id,device_ip,device_model,device_type,device_conn_type,C14,C15,C16,C17,"  \
    "C18,C19,C20,C21\n"
#define REST                                                                                       \
    ",1005,0,1fbe01fe,f3845767,28905ebd,ecad2386,7801e8d9,07d7df22,a99f214a,ddd2926e,44956a24,1,"  \
    "2,15706,320,50,1722,0,35,-1,79\n"

/* As the preset has them; test/e2e/data_tools.sh reads with the preset itself. */
#define DATE                                                                                       \
    "{name: hour, type: int, transform: hour}, {name: weekday, column: hour, type: int, "          \
    "transform: weekday}, {name: weekend, column: hour, type: int, transform: weekend}"

static const char config[] = "{data: {format: avazu, label: click, record_id: id}, slots: [" DATE
                             ", {name: site_id, type: hex}, {name: C20, type: int}]}";

/* hour weekday weekend of a row, as text. */
static void dated(const char *hour, char *out, size_t size)
{
    tn_parsed parsed CLEANUP(setup_parsed_free);
    char text[1000];
    OPEN(setup, s, config);
    (void)snprintf(text, sizeof text, HEADER "10000169349117863715,0,%s" REST, hour);
    setup_parse_str(&s, text, &parsed);
    assert_int_equal(parsed.n_bad, 0);
    const tn_rows *rows = parsed.rows;
    assert_int_equal(rows->n, 1);
    assert_int_equal(rows->n_entries, 5);
    uint64_t sign[5];
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(rows->entry[i].slot, i);
        sign[i] = tn_sign_of(rows->entry[i].key, s.schema->slot[i]->salt);
    }
    assert_int_equal(sign[3], 0x1fbe01fe);
    assert_true(sign[4] == UINT64_MAX);
    assert_int_equal(rows->row[0].id.size, 20);
    assert_memory_equal(rows->text + rows->row[0].id.at, "10000169349117863715", 20);
    (void)snprintf(out, size, "%u %u %u", (unsigned)sign[0], (unsigned)sign[1], (unsigned)sign[2]);
}

TEST(an_hour_becomes_its_parts)
{
    /* The set begins on a Tuesday, 2014-10-21. The others: cal(1). */
    static const char *const hours[][2] = {
        {"14102100", "0 1 0"},  {"14102123", "23 1 0"}, {"14102512", "12 5 1"},
        {"14102612", "12 6 1"}, {"14102700", "0 0 0"},  {"16022905", "5 0 0"},
        {"00010100", "0 5 1"},  {"20030109", "9 6 1"},  {"99123123", "23 3 0"},
        {"01020304", "4 5 1"},  {"1020304", "4 5 1"},
    };
    for (uint32_t i = 0; i < sizeof hours / sizeof *hours; i++) {
        char have[64];
        dated(hours[i][0], have, sizeof have);
        assert_string_equal(have, hours[i][1]);
    }
}

TEST(what_is_no_hour_is_a_fault_with_its_place)
{
    static const char *const wrong[] = {"14102124", "14132100", "14002100", "14103200", "14100000",
                                        "15022900", "14043100", "-4102100", "114102100"};
    OPEN(setup, s, config);
    for (uint32_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[1000];
        char want[200];
        (void)snprintf(text, sizeof text, HEADER "1,0,%s" REST, wrong[i]);
        (void)snprintf(
            want, sizeof want,
            ":2:5: error: expected a date: YYMMDDHH, unix seconds, or 2026-11-29 with or "
            "without a time, found \"%s\"",
            wrong[i]);
        const char *said = setup_fault(&s, text);
        fail_if(strstr(said, want) == NULL, "%s: %s", wrong[i], said);
    }
    assert_non_null(strstr(setup_fault(&s, "id,hour\n"), "there is no column 'click'"));
}

TEST(the_test_file_has_no_label)
{
    tn_parsed parsed CLEANUP(setup_parsed_free);
    OPEN(setup, s, "{data: {format: avazu, label: none, record_id: id}, slots: [" DATE "]}");
    setup_parse_str(&s, "id,hour,C1\n1.5e19,14103000,1005\n", &parsed);
    assert_int_equal(parsed.n_bad, 0);
    assert_int_equal(parsed.rows->n, 1);
    assert_memory_equal(parsed.rows->text + parsed.rows->row[0].id.at, "1.5e19", 6);
}

TEST(parts_of_a_date_are_keys)
{
    setup s CLEANUP(setup_close);
    assert_int_equal(setup_try(&s, "{data: {format: avazu}, slots: [{name: a, as: value, "
                                   "transform: weekday}]}"),
                     TN_E_CONFIG);
    assert_non_null(strstr(s.diag.text.data, "parts of a date make keys"));
}

TEST(rows_are_written_with_all_columns_of_the_set)
{
    OPEN(datasets, d, 1);
    const char *out = datasets_line(&d, config, HEADER "10000169349117863715,1,14102100" REST,
                                    "{format: avazu}", 0);
    assert_string_equal(out, HEADER "10000169349117863715,1,14102100,,,1fbe01fe,,,,,,,,,,,,,,,,,-1,"
                                    "\n");
    out = datasets_line(&d, "{data: {format: csv, label: none}, slots: [C1]}", "C1\n7\n",
                        "{format: avazu}", 0);
    assert_non_null(strstr(out, "id,hour,C1,"));
    assert_non_null(strstr(out, "\n,,7,,"));
    out = datasets_line(&d, "{data: {format: csv}, slots: [user]}", "label,user\n1,7\n",
                        "{format: avazu}", 0);
    assert_string_equal(out, "");
    assert_non_null(strstr(d.err.text, "format 'avazu' has no column 'user' to write to"));
}
