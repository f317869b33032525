/* test_early_stopping.c - which evaluation is the best, and what one that tells nothing does. */
#include "train/run/early_stopping.h"

#include "ps/optim/optim.h"
#include "support/test.h"
#include "train/config/run.h"

static bool is_early;

static tn_verdict add(tn_early_stopping_state *s, const char *monitor, double value)
{
    static tn_rule_opts dense = {.lr = 1};
    const tn_train_opts opts = {
        .optimizer = {.opts = &dense},
        .stop = {.monitor = "valid.x", .patience = 2},
        .reduce_on_plateau = {.factor = .1, .patience = 1, .min_lr = 0},
    };
    const tn_evaluated what = {.monitor = monitor, .value = value, .step = 7, .is_early = is_early};
    return tn_early_stopping_add(&opts, s, &what);
}

TEST(copc_is_best_where_it_is_nearest_to_1)
{
    tn_early_stopping_state s = {.lr_scale = 1};
    assert_true(add(&s, "copc", .419).best);
    assert_true(add(&s, "copc", .907).best);
    assert_false(add(&s, "copc", 1.1).best);
    assert_true(add(&s, "copc", 1.05).best);
    assert_false(add(&s, "copc", .2).best);
    assert_true(add(&s, "copc", .3).stop);
    assert_true(s.best == 1.05);
}

TEST(a_value_that_is_not_defined_changes_nothing)
{
    tn_early_stopping_state s = {.lr_scale = 1};
    for (int i = 0; i < 5; i++) {
        const tn_verdict v = add(&s, "auc", (double)NAN);
        assert_true(v.unknown && !v.best && !v.reduced && !v.stop);
        assert_true(s.bad == 0 && s.lr_scale == 1 && !s.seen);
    }
    assert_true(add(&s, "auc", .6).best);
    assert_true(add(&s, "auc", .6).reduced); /* no better is bad */
    assert_true(add(&s, "auc", (double)NAN).unknown);
    assert_true(s.bad == 1 && s.seen && s.best == .6);
    assert_true(add(&s, "auc", .5).stop);
}

/* A look into the first pass may find the best model, and does not end a run. */
TEST(an_early_value_counts_only_where_it_is_the_best)
{
    tn_early_stopping_state s = {.lr_scale = 1};
    is_early = true;
    assert_true(add(&s, "logloss", .6).best);
    assert_true(add(&s, "logloss", .5).best);
    for (int i = 0; i < 3; i++) {
        const tn_verdict v = add(&s, "logloss", .7);
        assert_false(v.best || v.reduced || v.stop);
    }
    is_early = false;
    assert_true(s.bad == 0 && s.lr_scale == 1 && s.best == .5 && isnan(s.counted));
    for (int i = 0; i < 3; i++) { /* what counts falls, and is not the best */
        const tn_verdict v = add(&s, "logloss", .8 - .05 * i);
        assert_false(v.best || v.reduced || v.stop);
    }
    assert_true(add(&s, "logloss", .4).best);
    assert_false(add(&s, "logloss", .7).stop);
    assert_true(add(&s, "logloss", .7).stop);
    assert_true(s.best == .4 && s.counted == .4);
}
