/* test_model.c - every model writes a list of layers that has the published number of parameters.
 */
#include "config/tree.h"
#include "models/modelkit.h"
#include "support/test.h"

static uint64_t dense_params(uint32_t slots, uint32_t dim, const char *model)
{
    kit k CLEANUP(kit_done);
    kit_init(&k, slots, dim, 0);
    fail_if(!kit_list(&k, model) || !kit_build(&k), "%s", tn_text_str(&k.diag.text));
    uint64_t n = tn_params_trained(k.params);
    return n;
}

TEST(v14_tensornet_presets_have_their_parameters)
{
    assert_int_equal(dense_params(4, 8, "{type: widedeep, hidden: [512, 256, 256], head: concat}"),
                     214277);
    assert_int_equal(dense_params(4, 8, "{type: deepfm, hidden: [512, 256, 256], head: concat}"),
                     214278);
    assert_int_equal(dense_params(4, 8, "{type: dcn, hidden: [512, 256, 256], layers: 3}"), 214497);
}

TEST(v14_bars_models_have_their_parameters)
{
    const uint64_t ids = 5389; /* of Frappe */
    const char *deep = "hidden: [400, 400, 400], batch_norm: true}";
    char model[160];
    assert_int_equal(dense_params(10, 10, "{type: lr}") + ids, 5390);
    assert_int_equal(dense_params(10, 10, "{type: fm}") + 11 * ids, 59280);
    (void)snprintf(model, sizeof model, "{type: widedeep, %s", deep);
    assert_int_equal(dense_params(10, 10, model) + 11 * ids, 423280);
    (void)snprintf(model, sizeof model, "{type: deepfm, %s", deep);
    assert_int_equal(dense_params(10, 10, model) + 11 * ids, 423280);
    (void)snprintf(model, sizeof model, "{type: dcn, layers: 3, %s", deep);
    assert_int_equal(dense_params(10, 10, model) + 10 * ids, 418591);
    (void)snprintf(model, sizeof model, "{type: dcnv2, layers: 4, %s", deep);
    assert_int_equal(dense_params(10, 10, model) + 10 * ids, 458391);
}

/* What the logs of the open CTR benchmark print for its Frappe, whose ids are 5389 in the models of
 * FuxiCTR 1 and 5399 in those of FuxiCTR 2. FinalMLP's vectors of its contexts, 956 users and 4084
 * items, are its own; its two biases of the fusion, which are added, are one here. */
TEST(newer_bars_models_have_their_published_parameters)
{
    const uint64_t ids = 5389;
    const uint64_t ids2 = 5399;
    const char *deep = "hidden: [400, 400, 400]";
    char model[200];
    (void)snprintf(model, sizeof model, "{type: nfm, %s}", deep);
    assert_int_equal(dense_params(10, 10, model) + 11 * ids, 384880);
    (void)snprintf(model, sizeof model, "{type: ipnn, %s}", deep);
    assert_int_equal(dense_params(10, 10, model) + 10 * ids, 433491);
    (void)snprintf(model, sizeof model, "{type: dlrm, %s, batch_norm: true, interaction: cat}",
                   deep);
    assert_int_equal(dense_params(10, 10, model) + 10 * ids, 417891);
    (void)snprintf(model, sizeof model, "{type: masknet, %s, blocks: 3, block_units: 50}", deep);
    assert_int_equal(dense_params(10, 10, model) + 10 * ids, 571691);
    assert_int_equal(
        dense_params(10, 10, "{type: finalnet, hidden: [400, 400], batch_norm: true}") + 10 * ids2,
        256791);
    assert_int_equal(
        dense_params(10, 10,
                     "{type: finalmlp, hidden: [400], hidden2: [100], heads: 5, batch_norm: true, "
                     "gate_hidden: [400], context1: [s0], context2: [s1]}") +
            10 * (ids2 + 956 + 4084) + 1,
        253392);
}

/* The bias of xDeepFM's maps, which is added to that of its MLP, is one with it here. FiBiNET's
 * pairs of weighed slots have a matrix of their own, as in FuxiCTR 2. */
