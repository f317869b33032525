/* test_export_onnx.c - graph.onnx of a model with nearly every operator: a node uses only what
 * precedes it, and nothing is named twice. What onnxruntime computes is compared by
 * test/interop/onnx.sh. */
#include "train/exportkit.h"

#include "base/codec/proto.h"
#include "base/core/text.h"
#include "support/test.h"

static const char model[] =
    "{type: graph, inputs: {deep: {embed: [user, item, hist, gone]}, wide: {embed: [user, item, "
    "hist, gone], dim: 1}, "
    "rest: {embed: [tags, seq, top, age, count, amount], dim: 2}, num: {numeric: all}}, layers: ["
    "{name: x, dense: deep, units: 16, activation: gelu, batch_norm: true}, "
    "{name: a1, activation: x, function: gelu_tanh}, {name: a2, activation: x, function: silu}, "
    "{name: a3, activation: x, function: softplus}, {name: a4, activation: x, function: square}, "
    "{name: a5, activation: x, function: abs}, {name: a6, activation: a5, function: sqrt}, "
    "{name: a7, activation: x, function: leaky_relu}, {name: a8, activation: x, function: prelu}, "
    "{name: a9, activation: x, function: dice}, {name: some, concat: [a1, a2, a3, a4, a6, a7, a8, "
    "a9]}, {name: d1, dense: some, units: 8, "
    "activation: leaky_relu}, "
    "{name: d2, dense: d1, units: 8, activation: tanh, bias: false}, {name: normal, batch_norm: "
    "deep}, "
    "{name: rows, layer_norm: deep}, {name: slots, layer_norm: deep, per_slot: true}, {name: p, "
    "softmax: wide}, "
    "{name: m1, mul: [normal, p]}, {name: m2, maximum: [rows, wide]}, {name: m3, minimum: [slots, "
    "wide]}, "
    "{name: seen, data_norm: deep}, {name: m4, sub: [seen, p]}, {name: m5, div: [deep, p]}, {name: "
    "m6, add: [m4, m5]}, "
    "{name: w1, where: [wide, m1, m2]}, {name: w2, where: [deep, m3, m6]}, {name: top, max: deep, "
    "per_slot: true}, "
    "{name: sums, sum: deep, per_slot: true}, {name: means, mean: [w1, w2]}, {name: part, slice: "
    "deep, first: 2, cols: 5}, "
    "{name: half, scale: part, by: 0.5, plus: 1}, {name: fm, fm: deep}, {name: bi, bi_interaction: "
    "deep}, "
    "{name: inner, inner: deep}, {name: outer, outer: deep}, {name: pairs, ffm: deep, k: 1, "
    "normalise: true}, "
    "{name: c1, cross: deep, layers: 2}, "
    "{name: c2, cross_v2: deep, layers: 2, rank: 3}, {name: one, constant: 0.5, cols: 3}, "
    "{name: logit, dense: [d1, d2, top, sums, means, half, fm, bi, inner, outer, pairs, c1, c2, "
    "one, num, rest], units: 1}], "
    "output: logit}";

/* Names, each between newlines. */
static bool is_known(const tn_text *names, tn_bytes name)
{
    tn_text line CLEANUP(tn_text_done) = {0};
    tn_text_addf(&line, "\n%.*s\n", (int)name.size, name.data);
    const bool known = strstr(tn_text_str(names), tn_text_str(&line)) != NULL;
    return known;
}

static void learn_name(tn_text *names, tn_bytes name)
{
    assert_false(is_known(names, name));
    tn_text_addf(names, "%.*s\n", (int)name.size, name.data);
}

static tn_bytes field_of(tn_bytes message, uint32_t number)
{
    tn_proto_field f = {0};
    while (tn_proto_next(&message, &f) && f.tag != TN_PROTO_TAG(number, TN_WIRE_BYTES)) {
    }
    assert_int_equal(f.tag, TN_PROTO_TAG(number, TN_WIRE_BYTES));
    return f.bytes;
}

/* Inputs of a node are known; then its outputs are. */
static void take_node(tn_bytes node, tn_text *names, tn_text *operators)
{
    tn_proto_field f = {0};
    tn_bytes again = node;
    while (tn_proto_next(&node, &f)) {
        fail_if(f.tag == TN_PROTO_TAG(1, TN_WIRE_BYTES) && !is_known(names, f.bytes),
                "'%.*s' is used before it is there", (int)f.bytes.size, f.bytes.data);
    }
    assert_false(node.failed);
    while (tn_proto_next(&again, &f)) {
        if (f.tag == TN_PROTO_TAG(2, TN_WIRE_BYTES)) {
            learn_name(names, f.bytes);
        } else if (f.tag == TN_PROTO_TAG(4, TN_WIRE_BYTES) && !is_known(operators, f.bytes)) {
            learn_name(operators, f.bytes);
        }
    }
}

/* Takes inputs and constants first, wherever they are. */
static void take_graph(tn_bytes graph, tn_text *names, tn_text *operators)
{
    tn_proto_field f = {0};
    for (uint32_t nodes = 0; nodes < 2; nodes++) {
        tn_bytes left = graph;
        while (tn_proto_next(&left, &f)) {
            if (nodes == 0 && f.tag == TN_PROTO_TAG(5, TN_WIRE_BYTES)) {
                learn_name(names, field_of(f.bytes, 8));
            } else if (nodes == 0 && f.tag == TN_PROTO_TAG(11, TN_WIRE_BYTES)) {
                learn_name(names, field_of(f.bytes, 1));
            } else if (nodes == 1 && f.tag == TN_PROTO_TAG(1, TN_WIRE_BYTES)) {
                take_node(f.bytes, names, operators);
            }
        }
        assert_false(left.failed);
    }
}

TEST(every_operator_uses_what_is_there)
{
    static const char *const wanted[] = {
        "Gemm",    "Erf",    "Tanh",      "Sigmoid",   "Softplus",  "Abs",    "Sqrt",
        "PRelu",   "Concat", "LeakyRelu", "Softmax",   "Max",       "Min",    "Sub",
        "Div",     "Where",  "ReduceMax", "ReduceSum", "Slice",     "MatMul", "Gather",
        "Reshape", "Expand", "Mul",       "Add",       "ReduceMean"};
    const char *const words[] = {"export.graph=[native, onnx]", "eval.calibrate=none", NULL};
    tn_map map = {0};
    char path[TN_PATH_SIZE];
    OPEN(exportkit, k, model, words);
    exportkit_train(&k);
    const tn_exported out = exportkit_export(&k);
    assert_int_equal(tn_path_join(out.path, "graph.onnx", path, NULL), TN_OK);
    assert_int_equal(tn_map_file(&map, path, NULL), TN_OK);
    tn_text names = {0};
    tn_text operators = {0};
    tn_text_addc(&names, '\n');
    tn_text_addc(&operators, '\n');
    take_graph(field_of((tn_bytes){map.data, map.size, false}, 7), &names, &operators);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        if (!is_known(&operators, (tn_bytes){wanted[i], strlen(wanted[i]), false})) {
            fail_msg("no %s among: %s", wanted[i], tn_text_str(&operators));
        }
    }
    assert_true(is_known(&names, (tn_bytes){"logit", 5, false}));
    assert_true(is_known(&names, (tn_bytes){"pctr", 4, false}));
    tn_text_done(&names);
    tn_text_done(&operators);
    tn_unmap(&map);
}
