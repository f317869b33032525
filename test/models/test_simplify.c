/* test_simplify.c - constants, equal values and scales by 1 in lists of layers: how many nodes are
 * left of them, what stays as it is, and that no bit changes. */
#include "models/modelkit.h"
#include "nn/graph/graphcore.h"
#include "nn/loss/loss.h"
#include "nn/op/ops.h"
#include "nn/passes/finish.h"
#include "support/test.h"

enum { ROWS = 5, NUMERIC = 4 };

static const char *const head = "{type: graph, inputs: {x: {numeric: all}}, layers: [";

/* Builds and finishes the list; in training with a loss. */
static void open_list(kit *k, const char *layers, const tn_graph_opts *opts)
{
    tn_text list = {0};
    kit_init(k, 1, 4, NUMERIC);
    k->opts = *opts;
    k->opts.max_rows = ROWS;
    tn_text_addf(&list, "%s%s], output: z}", head, layers);
    fail_if(!kit_list(k, tn_text_str(&list)) || !kit_build(k), "%s: %s", layers,
            tn_text_str(&k->diag.text));
    tn_text_done(&list);
    tn_wanted wanted = {.logit = k->made.logit};
    if (opts->train) {
        wanted.loss = tn_apply(k->graph, &tn_loss_mse.op, "loss", TN_IN(k->made.logit), NULL);
    }
    assert_int_equal(tn_graph_finish(k->graph, &wanted, NULL), TN_OK);
    tn_params_init(k->params, 3);
}

/* Nodes that are computed. */
static uint32_t count(const tn_graph *g)
{
    uint32_t n = 0;
    const tn_node *node;
    for (uint32_t i = 0; (node = tn_graph_node(g, i)) != NULL; i++) {
        n += node->place->alive && node->op != NULL;
    }
    return n;
}

static uint32_t count_of(const char *layers, bool train)
{
    kit k CLEANUP(kit_done);
    open_list(&k, layers, &(tn_graph_opts){.train = train});
    const uint32_t n = count(k.graph);
    return n;
}

#define Z ", {name: z, dense: [a, b], units: 1}"
#define TWO(layer) "{name: a, " layer "}, {name: b, " layer "}" Z

TEST(equal_values_are_computed_once)
{
    static const char *const layers[] = {
        TWO("activation: x, function: tanh"),
        TWO("scale: x, by: 2, plus: 1"),
        TWO("softmax: x"),
        TWO("mul: [x, x]"),
        TWO("slice: x, first: 1, cols: 2"),
        TWO("max: x"),
        TWO("where: [x, x, x]"),
    };
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        /* numbers, the layer, both side by side, the product; no gradient goes through it */
        assert_int_equal(count_of(layers[i], false), 4);
        assert_int_equal(count_of(layers[i], true), 5); /* and the loss */
    }
    /* What is made of equal values is equal. */
    static const char chain[] = "{name: c, scale: x, by: 2}, {name: a, activation: c}, "
                                "{name: d, scale: x, by: 2}, {name: b, activation: d}" Z;
    assert_int_equal(count_of(chain, false), 5);
}

TEST(what_is_not_equal_stays)
{
    static const struct {
        const char *layers;
        bool train;
        uint32_t nodes;
    } lists[] = {
        /* other constants, operands in another order, another function */
        {"{name: a, scale: x, by: 2}, {name: b, scale: x, by: 3}" Z, false, 5},
        {"{name: a, scale: x, by: 2}, {name: b, scale: x, by: 2, plus: 1}" Z, false, 5},
        {"{name: a, slice: x, cols: 2}, {name: b, slice: x, first: 1, cols: 2}" Z, false, 5},
        {"{name: h, scale: x, by: 2}, {name: a, sub: [x, h]}, {name: b, sub: [h, x]}" Z, false, 6},
        {"{name: a, activation: x}, {name: b, activation: x, function: tanh}" Z, false, 5},
        /* weights of their own, or of one name; running values; random numbers */
        {TWO("dense: x, units: 2"), false, 5},
        {TWO("dense: x, units: 2, param: p"), false, 5},
        {TWO("dense: x, units: 2, param: p"), true, 6},
        {TWO("bias: x"), false, 5},
        {TWO("bias: x, param: p"), false, 5},
        {TWO("layer_norm: x, weights: p"), false, 5},
        {TWO("activation: x, function: prelu"), true, 6},
        {TWO("layer_norm: x"), false, 5},
        {TWO("batch_norm: x"), false, 5},
        {TWO("batch_norm: x"), true, 6},
        {TWO("data_norm: x"), true, 6},
        {TWO("dropout: x"), true, 6},
        /* what a gradient goes through, in training */
        {"{name: h, dense: x, units: 2}, {name: a, softmax: h}, {name: b, softmax: h}" Z, true, 7},
        {"{name: h, dense: x, units: 2}, {name: a, softmax: h}, {name: b, softmax: h}" Z, false, 5},
    };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        const uint32_t n = count_of(lists[i].layers, lists[i].train);
        fail_if(n != lists[i].nodes, "%s: %u nodes, not %u", lists[i].layers, n, lists[i].nodes);
    }
}

