/* test_vectors.c - single operators against the vectors of numerics.md. */
#include "base/keys/init.h"
#include "base/keys/record.h"
#include "nn/graph/embed.h"
#include "nn/near.h"
#include "nn/passes/finish.h"
#include "support/test.h"

CLOSER(tn_graph_free);

static const tn_init zero = {.kind = TN_INIT_CONSTANT};

static tn_node *weights(tn_graph *g, const char *name, uint32_t rows, uint32_t cols)
{
    return tn_param(g, NULL, name, (tn_shape){rows, cols}, zero);
}

TEST(v1_gelu)
{
    tn_graph *g FREED(tn_graph_free) = tn_trial_graph(1, true);
    tn_node *x = tn_input(g, "x", 3, true);
    tn_trial t = tn_trial_open(g, tn_activate(g, "y", x, "gelu"), 1, true);
    tn_put(x, (const double[]){-1, .5, 2});
    tn_trial_run(&t, NULL);
    tn_assert_near("y", t.y, t.y->val, (const double[]){-.158655254, .345731231, 1.954499736});
}

/* One example with three keys; `pool` and what comes out. */
static void check_pool(tn_pool pool, const float *x, const double *want)
{
    static const tn_segment segment = {.name = "deep", .at = 0, .dim = 2};
    tn_graph *g FREED(tn_graph_free) = tn_trial_graph(1, false);
    tn_embed_slot slot = {.name = "a", .slot = 0, .segment = &segment, .pool = pool, .k = 2};
    tn_node *y = tn_embed(g, "y", &slot, 1);
    assert_int_equal(tn_graph_finish(g, &(tn_wanted){.logit = y}, NULL), TN_OK);
    static const tn_real rows[] = {1, 2, 3, -1, (tn_real).5, (tn_real).25};
    tn_bag bag = {
        .offset = (const uint32_t[]){0, 3}, .index = (const uint32_t[]){0, 2, 4}, .weight = x};
    tn_sparse sparse = {.floats = 6, .rows = rows, .bag = &bag};
    tn_forward(g, &(tn_graph_feed){.rows = 1, .sparse = &sparse});
    tn_assert_near("pool", y, y->val, want);
}

TEST(v2_pooling)
{
    static const float x[] = {1, 2, .5F};
    static const float minus[] = {-1, 2, .5F};
    static const float none[] = {0, 0, 0};
    check_pool(TN_POOL_SUM, x, (const double[]){7.25, .125});
    check_pool(TN_POOL_MEAN, x, (const double[]){2.071428571, .035714286});
    check_pool(TN_POOL_SQRTN, x, (const double[]){3.164159408, .054554473});
    check_pool(TN_POOL_MAX, x, (const double[]){6, 2});
    check_pool(TN_POOL_CONCAT, x, (const double[]){1, 2, 6, -2});
    check_pool(TN_POOL_MEAN, NULL, (const double[]){1.5, .416666667});
    check_pool(TN_POOL_MEAN, minus, (const double[]){1.5, -1.107142857}); /* D = sum |x| */
    check_pool(TN_POOL_MEAN, none, (const double[]){0, 0});
    check_pool(TN_POOL_SQRTN, none, (const double[]){0, 0});
}

TEST(v6_fm_and_bi_interaction)
{
    static const double v[] = {.1, .2, .3, -.4, -.5, .6, 1, 0, .5, .5, 0, 2};
    tn_graph *g = tn_trial_graph(2, true);
    tn_node *x = tn_input(g, "x", 6, true);
    tn_trial t =
        tn_trial_open(g, tn_apply(g, &tn_op_fm, "y", TN_IN(x), &(tn_pairs_attr){2}), 2, true);
    tn_put(x, v);
    tn_trial_run(&t, (const double[]){1, 2});
    tn_assert_near("y", t.y, t.y->val, (const double[]){-.37, 1.5});
    tn_assert_near("dV", x, x->grad, (const double[]){-.2, .2, -.4, .8, .4, -.2, 1, 5, 2, 4, 3, 1});
    tn_graph_free(g);

    g = tn_trial_graph(2, true);
    x = tn_input(g, "x", 6, true);
    t = tn_trial_open(g, tn_apply(g, &tn_op_bi_interaction, "y", TN_IN(x), &(tn_pairs_attr){2}), 2,
                      true);
    tn_put(x, v);
    tn_trial_run(&t, NULL);
    tn_assert_near("y", t.y, t.y->val, (const double[]){-.17, -.2, .5, 1});
    tn_graph_free(g);
}

/* Section 2, Products, on V6's vectors: <v_i, v_j>, whose sum is V6's y; S^T S; and their
 * gradients, dv_0 = v_1 + 2 v_2 and so on, and S (P' + P'^T), by hand. */
