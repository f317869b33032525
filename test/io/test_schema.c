/* test_schema.c - slots resolved, contradictions found, and the rules of whole slots. */

#include "base/keys/record.h"
#include "base/math/key.h"
#include "config/field.h"
#include "io/rows/rows.h"
#include "setup.h"
#include "support/test.h"

TEST(slots_numbers_and_groups_get_their_places)
{
    OPEN(setup, s,
         "{data: {format: tsv, header: true, group: u}, slots: [{name: user, column: u},"
         " {name: price, as: value}, {name: item, share: things}, {name: age, as: value},"
         " {name: hist, share: things}, {name: w, as: weighted}]}");
    const tn_schema *schema = s.schema;
    assert_int_equal(schema->n_specs, 6);
    assert_int_equal(schema->n_slots, 4);
    assert_int_equal(schema->n_numeric, 2);
    assert_int_equal(schema->n_groups, 3);
    assert_string_equal(schema->group[1].name, "things");
    assert_int_equal(schema->slot[2]->group, 1);
    assert_true(schema->slot[1]->salt == tn_xxh64("things", 6, 0));
    assert_int_equal(schema->numeric[1]->numeric, 1);
    assert_int_equal(schema->spec[1].slot, TN_NOWHERE);
    assert_ptr_equal(schema->group_spec, &schema->spec[0]);
    assert_true(schema->spec[1].type == TN_SIGN_FLOAT);
}

static void check_fault(const char *config, const char *words)
{
    setup s CLEANUP(setup_close);
    assert_int_equal(setup_try(&s, config), TN_E_CONFIG);
    if (strstr(tn_text_str(&s.diag.text), words) == NULL) {
        assert_string_equal(tn_text_str(&s.diag.text), words);
    }
}

/* Appends every option of a slot as text. */
static void add_options(tn_text *out, const tn_slot_opts *slot)
{
    for (const tn_field *f = tn_slot_fields; f->kind != TN_KIND_END; f++) {
        tn_text_addf(out, "%s: ", f->key);
        tn_field_value_text(out, f, slot);
        tn_text_addc(out, '\n');
    }
}

TEST(a_slot_that_nobody_lists_has_the_options_of_an_empty_row)
{
    tn_text one CLEANUP(tn_text_done) = {0};
    tn_text other CLEANUP(tn_text_done) = {0};
    OPEN(setup, found, "{data: {format: libsvm}}");
    OPEN(setup, listed, "{data: {format: libsvm}, slots: [{name: _}]}");
    add_options(&one, found.schema->slot[0]->opts);
    add_options(&other, listed.schema->slot[0]->opts);
    assert_string_equal(one.data, other.data);
}

/* A float as a key: buckets, whose bounds the data will give. A number as a value: its distance
 * from the mean. */
TEST(a_number_of_which_nothing_is_said_gets_the_usual_transform)
{
    setup s;
    setup_open(&s, "{data: {format: csv}, slots: [{name: a, type: float}, {name: b, as: value},"
                   " {name: c, type: int}, {name: d, transform: quantiles, type: int},"
                   " {name: e, type: float, transform: {quantiles: 7}},"
                   " {name: f, as: value, transform: identity}, {name: g, as: weighted},"
                   " {name: h, transform: quantiles}]}");
    const tn_transform *t[7];
    for (uint32_t i = 0; i < 7; i++) {
        t[i] = &s.schema->spec[i].transform;
    }
    assert_int_equal(t[0]->kind, TN_TRANSFORM_BUCKETS);
    assert_int_equal(t[0]->n_bounds, 0);
    assert_int_equal(t[1]->kind, TN_TRANSFORM_ZSCORE);
    assert_true(isnan(t[1]->a));
    assert_int_equal(t[1]->freeze_rows, TN_ZSCORE_FREEZE_ROWS);
    assert_int_equal(t[2]->kind, TN_TRANSFORM_IDENTITY);
    assert_int_equal(t[3]->kind, TN_TRANSFORM_BUCKETS);
    assert_int_equal(s.schema->spec[3].type, TN_SIGN_INT);
    assert_int_equal(s.schema->spec[7].type, TN_SIGN_FLOAT); /* what is cut into buckets is one */
    assert_int_equal(t[4]->kind, TN_TRANSFORM_BUCKETS);
    assert_int_equal(t[5]->kind, TN_TRANSFORM_IDENTITY);
    assert_int_equal(t[6]->kind, TN_TRANSFORM_IDENTITY);
    setup_close(&s);
    check_fault("{data: {format: csv}, slots: [{name: a, type: float, transform: log}]}",
                "this transform makes a number");
    check_fault("{data: {format: csv}, slots: [{name: a, type: float, transform: {quantiles: 1}}]}",
                "expected 2 to 100000 parts, or the path of a file of bounds");
    check_fault(
        "{data: {format: csv}, slots: [{name: a, type: float, transform: {quantiles: 100001}}]}",
        "expected 2 to 100000 parts, or the path of a file of bounds");
}

