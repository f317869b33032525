/* test_purchases.c - purchases beside clicks: the rates and the selection that were asked for, and
 * clicks that do not know of them. */
#include "extra/synth/generate.h"

#include "base/math/fmath.h"
#include "support/test.h"

CLOSER(tn_generator_free);

enum { N = 60000 };

static tn_generator *world(double buy, double selection, uint32_t model)
{
    const tn_gen_opts o = {.preset = TN_GEN_PLAIN,
                           .model = model,
                           .seed = 5,
                           .slots = 4,
                           .ids = 40,
                           .multi = 1,
                           .values_max = 2,
                           .numeric = 1,
                           .missing = 0.1,
                           .zipf = 0.5,
                           .rate = 0.3,
                           .spread = 1.5,
                           .interaction = 0.5,
                           .dim = 3,
                           .buy = buy,
                           .selection = selection};
    tn_generator *g = NULL;
    assert_int_equal(tn_generator_new(&g, &o, NULL, NULL), TN_OK);
    return g;
}

/* Within 4 standard errors of a share of n throws, and half a percent for the sample of the fit. */
static bool is_near(double share, double want, double n)
{
    return fabs(share - want) < 4 * sqrt(want * (1 - want) / n) + .005;
}

TEST(clicks_are_the_same_with_purchases_beside_them)
{
    tn_generator *with FREED(tn_generator_free) = world(0.3, 0.5, TN_GEN_FM);
    tn_generator *without FREED(tn_generator_free) = world(0, 0.5, TN_GEN_FM);
    tn_gen_row a;
    tn_gen_row b;
    assert_int_equal(tn_gen_row_init(&a, with, NULL), TN_OK);
    assert_int_equal(tn_gen_row_init(&b, without, NULL), TN_OK);
    for (uint64_t i = 0; i < 500; i++) {
        tn_gen_row_draw(&a, with, i);
        tn_gen_row_draw(&b, without, i);
        assert_true(a.click == b.click && a.logit == b.logit && a.id[0] == b.id[0]);
        assert_true(!b.buy && (a.click || !a.buy));
    }
    tn_gen_row_done(&a);
    tn_gen_row_done(&b);
}

/* Rates as they were asked for and as the truth says; correlation of the logits. */
static void check_world(double buy, double selection, uint32_t model)
{
    tn_generator *g FREED(tn_generator_free) = world(buy, selection, model);
    tn_gen_row row;
    double clicks = 0;
    double buys = 0;
    double given = 0;
    double sum[5] = {0}; /* a, b, aa, bb, ab */
    assert_int_equal(tn_gen_row_init(&row, g, NULL), TN_OK);
    for (uint64_t i = 0; i < N; i++) {
        tn_gen_row_draw(&row, g, i);
        const double a = row.logit;
        const double b = row.buy_logit;
        const double both = tn_sigmoid(tn_purchase_both(a, b));
        assert_true(fabs(both - row.p * tn_sigmoid(b)) < 1e-12);
        clicks += row.click;
        buys += row.buy;
        given += tn_sigmoid(b);
        sum[0] += a;
        sum[1] += b;
        sum[2] += a * a;
        sum[3] += b * b;
        sum[4] += a * b;
    }
    const double va = sum[2] / N - sum[0] / N * (sum[0] / N);
    const double vb = sum[3] / N - sum[1] / N * (sum[1] / N);
    const double r = (sum[4] / N - sum[0] / N * (sum[1] / N)) / sqrt(va * vb);
    fail_if(!is_near(buys / clicks, buy, clicks), "%g of clicks are purchases, not %g",
            buys / clicks, buy);
    fail_if(!is_near(given / N, g->purchases.rate_all, N), "%g of all rows, not %g", given / N,
            g->purchases.rate_all);
    fail_if(fabs(r - selection) > .03, "correlation %g, not %g", r, selection);
    assert_true((selection > 0) == (buys / clicks > given / N + .01));
    tn_gen_row_done(&row);
}

TEST(purchases_have_the_rate_and_the_selection_that_were_asked_for)
{
    check_world(0.3, 0.7, TN_GEN_LR);
    check_world(0.1, 0, TN_GEN_LR);
    check_world(0.2, -0.5, TN_GEN_FM);
}
