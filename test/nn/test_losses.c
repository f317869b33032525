/* test_losses.c - losses of classes, numbers and pairs against the vectors of numerics.md, section
 * 4, and against sums made by hand. Their gradients are checked with all others in test_ops.c. */
#include "base/math/key.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/tree.h"
#include "config/yaml.h"
#include "nn/loss/loss.h"
#include "nn/near.h"
#include "nn/passes/finish.h"
#include "support/test.h"

enum { ROWS_MAX = 6 };

typedef struct trial {
    tn_graph *g;
    tn_node *z, *l;
    double loss;
} trial;

typedef struct rows {
    uint32_t n;
    const double *z;
    const tn_real *label;
    const tn_real *weight;
    const uint64_t *group;
} rows;

/* Makes a graph of the loss alone; `options` as in a configuration, "{delta: 2}". */
static trial run(const tn_loss *loss, const char *options, const rows *r, tn_reduction reduction)
{
    trial t;
    tn_diag diag CLEANUP(tn_diag_done) = {0};
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 12);
    const tn_binder b = {.arena = arena, .diag = &diag};
    const tn_yaml_in in = {.text = options, .size = strlen(options), .source = "options"};
    void *opts FREED(tn_free) = tn_alloc(1, loss->choice.size + 1, "options");
    if (loss->choice.fields != NULL) {
        tn_fields_bind(&b, loss->choice.fields, tn_yaml_read(arena, &diag, &in), opts);
    }
    assert_int_equal(tn_diag_check(&diag, NULL), TN_OK);
    t.g =
        tn_graph_new(&(tn_graph_opts){.max_rows = ROWS_MAX, .train = true, .reduction = reduction});
    t.z = tn_input(t.g, "z", 1, true);
    t.l = tn_apply(t.g, &loss->op, "loss", TN_IN(t.z), opts);
    assert_int_equal(tn_graph_finish(t.g, &(tn_wanted){.logit = t.z, .loss = t.l}, NULL), TN_OK);
    t.z->shape.rows = r->n;
    t.l->shape.rows = r->n;
    tn_put(t.z, r->z);
    tn_forward(t.g, &(tn_graph_feed){
                        .rows = r->n, .label = r->label, .weight = r->weight, .group = r->group});
    t.loss = tn_graph_loss(t.g);
    tn_backward(t.g);
    return t;
}

static void check(const tn_loss *loss, const char *options, const rows *r, const double *l,
                  const double *dz)
{
    trial t = run(loss, options, r, TN_REDUCE_SUM);
    tn_assert_near("l", t.l, t.l->val, l);
    tn_assert_near("dz", t.z, t.z->grad, dz);
    tn_graph_free(t.g);
}

TEST(v15_bce)
{
    const rows r = {5, (const double[]){-40, -2, 0, 1.5, 100}, (const tn_real[]){0, 1, 1, 0, 1},
                    NULL, NULL};
    trial t = run(&tn_loss_bce, "{}", &r, TN_REDUCE_SUM);
    tn_assert_near("l", t.l, t.l->val,
                   (const double[]){0, 2.126928011, .693147181, 1.701413278, 0});
    tn_assert_near("dz", t.z, t.z->grad, (const double[]){0, -.880797078, -.5, .817574476, 0});
    tn_assert_value((double)*tn_val_row(t.l, 0) * 1e18, 4.24835426);
    tn_assert_value((double)*tn_grad_row(t.z, 0) * 1e18, 4.24835426);
    tn_graph_free(t.g);
}

TEST(v16_weighted_bce)
{
    static const tn_real weight[] = {1, (tn_real).5, 2};
    const rows r = {3, (const double[]){.5, -1, 2}, (const tn_real[]){1, 0, 0}, weight, NULL};
    static const double sum = 1.395589671 * 3.5;
    static const struct {
        tn_reduction reduction;
        double w;
    } cases[] = {{TN_REDUCE_MEAN, 3.5}, {TN_REDUCE_SUM, 1}, {TN_REDUCE_ROWS, 3}};
    for (int i = 0; i < 3; i++) {
        trial t = run(&tn_loss_bce, "{}", &r, cases[i].reduction);
        double f = 3.5 / cases[i].w;
        tn_assert_value(t.loss, sum / cases[i].w);
        tn_assert_near("dz", t.z, t.z->grad,
                       (const double[]){-.107868763 * f, .038420203 * f, .503312616 * f});
        tn_graph_free(t.g);
    }
}