TEST(bars_models_of_interactions_have_their_published_parameters)
{
    const uint64_t ids = 5389;
    const char *deep = "hidden: [400, 400, 400], batch_norm: true";
    char model[200];
    (void)snprintf(model, sizeof model, "{type: xdeepfm, %s, cin: [64]}", deep);
    assert_int_equal(dense_params(10, 10, model) + 11 * ids + 1, 429809);
    (void)snprintf(model, sizeof model, "{type: fibinet, %s, bilinear: all, reduction: 2}", deep);
    assert_int_equal(dense_params(10, 10, model) + 11 * ids - 100, 743480);
    assert_int_equal(
        dense_params(10, 10, "{type: edcn, layers: 3, batch_norm: true, temperature: 5}") +
            10 * ids,
        86351);
    assert_int_equal(dense_params(10, 10, "{type: afm, attention: 128}") + 11 * ids, 60826);
}

/* gdcn: V, b and G of each layer, and the rest as dcnv2. deepcrossing: 3 (n h + h + h n + n) + n +
 * 1, with batch norm two numbers for a bias. Trained contexts of finalmlp: d (1 + h) + h more each.
 */
TEST(models_have_the_parameters_of_their_formulas)
{
    assert_int_equal(dense_params(3, 4, "{type: gdcn, hidden: [5], layers: 2}"),
                     2 * (12 * 12 + 12 + 12 * 12) + (12 * 5 + 5) + (12 + 5 + 1));
    assert_int_equal(dense_params(3, 4, "{type: gdcn, layers: 2, rank: 3, structure: cross_only}"),
                     2 * (4 * 12 * 3 + 12) + (12 + 1));
    const uint64_t unit = 12 * 7 + 7 + 7 * 12;
    assert_int_equal(dense_params(3, 4, "{type: deepcrossing, hidden: [7, 7, 7]}"),
                     3 * (unit + 12) + 13);
    assert_int_equal(dense_params(3, 4, "{type: deepcrossing, hidden: [7, 7], batch_norm: true}"),
                     2 * (unit + 24) + 12 + 1);
    assert_int_equal(
        dense_params(3, 4,
                     "{type: finalmlp, hidden: [6], hidden2: [4], heads: 2, gate_hidden: [5]}"),
        2 * (4 + 4 * 5 + 5 + 5 * 12 + 12) + (12 * 6 + 6) + (12 * 4 + 4) + 6 + 4 + 6 * 4 / 2 + 1);
    assert_int_equal(
        dense_params(
            3, 4,
            "{type: masknet, structure: serial, hidden: [6], reduction: 1, embedding_norm: true}"),
        3 * 2 * 4 + (2 * (12 * 12 + 12) + 12 * 6 + 2 * 6) + (6 + 1));
    assert_int_equal(dense_params(3, 4, "{type: finalnet, hidden: [6], residual: sum}"),
                     12 * 12 + 12 + 6 + 1);
    assert_int_equal(dense_params(3, 4, "{type: dlrm, hidden: [5]}"), 3 * 5 + 5 + 5 + 1);
}

TEST(models_of_interactions_have_the_parameters_of_their_formulas)
{
    const uint64_t cross = 12 * 12 / 2 + 2 * 6 + 12; /* W, ln, b */
    const uint64_t mixed = 2 * 12 * 6 + 6 * 2 + 12 * 3 + 12;
    assert_int_equal(dense_params(3, 4, "{type: fcn, layers: 2, shallow: 3}"), 5 * cross + 25);
    assert_int_equal(dense_params(3, 5, "{type: fcn, layers: 1, shallow: 1}"),
                     2 * (15 * 8 + 2 * 8 + 15) + 2 * 15 + 1);
    assert_int_equal(dense_params(3, 4, "{type: onn, hidden: [5], k: 2}"), 15 * 5 + 5 + 5 + 1);
    assert_int_equal(
        dense_params(3, 4, "{type: dcnmix, layers: 2, rank: 2, experts: 3, structure: cross_only}"),
        2 * mixed + 13);
    assert_int_equal(
        dense_params(3, 4, "{type: autoint, hidden: [5], layers: 2, units: 6, heads: 2}"),
        4 * 4 * 6 + 3 * 6 * 6 + 18 + (12 * 5 + 5 + 5 + 1));
    assert_int_equal(dense_params(3, 4, "{type: fibinet, hidden: [5], bilinear: each}"),
                     2 * 3 + 2 * 2 * 16 + (24 * 5 + 5 + 5 + 1));
}