TEST(contradictions_are_found_before_anything_is_read)
{
    check_fault("{data: {format: csv}}", "no slots are listed, and a model learns from 1 to 4096");
    check_fault("{data: {format: csv}, slots: [{name: a}, {name: a}]}", "slot 'a' stands twice");
    check_fault("{data: {format: csv}, slots: [{name: 'a b'}]}", "slot name 'a b' is not 1 to 255");
    check_fault("{data: {format: csv}, slots: [{name: a, share: ''}]}", "share group ''");
    check_fault("{data: {format: csv}, slots: [{name: a, type: str, as: value}]}",
                "hex and str are no numbers");
    check_fault("{data: {format: csv}, slots: [{name: a, transform: log}]}",
                "this transform makes a number");
    check_fault("{data: {format: csv}, slots: [{name: a, as: value, transform: ln2_bucket}]}",
                "ln2_bucket, buckets and parts of a date make keys");
    check_fault("{data: {format: csv}, slots: [{name: a, as: weighted, transform: zscore}]}",
                "running zscore needs 'as: value'");
    check_fault("{data: {format: csv}, slots: [{name: a, transform: {buckets: [2, 1]}}]}",
                "bounds of buckets must ascend");
    check_fault("{data: {format: csv}, slots: [{name: a, transform: bucket}]}",
                "unknown transform 'bucket' (did you mean 'buckets'?)");
    check_fault("{data: {format: csv}, slots: [{name: a, transform: minmax}]}",
                "transform 'minmax' needs numbers");
    check_fault("{data: {format: csv}, slots: [{name: a, as: value, transform: {minmax: [3, 3]}}]}",
                "minmax needs a < b");
    check_fault("{data: {format: csv, delimiter: ';;'}, slots: [{name: a}]}",
                "delimiter must be one byte, not ';;'");
    check_fault("{data: {format: csv, label: {column: y, values: {a: 2}}}, slots: [{name: a}]}",
                "values");
    check_fault("{data: {format: csv, label: {colum: y}}, slots: [{name: a}]}",
                "expected column, values or threshold, not 'colum'");
    check_fault("{data: {format: libffm}, slots: [{name: a, field: 1}, {name: b, field: 1}]}",
                "slot 'b' has the field of another slot");
    check_fault("{data: {format: libsvm}, slots: [{name: a, range: [0, 10]}, {name: b, range: [9, "
                "20]}]}",
                "slot 'b' shares indices with another slot: give each a 'range'");
    check_fault("{data: {format: libsvm}, slots: [{name: a, range: [5, 5]}]}", "range must be");
    check_fault("{data: {format: csv}, slots: [{name: a, absent: 7}]}", "expected none or key");
}

