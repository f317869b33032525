/* test_interactions.c - bilinear, cin, slot_dense, slot_attention, ffm_inner: numbers of an
 * independent program, and gradients in every form that the examples do not have.
 *
 * The numbers are numpy's, in double; gradients by complex steps of 1e-20 of these lines, v of
 * shape [rows, slots, dim] and so on, I, J the pairs:
 *
 *     all             einsum('bpd,de->bpe', v[:,I], W) * v[:,J]
 *     each            einsum('bpd,pde->bpe', v[:,I], W[I]) * v[:,J]
 *     interaction     einsum('bpd,pde->bpe', v[:,I], W) * v[:,J]
 *     cin             einsum('bid,bjd,ijk->bkd', x, x0, W) + b[None,:,None]
 *     slot_dense      einsum('bfd,dn->bfn', v, W) + b, einsum('bfd,fdn->bfn', v, W)
 *     slot_attention  p = softmax(scale einsum('bihc,bjhc->bhij', Q, K)), einsum('bhij,bjhc->bihc',
 *                     p, V)
 *     ffm_inner       sum(A[:,i,j] * A[:,j,i], -1)
 */
#include "base/keys/init.h"
#include "nn/gradcheck.h"
#include "nn/near.h"
#include "support/test.h"

CLOSER(tn_graph_free);

static const tn_init zero = {.kind = TN_INIT_CONSTANT};

static tn_node *weights(tn_graph *g, const char *name, uint32_t rows, uint32_t cols)
{
    return tn_param(g, NULL, name, (tn_shape){rows, cols}, zero);
}

/* Two rows of three vectors of 2. */
static const double v_of[] = {.1, .2, .3, -.4, -.5, .6, 1, 0, .5, .5, 0, 2};

/* Values and gradients of bilinear with n matrices. */
static void check_bilinear(uint32_t n, const double *w_of, const double *y, const double *dv,
                           const double *dw)
{
    tn_graph *g FREED(tn_graph_free) = tn_trial_graph(2, true);
    tn_node *v = tn_input(g, "v", 6, true);
    tn_node *w = weights(g, "W", 2 * n, 2);
    tn_trial t = tn_trial_open(
        g, tn_apply(g, &tn_op_bilinear, "y", TN_IN(v, w), &(tn_pairs_attr){2}), 2, true);
    tn_put(v, v_of);
    tn_put(w, w_of);
    tn_trial_run(&t, (const double[]){1, 2, 3, -1, .5, 1, 1, -1, 2, 0, 1, 3});
    tn_assert_near("y", t.y, t.y->val, y);
    tn_assert_near("dv", v, v->grad, dv);
    tn_assert_near("dW", w, w->grad, dw);
}

TEST(bilinear_pairs_are_those_of_numpy)
{
    static const double w[] = {.5, -1, 2, .25, 1, 3, -2, .5, .1, .2, .3, .4};
    check_bilinear(
        1, w, (const double[]){.135, .02, -.225, -.03, .325, -.24, .25, -.5, 0, -2, 0, -.75},
        (const double[]){.8, -2.75, -.275, -.45, 1.025, -.35, .75, .875, -5.5, 2.5, 2.25, -1.125},
        (const double[]){.305, 2.54, -.14, 2.48});
    check_bilinear(2, w,
                   (const double[]){.135, .02, -.225, -.03, -.55, .42, .25, -.5, 0, -2, 0, 3.5},
                   (const double[]){.8, -2.75, 2, .7, 1.9, .75, .75, .875, 18.5, 4, .5, 5.25},
                   (const double[]){.38, -.64, -.24, -.28, -.075, 3.18, .1, 2.76});
    check_bilinear(
        3, w, (const double[]){.135, .02, .15, .24, .045, -.06, .25, -.5, 0, 6, 0, .6},
        (const double[]){-2.35, 3.1, .545, .065, -.945, -.5, .75, .875, 1.7, 3.4, 2.2, .9},
        (const double[]){.53, -.58, .06, -.16, -.15, -.06, -.3, -.12, -.075, 3.18, .1, 2.76});
}

