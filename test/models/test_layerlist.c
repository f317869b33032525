/* test_layerlist.c - a list of layers that is wrong says where and how. */
#include "base/keys/record.h"
#include "config/tree.h"
#include "models/modelkit.h"
#include "support/test.h"

static void refuses(const char *list, const char *fault)
{
    kit k CLEANUP(kit_done);
    kit_init(&k, 3, 4, 1);
    bool good = kit_list(&k, list) && kit_build(&k);
    fail_if(good || strstr(tn_text_str(&k.diag.text), fault) == NULL, "%s\nwant: %s\ngot: %s", list,
            fault, tn_text_str(&k.diag.text));
}

#define INPUTS "{type: graph, inputs: {wide: {embed: all, dim: 1}, deep: {embed: all}}, "

TEST(faults_are_named)
{
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
    refuses(INPUTS "layers: [{name: h, dense: deep, units: 4}, "
                   "{name: a, fm: h, dim: 2, within_slot: true}], output: a}",
            "'within_slot' needs an embedding input, not 'h'");
    refuses(INPUTS "layers: [{name: a, ffm: deep, k: 3}], output: a}",
            "'ffm' needs 2 to 1024 slots with k numbers for each slot: slots * slots * k columns, "
            "but 'in.deep' has 12");
    refuses("{type: graph, inputs: {x: {embed: all, field_dim: 1366}}, "
            "layers: [{name: a, ffm: x}], output: a}",
            "input 'x' has 3 slots of 3 x 1366 floats, more than the 4096 of a key\n"
            "hint: 1365 for each slot fit (k of ffm); or list fewer slots, or take the model fwfm");
    refuses("{type: graph, inputs: {x: {embed: all, field_dim: 2, dim: 2}}, "
            "layers: [{name: a, ffm: x}], output: a}",
            "input 'x' has 'dim' and 'field_dim'");
    refuses("{type: graph, inputs: {x: {embed: s0}}, layers: [{name: a, fwfm: x}], output: a}",
            "'fwfm' pairs slots, and there is only one, 's0'");
    refuses(INPUTS "layers: [{name: h, dense: deep, units: 8}, "
                   "{name: a, ffm: h, k: 2, normalise: true}], output: a}",
            "'normalise' needs an embedding input, not 'h'");
    refuses("{type: graph, inputs: {x: {numeric: all, embed: all}}, layers: [{name: a, sum: x}], "
            "output: a}",
            "needs one of 'embed', 'numeric', 'cvm' and 'sequence'");
    refuses("{type: graph, inputs: {x: {}}, layers: [{name: a, sum: x}], output: a}",
            "needs one of 'embed', 'numeric', 'cvm' and 'sequence'");
}

#define CVM "{type: graph, inputs: {deep: {embed: [s0, s1]}, "

TEST(counts_stand_behind_all_segments)
{
    static const char *const form[] = {"", ", form: tensornet"};
    for (uint32_t i = 0; i < 2; i++) {
        kit k CLEANUP(kit_done);
        char list[300];
        (void)snprintf(list, sizeof list,
                       "{type: graph, inputs: {cvm: {cvm: s1%s}, deep: {embed: all}}, "
                       "layers: [{name: a, dense: [deep, cvm], units: 1}], output: a}",
                       form[i]);
        kit_init(&k, 2, 4, 0);
        assert_true(kit_list(&k, list) && kit_build(&k));
        const tn_record *without = tn_record_of(k.layout, 0);
        const tn_record *with = tn_record_of(k.layout, 1);
        assert_int_equal(without->counts.dim, 0);
        assert_int_equal(without->width, 4);
        assert_int_equal(with->counts.at, 4);
        assert_int_equal(with->counts.dim, TN_COUNTS);
        assert_int_equal(with->width, 4 + TN_COUNTS);
        assert_int_equal(with->n_segments, 1);
        assert_true(with->raw_show == (i == 1));
    }
}

