/* test_rule.c - the chain around an optimizer, link by link and in order. */
#include "drive.h"
#include "ps/optim/optim.h"
#include "support/test.h"

enum { N = 3 };

/* The chain alone on gradient g at weights w; returns the squared norm. */
static double chain(const char *options, const tn_trained *x, double clip, float *g)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 12);
    tn_rule rule = kit_rule(arena, "sgd", options);
    tn_push push = {.step = 0, .weight_sum = 32, .lr_factor = 1};
    double sum = tn_rule_grad(&rule, &push, x, clip, g);
    return sum;
}

static const float grad[N] = {3, -4, 12};
static const float weights[N] = {1, 2, -1};
static const tn_trained row = {.n = N, .w = weights, .grad = grad, .show = 4, .is_row = true};

static void assert_grad(const char *options, const tn_trained *x, double clip, const double want[N])
{
    float g[N];
    double sum = chain(options, x, clip, g);
    double expected = 0;
    for (size_t i = 0; i < N; i++) {
        assert_near((double)g[i], want[i]);
        expected += want[i] / clip * (want[i] / clip);
    }
    assert_near(sum / expected, 1);
}

TEST(gradients_pass_unchanged_by_default)
{
    assert_grad(NULL, &row, 1, (double[N]){3, -4, 12});
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 14);
    tn_rule plain = kit_rule(arena, "sgd", NULL);
    assert_true(tn_rule_plain(&plain));
    const char *not_plain[] = {"l2=.1",      "grad_scale=show", "grad_scale=sum",
                               "clip_row=1", "clip_value=1",    "grad_normalize=true"};
    for (size_t i = 0; i < 6; i++) {
        tn_rule other = kit_rule(arena, "sgd", not_plain[i]);
        assert_false(tn_rule_plain(&other));
    }
    tn_rule ftrl = kit_rule(arena, "ftrl", "l2=.1");
    assert_true(tn_rule_plain(&ftrl));
}

TEST(scales_are_none_per_show_or_the_sum)
{
    assert_grad("grad_scale=show", &row, 1, (double[N]){.75, -1, 3});
    assert_grad("grad_scale=sum", &row, 1, (double[N]){96, -128, 384});
}

TEST(l2_is_added_before_the_clips)
{
    assert_grad("l2=.5", &row, 1, (double[N]){3.5, -3, 11.5});
    assert_grad("l2=.5 clip_value=3.25", &row, 1, (double[N]){3.25, -3, 3.25});
    tn_trained absent = {.n = N, .w = weights, .is_row = true};
    assert_grad("l2=.5", &absent, 1, (double[N]){.5, 1, -.5});
}

TEST(a_gradient_is_divided_by_its_norm_unless_that_is_tiny)
{
    assert_grad("grad_normalize=true", &row, 1, (double[N]){3 / 13., -4 / 13., 12 / 13.});
    assert_grad("grad_normalize=true grad_scale=sum l2=.5 clip_row=100", &row, 1,
                (double[N]){3 / 13. + .5, -4 / 13. + 1, 12 / 13. - .5});
    const float small[N] = {3e-6F, -4e-6F, 0};
    tn_trained x = {.n = N, .w = weights, .grad = small, .show = 1, .is_row = true};
    float g[N];
    assert_true(chain("grad_normalize=true", &x, 1, g) < 1e-10);
    assert_memory_equal(g, small, sizeof g);
    assert_grad("grad_normalize=true grad_scale=sum", &x, 1, (double[N]){.6, -.8, 0});
    tn_trained absent = {.n = N, .w = weights, .is_row = true};
    assert_grad("grad_normalize=true l2=.5", &absent, 1, (double[N]){.5, 1, -.5});
}

TEST(clips_act_in_order_value_row_global)
{
    assert_grad("clip_row=6.5", &row, 1, (double[N]){1.5, -2, 6});
    assert_grad("clip_row=100", &row, 1, (double[N]){3, -4, 12});
    double norm = sqrt(9 + 16 + 16);
    assert_grad("clip_value=4 clip_row=2", &row, .25,
                (double[N]){.25 * 2 * 3 / norm, -.25 * 2 * 4 / norm, .25 * 2 * 4 / norm});
    assert_grad("clip_row=0.000001", &(tn_trained){.n = N, .w = weights, .grad = grad}, 1,
                (double[N]){3, -4, 12});
}

TEST(what_is_not_finite_survives_every_clip)
{
    const char *options[] = {NULL, "clip_value=1", "clip_row=1", "clip_value=1 clip_row=1",
                             "grad_normalize=true"};
    const float bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t o = 0; o < 5; o++) {
        for (size_t b = 0; b < 3; b++) {
            float with[N] = {1, bad[b], 2};
            float g[N];
            tn_trained x = {.n = N, .w = weights, .grad = with, .show = 1, .is_row = true};
            double sum = chain(options[o], &x, 1, g);
            assert_true(sum - sum != 0); /* infinite or NaN */
        }
    }
}

TEST(l1_shrinks_towards_zero_and_bounds_hold_last)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 14);
    drive x;
    const float none[N] = {0};
    const float w[N] = {.5F, -.02F, -2};
    drive_begin(&x, arena, "sgd", "lr=.1 l1=.5 bounds=-1,.25");
    memcpy(x.w, w, sizeof w);
    drive_step(&x, 0, N, none);
    assert_near((double)x.w[0], .25);
    assert_true(x.w[1] == 0);
    assert_near((double)x.w[2], -1);
}

TEST(the_global_clip_is_one_below_its_limit)
{
    assert_true(tn_clip_factor(5, 10) == 1);
    assert_true(tn_clip_factor(10, 10) == 1);
    assert_true(tn_clip_factor(20, 10) == .5);
    assert_true(tn_clip_factor(20, (double)INFINITY) == 1);
}

TEST(options_without_effect_are_refused)
{
    for (const tn_optim *const *o = tn_all_optims; *o != NULL; o++) {
        bool has_l2_mode = false;
        for (const tn_field *f = (*o)->choice.fields; f->kind != TN_KIND_END; f++) {
            has_l2_mode = has_l2_mode || strcmp(f->key, "l2_mode") == 0;
        }
        if ((*o)->own_l2) {
            assert_false(has_l2_mode);
        }
        assert_ptr_equal((*o)->choice.impl, *o);
    }
}
