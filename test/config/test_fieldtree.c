/* test_fieldtree.c - layers of a configuration on top of each other. */
#include "config/diag.h"
#include "config/field.h"
#include "config/fieldtree.h"
#include "config/tree.h"
#include "support/test.h"

typedef struct rule_opts {
    double lr, beta1;
} rule_opts;

static const tn_field adam_fields[] = {
    TN_FIELD_F64(rule_opts, lr, "1e-3", 0, 1e3, "", "h"),
    TN_FIELD_F64(rule_opts, beta1, "0.9", 0, 1, "", "h"),
    TN_FIELD_END,
};

static const tn_field sgd_fields[] = {
    TN_FIELD_F64(rule_opts, lr, "0.1", 0, 1e3, "", "h"),
    TN_FIELD_END,
};

static const tn_choice adam = {.name = "adam", .fields = adam_fields, .size = sizeof(rule_opts)};
static const tn_choice sgd = {.name = "sgd", .fields = sgd_fields, .size = sizeof(rule_opts)};
static const tn_choice *const optimizers[] = {&adam, &sgd, NULL};

typedef struct common_opts {
    double l2;
} common_opts;

static const tn_field common_fields[] = {
    TN_FIELD_F64(common_opts, l2, "0", 0, 1, "", "h"),
    TN_FIELD_END,
};

typedef struct slot_opts {
    const char *name;
    uint32_t dim;
    const tn_tree *rule;
} slot_opts;

static const tn_field slot_fields[] = {
    TN_FIELD_STR(slot_opts, name, NULL, "h"),
    TN_FIELD_U32(slot_opts, dim, "~", 1, 1024, "floats", "h"),
    TN_FIELD_TREE_OF(slot_opts, rule, "~", "type", "h"),
    TN_FIELD_END,
};

typedef struct stop_opts {
    const char *monitor;
    uint32_t patience;
} stop_opts;

static const tn_field stop_fields[] = {
    TN_FIELD_STR(stop_opts, monitor, NULL, "h"),
    TN_FIELD_U32(stop_opts, patience, "2", 0, 100, "", "h"),
    TN_FIELD_END,
};

typedef struct all_opts {
    stop_opts stop;
    tn_tables slots;
    tn_variant optimizer, model;
    const tn_tree *label, *init, *rules;
} all_opts;

static const tn_field fields[] = {
    TN_FIELD_TABLE(all_opts, stop, stop_opts, stop_fields, "h"),
    TN_FIELD_TABLES(all_opts, slots, slot_opts, "[]", slot_fields, "h"),
    TN_FIELD_VARIANT(all_opts, optimizer, "adam", optimizers, "h"),
    TN_FIELD_VARIANT_WITH(all_opts, model, "adam", optimizers, common_opts, common_fields, "h"),
    TN_FIELD_TREE_OF(all_opts, label, "{column: label}", "column", "h"),
    TN_FIELD_TREE_ONE(all_opts, init, "{uniform: [-1, 1]}", "h"),
    TN_FIELD_TREE_OF(all_opts, rules, "~", "type", "h"),
    TN_FIELD_END,
};

typedef struct bound {
    tn_arena *arena;
    tn_diag diag;
} bound;

SET_UP
{
    static bound b;
    memset(&b, 0, sizeof b);
    b.arena = tn_arena_new(1 << 14);
    *state = &b;
}

TEAR_DOWN
{
    bound *b = *state;
    tn_diag_done(&b->diag);
    tn_arena_free(b->arena);
}

static void assert_merged(bound *b, const char *under, const char *over, const char *want)
{
    const tn_binder binder = {.arena = b->arena, .diag = &b->diag};
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_tree_print_flow(&text,
                       tn_fields_merge(&binder, fields, tn_tree_read_flow(b->arena, under, "u"),
                                       tn_tree_read_flow(b->arena, over, "o")));
    assert_string_equal(tn_text_str(&text), want);
}

TEST(merging_unfolds_shorthands)
{
    assert_merged(*state, "{optimizer: adam}", "{optimizer: {lr: 1}}",
                  "{optimizer: {type: adam, lr: 1}}");
    assert_merged(*state, "{stop: {patience: 3}}", "{stop: auc}",
                  "{stop: {patience: 3, monitor: auc}}");
}

TEST(a_rule_of_another_type_begins_anew)
{
    assert_merged(*state, "{optimizer: {type: adam, lr: 2, beta1: 1}}", "{optimizer: sgd}",
                  "{optimizer: {type: sgd}}");
    assert_merged(*state, "{optimizer: {type: adam, lr: 2}}", "{optimizer: {type: sgd, lr: 3}}",
                  "{optimizer: {type: sgd, lr: 3}}");
    assert_merged(*state, "{optimizer: {type: adam, lr: 2}}", "{optimizer: adam}",
                  "{optimizer: {type: adam, lr: 2}}");
    assert_merged(*state, "{optimizer: {beta1: 1}}", "{optimizer: sgd}",
                  "{optimizer: {type: sgd}}");
    assert_merged(*state, "{optimizer: {type: adam, typo: 1}}", "{optimizer: sgd}",
                  "{optimizer: {type: sgd, typo: 1}}");
}

