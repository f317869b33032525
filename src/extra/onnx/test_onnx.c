/* test_onnx.c - the smallest model to the byte, names that clash, every operator and calibrations
 * by the standard. What onnxruntime computes is compared by test/interop/onnx.sh. */
#include "extra/onnx/onnx.h"

#include "nn/passes/finish.h"
#include "support/test.h"

#include "base/codec/proto.h"
#include "base/math/crc32c.h"
#include "extra/onnxeval.h"
#include "nn/gradcheck.h"
#include "nn/graph/params.h"

typedef struct net {
    tn_graph *g;
    tn_params *params;
} net;

static net open_net(void)
{
    return (net){tn_graph_new(&(tn_graph_opts){.max_rows = 1, .frozen = true}), tn_params_new()};
}

static tn_node *param(const net *n, const char *name, uint32_t rows, uint32_t cols)
{
    return tn_param(n->g, n->params, name, (tn_shape){rows, cols},
                    (tn_init){.kind = TN_INIT_CONSTANT});
}

/* Output logit, and its sigmoid as pctr. */
static void finish(const net *n, tn_onnx_model *m, tn_node *logit, const char *pctr)
{
    tn_node *p = pctr != NULL ? tn_activate(n->g, pctr, logit, "sigmoid") : logit;
    assert_int_equal(tn_params_seal(n->params, NULL), TN_OK);
    const tn_wanted wanted = {.logit = logit, .fetch = &p->name, .n_fetch = 1};
    assert_int_equal(tn_graph_finish(n->g, &wanted, NULL), TN_OK);
    m->logit = logit;
    m->pctr = p;
    m->version = "1";
}

static void close_net(net *n)
{
    tn_graph_free(n->g);
    tn_params_free(n->params);
}

static tn_text write_model(const net *n, const tn_onnx_model *m)
{
    tn_text out = {0};
    tn_error err = {0};
    assert_ok(tn_graph_onnx(n->g, m, &out, &err), err.text);
    return out;
}

/* docs/formats.md section 7. */
TEST(golden_model)
{
    net n CLEANUP(close_net) = open_net();
    tn_onnx_model m = {0};
    tn_node *x = tn_input(n.g, "in.deep", 2, false);
    tn_node *w = param(&n, "out.W", 2, 1);
    tn_node *b = param(&n, "out.b", 1, 1);
    tn_node *z = tn_apply(n.g, &tn_op_matmul, NULL, TN_IN(x, w), NULL);
    z = tn_apply(n.g, &tn_op_bias, "logit", TN_IN(z, b), NULL);
    finish(&n, &m, z, "pctr");
    float *weights = tn_params_weights(n.params);
    memcpy(weights + tn_params_find(n.params, "out.W")->at, (const float[]){1, -2}, 8);
    weights[tn_params_find(n.params, "out.b")->at] = 0.5F;
    tn_text out CLEANUP(tn_text_done) = write_model(&n, &m);
    assert_int_equal(out.size, 226);
    assert_int_equal(tn_crc32c(0, out.data, out.size), 0x339f13b1);
}

typedef struct seen {
    uint32_t nodes, initializers, inputs, outputs, meta;
    char names[4096]; /* names of nodes, a blank after each */
} seen;

static void count_graph(tn_bytes graph, seen *s)
{
    tn_proto_field f;
    while (tn_proto_next(&graph, &f)) {
        tn_bytes node = f.bytes;
        tn_proto_field inner;
        s->nodes += f.tag == TN_PROTO_TAG(1, TN_WIRE_BYTES);
        s->initializers += f.tag == TN_PROTO_TAG(5, TN_WIRE_BYTES);
        s->inputs += f.tag == TN_PROTO_TAG(11, TN_WIRE_BYTES);
        s->outputs += f.tag == TN_PROTO_TAG(12, TN_WIRE_BYTES);
        while (f.tag == TN_PROTO_TAG(1, TN_WIRE_BYTES) && tn_proto_next(&node, &inner)) {
            if (inner.tag == TN_PROTO_TAG(3, TN_WIRE_BYTES)) {
                const size_t size = strlen(s->names);
                (void)snprintf(s->names + size, sizeof s->names - size, "%.*s ",
                               (int)inner.bytes.size, inner.bytes.data);
            }
        }
    }
    assert_false(graph.failed);
}

