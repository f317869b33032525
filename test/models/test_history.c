/* test_history.c - layers and models of sequences: by an independent program, at the ends of what
 * a batch may hold, and what they refuse. */
#include "base/keys/record.h"
#include "config/tree.h"
#include "models/modelkit.h"
#include "nn/layer/layers.h"
#include "nn/op/ops.h"
#include "nn/passes/finish.h"
#include "support/test.h"

#include <math.h>

enum { ROWS = 4, DIM = 4, KEYS = 8 };

/* Printed by test/golden/sequences.py. */
static const double din[ROWS][DIM] = {
    {0.000000000, 0.000000000, 0.000000000, 0.000000000},
    {-0.042656142, 0.100296919, 0.151037454, 0.062914851},
    {0.058469099, -0.076633096, -0.141279175, -0.076033833},
    {0.299655281, -0.112643898, -0.421378797, -0.342699973},
};
static const double din_softmax[ROWS][DIM] = {
    {0.000000000, 0.000000000, 0.000000000, 0.000000000},
    {-0.279415498, 0.656986599, 0.989358247, 0.412118485},
    {0.077656814, -0.102401709, -0.188312573, -0.101089726},
    {0.608185501, -0.254538953, -0.883241468, -0.699895850},
};
static const double bst[ROWS][DIM] = {
    {0.142983317, -0.284882328, -0.249722831, -0.589286326},
    {-0.097761080, -0.213972010, -0.318174815, -0.429816675},
    {-0.076003182, -0.214645130, -0.315138355, -0.417358813},
    {-0.391775498, -0.193231344, -0.399363486, -0.451958283},
};

/* A batch of a target, slot 0, and a history, slot 2; key k has the vector sin(3 k + c). */
typedef struct history {
    tn_sparse sparse;
    tn_bag bag[3];
    uint32_t target_at[ROWS + 1], none_at[ROWS + 1];
    uint32_t target[ROWS];
    uint32_t offset[ROWS + 1];
    uint32_t key[16];
    tn_row_block block;
    uint32_t slots[3];
    tn_real rows[KEYS * DIM];
    tn_real grads[KEYS * DIM];
} history;

static void fill_history(history *h, const char *const lists[ROWS])
{
    uint32_t n = 0;
    *h = (history){.slots = {0, 1, 2}};
    for (uint32_t i = 0; i < KEYS * DIM; i++) {
        const uint32_t key = i / DIM;
        h->rows[i] = (tn_real)sin(3.0 * key + i % DIM);
    }
    for (uint32_t r = 0; r < ROWS; r++) {
        h->target[r] = r * DIM;
        h->target_at[r + 1] = r + 1;
        for (const char *c = lists[r]; *c != '\0'; c++) {
            h->key[n++] = (uint32_t)(*c - '0') * DIM;
        }
        h->offset[r + 1] = n;
    }
    h->bag[0] = (tn_bag){.offset = h->target_at, .index = h->target};
    h->bag[1] = (tn_bag){.offset = h->none_at, .index = h->target};
    h->bag[2] = (tn_bag){.offset = h->offset, .index = h->key};
    h->block = (tn_row_block){0, KEYS * DIM, h->slots, 3, false};
    h->sparse = (tn_sparse){KEYS * DIM, h->rows, h->grads, h->bag, &h->block, 1};
}

/* As the program has them, in the order in which layers ask for them. */
static void fill_params(tn_params *params)
{
    uint32_t index = 0;
    assert_int_equal(tn_params_seal(params, NULL), TN_OK);
    tn_params_init(params, 1);
    for (uint32_t i = 0; i < tn_params_count(params); i++) {
        const tn_param_slice *s = tn_params_get(params, i);
        for (size_t e = 0; s->train && e < (size_t)s->rows * s->cols; e++) {
            tn_params_weights(params)[s->at + e] =
                (tn_real)(0.4 * sin(1.0 + 7.0 * index + 0.37 * (double)e));
        }
        index += s->train;
    }
}

