/* test_plan.c - a graph as text, as a drawing, and what it costs. */
#include "nn/graph/params.h"
#include "nn/nets.h"
#include "nn/passes/finish.h"
#include "nn/passes/plan.h"
#include "support/test.h"

enum { ROWS = 64 };

TEST(the_cost_counts_products_and_parameters)
{
    tn_test_net n = tn_test_net_build(NULL, &(tn_graph_opts){.max_rows = ROWS, .train = true});
    tn_test_net_finish(&n);
    tn_cost c = tn_graph_cost(n.g);
    double in = 6 * 8 + 3;
    double forward = 2.0 * ROWS * (in * 40 + 40 * 40 + (40 + in));
    assert_true(c.product_flops >= 3 * forward && c.product_flops <= 3 * forward);
    assert_int_equal(c.params, tn_params_trained(n.params));
    tn_graph_free(n.g);
    tn_params_free(n.params);
}

/* A run ends with a batch of what is left of the data, or takes part in others' without any. */
TEST(the_cost_is_of_a_whole_batch_after_a_short_one)
{
    tn_test_net n = tn_test_net_build(NULL, &(tn_graph_opts){.max_rows = ROWS, .train = true});
    tn_test_net_finish(&n);
    tn_cost whole = tn_graph_cost(n.g);
    tn_test_batch *batch = tn_test_batch_new(7, 1);
    tn_graph_feed feed = tn_test_feed(batch, true);
    for (uint32_t i = 0; i < 2; i++) {
        tn_forward(n.g, &feed);
        tn_cost after = tn_graph_cost(n.g);
        assert_memory_equal(&after, &whole, sizeof after);
        assert_int_equal(n.logit->shape.rows, feed.rows); /* as they were */
        feed.rows = 0;
    }
    tn_test_batch_free(batch);
    tn_graph_free(n.g);
    tn_params_free(n.params);
}

TEST(the_plan_names_every_node_that_runs)
{
    tn_test_net n = tn_test_net_build(NULL, &(tn_graph_opts){.max_rows = ROWS, .train = true});
    tn_test_net_finish(&n);
    tn_text t CLEANUP(tn_text_done) = {0};
    tn_graph_print(n.g, 1e11, &t);
    const char *text = tn_text_str(&t);
    assert_non_null(strstr(text, "deep.2.act"));
    assert_non_null(strstr(text, "(inside e)"));
    assert_non_null(strstr(text, ", 100.0 GFLOP/s per thread"));
    assert_null(strstr(text, "matmul"));
    tn_graph_free(n.g);
    tn_params_free(n.params);
}

TEST(the_drawing_has_a_box_per_node_and_an_arrow_per_operand)
{
    tn_graph *g = tn_graph_new(&(tn_graph_opts){.max_rows = 4});
    tn_node *x = tn_input(g, "a \"b\"", 2, false);
    tn_node *y = tn_activate(g, "y", x, "relu");
    assert_int_equal(tn_graph_finish(g, &(tn_wanted){.logit = y}, NULL), TN_OK);
    tn_text t CLEANUP(tn_text_done) = {0};
    tn_graph_dot(g, &t);
    assert_string_equal(
        tn_text_str(&t),
        "digraph tnet {\n    rankdir=BT;\n"
        "    \"a \\\"b\\\"\" [label=\"a \\\"b\\\"\\ninput [B x 2]\", shape=box, style=filled, "
        "fillcolor=lightblue];\n"
        "    \"y\" [label=\"y\\nrelu [B x 2]\", shape=box, style=filled, fillcolor=lightyellow];\n"
        "    \"a \\\"b\\\"\" -> \"y\";\n"
        "}\n");
    tn_graph_free(g);
}

TEST(products_are_measured)
{
    double products = 0;
    tn_test_net n = tn_test_net_build(NULL, &(tn_graph_opts){.max_rows = ROWS});
    tn_test_net_finish(&n);
    assert_int_equal(tn_measure_products(n.g, &products, NULL), TN_OK);
    assert_true(products > 1e6);
    tn_graph_free(n.g);
    tn_params_free(n.params);
}
