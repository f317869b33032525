/* test_blocks.c - blocks in a list of layers: what a use becomes, whose weights it has, and what is
 * refused. */
#include "base/core/text.h"
#include "config/tree.h"
#include "models/modelkit.h"
#include "support/test.h"

#define LIST(blocks, layers)                                                                       \
    "{type: graph, inputs: {wide: {embed: all, dim: 1}, deep: {embed: all}}, blocks: {" blocks     \
    "}, layers: [" layers "], output: z}"
#define TOWER                                                                                      \
    "tower: {args: [x], layers: [{name: h, dense: x, units: 5, activation: prelu}, "               \
    "{name: y, batch_norm: h}], output: y}"
#define OUT "{name: z, dense: [a, b], units: 1}"

static void open_list(kit *k, const char *list)
{
    kit_init(k, 3, 4, 1);
    fail_if(!kit_list(k, list) || !kit_build(k), "%s: %s", list, tn_text_str(&k->diag.text));
}

/* The layers that are built, as they are printed. */
static void prints(const char *list, const char *want)
{
    kit k CLEANUP(kit_done);
    tn_text text CLEANUP(tn_text_done) = {0};
    open_list(&k, list);
    tn_tree_print_flow(&text, tn_tree_get(k.list, "layers"));
    assert_string_equal(tn_text_str(&text), want);
}

TEST(a_use_is_plain_layers)
{
    prints(LIST("p: {args: [x, y], layers: [{name: s, add: [x, y, x]}], output: s}",
                "{name: h, dense: deep, units: 3}, {name: a, block: p, x: wide, y: h}, "
                "{name: z, sum: a}"),
           "[{name: h, dense: deep, units: 3}, {name: a.s, add: [wide, h, wide]}, "
           "{name: a, concat: a.s}, {name: z, sum: a}]");
    /* An argument of several inputs is one; an output may be an argument. */
    prints(LIST("p: {args: [x], layers: [{name: s, sum: x}], output: x}",
                "{name: a, block: p, x: [deep, wide]}, {name: z, sum: a}"),
           "[{name: a.x, concat: [deep, wide]}, {name: a.s, sum: a.x}, {name: a, concat: a.x}, "
           "{name: z, sum: a}]");
    /* A constant has no inputs, a block may use others, written before it or behind. */
    prints(LIST("p: {args: [x], layers: [{name: c, constant: 2}, {name: q, block: q, y: x}, "
                "{name: m, mul: [q, c]}], output: m}, "
                "q: {args: [y], layers: [{name: s, sum: y}], output: s}",
                "{name: a, block: p, x: deep}, {name: z, sum: a}"),
           "[{name: a.c, constant: 2}, {name: a.q.s, sum: deep}, {name: a.q, concat: a.q.s}, "
           "{name: a.m, mul: [a.q, a.c]}, {name: a, concat: a.m}, {name: z, sum: a}]");
}

static void has_nodes(const kit *k, const char *const *names)
{
    uint32_t n = 0;
    for (; names[n] != NULL; n++) {
        fail_if(tn_params_find(k->params, names[n]) == NULL, "no parameter '%s'", names[n]);
    }
    assert_int_equal(tn_params_count(k->params), n);
}

TEST(weights_are_those_of_the_use_or_of_the_name_it_gives)
{
    kit k;
    static const char *const own[] = {
        "a.h.W",    "a.h.b",   "a.h.slope", "a.y.gamma", "a.y.beta",  "a.y.mean",
        "a.y.var",  "b.h.W",   "b.h.b",     "b.h.slope", "b.y.gamma", "b.y.beta",
        "b.y.mean", "b.y.var", "z.W",       "z.b",       NULL};
    open_list(&k, LIST(TOWER,
                       "{name: a, block: tower, x: deep}, {name: b, block: tower, x: wide}, " OUT));
    has_nodes(&k, own);
    kit_done(&k);
    /* Running values are each its own. */
    static const char *const shared[] = {"t.h.W",    "t.h.b",    "t.h.slope", "t.y.gamma",
                                         "t.y.beta", "a.y.mean", "a.y.var",   "b.y.mean",
                                         "b.y.var",  "z.W",      "z.b",       NULL};
    open_list(&k, LIST(TOWER, "{name: a, block: tower, x: deep, weights: t}, "
                              "{name: b, block: tower, x: deep, weights: t}, " OUT));
    has_nodes(&k, shared);
    const tn_node *a = tn_graph_find(k.graph, "a.h.matmul");
    const tn_node *b = tn_graph_find(k.graph, "b.h.matmul");
    assert_ptr_equal(a->in[1], b->in[1]);
    kit_done(&k);
    /* Those of a block within a block belong to the weights around it, unless it has a name. */
    static const char *const within[] = {"w.i.h.W", "w.i.h.b", "u.h.W", "u.h.b",
                                         "z.W",     "z.b",     NULL};
    open_list(&k,
              LIST("in: {args: [x], layers: [{name: h, dense: x, units: 5}], output: h}, "
                   "two: {args: [x], layers: [{name: i, block: in, x: x}, "
                   "{name: j, block: in, x: x, weights: u}, {name: s, add: [i, j]}], output: s}",
                   "{name: a, block: two, x: deep, weights: w}, "
                   "{name: b, block: two, x: deep, weights: w}, " OUT));
    has_nodes(&k, within);
    kit_done(&k);
}

