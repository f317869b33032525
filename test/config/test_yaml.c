/* test_yaml.c - what YAML becomes, where it stood, and what is refused. */
#include "config/diag.h"
#include "config/tree.h"
#include "config/yaml.h"
#include "support/test.h"

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

static tn_tree *read_bytes(fixture *f, const char *text, size_t size)
{
    tn_diag_done(&f->diag);
    const tn_yaml_in in = {text, size, "a.yaml", true, NULL, 0};
    return tn_yaml_read(f->arena, &f->diag, &in);
}

static tn_tree *read(fixture *f, const char *text)
{
    return read_bytes(f, text, strlen(text));
}

static void assert_reads(fixture *f, const char *text, const char *want)
{
    const tn_tree *tree = read(f, text);
    assert_string_equal(tn_text_str(&f->diag.text), "");
    assert_non_null(tree);
    tn_text flow CLEANUP(tn_text_done) = {0};
    tn_tree_print_flow(&flow, tree);
    assert_string_equal(tn_text_str(&flow), want);
}

static void assert_refused(fixture *f, const char *text, const char *want)
{
    assert_null(read(f, text));
    assert_int_equal(f->diag.n_errors, 1);
    assert_says(tn_text_str(&f->diag.text), want);
}

TEST(maps_lists_and_texts_are_read)
{
    assert_reads(*state, "a:\n  b: [1, {c: d}]\n  e:\n  - f\n  - g: h\n",
                 "{a: {b: [1, {c: d}], e: [f, {g: h}]}}");
    assert_reads(*state, "a: 'x y'\nb: \"q\\n\"\nc: |\n  l1\n  l2\n",
                 "{a: x y, b: \"q\\n\", c: \"l1\\nl2\\n\"}");
}

TEST_ON(fixture *f, d8_scalars_are_read_by_declared_type)
{
    const tn_tree *tree = read(f, "{a: no, b: 1e-3, c: 010, d: 12:30:45, e: null, f: 0x1F, g: y}");
    static const char *const want[] = {"no", "1e-3", "010", "12:30:45", "null", "0x1F", "y"};
    const tn_tree *item = tree->first;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++, item = item->next) {
        assert_int_equal(item->kind, TN_TREE_SCALAR);
        assert_string_equal(item->text, want[i]);
    }
}

TEST_ON(fixture *f, only_a_bare_tilde_or_nothing_is_null)
{
    const tn_tree *tree = read(f, "a: ~\nb:\nc: '~'\nd: ''\n");
    assert_true(tn_tree_is_null(tn_tree_get(tree, "a")));
    assert_true(tn_tree_is_null(tn_tree_get(tree, "b")));
    assert_string_equal(tn_tree_get(tree, "c")->text, "~");
    assert_true(tn_tree_get(tree, "c")->quoted);
    assert_string_equal(tn_tree_get(tree, "d")->text, "");
    assert_int_equal(read(f, "")->kind, TN_TREE_NULL);
    assert_int_equal(read(f, "# only a comment\n")->kind, TN_TREE_NULL);
}

TEST_ON(fixture *f, nodes_know_where_they_stand)
{
    const tn_tree *tree = read(f, "a: 1\nb:\r\n  \"\xC3\xA4\": [x,  y]\n");
    const tn_tree *list = tn_tree_get(tree, "b")->first;
    assert_int_equal(list->key_at.line, 3);
    assert_int_equal(list->key_at.col, 3);
    assert_int_equal(list->at.col, 9); /* bytes, and the key has one character of two */
    assert_int_equal(list->last->at.col, 14);
    assert_string_equal(list->at.text, "  \"\xC3\xA4\": [x,  y]");
    assert_string_equal(list->at.source, "a.yaml");
}

TEST_ON(fixture *f, a_byte_order_mark_is_not_text)
{
    const tn_tree *tree = read(f, "\xEF\xBB\xBF"
                                  "a: 1");
    assert_int_equal(tree->first->key_at.col, 1);
    assert_string_equal(tree->first->key, "a");
}

TEST(aliases_are_copies)
{
    assert_reads(*state, "a: &x {b: 1}\nc: *x\nd: [&y 2, *y]\n",
                 "{a: {b: 1}, c: {b: 1}, d: [2, 2]}");
}

