/* test_norms.c - batch, data and layer norm, dice, zscore against the vectors of numerics.md. */
#include "base/keys/init.h"
#include "nn/loss/loss.h"
#include "nn/near.h"
#include "nn/passes/finish.h"
#include "support/test.h"

CLOSER(tn_graph_free);

static const tn_init zero = {.kind = TN_INIT_CONSTANT};

static tn_node *weights(tn_graph *g, const char *name, uint32_t cols)
{
    return tn_param(g, NULL, name, (tn_shape){1, cols}, zero);
}

typedef struct norm_trial {
    tn_trial t;
    tn_node *x, *gamma, *beta, *mean, *var;
} norm_trial;

static norm_trial open_batch_norm(bool training)
{
    norm_trial n = {.x = NULL};
    tn_graph *g = tn_trial_graph(4, true);
    n.x = tn_input(g, "x", 2, true);
    n.gamma = weights(g, "gamma", 2);
    n.beta = weights(g, "beta", 2);
    n.mean = tn_running(g, NULL, "mean", (tn_shape){1, 2}, 0);
    n.var = tn_running(g, NULL, "var", (tn_shape){1, 2}, 1);
    tn_node *params[] = {n.gamma, n.beta, n.mean, n.var};
    tn_node *y =
        tn_apply(g, &tn_op_batch_norm, "y", TN_IN(n.x, params[0], params[1], params[2], params[3]),
                 &(tn_batch_norm_attr){1e-5, 0.9, true});
    n.t = tn_trial_open(g, y, 4, training);
    n.t.factor->shape.rows = n.x->shape.rows = 4;
    tn_put(n.x, (const double[]){1, 2, 2, 0, 4, 1, 5, -3});
    tn_put(n.gamma, (const double[]){1.5, .5});
    tn_put(n.beta, (const double[]){.1, -.2});
    tn_put(n.var, (const double[]){1, 1});
    return n;
}

TEST(v3_a5_batch_norm_from_the_first_batch)
{
    norm_trial n = open_batch_norm(true);
    tn_trial_run(&n.t, (const double[]){1, 0, 0, 1, -1, 2, .5, .5});
    tn_assert_near("y", n.t.y, n.t.y->val,
                   (const double[]){-1.797362801, .33452172, -.848681401, -.2, 1.048681401,
                                    .06726086, 1.997362801, -1.00178258});
    tn_assert_near("dx", n.x, n.x->grad,
                   (const double[]){.450625183, -.252943259, -.308320696, .033407608, -.877531055,
                                    .291123464, .735226568, -.071587812});
    tn_assert_near("dgamma", n.gamma, n.gamma->grad, (const double[]){-1.264908534, .26726086});
    tn_assert_near("dbeta", n.beta, n.beta->grad, (const double[]){.5, 3.5});
    tn_assert_near("new mean", n.mean, n.mean->grad, (const double[]){.3, 0});
    tn_assert_near("new var", n.var, n.var->grad, (const double[]){1.233333333, 1.366666667});
    tn_graph_free(n.t.g);
}

TEST(forward_leaves_running_values_to_the_owner_of_the_step)
{
    norm_trial n = open_batch_norm(true);
    tn_trial_run(&n.t, NULL);
    tn_assert_near("mean", n.mean, n.mean->val, (const double[]){0, 0});
    tn_assert_near("new mean", n.mean, n.mean->grad, (const double[]){.3, 0});
    tn_graph_free(n.t.g);
}

TEST(a_batch_of_weight_0_moves_no_running_value)
{
    norm_trial n = open_batch_norm(true);
    n.t.feed.weight = (const tn_real[]){0, 0, 0, 0};
    tn_trial_run(&n.t, (const double[]){1, 0, 0, 1, -1, 2, .5, .5});
    tn_assert_near("new mean", n.mean, n.mean->grad, (const double[]){0, 0});
    tn_assert_near("new var", n.var, n.var->grad, (const double[]){1, 1});
    tn_assert_near("dgamma", n.gamma, n.gamma->grad, (const double[]){0, 0});
    tn_graph_free(n.t.g);
}