TEST(products_of_v6)
{
    static const double v[] = {.1, .2, .3, -.4, -.5, .6, 1, 0, .5, .5, 0, 2};
    tn_graph *g = tn_trial_graph(2, true);
    tn_node *x = tn_input(g, "x", 6, true);
    tn_trial t =
        tn_trial_open(g, tn_apply(g, &tn_op_inner, "y", TN_IN(x), &(tn_pairs_attr){2}), 2, true);
    tn_put(x, v);
    tn_trial_run(&t, (const double[]){1, 2, 3, 1, -1, 0});
    tn_assert_near("y", t.y, t.y->val, (const double[]){-.05, .07, -.39, .5, 0, 1});
    tn_assert_near("dV", x, x->grad,
                   (const double[]){-.7, .8, -1.4, 2, 1.1, -.8, .5, -1.5, 1, 0, -1, 0});
    tn_graph_free(g);

    g = tn_trial_graph(2, true);
    x = tn_input(g, "x", 6, true);
    t = tn_trial_open(g, tn_apply(g, &tn_op_outer, "P", TN_IN(x), &(tn_pairs_attr){2}), 2, true);
    tn_put(x, v);
    tn_trial_run(&t, (const double[]){1, 2, 3, 4, 0, 1, 0, 0});
    tn_assert_near("P", t.y, t.y->val,
                   (const double[]){.01, -.04, -.04, .16, 2.25, 3.75, 3.75, 6.25});
    tn_assert_near("dV", x, x->grad,
                   (const double[]){1.8, 2.7, 1.8, 2.7, 1.8, 2.7, 2.5, 1.5, 2.5, 1.5, 2.5, 1.5});
    tn_graph_free(g);
}

/* Two groups of two columns, the second factor one column each: as SENet weighs fields anew. */
TEST(groups_of_columns_are_added_up_and_scaled)
{
    static const double x_of[] = {1, 3, 2, -4, .5, .5, 0, 7};
    tn_graph *g = tn_trial_graph(2, true);
    tn_node *x = tn_input(g, "x", 4, true);
    tn_trial t = tn_trial_open(
        g, tn_apply(g, &tn_op_sum_groups, "y", TN_IN(x), &(tn_pairs_attr){2}), 2, true);
    tn_put(x, x_of);
    tn_trial_run(&t, (const double[]){1, 2, 3, 4});
    tn_assert_near("y", t.y, t.y->val, (const double[]){4, -2, 1, 7});
    tn_assert_near("dx", x, x->grad, (const double[]){1, 1, 2, 2, 3, 3, 4, 4});
    tn_graph_free(g);

    g = tn_trial_graph(2, true);
    x = tn_input(g, "x", 4, true);
    tn_node *by = tn_input(g, "by", 2, true);
    t = tn_trial_open(g, tn_apply(g, &tn_op_mul, "y", TN_IN(x, by), NULL), 2, true);
    tn_put(x, x_of);
    tn_put(by, (const double[]){10, -1, 2, 0});
    tn_trial_run(&t, (const double[]){1, 2, 3, 4, 1, 1, 1, 1});
    tn_assert_near("y", t.y, t.y->val, (const double[]){10, 30, -2, 4, 1, 1, 0, 0});
    tn_assert_near("dx", x, x->grad, (const double[]){10, 20, -3, -4, 2, 2, 0, 0});
    tn_assert_near("dby", by, by->grad, (const double[]){7, -10, 1, 7});
    tn_graph_free(g);
}

/* One example: slot a has the values 1 (.1, .2) and 2 (.3, -.4), slot b .5 (-.5, .6). */
typedef struct pair_trial {
    tn_real grads[6];
    tn_real y;
} pair_trial;