/* Numbers become one more vector: x, then 4 of 4 pairs' products. */
TEST(numbers_of_dlrm_pair_with_slots)
{
    kit k CLEANUP(kit_done);
    kit_init(&k, 3, 4, 2);
    assert_true(kit_list(&k, "{type: dlrm, hidden: [5], bottom: [7]}") && kit_build(&k));
    assert_int_equal(tn_params_trained(k.params),
                     (2 * 7 + 7) + (7 * 4 + 4) + ((4 + 6) * 5 + 5) + (5 + 1));
}

TEST(what_does_not_fit_a_model_is_said)
{
    static const char *const wrong[][2] = {
        {"{type: finalmlp, hidden: [10], hidden2: [4], heads: 4}",
         "10 and 4 columns, which 4 heads"},
        {"{type: finalmlp, context1: [s7]}", "no slot 's7'"},
        {"{type: finalnet, hidden: [7]}", "7 units, which are no two halves"},
        {"{type: finalnet, hidden: [7.5], residual: sum}", "no whole number"},
        {"{type: masknet, structure: serial, hidden: [7.5]}", "no whole number"},
        {"{type: ipnn, slots: {deep: [s0]}}", "'inner' pairs slots, and there is only one"},
        {"{type: dlrm, slots: {deep: [s0]}}", "'inner' pairs slots, and there is only one"},
        {"{type: deepcrossing, slots: {deep: [nix]}}", "no slot 'nix'"},
        {"{type: fibinet, slots: {deep: [s0]}}", "'bilinear' pairs slots, and there is only one"},
        {"{type: autoint, units: 7, heads: 2}", "7 columns cannot have 2 heads"},
        {"{type: edcn, slots: {deep: [nix]}}", "no slot 'nix'"},
        {"{type: xdeepfm, cin: [7.5]}", "no whole number"},
    };
    for (uint32_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        kit k CLEANUP(kit_done);
        kit_init(&k, 3, 4, 0);
        fail_if((kit_list(&k, wrong[i][0]) && kit_build(&k)) ||
                    strstr(tn_text_str(&k.diag.text), wrong[i][1]) == NULL,
                "%s: %s", wrong[i][0], tn_text_str(&k.diag.text));
    }
}

