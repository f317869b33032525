/* test_joint_loss.c - the sum of the losses of several tasks: its value and gradient by hand, of
 * rows that count for some of them. */
#include "nn/loss/joint_loss.h"

#include "base/keys/init.h"
#include "nn/loss/loss.h"
#include "nn/near.h"
#include "nn/passes/finish.h"
#include "support/test.h"

CLOSER(tn_graph_free);

enum { ROWS = 3 };

/* Squared errors of two tasks: weights 1 and .5, and row weights 1, 2, 1. The second task has no
 * label in row 0, where its score is no number, and half a factor in row 2. */
TEST(a_row_adds_the_losses_of_the_tasks_that_it_counts_for)
{
    tn_graph *g FREED(tn_graph_free) = tn_graph_new(
        &(tn_graph_opts){.max_rows = ROWS, .train = true, .reduction = TN_REDUCE_MEAN});
    tn_node *z[2] = {tn_input(g, "a", 1, true), tn_input(g, "b", 1, true)};
    tn_node *part[2];
    for (uint32_t k = 0; k < 2; k++) {
        part[k] = tn_apply(g, &tn_loss_mse.op, k == 0 ? "loss.a" : "loss.b", TN_IN(z[k]), NULL);
        tn_node_set_task(part[k], k);
    }
    const tn_joint_loss_attr attr = {{1, 0.5}};
    tn_node *l = tn_apply(g, &tn_op_joint_loss, "loss", part, 2, &attr);
    assert_int_equal(tn_graph_finish(g, &(tn_wanted){.logit = z[0], .loss = l}, NULL), TN_OK);
    tn_put(z[0], (const double[]){1, 2, 3});
    tn_put(z[1], (const double[]){4, 5, 6});
    static const tn_real label[2][ROWS] = {{0, 0, 1}, {0, 3, 2}};
    static const tn_real factor[2][ROWS] = {{1, 1, 1}, {0, 1, (tn_real)0.5}};
    static const tn_real weight[ROWS] = {1, 2, 1};
    const tn_feed_task task[2] = {{label[0], factor[0]}, {label[1], factor[1]}};
    tn_forward(g,
               &(tn_graph_feed){.rows = ROWS, .label = label[0], .task = task, .weight = weight});
    /* rows: 1; 4 + .5 (2 2); 4 + .5 .5 (4 4): 1, 6, 8 */
    tn_assert_near("l", l, l->val, (const double[]){1, 6, 8});
    tn_assert_value(tn_graph_loss(g), (1 + 2 * 6 + 8) / 4.0);
    tn_backward(g);
    /* w_r / W c_k f_k 2 (z - y) */
    tn_assert_near("da", z[0], z[0]->grad, (const double[]){2 / 4.0, 2 * 4 / 4.0, 4 / 4.0});
    tn_assert_near("db", z[1], z[1]->grad,
                   (const double[]){0, 2 * .5 * 4 / 4.0, .5 * .5 * 8 / 4.0});
}

TEST(a_score_that_is_no_number_adds_nothing_where_its_row_does_not_count)
{
    tn_graph *g FREED(tn_graph_free) = tn_graph_new(&(tn_graph_opts){.max_rows = 1});
    tn_node *z[2] = {tn_input(g, "a", 1, false), tn_input(g, "b", 1, false)};
    tn_node *part[2];
    for (uint32_t k = 0; k < 2; k++) {
        part[k] = tn_apply(g, &tn_loss_mse.op, NULL, TN_IN(z[k]), NULL);
        tn_node_set_task(part[k], k);
    }
    tn_node *l = tn_apply(g, &tn_op_joint_loss, "loss", part, 2, &(tn_joint_loss_attr){{1, 1}});
    assert_int_equal(tn_graph_finish(g, &(tn_wanted){.logit = l}, NULL), TN_OK);
    tn_put(z[0], (const double[]){2});
    tn_put(z[1], (const double[]){(double)NAN});
    static const tn_real zero[1] = {0};
    static const tn_real one[1] = {1};
    const tn_feed_task task[2] = {{zero, one}, {zero, zero}};
    tn_forward(g, &(tn_graph_feed){.rows = 1, .label = zero, .task = task});
    tn_assert_value((double)*l->val, 4);
}

/* s = ln 2, so that losses of 4 and 9 count half: 2 + s/2, 4.5 + s/2, each by its row's weight. */
TEST(a_learned_weight_halves_a_loss_and_has_its_own_gradient)
{
    tn_graph *g FREED(tn_graph_free) =
        tn_graph_new(&(tn_graph_opts){.max_rows = 2, .train = true, .reduction = TN_REDUCE_SUM});
    const double ln2 = 0.69314718055994531;
    tn_node *z = tn_input(g, "z", 1, true);
    tn_node *s =
        tn_param(g, NULL, "s", (tn_shape){1, 1}, (tn_init){.kind = TN_INIT_CONSTANT, .a = ln2});
    tn_node *mse = tn_apply(g, &tn_loss_mse.op, NULL, TN_IN(z), NULL);
    tn_node *l = tn_apply(g, &tn_op_learned_loss, "loss", TN_IN(mse, s), NULL);
    assert_int_equal(tn_graph_finish(g, &(tn_wanted){.logit = z, .loss = l}, NULL), TN_OK);
    tn_put(s, (const double[]){ln2});
    tn_put(z, (const double[]){2, 3});
    static const tn_real zero[2] = {0, 0};
    static const tn_real weight[2] = {1, 3};
    tn_forward(g, &(tn_graph_feed){.rows = 2, .label = zero, .weight = weight});
    tn_assert_near("l", l, l->val, (const double[]){2 + ln2 / 2, 4.5 + ln2 / 2});
    tn_backward(g);
    tn_assert_near("dz", z, z->grad, (const double[]){.5 * 2 * 2, 3 * .5 * 2 * 3});
    tn_assert_near("ds", s, s->grad, (const double[]){(.5 - 2) + 3 * (.5 - 4.5)});
}