TEST(transforms_give_the_numbers_of_the_document)
{
    OPEN(setup, s,
         "{data: {format: csv}, slots: [{name: a, as: value, transform: log}, {name: b, "
         "as: value, transform: {minmax: [-1, 3]}}, {name: c, as: value, transform: "
         "{zscore: [2, 4]}}, {name: d, as: value, transform: {zscore: [2, 0]}}, {name: "
         "e, as: value, transform: zscore}, {name: f, type: float, transform: {buckets: "
         "[18, 25.5, 35]}}]}");
    const tn_slot_spec *spec = s.schema->spec;
    assert_true(fabsf(tn_transform_value(&spec[0].transform, -1.5) + 0.916290732F) < 1e-7F);
    assert_true(tn_transform_value(&spec[0].transform, 0) == 0);
    assert_true(tn_transform_value(&spec[1].transform, 0) == 0.25F);
    assert_true(tn_transform_value(&spec[1].transform, -7) == 0);
    assert_true(tn_transform_value(&spec[1].transform, 7) == 1);
    assert_true(tn_transform_value(&spec[2].transform, 10) == 2);
    assert_true(tn_transform_value(&spec[3].transform, 3) == 1e12F);
    assert_true(isnan(spec[4].transform.a) && spec[4].transform.freeze_rows == 1000000);
    assert_true(tn_transform_value(&spec[4].transform, 5) == 5);
    const double v[] = {-1, 17.9, 18, 25.4, 25.5, 35, 1e30};
    const uint64_t bucket[] = {0, 0, 1, 1, 2, 3, 3};
    for (uint32_t i = 0; i < 7; i++) {
        assert_int_equal(tn_transform_sign(&spec[5].transform, v[i]), bucket[i]);
    }
}

/* The signs that a row of each text gets in a slot, whose key is not mixed with anything else. */
static void expect_signs(const char *slot, const char *const *text, const char *want)
{
    setup s CLEANUP(setup_close);
    tn_parsed parsed CLEANUP(setup_parsed_free);
    tn_text in CLEANUP(tn_text_done) = {0};
    tn_text have CLEANUP(tn_text_done) = {0};
    char config[200];
    (void)snprintf(config, sizeof config, "{data: {format: csv}, slots: [{name: a, %s}]}", slot);
    setup_open(&s, config);
    tn_text_adds(&in, "label,a\n");
    for (uint32_t i = 0; text[i] != NULL; i++) {
        tn_text_addf(&in, "0,%s\n", text[i]);
    }
    setup_parse_str(&s, tn_text_str(&in), &parsed);
    const tn_rows *rows = parsed.rows;
    for (uint32_t i = 0; i < rows->n_entries; i++) {
        tn_text_addf(&have, "%llu ",
                     (unsigned long long)tn_sign_of(rows->entry[i].key, s.schema->spec[0].salt));
    }
    tn_text_adds(&have, tn_text_str(&parsed.messages));
    assert_string_equal(tn_text_str(&have), want);
}

TEST(a_date_is_one_in_every_type_and_writing)
{
    /* Sunday, 23 h of 2026-11-29: unix seconds by `date -u -d '2026-11-29 23:15:07' +%s` */
    static const char *const numbers[] = {"26112923", "1795994107", NULL};
    static const char *const texts[] = {"26112923",
                                        "1795994107",
                                        "1795994107.5",
                                        "2026-11-29 23",
                                        "2026-11-29 23:15",
                                        "2026-11-29 23:15:07",
                                        "2026-11-29T23:15:07.25Z",
                                        "2026-11-29T23:15:07+05:30",
                                        "2026-11-29t23:15:07-0800",
                                        "2026-11-29T23:15:60+02",
                                        NULL};
    static const char *const types[] = {"type: int, ", "type: float, ", "type: str, ", ""};
    char slot[100];
    for (uint32_t i = 0; i < 4; i++) {
        (void)snprintf(slot, sizeof slot, "%stransform: hour", types[i]);
        expect_signs(slot, texts, "23 23 23 23 23 23 23 23 23 23 ");
        (void)snprintf(slot, sizeof slot, "%stransform: weekday", types[i]);
        expect_signs(slot, texts, "6 6 6 6 6 6 6 6 6 6 ");
        (void)snprintf(slot, sizeof slot, "%stransform: weekend", types[i]);
        expect_signs(slot, numbers, "1 1 ");
    }
    /* weekdays by Python's datetime */
    static const char *const others[] = {"1970-01-01", "2000-02-29", "1969-12-31T07", "0001-01-01",
                                         NULL};
    expect_signs("type: str, transform: weekday", others, "3 1 2 0 ");
    expect_signs("type: str, transform: hour", others, "0 0 7 0 ");
}