TEST(weights_of_0_are_no_division_by_0)
{
    const rows r = {2, (const double[]){.5, -1}, (const tn_real[]){1, 0}, (const tn_real[]){0, 0},
                    NULL};
    trial t = run(&tn_loss_bce, "{}", &r, TN_REDUCE_MEAN);
    tn_assert_value(t.loss, 0);
    tn_assert_near("dz", t.z, t.z->grad, (const double[]){0, 0});
    tn_graph_free(t.g);
}

TEST(positive_weight_and_smoothing_follow_their_formulas)
{
    const rows r = {1, (const double[]){.7}, (const tn_real[]){1}, NULL, NULL};
    const double y = .9;
    const double p = 1 / (1 + exp(-.7));
    check(&tn_loss_bce, "{pos_weight: 3, label_smoothing: 0.2}", &r,
          (const double[]){-3 * y * log(p) - (1 - y) * log(1 - p)},
          (const double[]){(1 - y) * p - 3 * y * (1 - p)});
}

TEST(v16_focal)
{
    const rows r = {3, (const double[]){.5, -1, 2}, (const tn_real[]){1, 0, 0}, NULL, NULL};
    check(&tn_loss_focal, "{gamma: 2, alpha: 0.25}", &r,
          (const double[]){.016893373, .016993543, 1.237558635},
          (const double[]){-.034484249, .039435847, .807535298});
}

/* Without its factor focal is half of bce, V15; logits of any size are exact. */
TEST(focal_without_its_factor_is_bce)
{
    const rows r = {5, (const double[]){-40, -2, 0, 1.5, 100}, (const tn_real[]){0, 1, 1, 0, 1},
                    NULL, NULL};
    check(&tn_loss_focal, "{gamma: 0, alpha: 0.5}", &r,
          (const double[]){0, 2.126928011 / 2, .693147181 / 2, 1.701413278 / 2, 0},
          (const double[]){0, -.880797078 / 2, -.25, .817574476 / 2, 0});
    const rows far = {2, (const double[]){3e4, -3e4}, (const tn_real[]){0, 1}, NULL, NULL};
    check(&tn_loss_focal, "{gamma: 2, alpha: 0.25}", &far, (const double[]){.75 * 3e4, .25 * 3e4},
          (const double[]){.75, -.25});
    const rows soft = {1, (const double[]){.5}, (const tn_real[]){(tn_real).25}, NULL, NULL};
    check(&tn_loss_focal, "{gamma: 0, alpha: 0.5}", &soft,
          (const double[]){(.25 * .474076984 + .75 * .974076984) / 2},
          (const double[]){(.622459331 - .25) / 2});
}

TEST(hinge_ends_at_a_margin_of_1)
{
    const rows r = {5, (const double[]){.5, -1, 2, 1.5, -3}, (const tn_real[]){1, 0, 0, 1, 1}, NULL,
                    NULL};
    check(&tn_loss_hinge, "{}", &r, (const double[]){.5, 0, 3, 0, 4},
          (const double[]){-1, 0, 1, 0, -1});
    check(&tn_loss_squared_hinge, "{}", &r, (const double[]){.25, 0, 9, 0, 16},
          (const double[]){-1, 0, 6, 0, -8});
}

TEST(errors_of_numbers_are_theirs)
{
    const rows r = {4, (const double[]){.5, -1, 200, 7}, (const tn_real[]){1, -4, 199, 7}, NULL,
                    NULL};
    check(&tn_loss_mse, "{}", &r, (const double[]){.25, 9, 1, 0}, (const double[]){-1, 6, 2, 0});
    check(&tn_loss_mae, "{}", &r, (const double[]){.5, 3, 1, 0}, (const double[]){-1, 1, 1, 0});
    check(&tn_loss_huber, "{delta: 1}", &r, (const double[]){.125, 2.5, .5, 0},
          (const double[]){-.5, 1, 1, 0});
    check(&tn_loss_huber, "{delta: 2}", &r, (const double[]){.125, 4, .5, 0},
          (const double[]){-.5, 2, 1, 0});
}

