/* test_rows_cross.c - slots that combine the keys of others: every combination, in every format. */
#include "base/math/key.h"
#include "io/format/format.h"
#include "io/rows/rows.h"
#include "setup.h"
#include "support/test.h"

/* The key of a combination, by hand. */
static uint64_t key_of(const char *name, const uint64_t *part, uint32_t n)
{
    return tn_key_of(tn_xxh64(part, n * sizeof *part, 0), tn_salt(name));
}

static uint64_t text_key(const char *group, const char *text)
{
    return tn_key_of(tn_xxh64(text, strlen(text), 0), tn_salt(group));
}

/* Values of a slot in a row, of which entry k is to have this key and x. */
static uint32_t count_of(const tn_rows *rows, uint32_t row, uint32_t slot)
{
    uint32_t n = 0;
    for (uint32_t i = rows->row[row].first; i < tn_rows_end_of(rows, row); i++) {
        n += rows->entry[i].slot == slot;
    }
    return n;
}

static bool holds(const tn_rows *rows, uint32_t row, uint32_t slot, uint64_t key, float x)
{
    bool found = false;
    for (uint32_t i = rows->row[row].first; i < tn_rows_end_of(rows, row); i++) {
        const tn_entry *e = &rows->entry[i];
        found = found || (e->slot == slot && e->key == key && e->value == x);
    }
    return found;
}

static const char lists[] =
    "{data: {format: csv, list: '|'}, slots: [{name: ab, cross: [a, b]}, {name: a, type: str, "
    "values: x}, {name: b, type: str, share: both, absent: key}, {name: c, type: str, max_len: 1}, "
    "{name: cab, cross: [c, a, b]}]}";

/* ab is listed first, and yet is a slot after those that are read: a 0, b 1, c 2, ab 3, cab 4. */
TEST(a_cross_has_a_key_for_every_combination)
{
    setup s CLEANUP(setup_close);
    tn_parsed p CLEANUP(setup_parsed_free);
    setup_open(&s, lists);
    assert_int_equal(s.schema->n_specs, 3);
    assert_int_equal(s.schema->n_crosses, 2);
    setup_parse_str(&s, "label,a,b,c,x\n1,a1|a2,b1|b2|b3,c1|c2,2|3\n0,a1,,,4\n1,,b1,c1,\n", &p);
    assert_int_equal(p.rows->n, 3);
    assert_int_equal(count_of(p.rows, 0, 3), 6);
    assert_int_equal(count_of(p.rows, 0, 4), 6); /* c keeps one value */
    const uint64_t a2 = text_key("a", "a2");
    const uint64_t b3 = text_key("both", "b3");
    const uint64_t c2 = text_key("c", "c2");
    assert_true(holds(p.rows, 0, 3, key_of("ab", (const uint64_t[]){a2, b3}, 2), 3));
    assert_true(holds(p.rows, 0, 4, key_of("cab", (const uint64_t[]){c2, a2, b3}, 3), 3));
    assert_false(holds(p.rows, 0, 3, key_of("ab", (const uint64_t[]){b3, a2}, 2), 3));
    const uint64_t a1 = text_key("a", "a1");
    const uint64_t nothing = text_key("both", "");
    assert_int_equal(count_of(p.rows, 1, 3), 1); /* an absent b has a key */
    assert_true(holds(p.rows, 1, 3, key_of("ab", (const uint64_t[]){a1, nothing}, 2), 4));
    assert_int_equal(count_of(p.rows, 1, 4), 0);
    assert_int_equal(count_of(p.rows, 2, 3) + count_of(p.rows, 2, 4), 0);
}