TEST(evaluation_uses_running_values)
{
    norm_trial n = open_batch_norm(false);
    tn_put(n.mean, (const double[]){1, 0});
    tn_put(n.var, (const double[]){4, 1});
    tn_trial_run(&n.t, NULL);
    double y = 1.5 * (5 - 1) / 2.0000025 + .1;
    tn_assert_value((double)tn_val_row(n.t.y, 3)[0], y);
    tn_graph_free(n.t.g);
}

TEST(a_batch_of_one_row_has_variance_0)
{
    norm_trial n = open_batch_norm(true);
    n.t.feed.rows = 1;
    tn_trial_run(&n.t, (const double[]){1, 1, 0, 0, 0, 0, 0, 0});
    tn_assert_value((double)tn_val_row(n.t.y, 0)[0], .1);
    tn_assert_near("new var", n.var, n.var->grad, (const double[]){.9, .9});
    tn_graph_free(n.t.g);
}

TEST(v1_dice)
{
    tn_graph *g FREED(tn_graph_free) = tn_trial_graph(2, true);
    tn_node *x = tn_input(g, "x", 2, true);
    tn_node *alpha = weights(g, "alpha", 2);
    tn_node *params[] = {alpha, tn_running(g, NULL, "mean", (tn_shape){1, 2}, 0),
                         tn_running(g, NULL, "var", (tn_shape){1, 2}, 1)};
    tn_trial t = tn_trial_open(
        g, tn_apply(g, &tn_op_dice, "y", TN_IN(x, params[0], params[1], params[2]), NULL), 2, true);
    tn_put(x, (const double[]){1, -2, 3, .5});
    tn_put(alpha, (const double[]){.25, .25});
    tn_trial_run(&t, NULL);
    tn_assert_near("y", t.y, t.y->val,
                   (const double[]){.451706067, -.903412133, 2.3948818, .399146967});
}

/* Statistics after the batch, which the owner of the step takes over. */
static void data_norm_step(tn_trial *t, tn_node *x, tn_node *sums, const double *batch, uint32_t n)
{
    for (uint32_t r = 0; r < n; r++) {
        *tn_val_row(x, r) = (tn_real)batch[r];
    }
    t->feed.rows = n;
    tn_forward(t->g, &t->feed);
    memcpy(sums->val, sums->grad, 6 * sizeof(tn_real));
}

TEST(v4_data_norm)
{
    tn_graph *g FREED(tn_graph_free) = tn_trial_graph(3, true);
    tn_node *x = tn_input(g, "x", 1, true);
    tn_node *sums = tn_running(g, NULL, "sums", (tn_shape){6, 1}, 0);
    tn_node *params[] = {weights(g, "gamma", 1), weights(g, "beta", 1), sums};
    tn_node *y = tn_apply(g, &tn_op_data_norm, "y", TN_IN(x, params[0], params[1], params[2]),
                          &(tn_data_norm_attr){1e-5, 2});
    tn_trial t = tn_trial_open(g, y, 3, true);
    static const double batch[3][3] = {{1, 2, 3}, {5}, {2, 4}};
    static const uint32_t rows[3] = {3, 1, 2};
    static const double want[3][3] = {{3, 2, .666666667}, {3, 3, 2.444444444}, {4, 3, 1.722222222}};
    for (int i = 0; i < 3; i++) {
        data_norm_step(&t, x, sums, batch[i], rows[i]);
        tn_wide w = tn_wide_get(sums->val, 1, 0);
        tn_assert_value(w.n, want[i][0]);
        tn_assert_value(w.mean, want[i][1]);
        tn_assert_value(w.m2 / w.n, want[i][2]);
    }
}