TEST(what_is_no_date_is_a_fault_in_every_type)
{
    static const char *const wrong[] = {"26133123",
                                        "114102100",
                                        "1795994107000",
                                        "2026-02-29",
                                        "2100-02-29",
                                        "2026-11-29T24",
                                        "2026-11-29T23:60",
                                        "2026-11-29T23:15:",
                                        "2026-11-29T23+24",
                                        "2026-1-29",
                                        "20261129",
                                        "soon",
                                        "2026-11-29T23:15:07.",
                                        "-1",
                                        "1e8"};
    static const char *const types[] = {"int", "float", "str"};
    for (uint32_t k = 0; k < 3; k++) {
        setup s;
        char text[200];
        (void)snprintf(text, sizeof text,
                       "{data: {format: csv}, slots: [{name: a, type: %s, transform: hour}]}",
                       types[k]);
        setup_open(&s, text);
        for (uint32_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            (void)snprintf(text, sizeof text, "label,a\n0,%s\n", wrong[i]);
            const char *said = setup_fault(&s, text);
            fail_if(strstr(said, "expected a date") == NULL, "%s %s: %s", types[k], wrong[i], said);
        }
        setup_close(&s);
    }
}

TEST(a_number_meets_its_bound_as_it_is_read)
{
    static const char *const at[] = {".1", ".3", ".5", ".7", "1.1", "9.99", "0.69999999", NULL};
    static const char *const seconds[] = {"1700000089", "1700000090", "1700000128", "1e39", NULL};
    const char *const bounds = "type: float, transform: {buckets: [.1, .3, .5, .7, 1.1, 9.99]}";
    const char *const times = "type: float, transform: {buckets: [1700000060, 1700000090]}";
    expect_signs(bounds, at, "1 2 3 4 5 6 3 ");
    expect_signs(times, seconds, "1 2 2 2 ");

    /* what holds float32: the nearest to a bound is the bound, but of whole numbers */
    OPEN(setup, s,
         "{data: {format: csv}, slots: [{name: a, type: float, transform: {buckets: [.1, "
         ".3, .5, .7, 1.1, 1700000060]}}]}");
    const tn_transform *t = &s.schema->spec[0].transform;
    const float single[] = {.1F, .3F, .5F, .7F, 0.699999F, 1.1F, 1.7e9F};
    const uint64_t want[] = {1, 2, 3, 4, 3, 5, 5};
    for (uint32_t i = 0; i < 7; i++) {
        assert_int_equal(tn_transform_sign(t, tn_transform_of_single(t, single[i])), want[i]);
    }
}

TEST(quantiles_come_from_a_file)
{
    setup s;
    setup_open(&s, "{data: {format: csv}, slots: [{name: a, type: float, transform: {quantiles: "
                   "test/io/data/bounds.txt}}]}");
    assert_int_equal(s.schema->spec[0].transform.n_bounds, 3);
    assert_true(s.schema->spec[0].transform.bound[2] == 7.5);
    setup_close(&s);
    check_fault("{data: {format: csv}, slots: [{name: a, type: float, transform: {quantiles: "
                "test/io/data/no.txt}}]}",
                "no.txt");
}

/* Many bounds are a configuration that does not fit, and no end of the process. */
TEST(a_file_of_many_bounds_asks_for_its_memory)
{
    enum { BOUNDS = 20000 };
    setup s;
    tn_text bounds CLEANUP(tn_text_done) = {0};
    tn_text config CLEANUP(tn_text_done) = {0};
    bool asked = false;
    OPEN(setup, files, "{data: {format: csv}, slots: [{name: a}]}");
    for (uint32_t i = 0; i < BOUNDS; i++) {
        tn_text_addf(&bounds, "%u\n", i);
    }
    tn_text_addf(&config,
                 "{data: {format: csv}, slots: [{name: a, type: float, transform: "
                 "{quantiles: %s}}]}",
                 setup_file(&files, "bounds", bounds.data, bounds.size));
    for (uint64_t nth = 1; nth < 100; nth++) {
        tn_alloc_fail_at(nth);
        tn_status status = setup_try(&s, config.data);
        tn_alloc_fail_at(0);
        asked |= strstr(tn_text_str(&s.diag.text), "for bounds of buckets") != NULL;
        bool whole = status == TN_OK && s.schema->spec[0].transform.n_bounds == BOUNDS;
        setup_close(&s);
        if (whole) {
            break;
        }
    }
    assert_true(asked);
}