/* Builds `layers`, whose last is x with the values of a row, to train or to score. */
static void build(kit *k, const char *layers, bool train)
{
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_error err = {0};
    tn_text_addf(&text,
                 "{type: graph, inputs: {target: {embed: [s0]}, clicks: {sequence: clicks, "
                 "vectors: target}}, layers: [%s, {name: y, sum: x}], output: y}",
                 layers);
    kit_init(k, 3, DIM, 0);
    k->opts = (tn_graph_opts){.max_rows = ROWS, .train = train, .reduction = TN_REDUCE_SUM};
    fail_if(!kit_list(k, tn_text_str(&text)) || !kit_build(k), "%s", tn_text_str(&k->diag.text));
    const char *fetch[] = {"x"};
    tn_wanted wanted = {.logit = k->made.logit, .fetch = fetch, .n_fetch = 1};
    wanted.loss = train ? k->made.logit : NULL;
    assert_ok(tn_graph_finish(k->graph, &wanted, &err), err.text);
    fill_params(k->params);
}

static void forward(const kit *k, const history *h)
{
    tn_forward(k->graph,
               &(tn_graph_feed){.rows = ROWS, .sparse = &h->sparse, .info = {.training = true}});
}

static const char *const lists[ROWS] = {"", "2", "12345", "717"};

static void compare(const char *layers, const double want[ROWS][DIM])
{
    kit k CLEANUP(kit_done);
    history h;
    build(&k, layers, false);
    fill_history(&h, lists);
    forward(&k, &h);
    const tn_node *x = tn_graph_find(k.graph, "x");
    for (uint32_t r = 0; r < ROWS; r++) {
        for (uint32_t c = 0; c < DIM; c++) {
            const double got = (double)tn_val_row(x, r)[c];
            fail_if(fabs(got - want[r][c]) > 1e-5, "%s: row %u, column %u: %.9f, not %.9f", layers,
                    r, c, got, want[r][c]);
        }
    }
}

TEST(attend_has_the_numbers_of_the_paper)
{
    compare("{name: x, attend: [clicks, target], hidden: [6, 3]}", din);
    compare("{name: x, attend: [clicks, target], hidden: [6, 3], softmax: true}", din_softmax);
}

TEST(a_block_of_bst_has_the_numbers_of_the_paper)
{
    compare("{name: all, append: [clicks, target]}, {name: p, positions: all}, "
            "{name: b, self_attention: p, heads: 2}, {name: x, pool: b}",
            bst);
}

/* Gradients of all parameters that train, added up. */
static double gradient_size(const kit *k)
{
    double size = 0;
    for (uint32_t i = 0; i < tn_params_count(k->params); i++) {
        const tn_param_slice *s = tn_params_get(k->params, i);
        for (size_t e = 0; s->train && e < (size_t)s->rows * s->cols; e++) {
            size += fabs((double)tn_params_grads(k->params)[s->at + e]);
        }
    }
    return size;
}

/* What a step with positions leaves must be gone after one without. */
TEST(a_batch_of_empty_histories_has_no_gradient)
{
    static const char *const none[ROWS] = {"", "", "", ""};
    static const char *const layers[] = {
        "{name: x, attend: [clicks, target], hidden: [6]}",
        "{name: p, positions: clicks}, {name: b, self_attention: p}, {name: x, pool: b}",
        "{name: b, batch_norm: clicks}, {name: x, pool: b, kind: max}"};
    for (uint32_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        kit k CLEANUP(kit_done);
        history h;
        build(&k, layers[i], true);
        fill_history(&h, lists);
        forward(&k, &h);
        tn_backward(k.graph);
        assert_true(gradient_size(&k) > 0);
        fill_history(&h, none);
        forward(&k, &h);
        tn_backward(k.graph);
        fail_if(gradient_size(&k) > 0, "%s: gradients of no positions", layers[i]);
        assert_null(tn_graph_not_finite(k.graph));
        for (uint32_t e = 0; e < KEYS * DIM; e++) {
            fail_if(fabs((double)h.grads[e]) > 0, "%s: a row has a gradient", layers[i]);
        }
    }
}

TEST(models_of_histories_leave_their_lists_out_of_the_deep_part)
{
    static const char *const models[] = {"{type: din, hidden: [4]}",
                                         "{type: bst, hidden: [4], attention: {pool: last}}"};
    for (uint32_t i = 0; i < 2; i++) {
        kit k CLEANUP(kit_done);
        kit_init(&k, 3, DIM, 1);
        fail_if(!kit_list(&k, models[i]) || !kit_build(&k), "%s", tn_text_str(&k.diag.text));
        const tn_node *deep = tn_graph_find(k.graph, "in.deep");
        assert_int_equal(tn_embed_list_of(deep)->n, 2);
        assert_int_equal(tn_graph_find(k.graph, "clicks.attended")->shape.cols, DIM);
        assert_int_equal(tn_graph_find(k.graph, "in.clicks")->positions.max_len, 5);
    }
}