TEST(a4_statistics_do_not_fade_after_max_count)
{
    tn_graph *g FREED(tn_graph_free) = tn_trial_graph(3, true);
    tn_node *x = tn_input(g, "x", 1, true);
    tn_node *sums = tn_running(g, NULL, "sums", (tn_shape){6, 1}, 0);
    tn_node *params[] = {weights(g, "gamma", 1), weights(g, "beta", 1), sums};
    tn_node *y = tn_apply(g, &tn_op_data_norm, "y", TN_IN(x, params[0], params[1], params[2]),
                          &(tn_data_norm_attr){1e-5, 100});
    tn_trial t = tn_trial_open(g, y, 3, true);
    for (int i = 0; i < 5000; i++) {
        data_norm_step(&t, x, sums, (const double[]){1, 2, 3}, 3);
    }
    tn_wide w = tn_wide_get(sums->val, 1, 0);
    tn_assert_value(w.mean, 2);
    tn_assert_value(w.m2 / w.n, 2.0 / 3);
}

TEST(a_count_beyond_24_bits_still_grows)
{
    tn_real sums[6] = {0};
    tn_wide_put(sums, 1, 0, (tn_wide){16777216.0 * 4 + 1, 1.0 / 3, 1e9 + .25});
    tn_wide w = tn_wide_get(sums, 1, 0);
    assert_true(w.n >= 16777216.0 * 4 + 1 && w.n <= 16777216.0 * 4 + 1);
    tn_assert_value((w.mean - 1.0 / 3) * 1e6, 0);
    assert_true(w.m2 >= 1e9 + .25 && w.m2 <= 1e9 + .25);
}

TEST(v5_layer_norm)
{
    tn_graph *g FREED(tn_graph_free) = tn_trial_graph(2, true);
    tn_node *x = tn_input(g, "x", 3, true);
    tn_node *params[] = {weights(g, "gamma", 3), weights(g, "beta", 3)};
    tn_trial t = tn_trial_open(g,
                               tn_apply(g, &tn_op_layer_norm, "y", TN_IN(x, params[0], params[1]),
                                        &(tn_layer_norm_attr){1e-5}),
                               2, true);
    tn_put(x, (const double[]){1, 2, 4, -1, 0, 3});
    tn_put(params[0], (const double[]){1, 2, .5});
    tn_put(params[1], (const double[]){0, .1, -.1});
    tn_trial_run(&t, (const double[]){1, 0, -1, .5, 2, 1});
    tn_assert_near("y", t.y, t.y->val,
                   (const double[]){-1.069041531, -.434520766, .568150957, -.980578979, -.684463183,
                                    .586405285});
    tn_assert_near("dx", x, x->grad,
                   (const double[]){.171813437, -.257714572, .085901135, -.950406404, 1.267210122,
                                    -.316803719});
    tn_assert_near("dgamma", params[0], params[0]->grad,
                   (const double[]){-1.559331021, -.784463183, .036508656});
}

TEST(zscore_knows_the_rows_before_the_batch_only)
{
    tn_graph *g FREED(tn_graph_free) = tn_trial_graph(3, true);
    tn_node *x = tn_input(g, "x", 1, false);
    tn_node *sums = tn_running(g, NULL, "sums", (tn_shape){6, 1}, 0);
    tn_node *y = tn_apply(g, &tn_op_zscore, "y", TN_IN(x, sums), &(tn_zscore_attr){4});
    tn_wanted wanted = {.logit = y, .loss = tn_apply(g, &tn_loss_mse.op, "loss", TN_IN(y), NULL)};
    assert_int_equal(tn_graph_finish(g, &wanted, NULL), TN_OK);
    tn_trial t = {.g = g, .y = y, .feed = {.info = {.training = true}}};
    data_norm_step(&t, x, sums, (const double[]){1, 2, 3}, 3);
    tn_assert_value((double)*tn_val_row(y, 2), 0); /* nothing is known yet */
    data_norm_step(&t, x, sums, (const double[]){5, 2, 8}, 3);
    tn_assert_value((double)*tn_val_row(y, 0), 3 / .816496581);
    tn_wide w = tn_wide_get(sums->val, 1, 0); /* frozen at 4 rows: 1 2 3 5 */
    tn_assert_value(w.n, 4);
    tn_assert_value(w.mean, 2.75);
    tn_assert_value(w.m2, 8.75);
}
