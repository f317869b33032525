/* test_layers.c - every layer of layers.def, written by itself in a list: what it makes. */
#include "models/modelkit.h"
#include "nn/layer/layers.h"
#include "nn/passes/finish.h"
#include "support/test.h"

typedef struct sample {
    const char *layer; /* its row in layers.def */
    const char *line;  /* makes "x", which "y" sums */
    const char *op;    /* of what "y" sums */
    uint32_t cols;
    uint32_t n_params;
} sample;

/* wide is [B,3], deep [B,12], pairs [B,18], numbers [B,2], target [B,4], clicks [P,4]; P are up to
 * 5 positions of each row. Where x has positions, "y" sums the pool of it. */
static const sample samples[] = {
    {"dense", "{name: x, dense: deep, units: 5}", "bias", 5, 2},
    {"dense", "{name: x, dense: deep, units: 5, batch_norm: true, activation: relu}", "relu", 5, 6},
    {"mlp", "{name: x, mlp: deep, hidden: [6, 4], units: 2}", "bias", 2, 6},
    {"mlp", "{name: x, mlp: deep, hidden: [6, 4], activation: tanh}", "tanh", 4, 4},
    {"concat", "{name: x, concat: [wide, deep, numbers]}", "concat", 17, 0},
    {"dense", "{name: x, dense: deep, units: 5, bias: false}", "matmul", 5, 1},
    {"dense", "{name: x, dense: deep, units: 5, bias: false, batch_norm: true}", "batch_norm", 5,
     5},
    {"mlp", "{name: x, mlp: deep, hidden: [6, 4], units: 2, bias: false}", "matmul", 2, 3},
    {"sum", "{name: x, sum: deep}", "sum_cols", 1, 0},
    {"sum", "{name: x, sum: deep, per_slot: true}", "sum_groups", 3, 0},
    {"mean", "{name: x, mean: deep}", "scale", 1, 0},
    {"mean", "{name: x, mean: numbers, per_slot: true, dim: 1}", "scale", 2, 0},
    {"max", "{name: x, max: deep}", "max_groups", 1, 0},
    {"max", "{name: x, max: deep, per_slot: true}", "max_groups", 3, 0},
    {"constant", "{name: x, constant: 0.5, cols: 7}", "constant", 7, 0},
    {"sub", "{name: x, sub: [deep, wide]}", "sub", 12, 0},
    {"div", "{name: x, div: [deep, deep]}", "div", 12, 0},
    {"maximum", "{name: c, constant: 0}, {name: x, maximum: [deep, c]}", "maximum", 12, 0},
    {"minimum", "{name: x, minimum: [deep, wide]}", "minimum", 12, 0},
    {"where", "{name: x, where: [wide, deep, deep]}", "where", 12, 0},
    {"add", "{name: x, add: [deep, deep]}", "add", 12, 0},
    {"mul", "{name: x, mul: [deep, deep]}", "mul", 12, 0},
    {"mul", "{name: x, mul: [deep, wide]}", "mul", 12, 0},
    {"bias", "{name: x, bias: deep}", "bias", 12, 1},
    {"scale", "{name: x, scale: deep, by: 2, plus: 1}", "scale", 12, 0},
    {"slice", "{name: x, slice: deep, first: 4, cols: 8}", "slice", 8, 0},
    {"fm", "{name: x, fm: deep}", "fm", 1, 0},
    {"ffm", "{name: x, ffm: pairs}", "ffm", 1, 0},
    {"ffm", "{name: x, ffm: pairs, within_slot: true}", "add", 1, 0},
    {"fwfm", "{name: x, fwfm: deep}", "matmul", 1, 1},
    {"bi_interaction", "{name: x, bi_interaction: deep}", "bi_interaction", 4, 0},
    {"inner", "{name: x, inner: deep}", "inner", 3, 0},
    {"inner", "{name: x, inner: [deep, wide, wide], dim: 3}", "inner", 15, 0},
    {"outer", "{name: x, outer: deep}", "outer", 16, 0},
    {"bilinear", "{name: x, bilinear: deep}", "bilinear", 12, 1},
    {"bilinear", "{name: x, bilinear: deep, form: all}", "bilinear", 12, 1},
    {"bilinear", "{name: x, bilinear: deep, form: each}", "bilinear", 12, 1},
    {"bilinear", "{name: x, bilinear: [deep, wide, wide], dim: 3, form: none}", "bilinear", 45, 0},
    {"cin", "{name: x, cin: deep, hidden: [5, 3]}", "concat", 8, 4},
    {"cin", "{name: x, cin: deep, hidden: [5], bias: false}", "concat", 5, 1},
    {"ffm_inner", "{name: x, ffm_inner: pairs}", "ffm_inner", 3, 0},
    {"slot_dense", "{name: x, slot_dense: deep, units: 2}", "slot_dense", 6, 2},
    {"slot_dense", "{name: x, slot_dense: deep, units: 2, shared: false, bias: false}",
     "slot_dense", 6, 1},
    {"slot_sum", "{name: x, slot_sum: deep}", "slot_sum", 4, 0},
    {"slot_attention", "{name: x, slot_attention: deep}", "add", 12, 3},
    {"slot_attention", "{name: x, slot_attention: deep, units: 6, heads: 2}", "add", 18, 4},
    {"slot_attention", "{name: x, slot_attention: deep, residual: false}", "slot_attention", 12, 3},
    {"fusion", "{name: x, fusion: [deep, pairs], heads: 6}", "bias", 1, 9},
    {"cross", "{name: x, cross: deep, layers: 2}", "cross", 12, 4},
    {"cross_v2", "{name: x, cross_v2: deep, layers: 1}", "cross_merge", 12, 2},
    {"cross_v2", "{name: x, cross_v2: deep, layers: 2, gated: true}", "cross_merge", 12, 6},
    {"cross_v2", "{name: x, cross_v2: deep, layers: 1, rank: 2, gated: true}", "cross_merge", 12,
     5},
    {"cross_v2", "{name: x, cross_v2: deep, layers: 1, rank: 2, experts: 3}", "cross_merge", 12, 5},
    {"attend", "{name: x, attend: [clicks, target], hidden: [6]}", "sequence_sum", 4, 8},
    {"attend", "{name: x, attend: [clicks, target], hidden: [6, 3], activation: prelu}",
     "sequence_sum", 4, 9},
    {"attend", "{name: x, attend: [clicks, target], hidden: [], softmax: true}", "sequence_sum", 4,
     3},
    {"self_attention", "{name: x, self_attention: clicks}", "layer_norm", 4, 12},
    {"append", "{name: x, append: [clicks, target]}", "sequence_append", 4, 0},
    {"positions", "{name: x, positions: clicks}", "sequence_positions", 4, 1},
    {"pool", "{name: x, pool: clicks, kind: last}", "sequence_pool", 4, 0},
    {"activation", "{name: x, activation: deep, function: exp}", "exp", 12, 0},
    {"activation", "{name: x, activation: deep, function: log}", "log", 12, 0},
    {"activation", "{name: x, activation: deep, function: square}", "square", 12, 0},
    {"activation", "{name: x, activation: deep, function: sqrt}", "sqrt", 12, 0},
    {"activation", "{name: x, activation: deep, function: abs}", "abs", 12, 0},
    {"activation", "{name: x, activation: deep, function: gelu}", "gelu", 12, 0},
    {"activation", "{name: x, activation: deep, function: prelu}", "prelu", 12, 1},
    {"softmax", "{name: x, softmax: deep}", "softmax", 12, 0},
    {"mix", "{name: g, softmax: numbers}, {name: x, mix: [g, deep, deep]}", "mix", 12, 0},
    {"both", "{name: x, both: [deep, deep]}", "both", 12, 0},
    {"dropout", "{name: x, dropout: deep, rate: 0.5}", "dropout", 12, 0},
    {"batch_norm", "{name: x, batch_norm: deep}", "batch_norm", 12, 4},
    {"data_norm", "{name: x, data_norm: deep}", "data_norm", 12, 3},
    {"layer_norm", "{name: x, layer_norm: deep}", "layer_norm", 12, 2},
    {"layer_norm", "{name: x, layer_norm: deep, per_slot: true}", "concat", 12, 6},
};
enum { N_SAMPLES = sizeof samples / sizeof samples[0] };

