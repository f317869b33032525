/* test_layers.c - every layer of layers.def, written by itself in a list: what it makes. */
#include "models/modelkit.h"
#include "nn/layer/layers.h"
#include "support/test.h"

#include <string.h>

typedef struct sample {
    const char *layer; /* its row in layers.def */
    const char *line;  /* makes "x", which "y" sums */
    const char *op;    /* of what "y" sums */
    uint32_t cols;
    uint32_t n_params;
} sample;

/* wide is [B,3], deep [B,12], pairs [B,18], numbers [B,2]. */
static const sample samples[] = {
    {"dense", "{name: x, dense: deep, units: 5}", "bias", 5, 2},
    {"dense", "{name: x, dense: deep, units: 5, batch_norm: true, activation: relu}", "relu", 5, 6},
    {"mlp", "{name: x, mlp: deep, hidden: [6, 4], units: 2}", "bias", 2, 6},
    {"mlp", "{name: x, mlp: deep, hidden: [6, 4], activation: tanh}", "tanh", 4, 4},
    {"concat", "{name: x, concat: [wide, deep, numbers]}", "concat", 17, 0},
    {"sum", "{name: x, sum: deep}", "sum_cols", 1, 0},
    {"add", "{name: x, add: [deep, deep]}", "add", 12, 0},
    {"mul", "{name: x, mul: [deep, deep]}", "mul", 12, 0},
    {"bias", "{name: x, bias: deep}", "bias", 12, 1},
    {"scale", "{name: x, scale: deep, by: 2, plus: 1}", "scale", 12, 0},
    {"slice", "{name: x, slice: deep, first: 4, cols: 8}", "slice", 8, 0},
    {"fm", "{name: x, fm: deep}", "fm", 1, 0},
    {"ffm", "{name: x, ffm: pairs}", "ffm", 1, 0},
    {"ffm", "{name: x, ffm: pairs, within_slot: true}", "add", 1, 0},
    {"fwfm", "{name: x, fwfm: deep}", "matmul", 1, 1},
    {"bi_interaction", "{name: x, bi_interaction: deep}", "bi_interaction", 4, 0},
    {"cross", "{name: x, cross: deep, layers: 2}", "cross", 12, 4},
    {"cross_v2", "{name: x, cross_v2: deep, layers: 1}", "cross_merge", 12, 2},
    {"activation", "{name: x, activation: deep, function: gelu}", "gelu", 12, 0},
    {"activation", "{name: x, activation: deep, function: prelu}", "prelu", 12, 1},
    {"softmax", "{name: x, softmax: deep}", "softmax", 12, 0},
    {"dropout", "{name: x, dropout: deep, rate: 0.5}", "dropout", 12, 0},
    {"batch_norm", "{name: x, batch_norm: deep}", "batch_norm", 12, 4},
    {"data_norm", "{name: x, data_norm: deep}", "data_norm", 12, 3},
    {"layer_norm", "{name: x, layer_norm: deep}", "layer_norm", 12, 2},
};
enum { N_SAMPLES = sizeof samples / sizeof samples[0] };

static bool list(kit *k, const char *line)
{
    tn_text text = {0};
    tn_text_addf(&text,
                 "{type: graph, inputs: {wide: {embed: all, dim: 1}, deep: {embed: all}, pairs: "
                 "{embed: all, field_dim: 2}, numbers: {numeric: all}}, layers: [%s, {name: y, "
                 "sum: x}], output: y}",
                 line);
    kit_init(k, 3, 4, 2);
    bool good = kit_list(k, tn_text_str(&text)) && kit_build(k);
    tn_text_done(&text);
    return good;
}

static void every_layer_makes_its_operator_and_parameters(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < N_SAMPLES; i++) {
        const sample *s = &samples[i];
        kit k;
        if (!list(&k, s->line)) {
            fail_msg("%s: %s", s->line, tn_text_str(&k.diag.text));
        }
        const tn_node *x = tn_graph_find(k.graph, "y")->in[0];
        if (strcmp(x->op->name, s->op) != 0 || tn_params_count(k.params) != s->n_params) {
            fail_msg("%s: '%s', %u parameters", s->line, x->op->name, tn_params_count(k.params));
        }
        assert_int_equal(x->shape.cols, s->cols);
        kit_done(&k);
    }
}

static void every_layer_of_the_list_has_a_sample(void **state)
{
    (void)state;
    for (const tn_layer *const *layer = tn_all_layers; *layer != NULL; layer++) {
        bool found = false;
        for (uint32_t i = 0; i < N_SAMPLES; i++) {
            found |= strcmp((*layer)->name, samples[i].layer) == 0;
        }
        if (!found) {
            fail_msg("no sample of layer '%s'", (*layer)->name);
        }
    }
}

/* Each line is wrong: the second word is in the message. */
static void layers_refuse_what_does_not_fit(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"{name: x, data_norm: deep, epsilon: 0}", "epsilon"},
        {"{name: x, batch_norm: deep, epsilon: 0}", "epsilon"},
        {"{name: x, layer_norm: deep, epsilon: 0}", "epsilon"},
        {"{name: x, dense: deep, units: 3, batch_norm: true, bn_epsilon: 0}", "bn_epsilon"},
        {"{name: x, mul: deep}", "'mul' takes two inputs, not 1"},
        {"{name: x, mul: [deep, wide, wide]}", "'mul' takes two inputs, not 3"},
        {"{name: x, mul: [deep, wide]}", "inputs of 'mul' have 12 and 3 columns"},
        {"{name: x, fm: numbers}", "fm"},
        {"{name: x, bi_interaction: numbers}", "bi_interaction"},
        {"{name: x, activation: deep, function: geluu}", "gelu"},
        {"{name: x, dropout: deep, rate: 1.5}", "rate"},
    };
    for (uint32_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        kit k;
        if (list(&k, wrong[i][0]) || strstr(tn_text_str(&k.diag.text), wrong[i][1]) == NULL) {
            fail_msg("%s: %s", wrong[i][0], tn_text_str(&k.diag.text));
        }
        kit_done(&k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_layer_makes_its_operator_and_parameters),
        cmocka_unit_test(every_layer_of_the_list_has_a_sample),
        cmocka_unit_test(layers_refuse_what_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
