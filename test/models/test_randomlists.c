/* test_randomlists.c - lists of layers drawn at random: each is refused with a sentence or runs,
 * and what the passes over a graph do (fusing, placing, sharing memory) changes no more than
 * rounding. */
#include "models/modelkit.h"
#include "nn/layer/layers.h"
#include "nn/loss/loss.h"
#include "nn/op/ops.h"
#include "nn/passes/finish.h"
#include "support/test.h"

enum {
    LISTS = 300,
    ROWS = 8,
    SLOTS = 3,
    DIM = 4,
    WIDTH = DIM + 1,
    NUMERIC = 3,
    KEYS = 5,
    ALL = SLOTS * KEYS
};

typedef struct dice {
    uint64_t stream, at;
} dice;

static uint32_t below(dice *d, uint32_t n)
{
    return (uint32_t)tn_below(tn_draw(d->stream, d->at++), n);
}

/* Options of the layers that have some; one of them, or none. */
static const char *const options[][4] = {
    {"dense", ", units: 3, activation: relu, param: ours",
     ", units: 4, activation: dice, batch_norm: true",
     ", units: 2, activation: gelu, dropout: 0.5"},
    {"mlp", ", hidden: [4, 3]", ", hidden: [2], units: 2, activation: prelu",
     ", hidden: [3], batch_norm: true, activation: tanh"},
    {"fm", "", ", dim: 2", ", within_slot: true"},
    {"ffm", "", ", k: 1, within_slot: true", ", k: 2, normalise: true"},
    {"fwfm", "", ", dim: 2", ", normalise: true"},
    {"sum", "", ", per_slot: true, dim: 2", ", per_slot: true"},
    {"mean", "", ", per_slot: true, dim: 3", ", per_slot: true"},
    {"max", "", ", per_slot: true, dim: 3", ", per_slot: true"},
    {"layer_norm", "", ", per_slot: true, dim: 2", ", per_slot: true"},
    {"inner", "", ", dim: 1", ", dim: 4"},
    {"outer", "", ", dim: 1", ", dim: 4"},
    {"fusion", "", ", heads: 2", ", heads: 3"},
    {"bi_interaction", "", ", dim: 3", ", dim: 4"},
    {"cross", ", layers: 1", ", layers: 2", ", layers: 3"},
    {"cross_v2", ", layers: 2", ", layers: 1, rank: 2", ", gated: true"},
    {"slice", ", cols: 1", ", first: 1, cols: 2", ", first: 3, cols: 4"},
    {"activation", ", function: silu", ", function: square", ", function: abs"},
    {"scale", ", by: 0.5", ", by: -1, plus: 0.1", ""},
    {"dropout", ", rate: 0.5", ", rate: 0", ""},
    {"bias", "", ", param: l0.W", ", param: mine"},
};

static const char *option(dice *d, const char *layer)
{
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (strcmp(options[i][0], layer) == 0) {
            return options[i][1 + below(d, 3)];
        }
    }
    return "";
}

static void add_input(dice *d, uint32_t n_layers, tn_text *out)
{
    static const char *const inputs[] = {"wide", "deep", "num"};
    uint32_t i = below(d, n_layers + 3);
    if (i < 3) {
        tn_text_adds(out, inputs[i]);
    } else {
        tn_text_addf(out, "l%u", n_layers - 1 - (i - 3) / 2);
    }
}

static void add_layer(dice *d, uint32_t i, tn_text *out)
{
    uint32_t n = 0;
    while (tn_all_layers[n] != NULL) {
        n++;
    }
    const char *layer = tn_all_layers[below(d, n)]->name;
    static const char *const two[] = {"mul", "sub", "div", "maximum", "minimum", "fusion"};
    uint32_t n_in = strcmp(layer, "where") == 0 ? 3 : 1 + below(d, 3);
    for (size_t k = 0; k < sizeof two / sizeof two[0]; k++) {
        n_in = strcmp(layer, two[k]) == 0 ? 2 : n_in;
    }
    if (strcmp(layer, "constant") == 0) {
        tn_text_addf(out, "{name: l%u, constant: %u, cols: %u}, ", i, below(d, 3), 1 + below(d, 3));
        return;
    }
    tn_text_addf(out, "{name: l%u, %s: [", i, layer);
    for (uint32_t k = 0; k < n_in; k++) {
        tn_text_adds(out, k > 0 ? ", " : "");
        add_input(d, i, out);
    }
    tn_text_addf(out, "]%s}, ", option(d, layer));
}

static void draw_list(uint32_t number, tn_text *out)
{
    dice d = {tn_stream2(59, 1, number), 0};
    uint32_t n = 1 + below(&d, 8);
    tn_text_adds(out, "{type: graph, inputs: {wide: {embed: all, dim: 1}, deep: {embed: all}, "
                      "num: {numeric: all}}, layers: [");
    for (uint32_t i = 0; i < n; i++) {
        add_layer(&d, i, out);
    }
    tn_text_addf(out, "{name: out, dense: [l%u, ", n - 1);
    add_input(&d, n, out);
    tn_text_addf(out, "], units: 1}%s], output: out}",
                 below(&d, 8) == 0 ? ", {name: out.matmul, sum: num}" : "");
}