static bool list(kit *k, const char *line, bool pools)
{
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_text_addf(&text,
                 "{type: graph, inputs: {wide: {embed: all, dim: 1}, deep: {embed: all}, pairs: "
                 "{embed: all, field_dim: 2}, numbers: {numeric: all}, clicks: {sequence: clicks, "
                 "vectors: deep}, target: {embed: [s0], vectors: deep}}, layers: [%s, %s{name: y, "
                 "sum: %s}], output: y}",
                 line, pools ? "{name: z, pool: x}, " : "", pools ? "z" : "x");
    kit_init(k, 3, 4, 2);
    bool good = kit_list(k, tn_text_str(&text)) && kit_build(k);
    return good;
}

static bool has_positions(const char *layer)
{
    return strcmp(layer, "self_attention") == 0 || strcmp(layer, "append") == 0 ||
           strcmp(layer, "positions") == 0;
}

TEST(every_layer_makes_its_operator_and_parameters)
{
    for (uint32_t i = 0; i < N_SAMPLES; i++) {
        const sample *s = &samples[i];
        kit k CLEANUP(kit_done);
        const bool pools = has_positions(s->layer);
        fail_if(!list(&k, s->line, pools), "%s: %s", s->line, tn_text_str(&k.diag.text));
        const tn_node *x = tn_graph_find(k.graph, pools ? "z" : "y")->in[0];
        fail_if(strcmp(x->op->name, s->op) != 0 || tn_params_count(k.params) != s->n_params,
                "%s: '%s', %u parameters", s->line, x->op->name, tn_params_count(k.params));
        assert_int_equal(x->shape.cols, s->cols);
    }
}