/* The list that a model writes, as text. */
static void list_of(const char *model, tn_text *out)
{
    kit k CLEANUP(kit_done);
    kit_init(&k, 3, DIM, 1);
    fail_if(!kit_list(&k, model) || !kit_build(&k), "%s", tn_text_str(&k.diag.text));
    tn_tree_print_flow(out, k.list);
}

TEST(options_of_one_sequence_lie_over_those_of_all)
{
    static const char *const pairs[][2] = {
        {"{type: din, attention: {hidden: [6], activation: relu, of: {clicks: {hidden: [3]}}}}",
         "{type: din, attention: {hidden: [3], activation: relu}}"},
        {"{type: bst, attention: {heads: 1, of: {clicks: {pool: last, layers: 2}}}}",
         "{type: bst, attention: {heads: 1, pool: last, layers: 2}}"},
    };
    for (uint32_t i = 0; i < 2; i++) {
        tn_text own CLEANUP(tn_text_done) = {0};
        tn_text all CLEANUP(tn_text_done) = {0};
        list_of(pairs[i][0], &own);
        list_of(pairs[i][1], &all);
        assert_string_equal(tn_text_str(&own), tn_text_str(&all));
    }
}

TEST(options_of_no_sequence_are_refused)
{
    static const char *const words[][2] = {
        {"{type: din, attention: {of: {buys: {hidden: [3]}}}}",
         "'attention.of' names 'buys', which is no sequence with a target"},
        {"{type: din, attention: {of: {clicks: {of: {clicks: {hidden: [3]}}}}}}",
         "or has an 'of' itself"},
        {"{type: bst, attention: {of: clicks}}", "'attention.of' is a map {sequence: {..}}"},
        {"{type: bst, attention: {of: {clicks: {hidden: [3]}}}}", "unknown key 'hidden'"},
    };
    for (uint32_t i = 0; i < sizeof words / sizeof *words; i++) {
        kit k CLEANUP(kit_done);
        kit_init(&k, 3, DIM, 1);
        fail_if(kit_list(&k, words[i][0]) || strstr(tn_text_str(&k.diag.text), words[i][1]) == NULL,
                "%s: %s", words[i][0], tn_text_str(&k.diag.text));
    }
}

TEST(models_of_histories_need_a_target)
{
    kit k CLEANUP(kit_done);
    kit_init(&k, 3, DIM, 1);
    k.features.n_sequences = 0;
    assert_false(kit_list(&k, "{type: bst}"));
    assert_non_null(strstr(tn_text_str(&k.diag.text),
                           "model 'bst' attends a history, and no sequence has a target"));
}

static void refuses(const char *inputs, const char *fault)
{
    kit k CLEANUP(kit_done);
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_text_addf(&text, "{type: graph, inputs: {%s}, layers: [{name: y, sum: deep}], output: y}",
                 inputs);
    kit_init(&k, 3, DIM, 1);
    fail_if((kit_list(&k, tn_text_str(&text)) && kit_build(&k)) ||
                strstr(tn_text_str(&k.diag.text), fault) == NULL,
            "%s: %s", inputs, tn_text_str(&k.diag.text));
}

TEST(inputs_of_sequences_are_judged)
{
    refuses("deep: {embed: all}, c: {sequence: click}",
            "input 'c' reads sequence 'click', and 'sequences' has none (did you mean 'clicks'?)");
    refuses("deep: {embed: all}, c: {sequence: clicks, embed: all}", "needs one of");
    refuses("deep: {embed: all}, c: {sequence: clicks, field_dim: 2}", "'field_dim' of input 'c'");
    refuses("deep: {embed: all}, c: {sequence: clicks, vectors: dep}",
            "input 'c' takes vectors of 'dep', which has none of its own");
    refuses("deep: {embed: all}, c: {sequence: clicks, vectors: deep, dim: 4}",
            "'vectors' of input 'c' are another's");
    refuses("deep: {embed: all}, c: {numeric: all, vectors: deep}", "'vectors' of input 'c'");
}