TEST(choices_with_shared_options_keep_what_the_new_one_has_too)
{
    assert_merged(*state, "{model: {type: adam, lr: 2, beta1: 1, l2: 1}}", "{model: sgd}",
                  "{model: {type: sgd, lr: 2, l2: 1}}");
}

TEST(a_tree_of_rules_begins_anew_where_a_type_changes)
{
    assert_merged(*state, "{rules: {type: adam, lr: 2}}", "{rules: {type: sgd}}",
                  "{rules: {type: sgd}}");
    assert_merged(*state, "{rules: {type: adam, lr: 2}}", "{rules: {type: adam, beta1: 1}}",
                  "{rules: {type: adam, lr: 2, beta1: 1}}");
    assert_merged(*state, "{rules: {lr: 2}}", "{rules: {beta1: 1}}", "{rules: {lr: 2, beta1: 1}}");
    assert_merged(*state, "{rules: {wide: {type: adam, lr: 2}, deep: {type: adam, lr: 3}}}",
                  "{rules: {wide: {type: sgd}}}",
                  "{rules: {wide: {type: sgd}, deep: {type: adam, lr: 3}}}");
    assert_merged(*state, "{rules: {wide: {type: adam, lr: 2}, deep: sgd}}",
                  "{rules: {wide: sgd, deep: {lr: 4}}}",
                  "{rules: {wide: sgd, deep: {type: sgd, lr: 4}}}");
    assert_merged(*state, "{rules: {wide: adam, deep: sgd}}", "{rules: {type: sgd}}",
                  "{rules: {type: sgd}}");
    assert_merged(*state, "{rules: {wide: ~, deep: [1]}}", "{rules: {wide: {lr: 1}, deep: adam}}",
                  "{rules: {wide: {lr: 1}, deep: adam}}");
}

static void assert_joined(bound *b, const char *first, const char *second, const char *want)
{
    const tn_binder binder = {.arena = b->arena, .diag = &b->diag};
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_tree_print_flow(&text,
                       tn_fields_join(&binder, fields, tn_tree_read_flow(b->arena, first, "1"),
                                      tn_tree_read_flow(b->arena, second, "2")));
    assert_string_equal(tn_text_str(&text), want);
}

TEST(pieces_of_one_layer_have_no_order)
{
    assert_joined(*state, "{optimizer: {lr: 2}}", "{optimizer: sgd}",
                  "{optimizer: {lr: 2, type: sgd}}");
    assert_joined(*state, "{optimizer: sgd}", "{optimizer: {lr: 2}}",
                  "{optimizer: {type: sgd, lr: 2}}");
    assert_joined(*state, "{optimizer: {type: adam, lr: 2}}", "{optimizer: sgd}",
                  "{optimizer: {type: sgd}}");
    assert_joined(*state, "{rules: {lr: 2}}", "{rules: {type: sgd}}",
                  "{rules: {lr: 2, type: sgd}}");
    assert_joined(*state, "{rules: {wide: {lr: 2}}}", "{rules: {wide: {type: sgd}}}",
                  "{rules: {wide: {lr: 2, type: sgd}}}");
    assert_joined(*state, "{rules: {wide: sgd}}", "{rules: {wide: {lr: 2}}}",
                  "{rules: {wide: {type: sgd, lr: 2}}}");
    assert_joined(*state, "{slots: {C1: {rule: sgd}}}", "{slots: {C1: {rule: {lr: 2}}}}",
                  "{slots: {C1: {rule: {type: sgd, lr: 2}}}}");
    assert_joined(*state, "{slots: [C1]}", "{slots: {C1: {dim: 2}}}",
                  "{slots: [{name: C1, dim: 2}]}");
}

TEST(trees_merge_as_their_rows_say)
{
    assert_merged(*state, "{init: {normal: [0, 1]}}", "{init: {uniform: [0, 1]}}",
                  "{init: {uniform: [0, 1]}}");
    assert_merged(*state, "{label: click}", "{label: {threshold: 3}}",
                  "{label: {column: click, threshold: 3}}");
    assert_merged(*state, "{label: {threshold: 3}}", "{label: {column: a}}",
                  "{label: {column: a}}");
    assert_merged(*state, "{label: {column: a, threshold: 3}}", "{label: b}", "{label: b}");
}

TEST_ON(bound *b, a_map_over_a_list_of_tables_reaches_items_by_name)
{
    assert_merged(b, "{slots: [C1, {name: C2, dim: 8}]}", "{slots: {C1: {dim: 4}, c2: {dim: 5}}}",
                  "{slots: [{name: C1, dim: 4}, {name: C2, dim: 5}]}");
    assert_int_equal(b->diag.n_errors, 0);
    assert_merged(b, "{slots: [C1, C2]}", "{slots: {C3: {dim: 4}}}", "{slots: [C1, C2]}");
    assert_non_null(strstr(tn_text_str(&b->diag.text), "unknown name in 'slots': 'C3' (did you "));
    assert_merged(b, "{slots: [C1, C2]}", "{slots: [C3]}", "{slots: [C3]}");
}