TEST(every_layer_of_the_list_has_a_sample)
{
    for (const tn_layer *const *layer = tn_all_layers; *layer != NULL; layer++) {
        bool found = false;
        for (uint32_t i = 0; i < N_SAMPLES; i++) {
            found |= strcmp((*layer)->name, samples[i].layer) == 0;
        }
        fail_if(!found, "no sample of layer '%s'", (*layer)->name);
    }
}

static void refuses(const char *line, const char *fault)
{
    kit k CLEANUP(kit_done);
    fail_if(list(&k, line, false) || strstr(tn_text_str(&k.diag.text), fault) == NULL, "%s: %s",
            line, tn_text_str(&k.diag.text));
}

/* Each line is wrong: the second word is in the message. */
TEST(layers_refuse_what_does_not_fit)
{
    static const char *const wrong[][2] = {
        {"{name: x, data_norm: deep, epsilon: 0}", "epsilon"},
        {"{name: x, batch_norm: deep, epsilon: 0}", "epsilon"},
        {"{name: x, layer_norm: deep, epsilon: 0}", "epsilon"},
        {"{name: x, dense: deep, units: 3, batch_norm: true, bn_epsilon: 0}", "bn_epsilon"},
        {"{name: x, dense: deep, units: 3, bn_gamma: uniform}", "needs 'batch_norm: true'"},
        {"{name: x, mlp: deep, hidden: [3], bn_gamma: uniform}", "needs 'batch_norm: true'"},
        {"{name: x, mul: deep}", "'mul' takes two inputs, not 1"},
        {"{name: x, mul: [deep, wide, wide]}", "'mul' takes two inputs, not 3"},
        {"{name: x, sub: deep}", "'sub' takes two inputs, not 1"},
        {"{name: x, div: [wide, deep]}", "inputs of 'div' have 3 and 12 columns"},
        {"{name: x, maximum: [deep, numbers]}", "the second has as many as the first"},
        {"{name: x, where: [wide, deep]}", "'where' takes three inputs, not 2"},
        {"{name: x, where: [wide, deep, wide]}", "between inputs of 12 and 3 columns"},
        {"{name: x, mix: [numbers, deep, deep, deep]}",
         "one input for each of its 2 columns, not 3"},
        {"{name: x, mix: [numbers, deep, wide]}", "'mix' adds inputs of 12 and 3 columns"},
        {"{name: x, both: [deep, wide]}", "'both' takes two logits of one width"},
        {"{name: x, where: [numbers, deep, deep]}", "the first has as many as the others"},
        {"{name: x, max: numbers, per_slot: true}", "'per_slot' needs slots of one width"},
        {"{name: x, constant: deep}", "'constant' is not a number: 'deep'"},
        {"{name: x, constant: 1, cols: 0}", "cols"},
        {"{name: x, mul: [wide, deep]}", "inputs of 'mul' have 3 and 12 columns"},
        {"{name: x, mul: [deep, numbers]}", "one for each slot"}, /* 12 = 2 * 6 */
        {"{name: x, sum: numbers, per_slot: true}", "'per_slot' needs slots of one width"},
        {"{name: x, mean: deep, dim: 4}", "'per_slot: true'"},
        {"{name: x, layer_norm: deep, per_slot: true, dim: 5}", "'per_slot' needs slots"},
        {"{name: x, inner: numbers}", "'inner' needs slots of one width"},
        {"{name: x, inner: deep, dim: 12}", "'inner' pairs slots, and there is only one"},
        {"{name: x, outer: numbers}", "'outer' needs slots of one width"},
        {"{name: x, bilinear: numbers}", "'bilinear' needs slots of one width"},
        {"{name: x, bilinear: deep, dim: 12}", "'bilinear' pairs slots, and there is only one"},
        {"{name: x, bilinear: deep, form: some}", "form"},
        {"{name: x, cin: numbers, hidden: [3]}", "'cin' needs slots of one width"},
        {"{name: x, cin: deep, hidden: [3.5]}", "no whole number"},
        {"{name: x, slot_dense: deep, units: 3, dim: 5}", "'slot_dense' needs slots of one width"},
        {"{name: x, slot_attention: deep, heads: 3}", "of 4 columns cannot have 3 heads"},
        {"{name: x, ffm_inner: deep}", "'field_dim: k'"},
        {"{name: x, cross_v2: deep, experts: 2}", "need a 'rank'"},
        {"{name: x, cross_v2: deep, experts: 2, rank: 2, gated: true}", "leave out 'gated'"},
        {"{name: x, fusion: deep}", "'fusion' takes two inputs, not 1"},
        {"{name: x, fusion: [deep, wide], heads: 2}", "12 and 3 columns, which 2 heads"},
        {"{name: v, dense: deep, units: 3, param: p}, {name: x, dense: wide, units: 3, param: p}",
         "are called 'p.W': one is [12 x 3], this one [3 x 3]"},
        {"{name: v, bias: deep, param: p}, {name: x, bias: wide, param: p}",
         "are called 'p': one is [1 x 12]"},
        {"{name: v, dense: deep, units: 3}, {name: x, dense: deep, units: 3, param: v}", "'v.W'"},
        {"{name: x, dense: deep, units: 3, param: p, batch_norm: true}", "need 'bias: false'"},
        {"{name: x, dense: deep, units: 3, param: ''}", "'param' is a name of 1 to"},
        {"{name: x, fm: numbers}", "fm"},
        {"{name: x, bi_interaction: numbers}", "bi_interaction"},
        {"{name: x, activation: deep, function: geluu}", "gelu"},
        {"{name: x, dropout: deep, rate: 1.5}", "rate"},
    };
    for (uint32_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        refuses(wrong[i][0], wrong[i][1]);
    }
}

