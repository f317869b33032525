/* test_further_loss.c - losses of several scores of one label: values by hand, gradients by
 * differences, and the joint batch of peers. */
#include "nn/loss/further_loss.h"

#include "nn/gradcheck.h"
#include "nn/near.h"
#include "nn/passes/finish.h"
#include "support/test.h"

CLOSER(tn_graph_free);

enum { ROWS = 2 };

/* Losses 1 and 3 of the output, of weights 1 and 3: 2.5 in the mean; 4 and 4 of the other score, or
 * 2 and 2. */
static void assert_sum(double asked, double other, const double *sum)
{
    static const tn_real weight[ROWS] = {1, 3};
    tn_graph *g FREED(tn_graph_free) = tn_graph_new(&(tn_graph_opts){.max_rows = ROWS});
    tn_node *l = tn_input(g, "l", 1, false);
    tn_node *k = tn_input(g, "k", 1, false);
    const tn_further_loss_attr attr = {asked};
    tn_node *y = tn_apply(g, &tn_op_further_loss, "loss", TN_IN(l, l, k), &attr);
    assert_int_equal(tn_graph_finish(g, &(tn_wanted){.logit = y}, NULL), TN_OK);
    tn_put(l, (const double[]){1, 3});
    tn_put(k, (const double[]){other, other});
    tn_forward(g, &(tn_graph_feed){.rows = ROWS, .weight = weight});
    tn_assert_near("y", y, y->val, sum);
}

TEST(a_score_counts_by_its_weight_or_by_how_much_worse_it_is)
{
    assert_sum(.25, 4, (const double[]){2, 4});
    assert_sum(TN_LOSS_EXCESS, 4, (const double[]){1 + 1.5 * 4, 3 + 1.5 * 4});
    assert_sum(TN_LOSS_EXCESS, 2, (const double[]){1, 3});
    assert_sum(0, 4, (const double[]){1, 3});
}

static double asked;  /* the weight */
static double larger; /* factor of the other loss */

/* The loss of x and that of a multiple of it, with the loss before them in a chain. */
static tn_node *example(tn_graph *g)
{
    tn_node *x = tn_input(g, NULL, 1, true);
    tn_node *z = tn_input(g, NULL, 1, true);
    tn_node *l = tn_activate(g, NULL, x, "square");
    tn_node *k = tn_apply(g, &tn_op_scale, NULL, TN_IN(tn_activate(g, NULL, z, "square")),
                          &(tn_scale_attr){.by = larger});
    const tn_further_loss_attr attr = {asked};
    tn_node *first = tn_apply(g, &tn_op_further_loss, NULL, TN_IN(l, l, k), &attr);
    return tn_apply(g, &tn_op_further_loss, NULL, TN_IN(first, l, k), &attr);
}

TEST(gradients_are_those_of_the_differences)
{
    static const double asks[] = {TN_LOSS_EXCESS, TN_LOSS_EXCESS, .5};
    static const double factors[] = {9, .01, 1};
    static const tn_real weight[TN_CHECK_ROWS] = {1, 2, 0, 1, 3, 1};
    for (uint32_t i = 0; i < 6; i++) {
        tn_check c;
        uint64_t n_entries = 0;
        asked = asks[i / 2];
        larger = factors[i / 2];
        tn_check_open(&c, example, &(tn_graph_opts){.train = true}, 20261130);
        c.feed.weight = i % 2 == 0 ? NULL : weight;
        const double error = tn_check_differences(&c, &n_entries);
        fail_if(error > (sizeof(tn_real) == 8 ? 1e-7 : 1e-2), "case %u is off by %g", i, error);
        assert_int_equal(n_entries, 2 * TN_CHECK_ROWS);
        assert_int_equal(tn_check_strays(&c), 0);
        tn_check_close(&c);
    }
}
