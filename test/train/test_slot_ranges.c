/* test_slot_ranges.c - "C{1..26}" in the names of slots. */
#include "config/tree.h"
#include "support/test.h"
#include "train/config/slot_ranges.h"

typedef struct fixture {
    tn_arena *arena;
    tn_diag diag;
} fixture;

SET_UP
{
    static fixture f;
    f = (fixture){.arena = tn_arena_new(1 << 14)};
    *state = &f;
}

TEAR_DOWN
{
    fixture *f = *state;
    tn_diag_done(&f->diag);
    tn_arena_free(f->arena);
}

static const tn_tree *expand(fixture *f, const char *text)
{
    tn_diag_done(&f->diag);
    return tn_slot_ranges_expand(f->arena, &f->diag, tn_tree_read_flow(f->arena, text, "t"));
}

static void assert_expands(fixture *f, const char *text, const char *want)
{
    tn_text out CLEANUP(tn_text_done) = {0};
    tn_tree_print_flow(&out, expand(f, text));
    assert_string_equal(tn_text_str(&f->diag.text), "");
    assert_string_equal(tn_text_str(&out), want);
}

TEST_ON(fixture *f, a_range_is_written_out)
{
    assert_expands(f, "{slots: ['I{9..11}', x, {name: 'b{1..2}c', dim: 4}]}",
                   "{slots: [I9, I10, I11, x, {name: b1c, dim: 4}, {name: b2c, dim: 4}]}");
    assert_expands(f, "{slots: ['a{3..3}']}", "{slots: [a3]}");
}

TEST_ON(fixture *f, leading_zeros_give_the_width)
{
    assert_expands(f, "{slots: ['C{01..2}', 'D{0..1}', 'E{08..10}']}",
                   "{slots: [C01, C02, D0, D1, E08, E09, E10]}");
}

TEST_ON(fixture *f, other_texts_with_the_same_braces_follow)
{
    assert_expands(f, "{slots: [{name: 'a{1..2}', column: 'x{1..2}_{1..2}', list: '{1..3}'}]}",
                   "{slots: [{name: a1, column: x1_1, list: \"{1..3}\"}, "
                   "{name: a2, column: x2_2, list: \"{1..3}\"}]}");
}

TEST_ON(fixture *f, keys_of_a_map_expand_too)
{
    assert_expands(f, "{slots: {'C{1..2}': {dim: 4}, x: {dim: 5}}, other: {'C{1..2}': 1}}",
                   "{slots: {C1: {dim: 4}, C2: {dim: 4}, x: {dim: 5}}, other: {\"C{1..2}\": 1}}");
}

TEST_ON(fixture *f, what_has_no_slots_stays_as_it_is)
{
    assert_expands(f, "{data: x}", "{data: x}");
    assert_expands(f, "{slots: ~}", "{slots: ~}");
    assert_expands(f, "{slots: [{dim: 3}, ~, [a]]}", "{slots: [{dim: 3}, ~, [a]]}");
}

TEST_ON(fixture *f, a_bad_range_is_an_error)
{
    static const char *const bad[] = {"a{1.3}",   "a{3..1}", "a{1..}", "a{1..99999}",
                                      "a{-1..3}", "a{x..y}", "a{",     "a{1..2"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[100];
        (void)snprintf(text, sizeof text, "{slots: ['%s']}", bad[i]);
        (void)expand(f, text);
        assert_int_equal(f->diag.n_errors, 1);
        assert_non_null(strstr(tn_text_str(&f->diag.text), "has no range such as {1..13}"));
    }
}

TEST_ON(fixture *f, ranges_cannot_exhaust_memory)
{
    char text[2000] = "{slots: [";
    for (int i = 0; i < 30; i++) {
        char item[40];
        (void)snprintf(item, sizeof item, "'a%d_{1..10000}', ", i);
        memcpy(text + strlen(text), item, strlen(item) + 1);
    }
    memcpy(text + strlen(text), "b]}", 4);
    (void)expand(f, text);
    assert_non_null(strstr(tn_text_str(&f->diag.text), "ranges make more than 200000 values"));
}