TEST(layers_of_sequences_refuse_what_does_not_fit)
{
    static const char *const wrong[][2] = {
        {"{name: x, attend: clicks}", "'attend' takes two inputs: a sequence, and its target"},
        {"{name: x, attend: [clicks, clicks]}", "'attend' takes two inputs: a sequence"},
        {"{name: x, attend: [deep, target]}", "for each position of a sequence, and 'in.deep'"},
        {"{name: x, attend: [clicks, deep]}", "'in.clicks' of 4 columns with the target 'in.deep'"},
        {"{name: x, append: [clicks, wide]}", "not 4 and 3 columns"},
        {"{name: v, append: [clicks, target]}, {name: x, append: [v, target]}", "without a target"},
        {"{name: x, pool: deep}", "'pool' takes a value for each position of a sequence"},
        {"{name: x, positions: target}", "'positions' takes a value for each position"},
        {"{name: x, self_attention: deep}", "'self_attention' takes a value for each position"},
        {"{name: x, self_attention: clicks, heads: 3}",
         "of 3 heads takes columns that they divide"},
        {"{name: x, dense: [clicks, deep], units: 2}", "layer 'x' takes 'clicks' and 'deep'"},
        {"{name: x, mul: [clicks, target]}", "a value for each position of one sequence"},
        {"{name: v, append: [clicks, target]}, {name: x, add: [clicks, v]}", "layer 'x' takes"},
        {"{name: x, dense: clicks, units: 2}", "the output 'y' has a value for each position"},
    };
    for (uint32_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        refuses(wrong[i][0], wrong[i][1]);
    }
}

