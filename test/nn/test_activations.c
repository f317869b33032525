/* test_activations.c - activations alone and at the end of a dense layer: known numbers. */
#include "base/keys/init.h"
#include "nn/near.h"
#include "support/test.h"

CLOSER(tn_graph_free);

static void check(const char *activation, const double x[3], const double want[3])
{
    tn_graph *g FREED(tn_graph_free) = tn_trial_graph(1, true);
    tn_node *in = tn_input(g, "x", 3, true);
    tn_trial t = tn_trial_open(g, tn_activate(g, "y", in, activation), 1, true);
    tn_put(in, x);
    tn_trial_run(&t, NULL);
    tn_assert_near("y", t.y, t.y->val, want);
}

TEST(softplus_is_ln_2_at_0_and_x_far_out)
{
    check("softplus", (const double[]){0, -3, 20},
          (const double[]){.693147181, .048587352, 20.000000002});
    check("softplus", (const double[]){-200, 200, 0}, (const double[]){0, 200, .693147181});
}

TEST(gelu_by_tanh_differs_from_gelu_in_the_fourth_digit)
{
    check("gelu_tanh", (const double[]){-1, .5, 2},
          (const double[]){-.158808009, .345714010, 1.954597694});
}

TEST(exp_and_log_are_those_of_libm_within_rounding)
{
    check("exp", (const double[]){0, 1, -2}, (const double[]){1, 2.718281828, .135335283});
    check("log", (const double[]){1, 10, .001}, (const double[]){0, 2.302585093, -6.907755279});
    for (int e = -30; e < 30; e++) {
        const double x = 1.37 * pow(10, e);
        const double want = log((double)(tn_real)x);
        check("log", (const double[]){x, x, x}, (const double[]){want, want, want});
    }
}

/* So that the step that takes it is stopped. */
TEST(the_log_of_0_and_less_is_not_finite)
{
    tn_graph *g FREED(tn_graph_free) = tn_trial_graph(1, false);
    tn_node *in = tn_input(g, "x", 4, false);
    tn_trial t = tn_trial_open(g, tn_activate(g, "y", in, "log"), 1, false);
    tn_put(in, (const double[]){0, -1, (double)INFINITY, (double)NAN});
    tn_trial_run(&t, NULL);
    assert_true(isinf(t.y->val[0]) && t.y->val[0] < 0);
    assert_true(isnan(t.y->val[1]));
    assert_true(isinf(t.y->val[2]) && t.y->val[2] > 0);
    assert_true(isnan(t.y->val[3]));
}

/* y and dx of `activation` on one row. */
static void check_slopes(const char *activation, const double x[3], const double y[3],
                         const double dx[3])
{
    tn_graph *g FREED(tn_graph_free) = tn_trial_graph(1, true);
    tn_node *in = tn_input(g, "x", 3, true);
    tn_trial t = tn_trial_open(g, tn_activate(g, "y", in, activation), 1, true);
    tn_put(in, x);
    tn_trial_run(&t, (const double[]){1, 1, 1});
    tn_assert_near("y", t.y, t.y->val, y);
    tn_assert_near("dx", in, in->grad, dx);
}

TEST(kinks_have_the_slopes_that_are_written)
{
    check_slopes("abs", (const double[]){-2, 0, 3}, (const double[]){2, 0, 3},
                 (const double[]){-1, 0, 1});
    check_slopes("sqrt", (const double[]){4, 0, 0.25}, (const double[]){2, 0, 0.5},
                 (const double[]){0.25, 0, 1});
    check_slopes("square", (const double[]){-2, 0, 3}, (const double[]){4, 0, 9},
                 (const double[]){-4, 0, 6});
}

/* Of [1, 2] and [1, 3], then of [2, 2, 1]: the first of equals has the gradient. */
TEST(a_tie_belongs_to_the_first)
{
    const tn_op *const ops[] = {&tn_op_maximum, &tn_op_minimum};
    static const double want[2][2][2] = {{{1, 0}, {0, 1}}, {{1, 1}, {0, 0}}};
    for (int k = 0; k < 2; k++) {
        tn_graph *g FREED(tn_graph_free) = tn_trial_graph(1, true);
        tn_node *a = tn_input(g, "a", 2, true);
        tn_node *b = tn_input(g, "b", 2, true);
        tn_trial t = tn_trial_open(g, tn_apply(g, ops[k], "y", TN_IN(a, b), NULL), 1, true);
        tn_put(a, (const double[]){1, 2});
        tn_put(b, (const double[]){1, 3});
        tn_trial_run(&t, (const double[]){1, 1});
        tn_assert_near("da", a, a->grad, want[k][0]);
        tn_assert_near("db", b, b->grad, want[k][1]);
    }
    tn_graph *g FREED(tn_graph_free) = tn_trial_graph(1, true);
    tn_node *x = tn_input(g, "x", 3, true);
    tn_trial t = tn_trial_open(
        g, tn_apply(g, &tn_op_max_groups, "y", TN_IN(x), &(tn_pairs_attr){3}), 1, true);
    tn_put(x, (const double[]){2, 2, 1});
    tn_trial_run(&t, (const double[]){5});
    tn_assert_near("dx", x, x->grad, (const double[]){5, 0, 0});
}

