/* test_names.c - what several nodes want: a parameter, a name, the last place of the list. */
#include "nn/graph/graphcore.h"
#include "nn/graph/params.h"
#include "nn/near.h"
#include "nn/passes/finish.h"
#include "support/test.h"

CLOSER(tn_graph_free);

static const tn_init zero = {.kind = TN_INIT_CONSTANT};
static const tn_init one = {.kind = TN_INIT_CONSTANT, .a = 1};

static tn_node *norm(tn_graph *g, const char *name, tn_node *x, tn_node *beta)
{
    tn_shape row = {1, x->shape.cols};
    char names[3][32];
    (void)snprintf(names[0], sizeof names[0], "%s.gamma", name);
    (void)snprintf(names[1], sizeof names[1], "%s.mean", name);
    (void)snprintf(names[2], sizeof names[2], "%s.var", name);
    tn_node *params[] = {tn_param(g, NULL, names[0], row, one), beta,
                         tn_running(g, NULL, names[1], row, 0),
                         tn_running(g, NULL, names[2], row, 1)};
    return tn_apply(g, &tn_op_batch_norm, name,
                    TN_IN(x, params[0], params[1], params[2], params[3]),
                    &(tn_batch_norm_attr){1e-5, 0.9, true});
}

/* A norm's gradients are sums over columns, those of a bias come when all rows are done. */
TEST(a_norm_and_a_bias_may_share_a_parameter)
{
    for (uint32_t first = 0; first < 2; first++) {
        tn_graph *g FREED(tn_graph_free) = tn_trial_graph(2, true);
        tn_node *x = tn_input(g, "x", 2, true);
        tn_node *b = tn_param(g, NULL, "b", (tn_shape){1, 2}, zero);
        tn_node *y = first == 0
                         ? tn_apply(g, &tn_op_bias, "bias", TN_IN(norm(g, "norm", x, b), b), NULL)
                         : norm(g, "norm", tn_apply(g, &tn_op_bias, "bias", TN_IN(x, b), NULL), b);
        tn_trial t = tn_trial_open(g, y, 2, true);
        tn_put(x, (const double[]){1, 2, 3, 5});
        tn_trial_run(&t, (const double[]){1, 2, 3, -4});
        /* Sums of dy's columns for each of the two; nothing comes through the norm to a bias. */
        double through = first == 0 ? 2 : 1;
        tn_assert_near("db", b, b->grad, (const double[]){4 * through, -2 * through});
    }
}

/* A linear layer with a norm has the layer's name, and so have its weights. */
TEST(a_folded_norm_finds_free_names)
{
    tn_params *params = tn_params_new();
    tn_graph *g =
        tn_graph_new(&(tn_graph_opts){.max_rows = 2, .train = false, .frozen = true, .seed = 1});
    tn_node *x = tn_input(g, "x", 2, false);
    tn_node *w = tn_param(g, params, "a.W", (tn_shape){2, 1}, one);
    tn_node *b = tn_param(g, params, "a.b", (tn_shape){1, 1}, one);
    tn_node *beta = tn_param(g, params, "a.beta", (tn_shape){1, 1}, one);
    tn_node *y =
        tn_apply(g, &tn_op_bias, "a.bias",
                 TN_IN(tn_apply(g, &tn_op_matmul, "a.matmul", TN_IN(x, w), NULL), b), NULL);
    tn_node *norm_params[] = {tn_param(g, params, "a.gamma", (tn_shape){1, 1}, one), beta,
                              tn_running(g, params, "a.mean", (tn_shape){1, 1}, 3),
                              tn_running(g, params, "a.var", (tn_shape){1, 1}, 4)};
    y = tn_apply(g, &tn_op_batch_norm, "a",
                 TN_IN(y, norm_params[0], norm_params[1], norm_params[2], norm_params[3]),
                 &(tn_batch_norm_attr){1e-5, 0.9, true});
    assert_int_equal(tn_params_seal(params, NULL), TN_OK);
    tn_params_init(params, 1);
    assert_int_equal(tn_graph_finish(g, &(tn_wanted){.logit = y}, NULL), TN_OK);
    assert_string_equal(y->op->name, "dense");
    assert_string_equal(y->in[1]->name, "a.folded1.W");
    tn_put(x, (const double[]){4, 5, 0, 1});
    tn_forward(g, &(tn_graph_feed){.rows = 2});
    tn_assert_near("y", y, y->val,
                   (const double[]){1 + 7 / 2.0000025, 1 - 1 / 2.0000025}); /* (x w + 1 - 3) / 2 */
    tn_graph_free(g);
    tn_params_free(params);
}

TEST(the_first_fault_is_kept)
{
    tn_graph *g FREED(tn_graph_free) = tn_trial_graph(2, true);
    tn_node *x = tn_input(g, "x", 2, true);
    assert_null(tn_graph_fault(g));
    tn_node *w = tn_param(g, NULL, "w", (tn_shape){2, 2}, zero);
    assert_ptr_equal(tn_param(g, NULL, "w", (tn_shape){2, 2}, zero), w);
    tn_node *y = tn_activate(g, "x", x, "relu");
    assert_string_equal(tn_graph_fault(g), "two nodes are called 'x'");
    assert_string_not_equal(y->name, "x");
    tn_node *other = tn_param(g, NULL, "w", (tn_shape){2, 3}, zero);
    assert_int_equal(tn_apply(g, &tn_op_matmul, "z", TN_IN(y, other), NULL)->shape.cols,
                     3); /* building goes on */
    assert_string_equal(tn_graph_fault(g), "two nodes are called 'x'");
}

TEST(a_chapter_has_its_own_parameters)
{
    tn_graph *g FREED(tn_graph_free) = tn_trial_graph(2, true);
    (void)tn_param(g, NULL, "w", (tn_shape){2, 2}, zero);
    tn_graph_chapter(g);
    (void)tn_param(g, NULL, "v", (tn_shape){2, 2}, zero);
    (void)tn_param(g, NULL, "v", (tn_shape){2, 2}, zero);
    assert_null(tn_graph_fault(g));
    (void)tn_param(g, NULL, "w", (tn_shape){2, 2}, zero);
    assert_string_equal(tn_graph_fault(g), "two parameters, or a node and one, are called 'w'");
}

TEST(too_many_nodes_are_a_fault)
{
    tn_graph *g FREED(tn_graph_free) = tn_trial_graph(2, true);
    tn_node *x = tn_input(g, "x", 2, true);
    tn_node *y = x;
    for (uint32_t i = 1; i < TN_NODES_MAX; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "n%u", i);
        y = tn_activate(g, name, y, "relu");
    }
    assert_null(tn_graph_fault(g));
    y = tn_activate(g, "last", y, "relu");
    for (uint32_t i = 0; i < 100; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "w%u", i);
        y = tn_apply(g, &tn_op_bias, NULL,
                     TN_IN(y, tn_param(g, NULL, name, (tn_shape){1, 2}, zero)), NULL);
    }
    assert_string_equal(tn_graph_fault(g), "a graph of more than 4096 nodes, at 'last'");
}