TEST(pairs_without_a_matrix_are_products)
{
    tn_graph *g FREED(tn_graph_free) = tn_trial_graph(2, true);
    tn_node *v = tn_input(g, "v", 6, true);
    tn_trial t =
        tn_trial_open(g, tn_apply(g, &tn_op_bilinear, "y", TN_IN(v), &(tn_pairs_attr){2}), 2, true);
    tn_put(v, v_of);
    tn_trial_run(&t, (const double[]){1, 2, 3, -1, .5, 1, 1, -1, 2, 0, 1, 3});
    tn_assert_near("y", t.y, t.y->val,
                   (const double[]){.03, -.08, -.05, .12, -.15, -.24, .5, 0, 0, 0, 0, 1});
    tn_assert_near("dv", v, v->grad,
                   (const double[]){-1.2, -1.4, -.15, 1, .45, -.6, .5, -.5, 1, 6, 2.5, 1.5});
}

TEST(maps_of_cin_are_those_of_numpy)
{
    tn_graph *g FREED(tn_graph_free) = tn_trial_graph(2, true);
    tn_node *x0 = tn_input(g, "x0", 6, true);
    tn_node *x = tn_input(g, "x", 4, true);
    tn_node *w = weights(g, "W", 6, 2);
    tn_node *b = weights(g, "b", 1, 2);
    tn_trial t = tn_trial_open(
        g, tn_apply(g, &tn_op_cin, "y", TN_IN(x0, x, w, b), &(tn_pairs_attr){2}), 2, true);
    tn_put(x0, v_of);
    tn_put(x, (const double[]){1, -1, .5, .2, .3, -.7, 0, 1});
    tn_put(w, (const double[]){.5, -1, 2, .25, 1, 3, -2, .5, .1, .2, .3, .4});
    tn_put(b, (const double[]){.01, -.02});
    tn_trial_run(&t, (const double[]){1, 2, -1, .5, .5, -2, 3, 1});
    tn_assert_near("y", t.y, t.y->val,
                   (const double[]){0, .058, -1.59, -1.468, .46, -1.44, -.2825, -3.4075});
    tn_assert_near("dx0", x0, x0->grad,
                   (const double[]){.25, -1.25, 1.7, -4.065, -2.05, -3.34, -.825, 5.9, .525, 2.625,
                                    2.85, -.9});
    tn_assert_near("dx", x, x->grad,
                   (const double[]){1.675, .55, -.23, -.39, -1.875, .125, .825, -.4});
    tn_assert_near(
        "dW", w, w->grad,
        (const double[]){-.15, .7, 1.875, 0, 1.1, -1.2, .13, -.03, -1.01, .31, -4.01, 2.31});
    tn_assert_near("db", b, b->grad, (const double[]){1.5, 3.5});
}

TEST(slots_go_through_one_matrix_or_each_its_own)
{
    static const double eighteen[] = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    tn_graph *g FREED(tn_graph_free) = tn_trial_graph(2, true);
    tn_node *v = tn_input(g, "v", 6, true);
    tn_node *w = weights(g, "W", 2, 3);
    tn_node *b = weights(g, "b", 1, 3);
    tn_trial t = tn_trial_open(
        g, tn_apply(g, &tn_op_slot_dense, "y", TN_IN(v, w, b), &(tn_pairs_attr){2}), 2, true);
    tn_put(v, v_of);
    tn_put(w, (const double[]){.5, -1, 2, .25, 1, 3});
    tn_put(b, (const double[]){.1, .2, -.3});
    tn_trial_run(&t, eighteen);
    tn_assert_near("y", t.y, t.y->val,
                   (const double[]){.2, .3, .5, .15, -.5, -.9, 0, 1.3, .5, .6, -.8, 1.7, .475, .2,
                                    2.2, .6, 2.2, 5.7});
    tn_assert_near(
        "dv", v, v->grad,
        (const double[]){-9, -27, -4.5, -14.25, 0, -1.5, 4.5, 11.25, 9, 24, 13.5, 36.75});
    tn_assert_near("dW", w, w->grad, (const double[]){1.7, 3.1, 4.5, 15.2, 18.1, 21});
    tn_assert_near("db", b, b->grad, (const double[]){-3, 3, 9});

    tn_graph *own FREED(tn_graph_free) = tn_trial_graph(2, true);
    v = tn_input(own, "v", 6, true);
    w = weights(own, "W", 6, 2);
    t = tn_trial_open(own, tn_apply(own, &tn_op_slot_dense, "y", TN_IN(v, w), &(tn_pairs_attr){2}),
                      2, true);
    tn_put(v, v_of);
    tn_put(w, (const double[]){.5, -1, 2, .25, 1, 3, -2, .5, .1, .2, .3, .4});
    tn_trial_run(&t, (const double[]){-5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6});
    tn_assert_near("y", t.y, t.y->val,
                   (const double[]){.45, -.05, 1.1, .7, .13, .14, .5, -1, -.5, 1.75, .6, .8});
    tn_assert_near("dv", v, v->grad,
                   (const double[]){1.5, -11, -9, 5, -.1, -.3, -1.5, 2.5, 15, -4, 1.7, 3.9});
    tn_assert_near("dW", w, w->grad,
                   (const double[]){.5, 1.6, -1, -.8, .6, 1.4, 2.7, 2.8, .5, 0, 9.4, 12});
}