/* A model, and its layers. */
static const char *const wired[][2] = {
    {"{type: dlrm, hidden: [5], bottom: [7]}",
     "[{name: bottom.1, dense: num, units: 7, activation: relu}, "
     "{name: bottom.2, dense: bottom.1, units: 4, activation: relu}, "
     "{name: vectors, concat: [bottom.2, deep]}, "
     "{name: pairs, inner: vectors, dim: 4}, "
     "{name: z, concat: [bottom.2, pairs]}, "
     "{name: deep.1, dense: z, units: 5, activation: relu}, "
     "{name: deep.2, dense: deep.1, units: 1}]"},
    {"{type: deepcrossing, hidden: [7, 6], batch_norm: true}",
     "[{name: x, concat: [deep, num]}, "
     "{name: unit.1.in, dense: x, units: 7, activation: relu}, "
     "{name: unit.1.back, dense: unit.1.in, units: 14, bias: false}, "
     "{name: unit.1.sum, add: [unit.1.back, x]}, "
     "{name: unit.1.bn, batch_norm: unit.1.sum}, "
     "{name: unit.1.act, activation: unit.1.bn, function: relu}, "
     "{name: unit.2.in, dense: unit.1.act, units: 6, activation: relu}, "
     "{name: unit.2.back, dense: unit.2.in, units: 14, bias: false}, "
     "{name: unit.2.sum, add: [unit.2.back, unit.1.act]}, "
     "{name: unit.2.bn, batch_norm: unit.2.sum}, "
     "{name: unit.2.act, activation: unit.2.bn, function: relu}, "
     "{name: out, dense: unit.2.act, units: 1}]"},
    {"{type: finalmlp, hidden: [8], hidden2: [4], heads: 4, gate_hidden: [5], context2: [s1]}",
     "[{name: x, concat: [deep, num]}, "
     "{name: context1.any, slice: deep, cols: 4}, "
     "{name: context1.zero, scale: context1.any, by: 0}, "
     "{name: context1, bias: context1.zero}, "
     "{name: gate1.1, dense: context1, units: 5, activation: relu}, "
     "{name: gate1, dense: gate1.1, units: 14, activation: sigmoid}, "
     "{name: gate1.twice, scale: gate1, by: 2}, "
     "{name: x1, mul: [x, gate1.twice]}, "
     "{name: stream1.1, dense: x1, units: 8, activation: relu}, "
     "{name: gate2.1, dense: context2, units: 5, activation: relu}, "
     "{name: gate2, dense: gate2.1, units: 14, activation: sigmoid}, "
     "{name: gate2.twice, scale: gate2, by: 2}, "
     "{name: x2, mul: [x, gate2.twice]}, "
     "{name: stream2.1, dense: x2, units: 4, activation: relu}, "
     "{name: logit, fusion: [stream1.1, stream2.1], heads: 4}]"},
    {"{type: finalnet, hidden: [6]}", "[{name: x, concat: [deep, num]}, "
                                      "{name: block.1.h, dense: x, units: 6}, "
                                      "{name: block.1.h2, slice: block.1.h, cols: 3}, "
                                      "{name: block.1.h1, slice: block.1.h, first: 3, cols: 3}, "
                                      "{name: block.1.products, mul: [block.1.h1, block.1.h2]}, "
                                      "{name: block.1, concat: [block.1.h2, block.1.products]}, "
                                      "{name: block.1.act, activation: block.1, function: relu}, "
                                      "{name: out, dense: block.1.act, units: 1}]"},
    {"{type: finalnet, hidden: [6], residual: sum, dropout: 0.5}",
     "[{name: x, concat: [deep, num]}, "
     "{name: block.1.h, dense: x, units: 12}, "
     "{name: block.1.h2, slice: block.1.h, cols: 6}, "
     "{name: block.1.h1, slice: block.1.h, first: 6, cols: 6}, "
     "{name: block.1.products, mul: [block.1.h1, block.1.h2]}, "
     "{name: block.1, add: [block.1.h2, block.1.products]}, "
     "{name: block.1.act, activation: block.1, function: relu}, "
     "{name: block.1.drop, dropout: block.1.act, rate: 0.5}, "
     "{name: out, dense: block.1.drop, units: 1}]"},
    {"{type: masknet, hidden: [6, 3], structure: serial, embedding_norm: true}",
     "[{name: x, concat: [deep, num]}, "
     "{name: norm, layer_norm: deep, per_slot: true}, "
     "{name: v, concat: [norm, num]}, "
     "{name: block.1.mask.1, dense: x, units: 28, activation: relu}, "
     "{name: block.1.mask, dense: block.1.mask.1, units: 14}, "
     "{name: block.1.masked, mul: [v, block.1.mask]}, "
     "{name: block.1, dense: block.1.masked, units: 6, bias: false}, "
     "{name: block.1.norm, layer_norm: block.1}, "
     "{name: block.1.act, activation: block.1.norm, function: relu}, "
     "{name: block.2.mask.1, dense: x, units: 12, activation: relu}, "
     "{name: block.2.mask, dense: block.2.mask.1, units: 6}, "
     "{name: block.2.masked, mul: [block.1.act, block.2.mask]}, "
     "{name: block.2, dense: block.2.masked, units: 3, bias: false}, "
     "{name: block.2.norm, layer_norm: block.2}, "
     "{name: block.2.act, activation: block.2.norm, function: relu}, "
     "{name: out, dense: block.2.act, units: 1}]"},
    {"{type: masknet, hidden: [5], blocks: 2, block_units: 3, layer_norm: false}",
     "[{name: x, concat: [deep, num]}, "
     "{name: block.1.mask.1, dense: x, units: 28, activation: relu}, "
     "{name: block.1.mask, dense: block.1.mask.1, units: 14}, "
     "{name: block.1.masked, mul: [x, block.1.mask]}, "
     "{name: block.1, dense: block.1.masked, units: 3, bias: false}, "
     "{name: block.1.act, activation: block.1, function: relu}, "
     "{name: block.2.mask.1, dense: x, units: 28, activation: relu}, "
     "{name: block.2.mask, dense: block.2.mask.1, units: 14}, "
     "{name: block.2.masked, mul: [x, block.2.mask]}, "
     "{name: block.2, dense: block.2.masked, units: 3, bias: false}, "
     "{name: block.2.act, activation: block.2, function: relu}, "
     "{name: blocks, concat: [block.1.act, block.2.act]}, "
     "{name: deep.1, dense: blocks, units: 5, activation: relu}, "
     "{name: deep.2, dense: deep.1, units: 1}]"},
};