TEST(layers_of_one_name_of_weights_share_them)
{
    kit k CLEANUP(kit_done);
    static const char *const names[] = {"w.1.W",   "w.1.b",  "w.2.W", "w.2.b", "c.1.w", "c.1.b",
                                        "n.gamma", "n.beta", "one.b", "z.W",   "z.b",   NULL};
    open_list(&k,
              LIST("", "{name: c, mlp: deep, hidden: [4, 3], weights: w}, "
                       "{name: d, mlp: deep, hidden: [4, 3], activation: tanh, weights: w}, "
                       "{name: e, cross: deep, layers: 1, weights: c}, "
                       "{name: f, cross: deep, layers: 1, weights: c}, "
                       "{name: a, layer_norm: [c, e], weights: n}, "
                       "{name: g, layer_norm: [d, f], weights: n}, "
                       "{name: i, bias: a, weights: one}, {name: b, bias: g, weights: one}, " OUT));
    has_nodes(&k, names);
}

TEST(the_prior_finds_the_bias_of_a_block)
{
    static const struct {
        const char *use, *bias;
    } uses[] = {
        {"{name: z, block: last, x: deep}", "z.y.b"},
        {"{name: z, block: last, x: deep, weights: w}", "w.y.b"},
        {"{name: s, sum: wide}, {name: a, block: last, x: deep}, {name: z, add: [s, a]}", "a.y.b"}};
    for (size_t i = 0; i < sizeof uses / sizeof uses[0]; i++) {
        kit k CLEANUP(kit_done);
        tn_text list CLEANUP(tn_text_done) = {0};
        tn_text_addf(
            &list,
            LIST("last: {args: [x], layers: [{name: y, dense: x, units: 1}], output: y}", "%s"),
            uses[i].use);
        open_list(&k, tn_text_str(&list));
        assert_string_equal(k.made.output_bias, uses[i].bias);
    }
}

static void refuses(const char *list, const char *fault)
{
    kit k CLEANUP(kit_done);
    kit_init(&k, 3, 4, 1);
    bool good = kit_list(&k, list) && kit_build(&k);
    fail_if(good || strstr(tn_text_str(&k.diag.text), fault) == NULL, "%s\nwant: %s\ngot: %s", list,
            fault, tn_text_str(&k.diag.text));
}