TEST(attention_of_slots_is_that_of_numpy)
{
    tn_graph *g FREED(tn_graph_free) = tn_trial_graph(1, true);
    tn_node *q = tn_input(g, "q", 8, true);
    tn_node *k = tn_input(g, "k", 8, true);
    tn_node *v = tn_input(g, "v", 8, true);
    const tn_attention_attr attr = {.dim = 4, .heads = 2, .scale = .5};
    tn_trial t =
        tn_trial_open(g, tn_apply(g, &tn_op_slot_attention, "y", TN_IN(q, k, v), &attr), 1, true);
    tn_put(q, (const double[]){1, -1, .5, .2, .3, -.7, 0, 1});
    tn_put(k, (const double[]){.5, 1, -1, 2, 0, .25, 1, .5});
    tn_put(v, (const double[]){1, 2, 3, 4, -1, .5, 2, 0});
    tn_trial_run(&t, (const double[]){1, 2, -1, .5, .5, 1, 0, -2});
    tn_assert_near("y", t.y, t.y->val,
                   (const double[]){-.0624187467, 1.20318594, 2.41338242, 1.65352968, -.093476304,
                                    1.17989277, 2.6791787, 2.7167148});
    tn_assert_near("dq", q, q->grad,
                   (const double[]){.311282469, .466923703, -.242497395, .181873046, .154884716,
                                    .232327074, 1.74315995, -1.30736996});
    tn_assert_near("dk", k, k->grad,
                   (const double[]){.715495767, -.83940354, .0606243488, -.847330236, -.715495767,
                                    .83940354, -.0606243488, .847330236});
    tn_assert_near("dv", v, v->grad,
                   (const double[]){.695421551, 1.3908431, -.413382421, -1.15166619, .804578449,
                                    1.6091569, -.586617579, -.348333812});
}

TEST(field_aware_products_meet_by_the_vectors_for_each_other)
{
    tn_graph *g FREED(tn_graph_free) = tn_trial_graph(1, true);
    tn_node *a = tn_input(g, "A", 18, true);
    const tn_ffm_attr attr = {.fields = 3, .dim = 2};
    tn_trial t = tn_trial_open(g, tn_apply(g, &tn_op_ffm_inner, "y", TN_IN(a), &attr), 1, true);
    tn_put(a, (const double[]){1, 2, .1, .2, .3, .4, .5, -.5, 3, 4, -.6, .6, .7, .8, -.9, 1, 5, 6});
    tn_trial_run(&t, (const double[]){1, -2, 3});
    tn_assert_near("y", t.y, t.y->val, (const double[]){-.05, .53, 1.14});
    tn_assert_near("dA", a, a->grad,
                   (const double[]){0, 0, .5, -.5, -1.4, -1.6, .1, .2, 0, 0, -2.7, 3, -.6, -.8,
                                    -1.8, 1.8, 0, 0});
}

/* ---- forms that the examples of ops.def do not have ---- */