/* Values of slot 0, as "sign:x sign:x ..", of the first row of a libffm line. */
static void check_rule(const char *rule, const char *line, const char *expected)
{
    setup s;
    tn_parsed parsed CLEANUP(setup_parsed_free);
    tn_text config CLEANUP(tn_text_done) = {0};
    tn_text got CLEANUP(tn_text_done) = {0};
    tn_text_addf(&config,
                 "{data: {format: libffm}, slots: [{name: a, field: 0%s}, {name: b, field: 1}]}",
                 rule);
    setup_open(&s, config.data);
    setup_parse_str(&s, line, &parsed);
    for (uint32_t i = 0; parsed.n_bad == 0 && i < parsed.rows->n_entries; i++) {
        const tn_entry *e = &parsed.rows->entry[i];
        uint64_t sign = tn_sign_of(e->key, s.schema->slot[e->slot]->salt);
        tn_text_addf(&got, "%s%c%llu:%g", i > 0 ? " " : "", e->slot == 0 ? 'a' : 'b',
                     (unsigned long long)sign, (double)e->value);
    }
    assert_string_equal(parsed.n_bad > 0
                            ? strchr(tn_parsed_message(&parsed, 0), ':') + strlen(":1:1: error: ")
                            : tn_text_str(&got),
                        expected);
    setup_close(&s);
}

TEST(rules_of_whole_slots_are_applied_in_order)
{
    const char *line = "1 0:5 1:9 0:6:2 0:5:3 0:7 1:9";
    check_rule("", line, "a5:1 b9:1 a6:2 a5:3 a7:1 b9:1");
    check_rule(", duplicates: sum", line, "a5:4 b9:1 a6:2 a7:1 b9:1");
    check_rule(", duplicates: error", line,
               "a value stands twice in slot 'a'\n  1 0:5 1:9 0:6:2 0:5:3 0:7 1:9\n  ^");
    check_rule(", duplicates: sum", "1 0:5:8e17 0:5:8e17",
               "a sum of equal keys is too large to train on (at most 1e18) in slot 'a'\n"
               "  1 0:5:8e17 0:5:8e17\n  ^");
    check_rule(", max_len: 2", line, "b9:1 a5:3 a7:1 b9:1");
    check_rule(", max_len: 2, keep: first", line, "a5:1 b9:1 a6:2 b9:1");
    check_rule(", max_len: 2, duplicates: sum", line, "b9:1 a6:2 a7:1 b9:1");
    check_rule(", drop_zero: true, absent: key", "1 0:5:0 1:3", "b3:1 a17241709254077376921:1");
    check_rule(", absent: key", "1 0:5", "a5:1");
}

TEST(many_duplicates_are_found_without_delay)
{
    tn_parsed parsed CLEANUP(setup_parsed_free);
    tn_text text CLEANUP(tn_text_done) = {0};
    OPEN(setup, s, "{data: {format: libsvm}, slots: [{name: a, duplicates: sum}]}");
    tn_text_adds(&text, "1");
    for (uint32_t i = 0; i < 300000; i++) {
        tn_text_addf(&text, " %u", i % 100000);
    }
    setup_parse(&s, text.data, text.size, &parsed);
    assert_int_equal(parsed.n_bad, 0);
    assert_int_equal(parsed.rows->n_entries, 100000);
    assert_true(parsed.rows->entry[99999].value == 3);
}

TEST(a_row_of_too_many_values_is_an_error)
{
    tn_parsed parsed CLEANUP(setup_parsed_free);
    tn_text text CLEANUP(tn_text_done) = {0};
    OPEN(setup, s, "{data: {format: libsvm}}");
    tn_text_adds(&text, "1");
    for (uint32_t i = 0; i <= TN_VALUES_MAX; i++) {
        tn_text_adds(&text, i == TN_VALUES_MAX ? " 8\n0 1\n" : " 7");
    }
    setup_parse(&s, text.data, text.size, &parsed);
    assert_int_equal(parsed.n_bad, 1);
    assert_non_null(strstr(tn_parsed_message(&parsed, 0), "more than 1048576 values in a row"));
    assert_int_equal(parsed.rows->n, 1);
}