/* Which layer reads which: parameters do not show it. */
TEST(layers_are_wired_as_the_formulas_say)
{
    for (uint32_t i = 0; i < sizeof wired / sizeof wired[0]; i++) {
        kit k CLEANUP(kit_done);
        tn_text text CLEANUP(tn_text_done) = {0};
        kit_init(&k, 3, 4, 2);
        assert_true(kit_list(&k, wired[i][0]));
        tn_tree_print_flow(&text, tn_tree_get(k.list, "layers"));
        assert_string_equal(tn_text_str(&text), wired[i][1]);
    }
}

static const char *const printed[] = {
    "{type: lr}",
    "{type: fm}",
    "{type: fm, within_slot: true}",
    "{type: ffm}",
    "{type: ffm, k: 3, within_slot: true, normalise: true, slots: {deep: [s0, s2]}}",
    "{type: fwfm}",
    "{type: fwfm, linear: per_field, normalise: true}",
    "{type: widedeep, hidden: [8, 4], head: sum}",
    "{type: widedeep, hidden: [8, 4], head: concat, dropout: 0.5}",
    "{type: deepfm, hidden: [8, 4], batch_norm: true}",
    "{type: dcn, hidden: [8, 4], batch_norm: true, bn_gamma: uniform}",
    "{type: deepfm, hidden: [8, 4], head: concat, activation: prelu}",
    "{type: dcn, hidden: [8], layers: 2}",
    "{type: dcnv2, hidden: [8], layers: 2, rank: 3, structure: stacked}",
    "{type: dcnv2, layers: 2, structure: cross_only}",
    "{type: gdcn, hidden: [8], layers: 2, rank: 3, structure: stacked}",
    "{type: nfm, hidden: [8], pair_dropout: 0.5}",
    "{type: ipnn, hidden: [8], batch_norm: true}",
    "{type: dlrm, hidden: [8], bottom: [6], bottom_dropout: 0.1}",
    "{type: dlrm, hidden: [8], interaction: cat}",
    "{type: deepcrossing, hidden: [8, 4], batch_norm: true, dropout: 0.1}",
    "{type: finalmlp, hidden: [8], hidden2: [4], heads: 4, context2: [s1, s2]}",
    "{type: finalmlp, hidden: [8], hidden2: [4], heads: 1, gate: false}",
    "{type: finalnet, hidden: [8, 4], batch_norm: true}",
    "{type: finalnet, hidden: [8, 4], residual: sum, activation: none}",
    "{type: masknet, hidden: [8], blocks: 2, block_units: 3, embedding_norm: true}",
    "{type: masknet, hidden: [8, 4], structure: serial, layer_norm: false, dropout: 0.5}",
    "{type: xdeepfm, hidden: [8], cin: [3, 2]}",
    "{type: fibinet, hidden: [8], bilinear: each, dropout: 0.1}",
    "{type: onn, hidden: [8], k: 3}",
    "{type: autoint, hidden: [8], layers: 2, units: 6, layer_norm: true, wide: true}",
    "{type: autoint, hidden: [8], layers: 1, scale: true, residual: false}",
    "{type: afm, attention: 3, dropout: 0.1, pair_dropout: 0.1}",
    "{type: edcn, layers: 2, batch_norm: true, dropout: 0.1}",
    "{type: edcn, layers: 2, regulation: false, bridge: concat}",
    "{type: fcn, layers: 2, shallow: 1, dropout: 0.1, shallow_dropout: 0.1}",
    "{type: dcnmix, hidden: [8], layers: 2, rank: 3, experts: 2, structure: stacked}",
};