TEST(counts_that_cannot_be_read_are_refused)
{
    refuses(CVM "c: {cvm: all}}, layers: [{name: a, dense: c, units: 1}], output: a}",
            "input 'c' reads counts of slot 's2', which no embedding input takes");
    refuses(CVM "c: {cvm: s0}, d: {cvm: s1}}, layers: [{name: a, dense: c, units: 1}], output: a}",
            "input 'd' is the second with 'cvm'");
    refuses(CVM "c: {cvm: s0, dim: 3}}, layers: [{name: a, dense: c, units: 1}], output: a}",
            "counts of input 'c' have no 'dim'");
    refuses("{type: graph, inputs: {deep: {embed: all, form: tensornet}}, "
            "layers: [{name: a, dense: deep, units: 1}], output: a}",
            "'form' of input 'deep' belongs to 'cvm'");
}

/* Models without numbers have no place for counts. */
TEST(a_model_that_reads_no_counts_is_refused)
{
    static const char *const models[] = {
        "{type: lr}", "{type: fm}",
        "{type: graph, inputs: {deep: {embed: all}}, layers: [{name: a, sum: deep}], output: a}"};
    for (uint32_t i = 0; i < 4; i++) {
        kit k CLEANUP(kit_done);
        kit_init(&k, 2, 4, 0);
        tn_model_slot slot[2] = {k.features.slot[0], k.features.slot[1]};
        slot[1].cvm = true;
        k.features.slot = slot;
        assert_true(kit_list(&k, i < 3 ? models[i] : "{type: dcn, hidden: [4]}") == (i == 3));
        assert_true((strstr(tn_text_str(&k.diag.text), "reads show and click") != NULL) == (i < 3));
    }
}

/* Each of these ended in an assertion. */
TEST(names_of_two_layers_may_not_meet)
{
    refuses(INPUTS "layers: [{name: a, mlp: deep, hidden: [4]}, {name: a.1, dense: a, units: 1}], "
                   "output: a.1}",
            "'a.1': two parameters, or a node and one, are called 'a.1.W'");
    refuses(INPUTS "layers: [{name: a, mlp: deep, hidden: [12]}, {name: a.1, dense: a, units: 12}, "
                   "{name: o, sum: a.1}], output: o}",
            "'a.1': two parameters, or a node and one, are called 'a.1.W'");
    refuses(INPUTS "layers: [{name: in.deep, sum: deep}], output: in.deep}",
            "'in.deep': two nodes are called 'in.deep'");
    refuses(INPUTS "layers: [{name: a, dense: deep, units: 1}, {name: a.matmul, sum: deep}], "
                   "output: a}",
            "two nodes are called 'a.matmul'");
    refuses(INPUTS "layers: [{name: d, dense: deep, units: 4, batch_norm: true}, "
                   "{name: d.bn, layer_norm: d}, {name: o, sum: d.bn}], output: o}",
            "are called 'd.bn.gamma'");
    refuses(INPUTS "layers: [{name: a, dense: deep, units: 1}, {name: o, bias: a, param: a.b}], "
                   "output: o}",
            "'o': two parameters, or a node and one, are called 'a.b'");
    refuses(INPUTS "layers: [{name: a, dense: deep, units: 1}, {name: o, bias: a, param: a.W}], "
                   "output: o}",
            "are called 'a.W'");
    refuses(INPUTS "layers: [{name: a, dense: deep, units: 1}, "
                   "{name: o, bias: a, param: a.matmul}], output: o}",
            "are called 'a.matmul'");
    refuses(INPUTS "layers: [{name: a, dense: deep, units: 1}, {name: o, bias: a, param: ''}], "
                   "output: o}",
            "'param' is a name of 1 to 199 bytes");
    refuses(INPUTS "layers: [{name: loss, sum: deep}], output: loss}",
            "the name 'loss' is that of the loss");
}

TEST(a_slot_stands_once_in_an_input)
{
    refuses("{type: graph, inputs: {x: {embed: [s0, s1, s0]}}, layers: [{name: a, sum: x}], "
            "output: a}",
            "slot 's0' stands twice in input 'x'");
}

/* `n` parts between two ends, each with its number for '#'. */
static void refuses_many(const char *head, const char *part, uint32_t n, const char *const tail[2])
{
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_text_adds(&text, head);
    for (uint32_t i = 0; i < n; i++) {
        for (const char *c = part; *c != '\0'; c++) {
            if (*c == '#') {
                tn_text_addf(&text, "%u", i);
            } else {
                tn_text_addc(&text, *c);
            }
        }
    }
    tn_text_adds(&text, tail[0]);
    refuses(tn_text_str(&text), tail[1]);
}