static seen look(const tn_text *model)
{
    seen s = {0};
    tn_bytes in = {model->data, model->size, false};
    tn_proto_field f;
    while (tn_proto_next(&in, &f)) {
        if (f.tag == TN_PROTO_TAG(7, TN_WIRE_BYTES)) {
            count_graph(f.bytes, &s);
        }
        s.meta += f.tag == TN_PROTO_TAG(14, TN_WIRE_BYTES);
    }
    assert_false(in.failed);
    return s;
}

/* Outputs are called logit and pctr, whatever the model calls them and its other nodes. */
TEST(outputs_have_their_names)
{
    net n CLEANUP(close_net) = open_net();
    tn_onnx_model m = {0};
    tn_node *x = tn_input(n.g, "x", 4, false);
    tn_node *other = tn_activate(n.g, "logit", x, "tanh");
    tn_node *z = tn_apply(n.g, &tn_op_sum_cols, "z", TN_IN(other), NULL);
    finish(&n, &m, z, "p");
    const tn_onnx_meta meta = {"a", "b"};
    m.meta = &meta;
    m.n_meta = 1;
    tn_text out = write_model(&n, &m);
    seen s = look(&out);
    assert_string_equal(s.names, "logit:node logit pctr ");
    assert_int_equal(s.inputs, 1);
    assert_int_equal(s.outputs, 2);
    assert_int_equal(s.meta, 1);
    tn_text_done(&out);

    m.map.platt = (const double[]){0.9, 0.1, 0};
    out = write_model(&n, &m);
    s = look(&out);
    assert_string_equal(s.names, "logit:node logit:raw p:1 logit pctr ");
    tn_text_done(&out);
    m.map.platt = (const double[]){0.9, 0.1, -0.05};
    m.unknown_max = 63;
    out = write_model(&n, &m);
    s = look(&out);
    assert_string_equal(s.names, "logit:node logit:raw p:1 p:2 p:3 p:4 logit pctr ");
    assert_int_equal(s.inputs, 2);
    tn_text_done(&out);
}

/* A score of another loss is one output; a parameter that is used twice is there once. */
TEST(a_score_is_one_output)
{
    net n CLEANUP(close_net) = open_net();
    tn_onnx_model m = {0};
    tn_node *x = tn_input(n.g, "x", 4, false);
    tn_node *w = param(&n, "W", 4, 4);
    tn_node *h = tn_apply(n.g, &tn_op_matmul, "h", TN_IN(x, w), NULL);
    h = tn_apply(n.g, &tn_op_matmul, "k", TN_IN(h, w), NULL);
    finish(&n, &m, tn_apply(n.g, &tn_op_sum_cols, "z", TN_IN(h), NULL), NULL);
    tn_text out CLEANUP(tn_text_done) = write_model(&n, &m);
    const seen s = look(&out);
    assert_string_equal(s.names, "h k score ");
    assert_int_equal(s.outputs, 1);
    assert_int_equal(s.initializers, 2); /* W, and the axis of the sum */
}

static const tn_op *checked;

static tn_node *example(tn_graph *g)
{
    return tn_op_example(g, checked);
}

/* No part of a graph that scores, or of sequences, which are refused: losses, what only trains, and
 * what is an input there or is made of one when a graph that trains is finished. */
static bool never_scores(const tn_op *op)
{
    return op->is_loss || op->layout.trains_only || (op->n_in == 0 && op != &tn_op_constant) ||
           op->positions != NULL || op == &tn_op_embed_squares || op == &tn_op_embed_norm;
}

/* A sum of the operator's columns, each times another number, of TNet and by the standard. */
static void compare(const tn_op *op, uint64_t seed)
{
    tn_check c;
    tn_error err = {0};
    tn_text model CLEANUP(tn_text_done) = {0};
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    checked = op;
    tn_check_open(&c, example, &(tn_graph_opts){.train = false}, seed);
    tn_forward(c.g, &c.feed);
    const tn_onnx_model m = {.logit = c.loss, .pctr = c.loss, .version = "1"};
    assert_ok(tn_graph_onnx(c.g, &m, &model, &err), err.text);
    const double *want = tn_onnx_eval(&model, "score", c.g, c.feed.rows, arena);
    for (uint32_t r = 0; r < c.feed.rows; r++) {
        const double got = (double)*tn_val_row(c.loss, r);
        const bool same =
            isnan(want[r]) ? isnan(got) : fabs(got - want[r]) <= 1e-5 * fmax(1, fabs(want[r]));
        fail_if(!same, "%s: %.9g, by the standard %.9g (seed %llu)", op->name, got, want[r],
                (unsigned long long)seed);
    }
    tn_check_close(&c);
}