TEST(weights_and_their_sum_are_those_of_every_loss)
{
    static const tn_real weight[] = {1, (tn_real).5, 2};
    const rows r = {3, (const double[]){.5, -1, 2}, (const tn_real[]){1, -4, 3}, weight, NULL};
    trial t = run(&tn_loss_mse, "{}", &r, TN_REDUCE_MEAN);
    tn_assert_value(t.loss, (.25 + .5 * 9 + 2) / 3.5);
    tn_assert_near("dz", t.z, t.z->grad, (const double[]){-1 / 3.5, .5 * 6 / 3.5, 2 * -2 / 3.5});
    tn_graph_free(t.g);
}

/* ---- pairs ---- */

static double sp(double x)
{
    return log1p(exp(x));
}

static double sigma(double x)
{
    return 1 / (1 + exp(-x));
}

TEST(v16_pairs)
{
    static const double bpr[] = {.598138869, .913015252};
    static const double gaps[] = {.2, -.4};
    for (int i = 0; i < 2; i++) {
        const rows r = {2, (const double[]){1, 1 + gaps[i]}, (const tn_real[]){0, 1}, NULL,
                        (const uint64_t[]){9, 9}};
        trial t = run(&tn_loss_pairwise, "{}", &r, TN_REDUCE_MEAN);
        const double pull = sigma(-gaps[i]);
        tn_assert_value(t.loss, bpr[i]);
        tn_assert_near("dz", t.z, t.z->grad, (const double[]){pull, -pull});
        tn_graph_free(t.g);
    }
}

/* Group 1: rows 0, 2, 4 of labels 3 1 1; group 2: rows 1, 5 of labels 0 0, no pair; row 3 has no
 * group. */
TEST(a_group_counts_as_its_rows_and_others_lose_nothing)
{
    static const double z[] = {.3, 5, .7, -9, -.2, 1};
    static const tn_real label[] = {3, 0, 1, 2, 1, 0};
    static const tn_real weight[] = {1, 1, 2, 1, (tn_real).5, 3};
    static const uint64_t group[] = {1, 2, 1, TN_NO_GROUP, 1, 2};
    const rows r = {6, z, label, weight, group};
    trial t = run(&tn_loss_pairwise, "{}", &r, TN_REDUCE_MEAN);
    const double n = 2 + .5; /* w_0 w_2 + w_0 w_4 */
    const double of_group = (2 * sp(.7 - .3) + .5 * sp(-.2 - .3)) / n;
    const double share = 3.5 / 8.5;
    tn_assert_value(t.loss, share * of_group);
    const double p2 = share * 2 * sigma(.7 - .3) / n;
    const double p4 = share * .5 * sigma(-.2 - .3) / n;
    tn_assert_near("dz", t.z, t.z->grad, (const double[]){-p2 - p4, 0, p2, 0, p4, 0});
    tn_graph_free(t.g);
}

TEST(batches_without_pairs_teach_nothing)
{
    static const double z[] = {.3, 5, .7};
    static const tn_real label[] = {3, 0, 1};
    const rows none = {3, z, label, NULL, NULL};
    const rows alone = {3, z, label, NULL, (const uint64_t[]){1, 2, 3}};
    const rows equal = {3, z, (const tn_real[]){1, 1, 1}, NULL, (const uint64_t[]){1, 1, 1}};
    const rows outside = {3, z, label, NULL,
                          (const uint64_t[]){TN_NO_GROUP, TN_NO_GROUP, TN_NO_GROUP}};
    const rows *const cases[] = {&none, &alone, &equal, &outside};
    for (int i = 0; i < 4; i++) {
        trial t = run(&tn_loss_pairwise, "{}", cases[i], TN_REDUCE_MEAN);
        tn_assert_value(t.loss, 0);
        tn_assert_near("dz", t.z, t.z->grad, (const double[]){0, 0, 0});
        tn_graph_free(t.g);
    }
}