TEST(constants_of_constants_are_constants)
{
    static const char layers[] =
        "{name: one, constant: 1}, {name: four, constant: 4, cols: 4}, "
        "{name: r, activation: four, function: sqrt}, {name: s, sub: [r, one]}, "
        "{name: both, concat: [s, s]}, {name: sum, sum: both}, {name: e, div: [four, sum]}, "
        "{name: a, mul: [x, sum]}, {name: b, add: [x, s]}" Z;
    assert_int_equal(count_of("{name: one, constant: 1}, {name: a, mul: [x, one]}, "
                              "{name: b, mul: [x, one]}" Z,
                              false),
                     5);
    /* numbers, sum, s, a, b, side by side, z */
    assert_int_equal(count_of(layers, false), 7);
    assert_int_equal(count_of(layers, true), 8);
    kit k;
    open_list(&k, layers, &(tn_graph_opts){0});
    const tn_node *sum = tn_graph_find(k.graph, "sum");
    assert_ptr_equal(sum->op, &tn_op_constant);
    assert_true(((const tn_constant_attr *)sum->attr)->value == 8);
    assert_int_equal(((const tn_constant_attr *)sum->attr)->cols, 1);
    kit_done(&k);
    /* Columns of several numbers stay: numbers, one, two, both, a, b, side by side, z. */
    assert_int_equal(count_of("{name: one, constant: 1}, {name: two, constant: 2, cols: 3}, "
                              "{name: both, concat: [one, two]}, {name: a, mul: [x, both]}, "
                              "{name: b, scale: x, by: 2}" Z,
                              false),
                     8);
    /* no number that is one: it stays, and the step names it */
    open_list(&k,
              "{name: low, constant: -1}, {name: root, activation: low, function: sqrt}, "
              "{name: a, mul: [x, root]}, {name: b, scale: x, by: 2}" Z,
              &(tn_graph_opts){0});
    const float x[ROWS * NUMERIC] = {0};
    tn_forward(k.graph, &(tn_graph_feed){.rows = ROWS, .numeric = x});
    assert_string_equal(tn_graph_not_finite(k.graph), "root");
    kit_done(&k);
}

TEST(a_scale_by_1_is_dropped)
{
    assert_int_equal(count_of("{name: h, scale: x}, {name: z, dense: h, units: 1}", false), 2);
    assert_int_equal(count_of("{name: h, scale: x, plus: 1}, {name: z, dense: h, units: 1}", false),
                     3);
    assert_int_equal(count_of("{name: h, scale: x, by: -1}, {name: z, dense: h, units: 1}", false),
                     3);
    /* a mean of one column is one */
    static const char chain[] = "{name: h, dense: x, units: 3}, {name: i, scale: h}, "
                                "{name: j, scale: i}, {name: z, dense: j, units: 1}";
    assert_int_equal(count_of(chain, true), 4);
    /* the output has its name */
    assert_int_equal(count_of("{name: h, dense: x, units: 1}, {name: z, scale: h}", false), 3);
    /* beside another reader of h its gradient is a sum of its own */
    static const char beside[] = "{name: h, dense: x, units: 3}, {name: a, scale: h}, "
                                 "{name: b, activation: h}" Z;
    assert_int_equal(count_of(beside, true), 7);
    assert_int_equal(count_of(beside, false), 5);
}

/* Logits and all gradients of one step. */
static void run_step(const char *layers, tn_text *out)
{
    kit k CLEANUP(kit_done);
    float x[ROWS * NUMERIC];
    float label[ROWS];
    open_list(&k, layers, &(tn_graph_opts){.train = true});
    for (uint32_t i = 0; i < ROWS * NUMERIC; i++) {
        x[i] = (float)(i * 7 % 11) / 7 - 0.5F;
        label[i % ROWS] = (float)(i % 2);
    }
    tn_forward(
        k.graph,
        &(tn_graph_feed){.rows = ROWS, .numeric = x, .label = label, .info = {.training = true}});
    tn_backward(k.graph);
    for (uint32_t r = 0; r < ROWS; r++) {
        tn_text_add(out, (const char *)tn_val_row(k.made.logit, r), sizeof(float));
    }
    for (uint32_t i = 0; i < tn_params_count(k.params); i++) {
        const tn_param_slice *s = tn_params_get(k.params, i);
        tn_text_addf(out, "%s", s->name);
        tn_text_add(out, (const char *)(tn_params_grads(k.params) + s->at),
                    (size_t)s->rows * s->cols * sizeof(float));
    }
}

TEST(a_step_has_the_same_bits_with_and_without_them)
{
    static const char *const same[][2] = {
        {"{name: h, dense: x, units: 6}, {name: z, dense: h, units: 1}",
         "{name: h, dense: x, units: 6}, {name: s, scale: h}, {name: z, dense: s, units: 1}"},
        {"{name: c, scale: x, by: 2}, {name: a, dense: [x, c], units: 3}, {name: b, mul: [c, c]}" Z,
         "{name: c, scale: x, by: 2}, {name: d, scale: x, by: 2}, {name: a, dense: [x, d], units: "
         "3}, {name: b, mul: [c, d]}" Z},
        {"{name: c, constant: 0.75}, {name: a, dense: x, units: 3}, {name: b, mul: [a, c]}" Z,
         "{name: k, constant: 1.5}, {name: c, scale: k, by: 0.5}, {name: a, dense: x, units: 3}, "
         "{name: b, mul: [a, c]}" Z},
    };
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        tn_text out[2] = {{0}, {0}};
        run_step(same[i][0], &out[0]);
        run_step(same[i][1], &out[1]);
        assert_int_equal(out[0].size, out[1].size);
        fail_if(memcmp(out[0].data, out[1].data, out[0].size) != 0, "other bits: %s", same[i][1]);
        tn_text_done(&out[0]);
        tn_text_done(&out[1]);
    }
}