TEST(every_operator_that_scores_has_a_form)
{
    uint32_t n = 0;
    for (const tn_op *const *op = tn_all_ops; *op != NULL; op++) {
        for (uint64_t seed = 1; seed <= 3 && !never_scores(*op); seed++) {
            compare(*op, seed);
            n++;
        }
    }
    assert_true(n > 100);
}

TEST(positions_of_a_sequence_are_refused)
{
    net n CLEANUP(close_net) = open_net();
    tn_text out CLEANUP(tn_text_done) = {0};
    tn_error err = {0};
    tn_node *x = tn_input_positions(n.g, "in.clicks", 4, (tn_positions){.max_len = 5}, false);
    tn_node *y = tn_apply(n.g, &tn_op_sequence_pool, "p", TN_IN(x), &(tn_sequence_pool_attr){0});
    tn_node *z = tn_apply(n.g, &tn_op_sum_cols, "z", TN_IN(y), NULL);
    const tn_onnx_model m = {.logit = z, .pctr = z, .version = "1"};
    assert_ok(tn_graph_finish(n.g, &(tn_wanted){.logit = z}, &err), err.text);
    assert_int_equal(tn_graph_onnx(n.g, &m, &out, &err), TN_E_CONFIG);
    assert_non_null(strstr(err.text, "'onnx' has no form of 'in.clicks'"));
}

/* ---- a calibration of breakpoints ---- */

enum { KNOTS = 7, AROUND = 9 };

/* Level, steep, with ends that floats cannot separate from their neighbours, and up to 0 and 1. */
static const tn_onnx_knot knots[KNOTS] = {{-3, 0},           {-2.9999999, 0.2}, {-1.1, 0.2},
                                          {-1.0999999, 0.7}, {0.1, 0.70001},    {2.3, 0.9999},
                                          {5.7, 1}};

/* docs/numerics.md section 8. */
static double calibrated(double z)
{
    uint32_t k = 0;
    while (k < KNOTS && knots[k].z <= z) {
        k++;
    }
    double p = knots[k == 0 ? 0 : k - 1].p;
    if (k > 0 && k < KNOTS) {
        p += (z - knots[k - 1].z) / (knots[k].z - knots[k - 1].z) * (knots[k].p - p);
    }
    return fmin(fmax(log(p) - log1p(-p), -16), 16);
}

/* Breakpoint k, or rather the float nearest to it, its neighbours, what is halfway to the next, and
 * far away. */
static float around(uint32_t k, uint32_t i)
{
    const float z = (float)knots[k].z;
    const float next = (float)knots[k + 1 < KNOTS ? k + 1 : k].z;
    const float some[AROUND] = {z,
                                nextafterf(z, -INFINITY),
                                nextafterf(z, INFINITY),
                                z + (next - z) / 2,
                                z + (next - z) * 0.999F,
                                -1e30F,
                                1e30F,
                                -INFINITY,
                                INFINITY};
    return some[i];
}

TEST(a_calibration_of_knots_is_that_of_the_formula)
{
    net n CLEANUP(close_net) = {
        tn_graph_new(&(tn_graph_opts){.max_rows = KNOTS * AROUND, .frozen = true}),
        tn_params_new()};
    tn_onnx_model m = {.map = {.knot = knots, .n_knots = KNOTS}, .logit_max = 16};
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    tn_node *x = tn_input(n.g, "x", 1, false);
    finish(&n, &m, tn_apply(n.g, &tn_op_sum_cols, "z", TN_IN(x), NULL), "p");
    for (uint32_t r = 0; r < KNOTS * AROUND; r++) {
        *tn_val_row(x, r) = around(r / AROUND, r % AROUND);
    }
    tn_text out CLEANUP(tn_text_done) = write_model(&n, &m);
    const double *logit = tn_onnx_eval(&out, "logit", n.g, KNOTS * AROUND, arena);
    const double *pctr = tn_onnx_eval(&out, "pctr", n.g, KNOTS * AROUND, arena);
    for (uint32_t r = 0; r < KNOTS * AROUND; r++) {
        const double z = (double)around(r / AROUND, r % AROUND);
        const double want = calibrated(z);
        fail_if(!(fabs(logit[r] - want) <= 1e-6 * fmax(1, fabs(want))),
                "%.9g becomes %.9g instead of %.9g", z, logit[r], want);
        assert_true(fabs(pctr[r] - 1 / (1 + exp(-want))) <= 1e-6);
    }
}

