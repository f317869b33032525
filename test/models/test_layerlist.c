/* test_layerlist.c - a list of layers that is wrong says where and how. */
#include "models/modelkit.h"
#include "support/test.h"

#include <string.h>

static void refuses(const char *list, const char *fault)
{
    kit k;
    kit_init(&k, 3, 4, 1);
    bool good = kit_list(&k, list) && kit_build(&k);
    if (good || strstr(tn_text_str(&k.diag.text), fault) == NULL) {
        fail_msg("%s\nwant: %s\ngot: %s", list, fault, tn_text_str(&k.diag.text));
    }
    kit_done(&k);
}

#define INPUTS "{type: graph, inputs: {wide: {embed: all, dim: 1}, deep: {embed: all}}, "

static void faults_are_named(void **state)
{
    (void)state;
    refuses(INPUTS "layers: [{name: a, dense: dep, units: 1}], output: a}",
            "no input or layer 'dep' above this one (did you mean 'deep'?)");
    refuses(INPUTS "layers: [{name: a, dens: deep, units: 1}], output: a}",
            "expected a layer behind the name (did you mean 'dense'?)");
    refuses(INPUTS "layers: [{name: a, dense: deep, unit: 1}], output: a}", "unit");
    refuses(INPUTS "layers: [{name: a, dense: deep}], output: a}", "units");
    refuses(INPUTS "layers: [{name: a, dense: deep, units: 2}], output: a}",
            "the output 'a' has 2 columns, not 1");
    refuses(INPUTS "layers: [{name: deep, dense: wide, units: 1}], output: deep}",
            "two inputs or layers are called 'deep'");
    refuses(INPUTS "layers: [{name: a, add: [wide, deep]}], output: a}",
            "inputs of 'add' have 3 and 12 columns");
    refuses(INPUTS "layers: [{name: a, slice: deep, first: 10, cols: 5}], output: a}",
            "columns 10 to 14 of an input of 12");
    refuses(INPUTS "layers: [{name: a, mul: [wide, deep]}], output: a}", "inputs of 'mul'");
    refuses(INPUTS "layers: [{name: a, sum: wide}], output: b}", "no input or layer 'b'");
    refuses("{type: graph, inputs: {x: {embed: [s0, t1]}}, layers: [{name: a, sum: x}], output: a}",
            "no slot 't1' with keys (did you mean");
    refuses("{type: graph, inputs: {x: {numeric: all, embed: all}}, layers: [{name: a, sum: x}], "
            "output: a}",
            "needs one of 'embed' and 'numeric'");
    refuses("{type: graph, inputs: {x: {}}, layers: [{name: a, sum: x}], output: a}",
            "needs one of 'embed' and 'numeric'");
}

static void shared_groups_need_one_width(void **state)
{
    (void)state;
    kit k;
    kit_init(&k, 2, 4, 0);
    tn_model_slot slots[2] = {k.features.slot[0], k.features.slot[1]};
    slots[1].group = 0;
    slots[1].dim = 6;
    k.features.slot = slots;
    assert_true(kit_list(&k,
                         "{type: graph, inputs: {deep: {embed: all}}, layers: [{name: a, dense: "
                         "deep, units: 1}], output: a}"));
    assert_false(kit_build(&k));
    assert_non_null(strstr(tn_text_str(&k.diag.text), "that are 4 wide, not 6"));
    kit_done(&k);
}

static void groups_with_equal_segments_share_a_record(void **state)
{
    (void)state;
    kit k;
    kit_init(&k, 3, 4, 0);
    assert_true(kit_list(&k, "{type: widedeep, hidden: [4], slots: {wide: [s0, s1]}}") &&
                kit_build(&k));
    assert_int_equal(k.layout->n_records, 2);
    assert_int_equal(k.layout->group[0].record, k.layout->group[1].record);
    assert_int_equal(tn_record_of(k.layout, 0)->width, 5);
    assert_int_equal(tn_record_of(k.layout, 2)->width, 4);
    kit_done(&k);
}

static void init_rules_are_read(void **state)
{
    (void)state;
    kit k;
    kit_init(&k, 1, 1, 0);
    tn_init init;
    assert_true(kit_list(&k, "{type: lr, wide_init: {normal: [0, 1e-4]}}"));
    const tn_tree *input = tn_tree_at(k.list, "inputs.wide.init");
    assert_true(tn_init_read(input, &k.diag, &init));
    assert_int_equal(init.kind, TN_INIT_NORMAL);
    assert_true(init.a == 0 && init.b == 1e-4);
    tn_origin at = {.source = "test"};
    assert_true(tn_init_read(tn_tree_scalar(k.arena, "0.25", at), &k.diag, &init));
    assert_true(init.kind == TN_INIT_CONSTANT && init.a == 0.25);
    assert_false(tn_init_read(tn_tree_scalar(k.arena, "normal", at), &k.diag, &init));
    assert_false(tn_init_read(tn_tree_scalar(k.arena, "glorot", at), &k.diag, &init));
    kit_done(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_are_named),
        cmocka_unit_test(shared_groups_need_one_width),
        cmocka_unit_test(groups_with_equal_segments_share_a_record),
        cmocka_unit_test(init_rules_are_read),
    };
    return cmocka_run_group_tests_name("models/layerlist", tests, NULL, NULL);
}