static pair_trial pairs_of(bool within, uint32_t n_values)
{
    static const tn_segment segment = {.name = "deep", .at = 0, .dim = 2};
    static const tn_embed_slot slots[] = {
        {.name = "a", .slot = 0, .segment = &segment, .pool = TN_POOL_SUM},
        {.name = "b", .slot = 1, .segment = &segment, .pool = TN_POOL_SUM},
    };
    static const tn_real rows[] = {(tn_real).1,  (tn_real).2,  (tn_real).3,
                                   (tn_real)-.4, (tn_real)-.5, (tn_real).6};
    static const uint32_t one[] = {0, 1};
    static const uint32_t slot[] = {0, 1};
    tn_graph *g FREED(tn_graph_free) = tn_trial_graph(1, true);
    tn_node *x = tn_embed(g, "x", slots, 2);
    tn_node *y = within ? tn_apply(g, &tn_op_fm_values, "y",
                                   TN_IN(x, tn_apply(g, &tn_op_embed_squares, "q", TN_IN(x), NULL)),
                                   &(tn_pairs_attr){2})
                        : tn_apply(g, &tn_op_fm, "y", TN_IN(x), &(tn_pairs_attr){2});
    tn_trial t = tn_trial_open(g, y, 1, true);
    pair_trial out = {.y = 0};
    const uint32_t whole[] = {0, n_values};
    const uint32_t places[] = {0, 2, 4};
    const float x_of[] = {1, 2, .5F};
    tn_bag bag[] = {{.offset = whole, .index = places, .weight = x_of},
                    {.offset = one, .index = places + 2, .weight = x_of + 2}};
    const tn_row_block block[] = {{0, 4, slot, 1, true}, {4, 6, slot + 1, 1, true}};
    tn_sparse sparse = {6, rows, out.grads, bag, block, 2};
    t.feed.sparse = &sparse;
    tn_trial_run(&t, (const double[]){1});
    out.y = *t.y->val;
    return out;
}

TEST(v6_within_slot)
{
    tn_assert_value((double)pairs_of(false, 2).y, -.355);
    pair_trial within = pairs_of(true, 2);
    tn_assert_value((double)within.y, -.455);
    /* x (s - x v), s = (.45, -.3) */
    const double want[] = {.35, -.5, -.3, 1, .35, -.3};
    for (uint32_t i = 0; i < 6; i++) {
        tn_assert_value((double)within.grads[i], want[i]);
    }
}

TEST(slots_of_one_value_make_pairs_of_values_those_of_slots)
{
    pair_trial slots = pairs_of(false, 1);
    pair_trial values = pairs_of(true, 1);
    assert_memory_equal(&slots.y, &values.y, sizeof slots.y);
    for (uint32_t i = 0; i < 6; i++) {
        tn_assert_value((double)values.grads[i], (double)slots.grads[i]);
    }
}

static const double cross_x0[] = {.1, .2, -.3, .4, -.5, .6};
static const double cross_x[] = {1, -1, .5, .2, .3, -.7};
static const double cross_g[] = {1, 2, -1, .5, -.5, 1};

TEST(v8_cross_v1)
{
    tn_graph *g FREED(tn_graph_free) = tn_trial_graph(2, true);
    tn_node *x0 = tn_input(g, "x0", 3, true);
    tn_node *x = tn_input(g, "x", 3, true);
    tn_node *wb[] = {weights(g, "w", 1, 3), weights(g, "b", 1, 3)};
    tn_trial t =
        tn_trial_open(g, tn_apply(g, &tn_op_cross, "y", TN_IN(x0, x, wb[0], wb[1]), NULL), 2, true);
    tn_put(x0, cross_x0);
    tn_put(x, cross_x);
    tn_put(wb[0], (const double[]){.5, -.25, 1});
    tn_put(wb[1], (const double[]){.01, .02, .03});
    tn_trial_run(&t, cross_g);
    tn_assert_near("y", t.y, t.y->val, (const double[]){1.135, -.73, .155, -.06, .6575, -1.075});
    tn_assert_near("dx0", x0, x0->grad, (const double[]){1.25, 2.5, -1.25, -.3375, .3375, -.675});
    tn_assert_near("dx", x, x->grad, (const double[]){1.4, 1.8, -.2, 1.025, -.7625, 2.05});
    tn_assert_near("dw", wb[0], wb[0]->grad, (const double[]){1.01, -.485, -.335});
    tn_assert_near("db", wb[1], wb[1]->grad, (const double[]){1.5, 1.5, 0});
}

TEST(v8_cross_v2)
{
    tn_graph *g FREED(tn_graph_free) = tn_trial_graph(2, true);
    tn_node *x0 = tn_input(g, "x0", 3, true);
    tn_node *x = tn_input(g, "x", 3, true);
    tn_node *w = weights(g, "w", 3, 3);
    tn_node *b = weights(g, "b", 1, 3);
    tn_node *h = tn_apply(g, &tn_op_bias, "h",
                          TN_IN(tn_apply(g, &tn_op_matmul, NULL, TN_IN(x, w), NULL), b), NULL);
    tn_trial t =
        tn_trial_open(g, tn_apply(g, &tn_op_cross_merge, "y", TN_IN(x0, h, x), NULL), 2, true);
    tn_put(x0, cross_x0);
    tn_put(x, cross_x);
    tn_put(w, (const double[]){.5, -1, .2, .1, .3, -.4, -.2, .6, .7});
    tn_put(b, (const double[]){.01, .02, .03});
    tn_trial_run(&t, cross_g);
    tn_assert_near("y", t.y, t.y->val, (const double[]){1.031, -1.196, .206, .312, .555, -1.024});
    tn_assert_near("dx0", x0, x0->grad, (const double[]){.31, -1.96, -.98, .14, .255, -.54});
    tn_assert_near("dx", x, x->grad, (const double[]){.71, 2.01, -.57, .47, -.645, 1.53});
    tn_assert_near("dW", w, w->grad,
                   (const double[]){.14, .45, .42, -.04, -.325, -.12, -.09, .025, -.27});
    tn_assert_near("db", b, b->grad, (const double[]){.3, .65, .9});
}

