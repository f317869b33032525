/* test_fieldtext.c - what option tables say about themselves. */
#include "base/codec/json.h"
#include "config/field.h"
#include "config/tree.h"
#include "support/test.h"

typedef struct rule_opts {
    double lr;
} rule_opts;

static const tn_field rule_fields[] = {
    TN_FIELD_F64(rule_opts, lr, "1e-3", 0, 1e3, "", "learning rate"),
    TN_FIELD_END,
};

static const tn_choice adam = {.name = "adam",
                               .help = "moments of the gradient",
                               .fields = rule_fields,
                               .size = sizeof(rule_opts)};
static const tn_choice none = {.name = "none"};
static const tn_choice *const rules[] = {&adam, &none, NULL};

typedef struct shared_opts {
    double l2;
} shared_opts;

static const tn_field shared_fields[] = {
    TN_FIELD_F64(shared_opts, l2, "0", 0, 1, "", "weight decay"),
    TN_FIELD_END,
};

typedef struct slot_opts {
    const char *name;
    uint32_t dim;
} slot_opts;

static const tn_field slot_fields[] = {
    TN_FIELD_STR(slot_opts, name, NULL, "name"),
    TN_FIELD_U32(slot_opts, dim, "~", 1, 1024, "floats", "width"),
    TN_FIELD_END,
};

typedef struct train_opts {
    uint32_t threads;
    tn_variant optimizer;
    const tn_tree *layers;
    uint32_t gemm;
} train_opts;

static const char *const all[] = {"all", NULL};
static const char *const gemms[] = {"auto", "a|b", "false", NULL};

static const tn_field train_fields[] = {
    TN_FIELD_U32W(train_opts, threads, "all", 1, 1024, "threads", all, "that work"),
    TN_FIELD_VARIANT_WITH(train_opts, optimizer, "adam", rules, shared_opts, shared_fields, "rule"),
    TN_FIELD_TREE(train_opts, layers, "~", "layers"),
    TN_FIELD_CHOICE(train_opts, gemm, "auto", gemms, "library | of products"),
    TN_FIELD_END,
};

typedef struct all_opts {
    train_opts train;
    tn_tables slots;
    const char *dir;
} all_opts;

static const tn_field fields[] = {
    TN_FIELD_TABLE(all_opts, train, train_opts, train_fields, "how it learns"),
    TN_FIELD_TABLES(all_opts, slots, slot_opts, "~", slot_fields, "what it sees"),
    TN_FIELD_STR(all_opts, dir, "~", "folder"),
    TN_FIELD_END,
};

SET_UP
{
    *state = tn_arena_new(1 << 14);
}

TEAR_DOWN
{
    tn_arena_free(*state);
}

static void assert_printed(const tn_tree *tree, const tn_print_opts *opts, const char *want)
{
    tn_text out CLEANUP(tn_text_done) = {0};
    tn_fields_print(&out, fields, tree, opts);
    assert_string_equal(tn_text_str(&out), want);
}

TEST(every_option_is_printed_with_value_or_default)
{
    const tn_print_opts plain = {0};
    assert_printed(NULL, &plain,
                   "train:\n"
                   "  threads: all\n"
                   "  optimizer:\n"
                   "    type: adam\n"
                   "    l2: 0\n"
                   "    lr: 1e-3\n"
                   "  layers: ~\n"
                   "  gemm: auto\n"
                   "slots: ~\n"
                   "dir: ~\n");
    const tn_tree *tree =
        tn_tree_read_flow(*state,
                          "{train: {optimizer: none, layers: [{a: 1}, {b: [x, y]}]}, "
                          "slots: [u, {dim: ~, name: v}, {dim: 4, name: w}]}",
                          "t");
    assert_printed(tree, &plain,
                   "train:\n"
                   "  threads: all\n"
                   "  optimizer:\n"
                   "    type: none\n"
                   "    l2: 0\n"
                   "  layers:\n"
                   "    - {a: 1}\n"
                   "    - {b: [x, y]}\n"
                   "  gemm: auto\n"
                   "slots:\n"
                   "  - {name: u}\n"
                   "  - {name: v}\n"
                   "  - {name: w, dim: 4}\n"
                   "dir: ~\n");
}

