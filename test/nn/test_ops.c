/* test_ops.c - every operator of ops.def: gradients, accumulation, strays. */
#include "base/keys/init.h"
#include "nn/gradcheck.h"
#include "support/test.h"

static const double tolerance = sizeof(tn_real) == 8 ? 1e-7 : 1e-3;
enum { SEED = 20240607 };

static bool has_backward(const tn_op *op)
{
    return op->backward != NULL || op->sparse.backward_rows != NULL ||
           op->sparse.backward_blocks != NULL;
}

/* Statistics that the batch moves are constants to backward, so they must stand still here. */
static bool moves_constants(const tn_op *op)
{
    return strcmp(op->name, "data_norm") == 0;
}

static const tn_op *checked;

static tn_node *example(tn_graph *g)
{
    return tn_op_example(g, checked);
}

static void check(const tn_op *op, const tn_graph_opts *opts, bool training)
{
    tn_check c;
    uint64_t n_entries = 0;
    checked = op;
    tn_check_open(&c, example, opts, SEED);
    c.feed.info.training = training;
    double error = tn_check_differences(&c, &n_entries);
    fail_if(error > tolerance, "%s: gradient is off by %g (seed %d)", op->name, error, SEED);
    if (has_backward(op)) {
        assert_true(n_entries > 0);
        bool is_layout = !opts->no_passes && (op->layout.joins || op->layout.part != NULL);
        fail_if(!is_layout && !tn_check_doubles(&c), "%s: backward does not add to gradients",
                op->name);
    }
    fail_if(tn_check_strays(&c) > 0, "%s: writes outside of its matrices", op->name);
    tn_check_close(&c);
}

TEST(every_gradient_is_that_of_the_differences)
{
    for (const tn_op *const *op = tn_all_ops; *op != NULL; op++) {
        check(*op, &(tn_graph_opts){.train = true}, !moves_constants(*op));
    }
}

TEST(gradients_hold_with_running_values)
{
    for (const tn_op *const *op = tn_all_ops; *op != NULL; op++) {
        check(*op, &(tn_graph_opts){.train = true}, false);
    }
}

TEST(gradients_hold_without_passes)
{
    for (const tn_op *const *op = tn_all_ops; *op != NULL; op++) {
        check(*op, &(tn_graph_opts){.train = true, .no_passes = true}, !moves_constants(*op));
    }
}

static tn_node *frozen_example(tn_graph *g)
{
    tn_node *y = tn_op_example(g, checked);
    tn_node *n;
    for (uint32_t k = 0; (n = tn_graph_node(g, k)) != NULL; k++) {
        if (n->is_param && !n->is_state) {
            tn_param_freeze(n);
        }
    }
    return y;
}

TEST(inputs_have_their_gradients_where_parameters_are_frozen)
{
    for (const tn_op *const *op = tn_all_ops; *op != NULL; op++) {
        tn_check c;
        uint64_t n_entries = 0;
        tn_node *n;
        checked = *op;
        tn_check_open(&c, frozen_example, &(tn_graph_opts){.train = true}, SEED);
        c.feed.info.training = !moves_constants(*op);
        const double error = tn_check_differences(&c, &n_entries);
        fail_if(error > tolerance, "%s: gradient is off by %g", (*op)->name, error);
        for (uint32_t k = 0; (n = tn_graph_node(c.g, k)) != NULL; k++) {
            fail_if(n->is_param && !n->is_state && n->grad != NULL, "%s: '%s' is not frozen",
                    (*op)->name, n->name);
        }
        fail_if(tn_check_strays(&c) > 0, "%s: writes outside of its matrices", (*op)->name);
        tn_check_close(&c);
    }
}

static tn_node *linear(tn_graph *g, tn_node *x, uint32_t units)
{
    tn_init init = {.kind = TN_INIT_CONSTANT};
    tn_node *z =
        tn_apply(g, &tn_op_matmul, NULL,
                 TN_IN(x, tn_param(g, NULL, NULL, (tn_shape){x->shape.cols, units}, init)), NULL);
    return tn_apply(g, &tn_op_bias, NULL,
                    TN_IN(z, tn_param(g, NULL, NULL, (tn_shape){1, units}, init)), NULL);
}

/* Layers whose gradient is masked by the next one, by themselves, and added to by two others. */
static tn_node *chain_of_layers(tn_graph *g)
{
    tn_node *x = tn_input(g, NULL, 5, true);
    tn_node *a = tn_activate(g, NULL, linear(g, x, 7), "tanh");
    tn_node *b = tn_activate(g, NULL, linear(g, a, 6), "sigmoid");
    tn_node *c = tn_activate(g, NULL, linear(g, b, 6), "tanh");
    tn_node *d = tn_activate(g, NULL, linear(g, b, 6), "silu");
    tn_node *e = tn_apply(g, &tn_op_concat, NULL, TN_IN(c, d), NULL);
    return linear(g, tn_activate(g, NULL, linear(g, e, 4), "leaky_relu"), 3);
}

/* One weight under two products, the second behind the first. */
static tn_node *weight_of_two(tn_graph *g)
{
    tn_node *w = tn_param(g, NULL, NULL, (tn_shape){4, 4}, (tn_init){.kind = TN_INIT_CONSTANT});
    tn_node *x = tn_apply(g, &tn_op_matmul, NULL, TN_IN(tn_input(g, NULL, 4, true), w), NULL);
    return tn_apply(g, &tn_op_matmul, NULL, TN_IN(tn_activate(g, NULL, x, "tanh"), w), NULL);
}

TEST(a_weight_of_two_layers_has_the_gradient_of_both)
{
    tn_check c;
    uint64_t n_entries = 0;
    tn_check_open(&c, weight_of_two, &(tn_graph_opts){.train = true}, SEED);
    assert_true(tn_check_differences(&c, &n_entries) <= tolerance);
    assert_true(n_entries > 16);
    tn_check_close(&c);
}

TEST(a_net_of_layers_has_the_gradients_of_the_differences)
{
    for (int no_passes = 0; no_passes < 2; no_passes++) {
        tn_check c;
        uint64_t n_entries = 0;
        tn_check_open(&c, chain_of_layers,
                      &(tn_graph_opts){.train = true, .no_passes = no_passes == 1}, SEED);
        double error = tn_check_differences(&c, &n_entries);
        fail_if(error > tolerance, "gradient is off by %g", error);
        assert_true(n_entries > 200);
        tn_check_close(&c);
    }
}

TEST(every_operator_has_a_name_a_formula_and_an_example)
{
    for (const tn_op *const *op = tn_all_ops; *op != NULL; op++) {
        assert_non_null((*op)->name);
        assert_non_null((*op)->formula);
        assert_non_null((*op)->shape);
        assert_true((*op)->example.cols > 0 || (*op)->n_in == 0 || (*op)->example.build != NULL);
        assert_ptr_equal(tn_op_find((*op)->name), *op);
    }
    assert_null(tn_op_find("no_such_operator"));
}