TEST(softmax_of_nothing_but_masks_is_0)
{
    tn_graph *g FREED(tn_graph_free) = tn_trial_graph(2, true);
    tn_node *x = tn_input(g, "x", 2, true);
    tn_trial t = tn_trial_open(g, tn_apply(g, &tn_op_softmax, "y", TN_IN(x), NULL), 2, true);
    tn_put(x, (const double[]){-HUGE_VAL, -HUGE_VAL, -HUGE_VAL, 7});
    tn_trial_run(&t, NULL);
    tn_assert_near("y", t.y, t.y->val, (const double[]){0, 0, 0, 1});
}

/* Digits of the product and of its rest: pairs of scores, far from 0 and of either sign, against
 * long double. */
TEST(both_keeps_the_digits_of_small_and_large_probabilities)
{
    enum { N = 8 };
    static const double a[N] = {0, 3, -40, 60, -87, 30, 12, -3};
    static const double b[N] = {0, -2, -45, 61, 80, 30, 11.5, 88};
    tn_graph *g FREED(tn_graph_free) = tn_trial_graph(1, true);
    tn_node *x = tn_input(g, "x", N, true);
    tn_node *z = tn_input(g, "z", N, true);
    tn_trial t = tn_trial_open(g, tn_apply(g, &tn_op_both, "y", TN_IN(x, z), NULL), 1, true);
    tn_put(x, a);
    tn_put(z, b);
    tn_trial_run(&t, NULL);
    for (int i = 0; i < N; i++) {
        const long double ea = expl(-(long double)a[i]);
        const long double eb = expl(-(long double)b[i]);
        const long double sum = ea + eb + ea * eb;
        const double y = (double)-logl(sum);
        const double got = (double)t.y->val[i];
        if (!(fabs(got - y) <= 1e-6 * fabs(y) + 1e-7)) {
            fail_msg("both(%g, %g) is %.9g, not %.9g", a[i], b[i], got, y);
        }
    }
}

TEST(v17_dropout_mask)
{
    tn_graph *g FREED(tn_graph_free) = tn_trial_graph(4, true);
    tn_node *x = tn_input(g, "x", 4, true);
    tn_trial t = tn_trial_open(
        g, tn_apply(g, &tn_op_dropout, "deep.1.drop", TN_IN(x), &(tn_dropout_attr){.3}), 4, true);
    t.feed.info = (tn_step_info){.seed = 42, .step = 8, .training = true};
    static const char kept[] = "1001110111111100";
    double ones[16];
    double want[16];
    for (int i = 0; i < 16; i++) {
        ones[i] = 1;
        want[i] = kept[i] == '1' ? 1 / .7 : 0;
    }
    tn_put(x, ones);
    tn_trial_run(&t, ones);
    tn_assert_near("y", t.y, t.y->val, want);
    tn_assert_near("dx", x, x->grad, want);
    t.feed.info.training = false;
    tn_trial_run(&t, NULL);
    tn_assert_near("y", t.y, t.y->val, ones);
}

/* Rows 2 and 3 of one process are rows 0 and 1 of the second peer. */
TEST(dropout_depends_on_the_row_of_the_joint_batch)
{
    double ones[12];
    for (int i = 0; i < 12; i++) {
        ones[i] = 1;
    }
    tn_real whole[12];
    for (int part = 0; part < 2; part++) {
        tn_graph *g FREED(tn_graph_free) = tn_trial_graph(4, true);
        tn_node *x = tn_input(g, "x", 3, true); /* odd: rows begin in the middle of a draw */
        uint32_t rows = part == 0 ? 4 : 1;
        tn_trial t = tn_trial_open(
            g, tn_apply(g, &tn_op_dropout, "drop", TN_IN(x), &(tn_dropout_attr){.5}), rows, true);
        t.feed.info.first_row = part == 0 ? 0 : 3;
        tn_put(x, ones);
        tn_trial_run(&t, NULL);
        for (int c = 0; c < 3; c++) {
            if (part == 0) {
                whole[c] = tn_val_row(t.y, 3)[c];
            } else {
                tn_assert_value((double)tn_val_row(t.y, 0)[c], (double)whole[c]);
            }
        }
    }
}