/* Numbers side by side. */
typedef struct numbers {
    size_t n;
    const double *x;
} numbers;
#define NUMBERS(...)                                                                               \
    ((numbers){sizeof((const double[]){__VA_ARGS__}) / sizeof(double),                             \
               (const double[]){__VA_ARGS__}})

static void fill_params(tn_params *params, numbers from)
{
    size_t at = 0;
    for (uint32_t i = 0; i < tn_params_count(params); i++) {
        const tn_param_slice *s = tn_params_get(params, i);
        for (size_t e = 0; e < (size_t)s->rows * s->cols && at < from.n; e++) {
            tn_params_weights(params)[s->at + e] = (tn_real)from.x[at++];
        }
    }
    assert_int_equal(tn_params_trained(params), from.n);
}

/* The output of `layers`, called y, on one row x of numbers; parameters get the values of `params`
 * in the order in which they were made. */
static void check_value(const char *layers, numbers x, numbers params, numbers want)
{
    kit k CLEANUP(kit_done);
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_real row[16];
    tn_text_addf(&text,
                 "{type: graph, inputs: {x: {numeric: all}}, layers: [%s, {name: out, sum: y}], "
                 "output: out}",
                 layers);
    kit_init(&k, 1, 4, (uint32_t)x.n);
    fail_if(!kit_list(&k, tn_text_str(&text)) || !kit_build(&k), "%s", tn_text_str(&k.diag.text));
    tn_node *out = tn_graph_find(k.graph, "out");
    const tn_wanted wanted = {.logit = out->in[0], .loss = out};
    assert_int_equal(tn_graph_finish(k.graph, &wanted, NULL), TN_OK);
    fill_params(k.params, params);
    for (size_t c = 0; c < x.n; c++) {
        row[c] = (tn_real)x.x[c];
    }
    tn_forward(k.graph, &(tn_graph_feed){.rows = 1, .numeric = row});
    assert_int_equal(wanted.logit->shape.cols, want.n);
    for (size_t c = 0; c < want.n; c++) {
        const double y = (double)wanted.logit->val[c];
        assert_true(fabs(y - want.x[c]) < 1e-6 * fmax(1, fabs(want.x[c])));
    }
}

/* z = mean of each slot, a = relu(relu(z W1) W2), v' = a v: written by hand. */
TEST(v11_senet_weighs_slots_anew)
{
    const numbers v = NUMBERS(1, 3, 2, -4, .5, .5);
    const numbers w = NUMBERS(.5, .2, 1, 1, -1, 2);
    check_value("{name: z, mean: x, per_slot: true, dim: 2}, "
                "{name: h, dense: z, units: 1, bias: false, activation: relu}, "
                "{name: y, dense: h, units: 3, bias: false, activation: relu}",
                v, w, NUMBERS(1.3, 0, 2.6));
    check_value("{name: z, mean: x, per_slot: true, dim: 2}, "
                "{name: h, dense: z, units: 1, bias: false, activation: relu}, "
                "{name: a, dense: h, units: 3, bias: false, activation: relu}, "
                "{name: y, mul: [x, a]}",
                v, w, NUMBERS(1.3, 3.9, 0, 0, 1.3, 1.3));
}

TEST(v12_fusion_of_two_streams)
{
    check_value("{name: a, slice: x, cols: 4}, {name: b, slice: x, first: 4, cols: 4}, "
                "{name: y, fusion: [a, b], heads: 2}",
                NUMBERS(1, -1, .5, 2, .2, .4, -.6, 1),
                NUMBERS(.1, .2, .3, .4, -.2, -.4, -.6, -.8, .1, .2, .3, .4, -.1, .1, -.1, .1, .05),
                NUMBERS(-.06));
}

/* W and b of V8 on one row, which is x0 and x: with G = 0 every gate is 1/2, and x0 * h is halved.
 */
