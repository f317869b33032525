/* test_tree.c - trees: building, finding, merging, printing. */
#include "base/core/text.h"
#include "config/tree.h"
#include "support/test.h"

SET_UP
{
    *state = tn_arena_new(1 << 12);
}

TEAR_DOWN
{
    tn_arena_free(*state);
}

static void assert_flow(const tn_tree *tree, const char *want)
{
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_tree_print_flow(&text, tree);
    assert_string_equal(tn_text_str(&text), want);
}

static tn_tree *flow(tn_arena *arena, const char *text)
{
    return tn_tree_read_flow(arena, text, "a test");
}

TEST(members_are_found_by_path)
{
    const tn_tree *tree = flow(*state, "{train: {optimizer: {lr: 1e-3}}, list: [a, b]}");
    assert_string_equal(tn_tree_at(tree, "train.optimizer.lr")->text, "1e-3");
    assert_ptr_equal(tn_tree_at(tree, ""), tree);
    assert_null(tn_tree_at(tree, "train.opt"));
    assert_null(tn_tree_at(tree, "train.optimizer.lr.x"));
    assert_null(tn_tree_get(tn_tree_get(tree, "list"), "a"));
    assert_int_equal(tn_tree_count(tn_tree_get(tree, "list")), 2);
    assert_int_equal(tn_tree_count(NULL), 0);
}

TEST_ON(tn_arena *arena, put_replaces_in_place_or_appends)
{
    tn_tree *map = flow(arena, "{a: 1, b: 2, c: 3}");
    tn_tree_put(arena, map, "b", flow(arena, "[x]"));
    tn_tree_put(arena, map, "c", flow(arena, "4"));
    tn_tree_put(arena, map, "d", flow(arena, "5"));
    assert_flow(map, "{a: 1, b: [x], c: 4, d: 5}");
}

TEST_ON(tn_arena *arena, merge_goes_key_by_key_and_replaces_lists)
{
    const tn_tree *under = flow(arena, "{a: {x: 1, y: 2}, l: [1, 2], s: 1}");
    const tn_tree *over = flow(arena, "{a: {y: 3, z: 4}, l: [3], n: ~}");
    assert_flow(tn_tree_merge(arena, under, over), "{a: {x: 1, y: 3, z: 4}, l: [3], s: 1, n: ~}");
    assert_flow(under, "{a: {x: 1, y: 2}, l: [1, 2], s: 1}");
}

TEST_ON(tn_arena *arena, a_merged_node_keeps_its_origin)
{
    const tn_tree *under = tn_tree_read_flow(arena, "{a: 1, b: 2}", "first");
    const tn_tree *over = tn_tree_read_flow(arena, "{b: 3}", "second");
    const tn_tree *merged = tn_tree_merge(arena, under, over);
    assert_string_equal(tn_tree_get(merged, "a")->at.source, "first");
    assert_string_equal(tn_tree_get(merged, "b")->at.source, "second");
}

TEST_ON(tn_arena *arena, a_copy_is_deep)
{
    tn_tree *tree = flow(arena, "{a: {b: 1}}");
    tn_tree *copy = tn_tree_copy(arena, tree);
    tn_tree_put(arena, copy->first, "b", flow(arena, "2"));
    assert_flow(tree, "{a: {b: 1}}");
    assert_flow(copy, "{a: {b: 2}}");
}

TEST(texts_are_quoted_only_when_they_must_be)
{
    static const struct {
        const char *text;
        const char *want;
    } cases[] = {
        {"adam", "adam"},
        {"-0.01", "-0.01"},
        {"data/day_*.tsv", "data/day_*.tsv"},
        {"s3://bucket/a", "s3://bucket/a"},
        {"12:30:45", "12:30:45"},
        {"two words", "two words"},
        {"", "\"\""},
        {"~", "\"~\""},
        {"-", "\"-\""},
        {"*.tsv", "\"*.tsv\""},
        {"a: b", "\"a: b\""},
        {"a #b", "\"a #b\""},
        {"a:", "\"a:\""},
        {" a", "\" a\""},
        {"a ", "\"a \""},
        {"I{1..13}", "\"I{1..13}\""},
        {"<<", "\"<<\""},
        {"...", "\"...\""},
        {"say \"x\"\\", "\"say \\\"x\\\"\\\\\""},
        {"\t\n\x01\x7F", "\"\\t\\n\\x01\\x7F\""},
        {"\xC3\xA4", "\"\xC3\xA4\""},
        {"\xE2\x80\xA8\xC2\x85", "\"\\L\\N\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_text text CLEANUP(tn_text_done) = {0};
        tn_tree_print_scalar(&text, cases[i].text);
        assert_string_equal(tn_text_str(&text), cases[i].want);
    }
    tn_text text CLEANUP(tn_text_done) = {0}; /* a column called none */
    tn_tree_print_flow(&text, flow(*state, "[none, 'none', 'x']"));
    assert_string_equal(tn_text_str(&text), "[none, \"none\", x]");
}

TEST_ON(tn_arena *arena, a_default_is_read_as_it_would_stand_in_yaml)
{
    assert_int_equal(flow(arena, "~")->kind, TN_TREE_NULL);
    assert_string_equal(flow(arena, "12:30, x")->text, "12:30, x");
    assert_string_equal(flow(arena, "' '")->text, " ");
    assert_int_equal(flow(arena, "{a: '~'}")->first->kind, TN_TREE_SCALAR);
    assert_flow(flow(arena, "{ a : [ 1 , {b: ~} ] , c: [] }"), "{a: [1, {b: ~}], c: []}");
}
