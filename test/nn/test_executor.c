/* test_executor.c - the loss and its gradient over one batch, or over a part of a joint one. */
#include "near.h"
#include "nn/graph/embed.h"
#include "nn/graph/params.h"
#include "nn/loss/loss.h"
#include "nn/passes/finish.h"
#include "support/test.h"

enum { ROWS = 6, COLS = 2, MODES = 3 };

static const tn_real numbers[ROWS * COLS] = {.5F, 1, -1, 2, .25F, .5F, 3, -1, 0, 1, -2, -.5F};
static const tn_real labels[ROWS] = {1, 0, 0, 1, 1, 0};
static const tn_real weights[ROWS] = {1, 2, .5F, 1, 3, .25F};

typedef struct net {
    tn_graph *g;
    tn_params *params;
    tn_node *w;
} net;

static net make_net(tn_reduction reduction)
{
    net n = {.params = tn_params_new()};
    n.g = tn_graph_new(&(tn_graph_opts){.max_rows = ROWS, .train = true, .reduction = reduction});
    tn_node *x = tn_apply(n.g, &tn_op_numeric, "x", NULL, 0, &(tn_numeric_attr){.cols = COLS});
    n.w = tn_param(n.g, n.params, "w", (tn_shape){COLS, 1}, (tn_init){.kind = TN_INIT_CONSTANT});
    tn_node *logit = tn_apply(n.g, &tn_op_matmul, "logit", TN_IN(x, n.w), NULL);
    tn_wanted wanted = {.logit = logit,
                        .loss = tn_apply(n.g, &tn_loss_mse.op, "loss", TN_IN(logit), NULL)};
    tn_error err = {0};
    assert_ok(tn_graph_finish(n.g, &wanted, &err), err.text);
    tn_params_init(n.params, 1);
    n.w->val[0] = .5F;
    n.w->val[1] = -.25F;
    return n;
}

static tn_graph_feed feed_of(uint32_t from, uint32_t to)
{
    return (tn_graph_feed){.rows = to - from,
                           .numeric = numbers + (size_t)from * COLS,
                           .label = labels + from,
                           .weight = weights + from,
                           .info = {.training = true}};
}

TEST(parts_of_a_joint_batch_add_up_to_it)
{
    const tn_reduction mode[MODES] = {TN_REDUCE_MEAN, TN_REDUCE_SUM, TN_REDUCE_ROWS};
    for (uint32_t m = 0; m < MODES; m++) {
        net n = make_net(mode[m]);
        tn_graph_feed all = feed_of(0, ROWS);
        tn_forward(n.g, &all);
        tn_backward(n.g);
        double loss = tn_graph_loss(n.g);
        const double grad[COLS] = {(double)n.w->grad[0], (double)n.w->grad[1]};
        double sum_loss = 0;
        double sum[COLS] = {0, 0};
        for (uint32_t from = 0; from < ROWS; from += 2) {
            tn_graph_feed part = feed_of(from, from + 2);
            part.joint_rows = ROWS;
            part.joint_weight = 1 + 2 + .5 + 1 + 3 + .25;
            tn_forward(n.g, &part);
            tn_backward(n.g);
            sum_loss += tn_graph_loss(n.g);
            sum[0] += (double)n.w->grad[0];
            sum[1] += (double)n.w->grad[1];
        }
        assert_float_equal(sum_loss, loss, 1e-6);
        assert_float_equal(sum[0], grad[0], 1e-6);
        assert_float_equal(sum[1], grad[1], 1e-6);
        assert_true(grad[0] != 0 && grad[1] != 0);
        tn_graph_free(n.g);
        tn_params_free(n.params);
    }
}