TEST(members_of_a_tree_have_a_line_each)
{
    const tn_tree *tree =
        tn_tree_read_flow(*state, "{train: {layers: {a: {x: 1}, 'b c': {y: [2, 3]}}}}", "t.yaml");
    tn_text out CLEANUP(tn_text_done) = {0};
    tn_fields_print(&out, fields, tree, &(tn_print_opts){.sources = true});
    const char *text = strstr(tn_text_str(&out), "  layers:\n");
    assert_non_null(text);
    assert_memory_equal(text, "  layers:\n    a: {x: 1}       ", 29);
    assert_non_null(strstr(text, "\n    b c: {y: [2, 3]}     "));
    assert_non_null(strstr(text, " # t.yaml\n  gemm: auto"));
}

TEST(sources_stand_behind_the_values)
{
    tn_tree *tree =
        tn_tree_read_flow(*state, "{train: {threads: 4}, dir: x, slots: [a]}", "command line");
    tree->last->first->at = (tn_origin){.source = "a.yaml", .line = 7};
    const tn_print_opts sources = {.sources = true};
    tn_text out CLEANUP(tn_text_done) = {0};
    tn_fields_print(&out, fields, tree, &sources);
    const char *text = tn_text_str(&out);
    assert_non_null(
        strstr(text, "\n  threads: 4                                     # command line\n"));
    assert_non_null(strstr(text, "# default\n"));
    assert_non_null(strstr(text, "\n  - {name: a}  "));
    assert_non_null(strstr(text, " # a.yaml:7\n"));
    assert_null(strstr(text, "train:  "));
}

TEST(paths_can_be_left_out)
{
    static const char *const without[] = {"train.optimizer", "dir", "train.gemm", NULL};
    const tn_print_opts opts = {.without = without};
    assert_printed(NULL, &opts,
                   "train:\n"
                   "  threads: all\n"
                   "  layers: ~\n"
                   "slots: ~\n");
}

TEST(the_schema_is_json_with_every_option)
{
    tn_text out CLEANUP(tn_text_done) = {0};
    tn_fields_schema(&out, fields, "a test");
    const tn_json *schema = NULL;
    assert_int_equal(tn_json_parse(&schema, out.data, out.size, *state, "schema", NULL), TN_OK);
    const tn_json *properties = tn_json_get(schema, "properties");
    assert_non_null(tn_json_get(properties, "include"));
    assert_non_null(tn_json_get(properties, "slots"));
    const tn_json *train = tn_json_get(tn_json_get(properties, "train"), "anyOf")->first;
    const tn_json *threads = tn_json_get(tn_json_get(train, "properties"), "threads");
    assert_string_equal(tn_json_as_str(tn_json_get(threads, "description")), "that work");
    assert_string_equal(tn_json_as_str(tn_json_get(threads, "default")), "all");
    const tn_json *count = tn_json_get(threads, "anyOf")->first;
    assert_true(tn_json_get(count, "maximum")->number == 1024);
}

TEST(markdown_has_a_row_for_every_option_and_choice)
{
    tn_text out CLEANUP(tn_text_done) = {0};
    tn_fields_markdown(&out, fields);
    const char *text = tn_text_str(&out);
    static const char *const want[] = {
        "\n## `train`\n\nhow it learns\n",
        "| `train.threads` | count or `all` | `all` | 1 .. 1024 threads | that work |\n",
        "| `train.optimizer` | one of `adam` `none` | `adam` |  | rule |\n",
        "| `train.optimizer.l2` | number | `0` | 0 .. 1 | weight decay |\n",
        "| library \\| of products |\n",
        "\n### `train.optimizer: {type: adam}`\n\nmoments of the gradient\n",
        "| `train.optimizer.lr` | number | `1e-3` | 0 .. 1000 | learning rate |\n",
        "| `slots.NAME.name` | text | required |  | name |\n",
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        assert_says(text, want[i]);
    }
}

TEST(help_has_a_line_for_every_option)
{
    tn_text out CLEANUP(tn_text_done) = {0};
    tn_fields_help(&out, fields);
    assert_non_null(strstr(tn_text_str(&out), "\ntrain: how it learns\n"
                                              "  train.threads                         that work; "
                                              "count or all; default all\n"));
    assert_non_null(strstr(tn_text_str(&out), "name; text; required\n"));
}

TEST(paths_are_those_that_an_override_may_name)
{
    tn_text out CLEANUP(tn_text_done) = {0};
    tn_fields_paths(&out, fields);
    assert_string_equal(tn_text_str(&out), "train.threads\ntrain.optimizer\ntrain.optimizer.l2\n"
                                           "train.optimizer.lr\ntrain.layers\ntrain.gemm\nslots\n"
                                           "dir\n");
}