TEST(faults_of_uses_are_named)
{
    refuses(LIST(TOWER, "{name: z, block: towr, x: deep}"), "did you mean 'tower'?");
    refuses(LIST(TOWER, "{name: z, block: [tower], x: deep}"), "unknown block ''");
    refuses(LIST("", "{name: z, block: tower, x: deep}"), "unknown block 'tower'");
    refuses(LIST(TOWER, "{name: z, block: tower}"), "block 'tower' needs its argument 'x'");
    refuses(LIST(TOWER, "{name: z, block: tower, x: ~}"), "block 'tower' needs its argument 'x'");
    refuses(LIST(TOWER, "{name: z, block: tower, x: deep, y: wide}"), "unknown argument 'y'");
    refuses(LIST(TOWER, "{name: z, block: tower, x: dep}"), "no input or layer 'dep'");
    refuses(LIST(TOWER, "{name: z, block: tower, x: {a: 1}}"), "expected the name of an input");
    refuses(LIST(TOWER, "{block: tower, x: deep}"), "a use of a block needs a name");
    refuses(LIST(TOWER, "{name: z, block: tower, x: deep, weights: [a]}"), "'weights' is a name");
    refuses(LIST(TOWER, "{name: deep, block: tower, x: deep}"), "are called 'deep'");
    refuses(LIST(TOWER, "{name: a.h, sum: deep}, {name: a, block: tower, x: deep}"),
            "two inputs or layers are called 'a.h'");
    refuses(LIST(TOWER, "{name: t.h, dense: deep, units: 5}, "
                        "{name: a, block: tower, x: deep, weights: t}"),
            "two parameters, or a node and one, are called 't.h.W'");
    refuses(LIST(TOWER, "{name: a, block: tower, x: deep, weights: t}, "
                        "{name: b, block: tower, x: wide, weights: t}"),
            "two parameters are called 't.h.W': one is [12 x 5], this one [3 x 5]");
    refuses(LIST("", "{name: z, sum: deep, weights: t}"), "weights");
    refuses(LIST("", "{name: z, dense: deep, units: 1, weights: ''}"), "'weights' is a name of 1");
}

TEST(faults_of_blocks_are_named)
{
    static const char *const bad[][2] = {
        {"p: [x]", "expected {args: [..], layers: [..], output: ..}"},
        {"p: {layers: [{name: s, sum: x}], output: s}", "block 'p' needs 'args'"},
        {"p: {args: [], layers: [{name: s, sum: x}], output: s}", "block 'p' needs 'args'"},
        {"p: {args: [weights], layers: [{name: s, sum: x}], output: s}", "be called 'weights'"},
        {"p: {args: [x, x], layers: [{name: s, sum: x}], output: s}", "are called 'x'"},
        {"p: {args: [x], output: s}", "block 'p' needs 'layers'"},
        {"p: {args: [x], layers: [{name: s, sum: x}]}", "block 'p' needs 'output'"},
        {"p: {args: [x], layers: [{name: s, sum: x}], output: s, arg: 1}",
         "unknown member of a block 'arg'"},
        {"p: {args: [x], layers: [{name: x, sum: x}], output: x}", "block 'p' are called 'x'"},
        {"p: {args: [x], layers: [{name: s, sum: deep}], output: s}",
         "block 'p' has no argument or layer 'deep'"},
        {"p: {args: [x], layers: [{name: vector, sum: x}, {name: s, sum: vectr}], output: s}",
         "did you mean 'vector'?"},
        {"p: {args: [x], layers: [{name: s, sum: x}], output: t}", "no argument or layer 't'"},
        {"p: {args: [x], layers: [{name: s, sm: x}], output: s}", "expected a layer"},
        {"p: {args: [x], layers: [{sum: x}], output: s}", "a layer of a block needs a name"},
        {"p: {args: [x], layers: [{name: s, block: p, x: x}], output: s}", "block 'p' uses itself"},
        {"p: {args: [x], layers: [{name: s, block: q, x: x}], output: s}, "
         "q: {args: [x], layers: [{name: s, block: p, x: x}], output: s}",
         "block 'p' uses itself"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tn_text list CLEANUP(tn_text_done) = {0};
        tn_text_addf(&list, LIST("%s", "{name: z, block: p, x: deep}"), bad[i][0]);
        refuses(tn_text_str(&list), bad[i][1]);
    }
    refuses("{type: graph, inputs: {deep: {embed: all}}, blocks: [1], layers: [{name: z, sum: "
            "deep}], output: z}",
            "'blocks' must be a map");
}

/* Twelve blocks, each twice the one before it. */
TEST(blocks_do_not_grow_without_end)
{
    tn_text list CLEANUP(tn_text_done) = {0};
    tn_text_adds(&list,
                 "{type: graph, inputs: {deep: {embed: all}}, blocks: {b0: {args: [x], layers: "
                 "[{name: y, scale: x, by: 2}], output: y}");
    for (uint32_t i = 1; i < 14; i++) {
        tn_text_addf(&list,
                     ", b%u: {args: [x], layers: [{name: y, block: b%u, x: x}, {name: z, block: "
                     "b%u, x: y}], output: z}",
                     i, i - 1, i - 1);
    }
    tn_text_adds(&list, "}, layers: [{name: z, block: b13, x: deep}], output: z}");
    refuses(tn_text_str(&list), "blocks make more than 4096 layers");
}