TEST_ON(fixture *f, a_value_of_the_command_line_keeps_its_place)
{
    const tn_yaml_in in = {"[1, 2", 5, "command line", false, "model.hidden=[1, 2", 14};
    assert_null(tn_yaml_read(f->arena, &f->diag, &in));
    assert_non_null(strstr(tn_text_str(&f->diag.text), "command line: error: not YAML: "));
    assert_non_null(strstr(tn_text_str(&f->diag.text), "\nmodel.hidden=[1, 2\n"));
    const tn_yaml_in good = {"[1, 2]", 6, "command line", false, "model.hidden=[1, 2]", 14};
    const tn_tree *tree = tn_yaml_read(f->arena, &f->diag, &good);
    assert_int_equal(tree->last->at.line, 0);
    assert_int_equal(tree->last->at.col, 18);
}

TEST_ON(fixture *f, duplicate_keys_are_all_reported)
{
    const tn_tree *tree = read(f, "a: 1\nb: 2\na: [1, 2]\nb: 4\n");
    assert_int_equal(f->diag.n_errors, 2);
    assert_string_equal(tn_tree_get(tree, "a")->text, "1");
    assert_int_equal(tn_tree_count(tree), 2);
    assert_non_null(strstr(tn_text_str(&f->diag.text), "a.yaml:3:1: error: duplicate key 'a'\n"
                                                       "a: [1, 2]\n"
                                                       "^\n"
                                                       "hint: the first one is in line 1\n"));
}

TEST_ON(fixture *f, what_a_configuration_does_not_need_is_refused)
{
    assert_refused(f, "a: !!int 3", "a.yaml:1:4: error: tags are not supported");
    assert_refused(f, "a: !x [3]", "tags are not supported");
    assert_refused(f, "<<: {a: 1}", "merge keys are not supported");
    assert_refused(f, "[a]: 1", "a key must be a single word");
    assert_refused(f, "? {a: 1}\n: 1", "a key must be a single word");
    assert_refused(f, "a: 1\n---\nb: 2\n", "more than one document");
    assert_refused(f, "%YAML 1.1\n---\na: 1\n", "directives are not supported");
    assert_refused(f, "a: \"x\\0y\"", "a text cannot hold a NUL");
    assert_refused(f, "a: *b", "unknown anchor 'b'");
    assert_refused(f, "a: &x [*x]", "unknown anchor 'x'");
    assert_refused(f, "&k a: 1", "a key cannot have an anchor");
}

TEST_ON(fixture *f, a_blank_that_is_missing_behind_a_colon_is_named_with_its_line)
{
    static const char hint[] = "\nhint: a blank is missing behind ':' in line 2\n";
    assert_refused(f, "a:\n  format:csv\n  b: 1\n", hint);
    assert_refused(f, "a: 1\nmodel:lr\n", hint);
    assert_refused(f, "a: 1\nmodel:lr\nb: 2\n", hint);
    assert_refused(f, "a:\n  - http://x\n   b: 1\n", "error: not YAML: ");
    assert_null(strstr(tn_text_str(&f->diag.text), "a blank is missing"));
}

TEST_ON(fixture *f, broken_text_is_refused_with_its_place)
{
    assert_refused(f, "a: [1, 2\nb: 3\n", "a.yaml:2:2: error: not YAML: ");
    assert_refused(f, "a: 1\n b: 2\n", "a.yaml:2:3: error: not YAML: mapping values are not");
    assert_refused(f, "a: \"x\n", "error: not YAML: ");
    assert_refused(f, "a: 1\nb: \xFF\xFE\n", "a.yaml:2:4: error: not a text in UTF-8");
    assert_refused(f, "a: 1\n\tb: 2\n", "error: not YAML: ");
    assert_null(read_bytes(f, "a: \0b", 5));
    assert_int_equal(f->diag.n_errors, 1);
}

/* `n` times `piece`, as one text. */
static char *repeated(const char *piece, size_t n)
{
    size_t size = strlen(piece);
    char *text = test_malloc(n * size + 1);
    for (size_t i = 0; i < n; i++) {
        memcpy(text + i * size, piece, size);
    }
    text[n * size] = '\0';
    return text;
}