/* Wherever in an operand it stands. */
TEST(no_operator_hides_a_nan)
{
    const tn_op *const ops[] = {&tn_op_sub,     &tn_op_div,   &tn_op_maximum,
                                &tn_op_minimum, &tn_op_where, &tn_op_max_groups};
    for (size_t k = 0; k < sizeof ops / sizeof ops[0]; k++) {
        for (uint32_t at = 0; at < 2; at++) {
            tn_graph *g FREED(tn_graph_free) = tn_trial_graph(1, false);
            tn_node *in[3] = {tn_input(g, "a", 2, false), tn_input(g, "b", 2, false),
                              tn_input(g, "c", 2, false)};
            tn_trial t = tn_trial_open(
                g, tn_apply(g, ops[k], "y", in, ops[k]->n_in, &(tn_pairs_attr){2}), 1, false);
            for (uint32_t i = 0; i < ops[k]->n_in; i++) {
                tn_put(in[i], (const double[]){1, 1});
            }
            in[at < ops[k]->n_in ? at : 0]->val[at] = (tn_real)NAN;
            if (ops[k] == &tn_op_where) { /* of what it does not choose it knows nothing */
                in[0]->val[at] = (tn_real)(at == 0 ? NAN : 1);
            }
            tn_trial_run(&t, NULL);
            assert_true(isnan(t.y->val[t.y->shape.cols == 1 ? 0 : at]));
        }
    }
}

/* So that the step is stopped. */
TEST(roots_and_quotients_that_are_not_there_are_not_finite)
{
    tn_graph *g FREED(tn_graph_free) = tn_trial_graph(1, false);
    tn_node *a = tn_input(g, "a", 3, false);
    tn_node *b = tn_input(g, "b", 3, false);
    tn_node *root = tn_activate(g, "root", a, "sqrt");
    tn_node *y = tn_apply(g, &tn_op_div, "y", TN_IN(root, b), NULL);
    tn_trial t = tn_trial_open(g, y, 1, false);
    tn_put(a, (const double[]){-1, 4, 0});
    tn_put(b, (const double[]){1, 0, 0});
    tn_trial_run(&t, NULL);
    assert_true(isnan(t.y->val[0]));
    assert_true(isinf(t.y->val[1]));
    assert_true(isnan(t.y->val[2]));
    assert_string_equal(tn_graph_not_finite(g), "root");
}

/* x [1, -2], W [[1, 2, 3], [4, 0, -1]], b [.5, -2, 0]: x W + b = [-6.5, 0, 5]. */
TEST(a_dense_layer_is_product_bias_and_activation)
{
    static const tn_init zero = {.kind = TN_INIT_CONSTANT};
    static const double want[][3] = {{-6.5, 0, 5}, {0, 0, 5}, {-.65, 0, 5}};
    for (uint32_t k = 0; k < 3; k++) {
        tn_graph *g FREED(tn_graph_free) = tn_trial_graph(1, true);
        tn_node *x = tn_input(g, "x", 2, true);
        tn_node *w = tn_param(g, NULL, "W", (tn_shape){2, 3}, zero);
        tn_node *b = tn_param(g, NULL, "b", (tn_shape){1, 3}, zero);
        tn_dense_attr attr = {.activation = k, .slope = .1};
        tn_trial t =
            tn_trial_open(g, tn_apply(g, &tn_op_dense, "y", TN_IN(x, w, b), &attr), 1, true);
        tn_put(x, (const double[]){1, -2});
        tn_put(w, (const double[]){1, 2, 3, 4, 0, -1});
        tn_put(b, (const double[]){.5, -2, 0});
        tn_trial_run(&t, (const double[]){1, 1, 1});
        tn_assert_near("y", t.y, t.y->val, want[k]);
        double slope = (const double[]){1, 0, .1}[k];
        tn_assert_near("db", b, b->grad, (const double[]){slope, slope, 1});
    }
}

/* Else a weight that is NaN would neither change the loss nor have a gradient. */
TEST(relu_hides_no_nan)
{
    tn_graph *g FREED(tn_graph_free) = tn_trial_graph(1, false);
    tn_node *in = tn_input(g, "x", 3, false);
    tn_trial t = tn_trial_open(g, tn_activate(g, "y", in, "relu"), 1, false);
    tn_put(in, (const double[]){(double)NAN, -1, 2});
    tn_trial_run(&t, NULL);
    assert_true(isnan(t.y->val[0]));
    assert_true(t.y->val[1] == 0 && t.y->val[2] == 2);
}
