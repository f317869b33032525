/* test_onnx.c - the smallest model to the byte, names that clash, and operators without a form.
 * What onnxruntime computes is compared by test/interop/onnx.sh. */
#include "nn/passes/onnx.h"

#include "support/test.h"

#include "base/codec/proto.h"
#include "base/math/crc32c.h"
#include "nn/graph/params.h"
#include "nn/op/ops.h"

#include <stdio.h>
#include <string.h>

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
    tn_error err = {0};
    assert_int_equal(tn_params_seal(n->params, &err), TN_OK);
    const tn_wanted wanted = {.logit = logit, .fetch = &p->name, .n_fetch = 1};
    assert_int_equal(tn_graph_finish(n->g, &wanted, &err), TN_OK);
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
    if (tn_graph_onnx(n->g, m, &out, &err) != TN_OK) {
        fail_msg("%s", err.text);
    }
    return out;
}

/* docs/formats.md section 7. */
static void golden_model(void **state)
{
    (void)state;
    net n = open_net();
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
    tn_text out = write_model(&n, &m);
    assert_int_equal(out.size, 226);
    assert_int_equal(tn_crc32c(0, out.data, out.size), 0x339f13b1);
    tn_text_done(&out);
    close_net(&n);
}

typedef struct seen {
    uint32_t nodes, initializers, inputs, outputs, meta;
    char names[4096]; /* of nodes, a blank behind each */
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
static void outputs_have_their_names(void **state)
{
    (void)state;
    net n = open_net();
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

    m.calibrated = (const double[]){0.9, 0.1, 0};
    out = write_model(&n, &m);
    s = look(&out);
    assert_string_equal(s.names, "logit:node logit:raw p:1 logit pctr ");
    tn_text_done(&out);
    m.calibrated = (const double[]){0.9, 0.1, -0.05};
    m.unknown_max = 63;
    out = write_model(&n, &m);
    s = look(&out);
    assert_string_equal(s.names, "logit:node logit:raw p:1 p:2 p:3 p:4 logit pctr ");
    assert_int_equal(s.inputs, 2);
    tn_text_done(&out);
    close_net(&n);
}

/* A score of another loss is one output; a parameter that is used twice is there once. */
static void a_score_is_one_output(void **state)
{
    (void)state;
    net n = open_net();
    tn_onnx_model m = {0};
    tn_node *x = tn_input(n.g, "x", 4, false);
    tn_node *w = param(&n, "W", 4, 4);
    tn_node *h = tn_apply(n.g, &tn_op_matmul, "h", TN_IN(x, w), NULL);
    h = tn_apply(n.g, &tn_op_matmul, "k", TN_IN(h, w), NULL);
    finish(&n, &m, tn_apply(n.g, &tn_op_sum_cols, "z", TN_IN(h), NULL), NULL);
    tn_text out = write_model(&n, &m);
    const seen s = look(&out);
    assert_string_equal(s.names, "h k score ");
    assert_int_equal(s.outputs, 1);
    assert_int_equal(s.initializers, 2); /* W, and the axis of the sum */
    tn_text_done(&out);
    close_net(&n);
}

static void an_operator_without_a_form_is_told(void **state)
{
    (void)state;
    net n = open_net();
    tn_onnx_model m = {0};
    tn_text out = {0};
    tn_error err = {0};
    tn_node *x = tn_input(n.g, "x", 4, false);
    tn_node *gamma = param(&n, "gamma", 1, 4);
    tn_node *beta = param(&n, "beta", 1, 4);
    tn_node *sums = tn_running(n.g, n.params, "sums", (tn_shape){6, 4}, 0);
    tn_node *y = tn_apply(n.g, &tn_op_data_norm, "drift", TN_IN(x, gamma, beta, sums),
                          &(tn_data_norm_attr){1e-5, 1e6});
    finish(&n, &m, tn_apply(n.g, &tn_op_sum_cols, "z", TN_IN(y), NULL), "p");
    assert_int_equal(tn_graph_onnx(n.g, &m, &out, &err), TN_E_CONFIG);
    assert_string_equal(err.text, "node 'drift' of operator 'data_norm' has no form in ONNX");
    assert_int_equal(out.size, 0);
    close_net(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_model),
        cmocka_unit_test(outputs_have_their_names),
        cmocka_unit_test(a_score_is_one_output),
        cmocka_unit_test(an_operator_without_a_form_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