static void assert_repeated_refused(fixture *f, const char *piece, size_t n, const char *want)
{
    char *text = repeated(piece, n);
    assert_refused(f, text, want);
    test_free(text);
}

TEST(nested_flow_brackets_stop_at_the_limit)
{
    /* 18 s of libyaml's time when all events are taken */
    assert_repeated_refused(*state, "[", 100000, "nested more than 64 deep");
    assert_repeated_refused(*state, "{a: ", 100000, "nested more than 64 deep");
    assert_repeated_refused(*state, "- ", 100000, "nested more than 64 deep");
    char *text = repeated("[", TN_YAML_DEPTH_MAX + TN_YAML_DEPTH_MAX);
    memset(text + TN_YAML_DEPTH_MAX, ']', TN_YAML_DEPTH_MAX);
    assert_non_null(read(*state, text));
    test_free(text);
}

TEST(a_billion_laughs_end_early)
{
    char text[2000] = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
    for (int i = 1; i < 10; i++) {
        char line[100];
        (void)snprintf(line, sizeof line, "a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i, i,
                       i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
        memcpy(text + strlen(text), line, strlen(line) + 1);
    }
    assert_refused(*state, text, "aliases make more than 10000 values");
}

TEST(aliases_cannot_nest_deeper_than_the_limit)
{
    char text[8000] = "a0: &a0 [x]\n";
    for (int i = 1; i < 70; i++) {
        char line[40];
        (void)snprintf(line, sizeof line, "a%d: &a%d [*a%d]\n", i, i, i - 1);
        memcpy(text + strlen(text), line, strlen(line) + 1);
    }
    assert_refused(*state, text, "nested more than 64 deep");
}

TEST_ON(fixture *f, everything_that_grows_has_a_limit)
{
    assert_repeated_refused(f, "- a\n", 100001, "more than 100000 values");
    assert_repeated_refused(f, "- &a x\n", 1001, "more than 1000 anchors");
    assert_repeated_refused(f, "# a comment\n", 100000, "1200000 bytes of YAML, more than 1048576");
    char *keys = test_malloc(2001 * 8 + 1);
    for (size_t i = 0; i < 2001; i++) {
        (void)snprintf(keys + i * 8, 9, "k%04zu: \n", i);
    }
    assert_refused(f, keys, "more than 2000 keys in one map");
    test_free(keys);
    char *longest = repeated("k", 300);
    longest[298] = ':';
    longest[299] = ' ';
    assert_refused(f, longest, "a key of more than 255 bytes");
    test_free(longest);
}

TEST_ON(fixture *f, what_is_printed_reads_back_equal)
{
    static const char *const texts[] = {
        ("a: [~, '~', '', \"\\t\", ' x ', 'a: b', '- c', '#', "
         "'\xC3\xA4', \"\\u2028\\u0085\\ufeff\"]"),
        "a:\n- {b: [1, [2, {c: {}}]], d: []}\n- - x\n  - {y: ~}\n",
        "'key: 1': {'~': 1, '-': 2, '<<': 3, '': 4}\n",
        "label: none\nother: 'none'\n",
        "a: |\n  # no comment\n\n   indented\nb: >\n  folded\n  text\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const tn_tree *tree = read(f, texts[i]);
        assert_non_null(tree);
        tn_text one CLEANUP(tn_text_done) = {0};
        tn_text two CLEANUP(tn_text_done) = {0};
        tn_tree_print_flow(&one, tree);
        const tn_tree *again = read_bytes(f, tn_text_str(&one), one.size);
        assert_string_equal(tn_text_str(&f->diag.text), "");
        tn_tree_print_flow(&two, again);
        assert_string_equal(tn_text_str(&one), tn_text_str(&two));
    }
}

TEST_ON(fixture *f, a_missing_file_is_named)
{
    assert_null(tn_yaml_read_file(f->arena, &f->diag, "no/such/file.yaml"));
    assert_non_null(strstr(tn_text_str(&f->diag.text), "'no/such/file.yaml'"));
}