TEST(a_printed_list_builds_the_same_parameters)
{
    for (uint32_t i = 0; i < sizeof printed / sizeof printed[0]; i++) {
        kit a CLEANUP(kit_done);
        kit b CLEANUP(kit_done);
        kit_init(&a, 3, 4, 2);
        kit_init(&b, 3, 4, 2);
        fail_if(!kit_list(&a, printed[i]) || !kit_build(&a), "%s", tn_text_str(&a.diag.text));
        tn_text text CLEANUP(tn_text_done) = {0};
        tn_text_adds(&text, "{type: graph, ");
        for (const tn_tree *t = a.list->first; t != NULL; t = t->next) {
            tn_text_addf(&text, "%s: ", t->key);
            tn_tree_print_flow(&text, t);
            tn_text_adds(&text, t->next != NULL ? ", " : "}");
        }
        fail_if(!kit_list(&b, tn_text_str(&text)) || !kit_build(&b), "%s\n%s", tn_text_str(&text),
                tn_text_str(&b.diag.text));
        assert_int_equal(tn_params_count(a.params), tn_params_count(b.params));
        for (uint32_t k = 0; k < tn_params_count(a.params); k++) {
            const tn_param_slice *p = tn_params_get(a.params, k);
            const tn_param_slice *q = tn_params_get(b.params, k);
            assert_string_equal(p->name, q->name);
            assert_int_equal(p->rows * p->cols, q->rows * q->cols);
            assert_int_equal(p->init.kind, q->init.kind);
        }
    }
}

TEST(every_model_has_its_presets)
{
    for (const tn_model *const *m = tn_all_models; *m != NULL; m++) {
        if (strcmp((*m)->choice.name, "graph") == 0) {
            continue;
        }
        tn_text there = {0};
        tn_model_list_presets((*m)->choice.name, &there);
        const char *first = "bars-frappe, ";
        const char *last = "tensornet, paper"; /* between them the other sets that BARS has */
        assert_memory_equal(tn_text_str(&there), first, strlen(first));
        assert_string_equal(tn_text_str(&there) + there.size - strlen(last), last);
        tn_text_done(&there);
        assert_non_null(tn_model_preset((*m)->choice.name, "bars-frappe"));
        assert_null(tn_model_preset((*m)->choice.name, "bars"));
    }
}

/* They are results of PyTorch 1.0, which drew the first scales of batch norm. */
TEST(bars_presets_draw_bn_gamma)
{
    static const char *const models[] = {
        "widedeep", "deepfm",   "dcn",     "dcnv2",   "gdcn",    "dlrm", "deepcrossing",
        "finalmlp", "finalnet", "xdeepfm", "fibinet", "autoint", "edcn"};
    for (uint32_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        const char *yaml = tn_model_preset(models[i], "bars-frappe");
        assert_non_null(yaml);
        assert_non_null(strstr(yaml, "batch_norm: true, bn_gamma: uniform"));
    }
}

TEST(the_output_bias_is_found_behind_additions)
{
    static const char *const cases[][2] = {
        {"{type: lr}", "bias"},
        {"{type: fm}", "bias"},
        {"{type: ffm}", "bias"},
        {"{type: fwfm}", "bias"},
        {"{type: fwfm, linear: per_field}", "linear.b"},
        {"{type: widedeep, hidden: [4, 2], head: sum}", "deep.3.b"},
        {"{type: widedeep, hidden: [4, 2], head: concat}", "out.b"},
        {"{type: deepfm, hidden: [4], head: sum}", "deep.2.b"},
        {"{type: dcn, hidden: [4]}", "out.b"},
        {"{type: gdcn, hidden: [4]}", "out.b"},
        {"{type: nfm, hidden: [4]}", "deep.2.b"},
        {"{type: ipnn, hidden: [4]}", "deep.2.b"},
        {"{type: dlrm, hidden: [4]}", "deep.2.b"},
        {"{type: deepcrossing, hidden: [4]}", "out.b"},
        {"{type: finalmlp, hidden: [8], hidden2: [8]}", "logit.b"},
        {"{type: finalnet, hidden: [4]}", "out.b"},
        {"{type: masknet, hidden: [4]}", "deep.2.b"},
    };
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        kit k CLEANUP(kit_done);
        kit_init(&k, 2, 4, 0);
        assert_true(kit_list(&k, cases[i][0]) && kit_build(&k));
        assert_non_null(k.made.output_bias);
        assert_string_equal(k.made.output_bias, cases[i][1]);
    }
}