/* Eight rows; slot s of row r holds keys r and r + s, which are its own. */
typedef struct batch {
    uint32_t offset[ROWS + 1], index[SLOTS][2 * ROWS], slot[SLOTS];
    tn_row_block block[SLOTS];
    float rows[ALL * WIDTH], grads[ALL * WIDTH];
    float numeric[ROWS * NUMERIC], label[ROWS];
    tn_bag bag[SLOTS];
    tn_sparse sparse;
} batch;

static void fill(batch *b)
{
    uint64_t s = tn_stream2(61, 0, 0);
    for (uint32_t i = 0; i <= ROWS; i++) {
        b->offset[i] = 2 * i;
    }
    for (uint32_t i = 0; i < SLOTS * 2 * ROWS; i++) {
        b->index[i / (2 * ROWS)][i % (2 * ROWS)] =
            (i / (2 * ROWS) * KEYS + (uint32_t)tn_below(tn_draw(s, i), KEYS)) * WIDTH;
    }
    for (uint32_t i = 0; i < ALL * WIDTH; i++) {
        b->rows[i] = (float)tn_normal(tn_draw(s, 1000 + i));
    }
    for (uint32_t i = 0; i < ROWS * NUMERIC; i++) {
        b->numeric[i] = (float)tn_normal(tn_draw(s, 5000 + i));
        b->label[i % ROWS] = (float)(i % 3 == 0);
    }
    for (uint32_t i = 0; i < SLOTS; i++) {
        b->bag[i] = (tn_bag){.offset = b->offset, .index = b->index[i]};
        b->slot[i] = i;
        b->block[i] =
            (tn_row_block){i * KEYS * WIDTH, (i + 1) * KEYS * WIDTH, &b->slot[i], 1, true};
    }
    b->sparse = (tn_sparse){ALL * WIDTH, b->rows, b->grads, b->bag, b->block, SLOTS};
}

/* What came out: logits, and when training the length of each parameter's gradient and the rows'.
 */
typedef struct outcome {
    bool built;
    double number[ROWS + 256];
    uint32_t n;
} outcome;

static void add_norm(outcome *out, const float *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)x[i] * (double)x[i];
    }
    assert_true(out->n < sizeof out->number / sizeof out->number[0]);
    out->number[out->n++] = sqrt(sum);
}

static void run_graph(kit *k, batch *b, outcome *out)
{
    tn_wanted wanted = {.logit = k->made.logit};
    if (k->opts.train) {
        wanted.loss = tn_apply(k->graph, &tn_loss_mse.op, "loss", TN_IN(k->made.logit), NULL);
    }
    assert_int_equal(tn_graph_finish(k->graph, &wanted, NULL), TN_OK);
    tn_params_init(k->params, 3);
    tn_graph_feed feed = {.rows = ROWS,
                          .sparse = &b->sparse,
                          .numeric = b->numeric,
                          .label = b->label,
                          .info = {.seed = 5, .training = k->opts.train}};
    tn_forward(k->graph, &feed);
    for (uint32_t r = 0; r < ROWS; r++) {
        out->number[out->n++] = (double)*tn_val_row(k->made.logit, r);
    }
    if (k->opts.train) {
        tn_backward(k->graph);
        for (uint32_t i = 0; i < tn_params_count(k->params); i++) {
            const tn_param_slice *s = tn_params_get(k->params, i);
            bool counts = s->train && tn_graph_find(k->graph, s->name)->grad != NULL;
            add_norm(out, tn_params_grads(k->params) + s->at,
                     counts ? (size_t)s->rows * s->cols : 0);
        }
        add_norm(out, b->grads, (size_t)ALL * WIDTH);
    }
}

static outcome outcome_of(const char *list, bool train, bool no_passes)
{
    static batch b;
    memset(&b, 0, sizeof b);
    fill(&b);
    kit k CLEANUP(kit_done);
    outcome out = {.n = 0};
    kit_init(&k, SLOTS, DIM, NUMERIC);
    k.opts = (tn_graph_opts){.max_rows = ROWS, .train = train, .no_passes = no_passes, .seed = 1};
    out.built = kit_list(&k, list) && kit_build(&k);
    if (out.built) {
        run_graph(&k, &b, &out);
    } else {
        assert_true(k.diag.n_errors > 0);
    }
    return out;
}

static void assert_alike(const char *list, const outcome *a, const outcome *b)
{
    assert_int_equal(a->n, b->n);
    for (uint32_t i = 0; i < a->n; i++) {
        double x = a->number[i];
        double y = b->number[i];
        bool wild = !(fabs(x) < 1e4); /* a product of products */
        fail_if(!wild && !(fabs(x - y) <= 1e-2 * fmax(0.1, fabs(x))), "%s\nnumber %u: %g and %g",
                list, i, x, y);
    }
}

TEST(random_lists_are_refused_or_run_alike)
{
    uint32_t n_built = 0;
    print_message("seed 59\n");
    for (uint32_t i = 0; i < LISTS; i++) {
        tn_text text CLEANUP(tn_text_done) = {0};
        draw_list(i, &text);
        const char *list = tn_text_str(&text);
        outcome trained = outcome_of(list, true, false);
        if (trained.built) {
            n_built++;
            outcome plain = outcome_of(list, true, true);
            assert_alike(list, &trained, &plain);
            outcome scored = outcome_of(list, false, false);
            plain = outcome_of(list, false, true);
            assert_alike(list, &scored, &plain);
        }
    }
    print_message("%u of %d lists ran\n", n_built, LISTS);
    assert_true(n_built >= LISTS / 10);
}