/* ---- several tasks ---- */

static double sigmoid(double z)
{
    return 1 / (1 + exp(-z));
}

/* Compares an output with what `want` makes of the logits a of a click and b of a purchase. */
static void check_output(const tn_text *model, const tn_graph *g, const char *name,
                         double (*want)(double a, double b))
{
    enum { ROWS = 9 };
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    const double *got = tn_onnx_eval(model, name, g, ROWS, arena);
    for (uint32_t r = 0; r < ROWS; r++) {
        const double a = r - 4.0;
        const double should = want(a, 1.5 - a / 2);
        fail_if(!(fabs(got[r] - should) <= 1e-6 * fmax(1, fabs(should))),
                "%s of row %u is %.9g instead of %.9g", name, r, got[r], should);
    }
}

static double logit_of_both(double a, double b)
{
    return -log(exp(-a) + exp(-b) + exp(-a - b));
}

static double purchase(double a, double b)
{
    return sigmoid(a) * sigmoid(b);
}

static double purchase_given(double a, double b)
{
    (void)a;
    return sigmoid(b);
}

static double seconds(double a, double b)
{
    (void)a;
    return b;
}

static double mapped(double a, double b)
{
    return 0.9 * logit_of_both(a, b) + 0.1;
}

static double mapped_purchase(double a, double b)
{
    return sigmoid(mapped(a, b));
}

static double on_knots(double a, double b)
{
    return calibrated(logit_of_both(a, b));
}

TEST(outputs_of_tasks_have_the_values_of_the_graph)
{
    net n CLEANUP(close_net) = {tn_graph_new(&(tn_graph_opts){.max_rows = 9, .frozen = true}),
                                tn_params_new()};
    tn_node *x = tn_input(n.g, "x", 1, false);
    tn_node *a = tn_apply(n.g, &tn_op_sum_cols, "a", TN_IN(x), NULL);
    const tn_scale_attr half = {.by = -0.5, .plus = 1.5};
    tn_node *b = tn_apply(n.g, &tn_op_scale, "b", TN_IN(a), &half);
    tn_node *both = tn_apply(n.g, &tn_op_both, "both", TN_IN(a, b), NULL);
    tn_node *p = tn_activate(n.g, "p", a, "sigmoid");
    const char *const kept[] = {"p", "b", "both"};
    assert_int_equal(tn_params_seal(n.params, NULL), TN_OK);
    assert_int_equal(
        tn_graph_finish(n.g, &(tn_wanted){.logit = a, .fetch = kept, .n_fetch = 3}, NULL), TN_OK);
    for (uint32_t r = 0; r < 9; r++) {
        *tn_val_row(x, r) = (float)r - 4;
    }
    tn_onnx_task task[2] = {{"buy", true, both, b, {0}}, {"watch", false, b, NULL, {0}}};
    tn_onnx_model m = {
        .logit = a, .pctr = p, .logit_max = 16, .task = task, .n_tasks = 2, .version = "1"};
    tn_text raw CLEANUP(tn_text_done) = write_model(&n, &m);
    check_output(&raw, n.g, "buy:logit", logit_of_both);
    check_output(&raw, n.g, "buy:pctr", purchase);
    check_output(&raw, n.g, "buy:given", purchase_given);
    check_output(&raw, n.g, "watch:score", seconds);
    task[0].map.platt = (const double[]){0.9, 0.1, 0};
    tn_text platt CLEANUP(tn_text_done) = write_model(&n, &m);
    check_output(&platt, n.g, "buy:logit", mapped);
    check_output(&platt, n.g, "buy:pctr", mapped_purchase);
    check_output(&platt, n.g, "buy:given", purchase_given);
    task[0].map = (tn_onnx_map){.knot = knots, .n_knots = KNOTS};
    m.map = task[0].map;
    tn_text lines CLEANUP(tn_text_done) = write_model(&n, &m);
    check_output(&lines, n.g, "buy:logit", on_knots);
}