TEST(sizes_have_limits)
{
    refuses_many(INPUTS "layers: [", "{name: l#, cross: deep, layers: 64}, ", 40,
                 (const char *const[]){"{name: a, sum: deep}], output: a}",
                                       "a graph of more than 4096 nodes, at 'l"});
    refuses_many(
        INPUTS "layers: [{name: x, dense: deep, units: 65536}, {name: a, sum: [x", ", x", 16,
        (const char *const[]){"]}], output: a}", "inputs of 1114112 columns, more than 1048576"});
    refuses_many("{type: graph, inputs: {", "x", 169,
                 (const char *const[]){": {embed: all}}, layers: [], output: a}",
                                       "an input needs a name of 1 to 168 bytes"});
    refuses_many(INPUTS "layers: [{name: a, sum: deep}, {name: o, bias: a, param: ", "x", 200,
                 (const char *const[]){"}], output: o}", "'param' is a name of 1 to 199 bytes"});
    refuses(INPUTS "layers: [{name: a, mlp: deep, hidden: [2.5], units: 1}], output: a}",
            "'hidden' has a layer of 2.5 units, which is no whole number");
    refuses("{type: widedeep, hidden: [4, 2.5]}", "which is no whole number");
    refuses_many("{type: dcn, hidden: [1", ", 1", 64,
                 (const char *const[]){"]}", "'hidden' has 65 layers, more than 64"});
    refuses(INPUTS "layers: {a: {name: a, sum: wide}}, output: a}", "'layers' must be a list");
}

TEST(pairs_within_a_slot_need_sums)
{
    kit k CLEANUP(kit_done);
    kit_init(&k, 2, 4, 0);
    tn_model_slot slots[2] = {k.features.slot[0], k.features.slot[1]};
    slots[1].pool = TN_POOL_MEAN;
    k.features.slot = slots;
    assert_true(kit_list(&k, "{type: deepfm, hidden: [4], within_slot: true}"));
    assert_false(kit_build(&k));
    assert_non_null(
        strstr(tn_text_str(&k.diag.text), "needs 'pool: sum', which slot 's1' has not"));
}

TEST(wide_slots_and_lists_are_refused)
{
    kit k;
    kit_init(&k, 2, 4096, 0);
    tn_model_slot slots[2] = {k.features.slot[0], k.features.slot[1]};
    slots[0].pool = TN_POOL_CONCAT;
    slots[0].pool_k = 255;
    slots[1].pool = TN_POOL_CONCAT;
    slots[1].pool_k = 2;
    k.features.slot = slots;
    assert_true(kit_list(&k, "{type: graph, inputs: {deep: {embed: all}}, "
                             "layers: [{name: a, sum: deep}], output: a}"));
    assert_false(kit_build(&k));
    assert_non_null(strstr(tn_text_str(&k.diag.text), "input 'deep' has 1052672 columns"));
    kit_done(&k);

    kit_init(&k, 1, 4096, 0);
    slots[0] = k.features.slot[0];
    slots[0].pool = TN_POOL_CONCAT;
    slots[0].pool_k = 2;
    k.features.slot = slots;
    assert_true(kit_list(&k, "{type: fm}"));
    assert_false(kit_build(&k));
    assert_non_null(strstr(tn_text_str(&k.diag.text), "'fm' takes slots of at most 4096 columns"));
    kit_done(&k);
}

TEST(shared_groups_need_one_width)
{
    kit k CLEANUP(kit_done);
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
}

TEST(groups_with_equal_segments_share_a_record)
{
    kit k CLEANUP(kit_done);
    kit_init(&k, 3, 4, 0);
    assert_true(kit_list(&k, "{type: widedeep, hidden: [4], slots: {wide: [s0, s1]}}") &&
                kit_build(&k));
    assert_int_equal(k.layout->n_records, 2);
    assert_int_equal(k.layout->group[0].record, k.layout->group[1].record);
    assert_int_equal(tn_record_of(k.layout, 0)->width, 5);
    assert_int_equal(tn_record_of(k.layout, 2)->width, 4);
}

TEST(init_rules_are_read)
{
    kit k CLEANUP(kit_done);
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
}