/* The same two rows in other formats; parsers that make many rows at once take the same way. */
TEST(every_format_has_the_same_crosses)
{
    static const char *const same[][2] = {
        {"{data: {format: csv}, slots: [{name: a}, {name: b}, {name: ab, cross: [a, b]}]}",
         "label,a,b\n1,7,8\n0,7,9\n"},
        {"{data: {format: tsv, columns: [label, b, a]}, slots: [{name: b}, {name: ab, cross: [a, "
         "b]}, {name: a}]}",
         "1\t8\t7\n0\t9\t7\n"},
        {"{data: {format: libffm}, slots: [{name: a, field: 0}, {name: b, field: 1}, {name: ab, "
         "cross: [a, b]}]}",
         "1 0:7:1 1:8:1\n0 0:7:1 1:9:1\n"},
        {"{data: {format: jsonl}, slots: [{name: ab, cross: [a, b]}, {name: a}, {name: b}]}",
         "{\"label\":1,\"b\":8,\"a\":7}\n{\"label\":0,\"a\":7,\"b\":9}\n"},
    };
    const uint64_t salt_a = tn_salt("a");
    const uint64_t salt_b = tn_salt("b");
    for (uint32_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        if (strstr(same[i][0], "jsonl") != NULL && tn_format_find("jsonl") == NULL) {
            continue; /* src/extra/jsonl is not built */
        }
        setup s CLEANUP(setup_close);
        tn_parsed p CLEANUP(setup_parsed_free);
        setup_open(&s, same[i][0]);
        setup_parse_str(&s, same[i][1], &p);
        assert_int_equal(p.rows->n, 2);
        for (uint32_t r = 0; r < 2; r++) {
            const uint64_t part[] = {tn_key_of(7, salt_a), tn_key_of(8 + r, salt_b)};
            fail_if(!holds(p.rows, r, 2, key_of("ab", part, 2), 1), "%s: row %u", same[i][0], r);
        }
    }
}

TEST(too_many_combinations_are_a_bad_record)
{
    setup s CLEANUP(setup_close);
    tn_text line CLEANUP(tn_text_done) = {0};
    setup_open(&s, "{data: {format: csv, list: '|'}, slots: [{name: a}, {name: b}, {name: ab, "
                   "cross: [a, b]}]}");
    tn_text_adds(&line, "label,a,b\n1,");
    for (uint32_t k = 0; k < 2; k++) {
        for (uint32_t i = 0; i < 1100; i++) {
            tn_text_addf(&line, "%u%s", i, i < 1099 ? "|" : k == 0 ? "," : "\n");
        }
    }
    assert_non_null(strstr(setup_fault(&s, tn_text_str(&line)), "more than 1048576 values"));
}

TEST(a_product_of_values_stays_a_number)
{
    setup s CLEANUP(setup_close);
    setup_open(&s, "{data: {format: libffm}, slots: [{name: a, field: 0}, {name: b, field: 1}, "
                   "{name: ab, cross: [a, b]}]}");
    assert_string_equal(setup_fault(&s, "1 0:7:1e9 1:8:1e9\n"), "");
    assert_non_null(strstr(setup_fault(&s, "1 0:7:1e10 1:8:1e10\n"), "slot 'ab'"));
}

TEST(what_a_cross_cannot_be_is_said)
{
    static const char *const wrong[][2] = {
        {"[{name: a}, {name: x, cross: [a]}]", "a cross of 1 slots, not of 2 to 4"},
        {"[{name: a}, {name: x, cross: [a, z]}]", "cross of 'z', and there is no such slot"},
        {"[{name: a}, {name: x, cross: [a, a]}]", "cross of 'a' with itself"},
        {"[{name: a}, {name: b, as: value}, {name: x, cross: [a, b]}]", "'b', which has no keys"},
        {"[{name: a}, {name: b}, {name: x, cross: [a, b]}, {name: y, cross: [a, x]}]",
         "'x', which is a cross itself"},
        {"[{name: a}, {name: b}, {name: x, cross: [a, b], max_len: 2}]", "which has no 'max_len'"},
        {"[{name: a}, {name: b}, {name: x, cross: [a, b], column: c}]", "which has no 'column'"},
        {"[{name: a}, {name: b}, {name: x, cross: [a, b], type: str}]", "which has no 'type'"},
        {"[{name: a}, {name: b}, {name: x, cross: [a, b], absent: key}]", "which has no 'absent'"},
    };
    for (uint32_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char text[200];
        setup s CLEANUP(setup_close);
        (void)snprintf(text, sizeof text, "{data: {format: csv}, slots: %s}", wrong[i][0]);
        fail_if(setup_try(&s, text) == TN_OK ||
                    strstr(tn_text_str(&s.diag.text), wrong[i][1]) == NULL,
                "%s: %s", wrong[i][0], tn_text_str(&s.diag.text));
    }
}