TEST(a_gated_cross_adds_what_its_gate_lets_through)
{
    const double h[] = {.05 + .02 + .06 + .01, -.1 + .06 - .18 + .02, .02 - .08 - .21 + .03};
    check_value(
        "{name: y, cross_v2: x, layers: 1, gated: true}", NUMBERS(.1, .2, -.3),
        NUMBERS(.5, -1, .2, .1, .3, -.4, -.2, .6, .7, .01, .02, .03, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        NUMBERS(.1 + .05 * h[0], .2 + .1 * h[1], -.3 - .15 * h[2]));
}

/* A pair of columns to each column of the second and third input; ties and edges. */
TEST(operators_of_two_and_three)
{
    const numbers none = {0, NULL};
    const numbers x = NUMBERS(1, -2, 3, 4, 2, -2);
    const char *const two =
        "{name: a, slice: x, cols: 4}, {name: b, slice: x, first: 4, cols: 2}, ";
    static const struct {
        const char *layer;
        double want[4];
    } all[] = {
        {"{name: y, sub: [a, b]}", {-1, -4, 5, 6}},
        {"{name: y, div: [a, b]}", {.5, -1, -1.5, -2}},
        {"{name: y, maximum: [a, b]}", {2, 2, 3, 4}},
        {"{name: y, minimum: [a, b]}", {1, -2, -2, -2}},
        {"{name: n, scale: a, by: 10}, {name: y, where: [b, a, n]}", {1, -2, 30, 40}},
        {"{name: n, scale: a, by: 10}, {name: y, where: [a, a, n]}", {1, -20, 3, 4}},
        {"{name: d, slice: x, first: 2, cols: 4}, {name: y, mix: [b, a, d]}", {-4, -12, 2, 12}},
        {"{name: c, constant: 1.5}, {name: y, maximum: [a, c]}", {1.5, 1.5, 3, 4}},
        {"{name: y, activation: a, function: square}", {1, 4, 9, 16}},
        {"{name: y, activation: a, function: abs}", {1, 2, 3, 4}},
        {"{name: s, activation: a, function: square}, {name: y, activation: s, function: sqrt}",
         {1, 2, 3, 4}},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        tn_text layers CLEANUP(tn_text_done) = {0};
        tn_text_addf(&layers, "%s%s", two, all[i].layer);
        check_value(tn_text_str(&layers), x, none, (numbers){4, all[i].want});
    }
    check_value("{name: y, max: x, per_slot: true, dim: 3}", x, none, NUMBERS(3, 4));
    check_value("{name: y, max: x}", x, none, NUMBERS(4));
    check_value("{name: y, mean: x}", x, none, NUMBERS(1));
    check_value("{name: y, constant: -2.5, cols: 2}", x, none, NUMBERS(-2.5, -2.5));
}

/* One weight, used twice: 3 (3 x + 1) + 1, and x + 3 + 3. */
TEST(layers_of_one_param_have_one_weight)
{
    check_value("{name: a, dense: x, units: 1, param: p}, {name: y, dense: a, units: 1, param: p}",
                NUMBERS(2), NUMBERS(3, 1), NUMBERS(22));
    check_value("{name: a, bias: x, param: p}, {name: y, bias: a, param: p}", NUMBERS(2),
                NUMBERS(3), NUMBERS(8));
}

static const tn_real *gamma_of(const kit *k, const char *name)
{
    const tn_param_slice *slice = tn_params_find(k->params, name);
    assert_non_null(slice);
    return tn_params_weights(k->params) + slice->at;
}

/* Of two layers of 400 units, which draw numbers of their own. */
TEST(bn_gamma_is_one_or_drawn)
{
    static const char *const lines[] = {
        "{name: x, mlp: deep, hidden: [400, 400], batch_norm: true}",
        "{name: x, mlp: deep, hidden: [400, 400], batch_norm: true, bn_gamma: uniform}",
    };
    for (uint32_t drawn = 0; drawn < 2; drawn++) {
        kit k CLEANUP(kit_done);
        assert_true(list(&k, lines[drawn], false));
        assert_int_equal(tn_params_seal(k.params, NULL), TN_OK);
        tn_params_init(k.params, 7);
        const tn_real *first = gamma_of(&k, "x.1.bn.gamma");
        const tn_real *second = gamma_of(&k, "x.2.bn.gamma");
        double sum = 0;
        uint32_t equal = 0;
        for (uint32_t i = 0; i < 400; i++) {
            assert_true(first[i] >= 0 && first[i] <= 1);
            sum += (double)first[i];
            equal += first[i] >= second[i] && first[i] <= second[i];
        }
        const float mean = drawn == 1 ? 0.5F : 1;
        const float near = drawn == 1 ? 0.06F : 0;
        assert_float_equal((float)(sum / 400), mean, near);
        assert_int_equal(equal, drawn ? 0 : 400);
    }
}