static tn_node *bilinear(tn_graph *g, uint32_t slots, uint32_t dim, uint32_t matrices)
{
    tn_node *x = tn_input(g, NULL, slots * dim, true);
    return matrices == 0
               ? tn_apply(g, &tn_op_bilinear, NULL, TN_IN(x), &(tn_pairs_attr){dim})
               : tn_apply(g, &tn_op_bilinear, NULL, TN_IN(x, weights(g, NULL, matrices * dim, dim)),
                          &(tn_pairs_attr){dim});
}

static tn_node *pairs_alone(tn_graph *g)
{
    return bilinear(g, 4, 3, 0);
}

static tn_node *pairs_by_one(tn_graph *g)
{
    return bilinear(g, 4, 3, 1);
}

static tn_node *pairs_by_each(tn_graph *g)
{
    return bilinear(g, 4, 3, 3);
}

static tn_node *pairs_by_their_own(tn_graph *g)
{
    return bilinear(g, 4, 3, 6);
}

/* More columns of pairs than a tile of columns has. */
static tn_node *many_pairs(tn_graph *g)
{
    return bilinear(g, 24, 4, 276);
}

/* Maps of slots by themselves: both operands are one node. */
static tn_node *first_maps(tn_graph *g)
{
    tn_node *x = tn_input(g, NULL, 9, true);
    return tn_apply(g, &tn_op_cin, NULL, TN_IN(x, x, weights(g, NULL, 9, 2)), &(tn_pairs_attr){3});
}

/* Vectors wider than a block of columns is. */
static tn_node *wide_maps(tn_graph *g)
{
    tn_node *x0 = tn_input(g, NULL, 2 * 130, true);
    tn_node *x = tn_input(g, NULL, 130, true);
    return tn_apply(g, &tn_op_cin, NULL,
                    TN_IN(x0, x, weights(g, NULL, 2, 2), weights(g, NULL, 1, 2)),
                    &(tn_pairs_attr){130});
}

/* More products than a block has rows, and more maps than are worked on at once. */
static tn_node *many_maps(tn_graph *g)
{
    tn_node *x0 = tn_input(g, NULL, 12, true);
    tn_node *x = tn_input(g, NULL, 11, true);
    return tn_apply(g, &tn_op_cin, NULL, TN_IN(x0, x, weights(g, NULL, 132, 131)),
                    &(tn_pairs_attr){1});
}

static tn_node *own_matrices(tn_graph *g)
{
    tn_node *wb[] = {weights(g, NULL, 9, 40), weights(g, NULL, 1, 40)};
    return tn_apply(g, &tn_op_slot_dense, NULL, TN_IN(tn_input(g, NULL, 9, true), wb[0], wb[1]),
                    &(tn_pairs_attr){3});
}

/* One node is query, key and value. */
static tn_node *attention_of_one(tn_graph *g)
{
    tn_node *x = tn_input(g, NULL, 12, true);
    return tn_apply(g, &tn_op_slot_attention, NULL, TN_IN(x, x, x),
                    &(tn_attention_attr){.dim = 3, .heads = 3, .scale = -2});
}

TEST(gradients_of_all_forms_are_those_of_the_differences)
{
    static tn_node *(*const build[])(tn_graph *) = {
        pairs_alone, pairs_by_one, pairs_by_each, pairs_by_their_own, many_pairs,
        first_maps,  wide_maps,    many_maps,     own_matrices,       attention_of_one};
    /* In float the differences themselves round: many_maps adds 17,292 products. */
    static const double tolerance = sizeof(tn_real) == 8 ? 1e-7 : 5e-3;
    for (uint32_t i = 0; i < sizeof build / sizeof build[0]; i++) {
        tn_check c;
        uint64_t n_entries = 0;
        tn_check_open(&c, build[i], &(tn_graph_opts){.train = true}, 42 + i);
        const double error = tn_check_differences(&c, &n_entries);
        fail_if(error > tolerance || n_entries == 0, "form %u: gradient is off by %g", i, error);
        fail_if(!tn_check_doubles(&c), "form %u: backward does not add to gradients", i);
        fail_if(tn_check_strays(&c) > 0, "form %u: writes outside of its matrices", i);
        tn_check_close(&c);
    }
}
