/* test_optim.c - what optimizers promise beyond single vectors. */
#include "drive.h"
#include "ps/optim/optim.h"
#include "ps/shard/dense.h"
#include "support/test.h"

/* Adam's corrections reach 1 and stay there; no count overflows them. */
TEST(adam_takes_any_count)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 14);
    const uint64_t counts[] = {1,         2, 31, 300, 1000, 5000, 30000, 100000, UINT64_C(1) << 40,
                               UINT64_MAX};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        drive x;
        drive_begin(&x, arena, "adam", "lr=.01");
        tn_optim_init(x.rule.optim, x.rule.opts, 1, x.w, x.state);
        float g = 1;
        tn_update u = {.lr = .01, .t = counts[i], .step = counts[i]};
        x.rule.optim->update(x.rule.opts, &u, 1, x.w, x.state, &g);
        double t = (double)counts[i];
        double m = .1 / (1 - pow(.9, t));
        double v = .001 / (1 - pow(.999, t));
        assert_near((double)x.w[0], -.01 * m / (sqrt(v) + 1e-8));
    }
}

TEST(a1_ftrl_is_the_textbook_at_three_alphas_and_steps_grow_with_alpha)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 14);
    const double alphas[] = {.01, .05, .5};
    const char *options[] = {"alpha=.01 beta=1 l1=.01 l2=.1", "alpha=.05 beta=1 l1=.01 l2=.1",
                             "alpha=.5 beta=1 l1=.01 l2=.1"};
    double smaller = 0;
    for (size_t i = 0; i < 3; i++) {
        drive x;
        drive_begin(&x, arena, "ftrl", options[i]);
        double z = 0;
        double n = 0;
        double w = 0;
        for (uint32_t s = 0; s < 20; s++) {
            float g = s % 3 == 0 ? -.3F : .5F;
            double g2 = (double)g * (double)g;
            drive_step(&x, s, 1, &g);
            z += (double)g - (sqrt(n + g2) - sqrt(n)) / alphas[i] * w;
            n += g2;
            w = fabs(z) <= .01 ? 0 : -(z - copysign(.01, z)) / ((1 + sqrt(n)) / alphas[i] + .1);
            assert_near((double)x.w[0], w);
        }
        assert_true(fabs(w) > smaller);
        smaller = fabs(w);
    }
}

/* In float the difference of the roots is 0 at n = 1e6, g = .01. */
TEST(ftrl_moves_at_a_large_sum_of_squares)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 14);
    drive x;
    drive_begin(&x, arena, "ftrl", "alpha=.1 beta=1");
    x.w[0] = 1;
    x.state[0][0] = 0;
    x.state[1][0] = 1e6F;
    float g = .01F;
    drive_step(&x, 0, 1, &g);
    double sigma = 1e-4 / (.1 * 2 * 1e3);
    assert_true(fabs((double)x.state[0][0] - (.01 - sigma)) < 1e-8);
}

TEST(ftrl_keeps_state_of_a_weight_that_is_zero)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 14);
    drive x;
    drive_begin(&x, arena, "ftrl", "alpha=.1 l1=10");
    tn_optim_init(x.rule.optim, x.rule.opts, 1, x.w, x.state);
    float g = .5F;
    drive_step(&x, 0, 1, &g);
    assert_true(x.w[0] == 0);
    assert_true(x.state[0][0] == .5F);
    assert_true(x.state[1][0] == .25F);
}

TEST(group_ftrl_zeroes_whole_rows_and_starts_warm)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 14);
    const char *options[] = {"alpha=.1 l1=.05 l2=.1 l21=.05",
                             "alpha=.1 l1=.05 l2=.1 l21=.05 rowwise=true"};
    for (size_t i = 0; i < 2; i++) {
        drive x;
        drive_begin(&x, arena, "group_ftrl", options[i]);
        const float none[3] = {0};
        const float w[3] = {.5F, -.3F, .2F};
        memcpy(x.w, w, sizeof w);
        tn_optim_init(x.rule.optim, x.rule.opts, 3, x.w, x.state);
        drive_step(&x, 0, 3, none);
        for (size_t k = 0; k < 3; k++) {
            assert_near((double)x.w[k], (double)w[k]);
        }
    }
    drive x;
    drive_begin(&x, arena, "group_ftrl", "alpha=.1 l1=.05 l21=10");
    const float g[3] = {.5F, -3, .2F};
    tn_optim_init(x.rule.optim, x.rule.opts, 3, x.w, x.state);
    drive_step(&x, 0, 3, g);
    assert_true(x.w[0] == 0 && x.w[1] == 0 && x.w[2] == 0);
}

/* 3 (w - target)^2 summed, from the start to well below it. */
static double loss_of(size_t n, const float *w)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double miss = (double)w[i] - .1 * (double)(i + 1);
        sum += 3 * miss * miss;
    }
    return sum;
}

static void slope_of(size_t n, const float *w, float *g)
{
    for (size_t i = 0; i < n; i++) {
        g[i] = 6 * (w[i] - .1F * (float)(i + 1));
    }
}

enum { DOWN_DIM = 5, DOWN_STEPS = 3000 };

static void descend_as_row(const tn_optim *optim, const char *options)
{
    const uint64_t key = 5;
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 14);
    tn_rule rule = kit_rule(arena, optim->choice.name, options);
    kit_model *m = kit_model_plain(arena, DOWN_DIM, rule);
    tn_table *t = kit_table(m, 1);
    kit_keys *k = kit_keys_new(arena, &m->layout, &key, NULL, 1);
    float w[DOWN_DIM];
    float g[DOWN_DIM];
    assert_int_equal(tn_table_pull(t, NULL, &k->set, w, NULL), TN_OK);
    double before = loss_of(DOWN_DIM, w);
    for (uint64_t s = 0; s < DOWN_STEPS; s++) {
        tn_push push = kit_push(s);
        slope_of(DOWN_DIM, w, g);
        tn_table_push(t, NULL, &k->set, g, &push, 1);
        assert_int_equal(tn_table_pull(t, NULL, &k->set, w, NULL), TN_OK);
    }
    fail_if(!(loss_of(DOWN_DIM, w) < .1 * before), "row %s: %g -> %g", optim->choice.name, before,
            loss_of(DOWN_DIM, w));
    tn_table_free(t);
}

static void descend_as_dense(const tn_optim *optim)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 14);
    tn_rule rule = kit_rule(arena, optim->choice.name, NULL);
    if (optim->dense == NULL || optim->dense(rule.opts) == NULL) {
        float w[DOWN_DIM] = {0};
        float g[DOWN_DIM];
        tn_dense_run run = {0, DOWN_DIM};
        tn_dense_opts opts = {
            .rule = &rule, .weights = w, .size = DOWN_DIM, .runs = &run, .n_runs = 1};
        tn_dense_store *d = NULL;
        assert_int_equal(tn_dense_new(&d, &opts, NULL), TN_OK);
        double before = loss_of(DOWN_DIM, w);
        for (uint64_t s = 0; s < DOWN_STEPS; s++) {
            tn_push push = kit_push(s);
            slope_of(DOWN_DIM, w, g);
            tn_dense_push(d, NULL, g, &push, 1);
        }
        fail_if(!(loss_of(DOWN_DIM, w) < .1 * before), "dense %s: %g -> %g", optim->choice.name,
                before, loss_of(DOWN_DIM, w));
        tn_dense_free(d);
    }
}

TEST(a2_a_quadratic_goes_down_with_defaults_for_every_optimizer)
{
    for (const tn_optim *const *o = tn_all_optims; *o != NULL; o++) {
        descend_as_row(*o, NULL);
        descend_as_dense(*o);
    }
    descend_as_row(&tn_optim_adagrad, "rowwise=true");
    descend_as_row(&tn_optim_adagrad, "paddle=true");
    descend_as_row(&tn_optim_group_ftrl, "rowwise=true");
}

/* Squares of small gradients are 0 in float; so is what they are divided by, but for eps or beta.
 */
TEST(no_rule_divides_by_0)
{
    static const char *const rules[][2] = {
        {"sgd", "lr=.1"},
        {"adagrad", "eps=0 n0=1e-30"},
        {"adagrad", "eps=0 n0=1e-30 rowwise=true"},
        {"adagrad", "paddle=true n0=1e-30"},
        {"rmsprop", "eps=1e-15"},
        {"adadelta", "eps=1e-15"},
        {"adam", "eps=1e-15"},
        {"adam", "eps=1e-15 bias=none"},
        {"adamw", "eps=1e-15"},
        {"ftrl", "beta=0 alpha=1e-9"},
        {"ftrl", "beta=0 l1=1"},
        {"group_ftrl", "beta=0"},
        {"group_ftrl", "beta=0 rowwise=true l21=1"},
    };
    static const float grads[][2] = {{0, 0}, {1e-25F, 0}, {-1e-30F, 1e-18F}, {0, 0}, {1e-20F, 1}};
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 14);
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        drive x;
        drive_begin(&x, arena, rules[i][0], rules[i][1]);
        tn_optim_init(x.rule.optim, x.rule.opts, 2, x.w, x.state);
        for (uint32_t s = 0; s < 5; s++) {
            drive_step(&x, s, 2, grads[s]);
            fail_if(!(fabsf(x.w[0]) <= 1.0F && fabsf(x.w[1]) <= 10.0F),
                    "%s %s: %g %g after step %u", rules[i][0], rules[i][1], (double)x.w[0],
                    (double)x.w[1], s + 1);
        }
    }
}

TEST(a3_an_integer_rate_is_a_rate)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 14);
    drive x;
    drive_begin(&x, arena, "sgd", "lr=1");
    float g = .25F;
    drive_step(&x, 0, 1, &g);
    assert_true(x.w[0] == -.25F);
}

/* A row of n weights, updated whole and one weight at a time. */
static void compare_widths(tn_arena *arena, const tn_optim *optim, size_t n)
{
    drive whole;
    drive_begin(&whole, arena, optim->choice.name,
                optim->own_l2 ? "l1=.01 l2=.1" : "bounds=-.9,.9");
    for (size_t i = 0; i < n; i++) {
        whole.w[i] = (float)sin((double)(i * i + n));
    }
    tn_optim_init(whole.rule.optim, whole.rule.opts, n, whole.w, whole.state);
    drive single = whole;
    for (uint64_t s = 0; s < 3; s++) {
        float g[DRIVE_DIM_MAX];
        for (size_t i = 0; i < n; i++) {
            g[i] = (float)cos((double)(i + 7 * s + n));
        }
        tn_update u = {.lr = .037, .t = s + 1, .step = s + 1};
        tn_rule_update(&whole.rule, &u, n, whole.w, whole.state, g);
        for (size_t i = 0; i < n; i++) {
            float *one[TN_STATES_MAX] = {single.memory[0] + i, single.memory[1] + i,
                                         single.memory[2], NULL};
            tn_rule_update(&single.rule, &u, 1, single.w + i, one, g + i);
        }
        assert_memory_equal(whole.w, single.w, n * sizeof(float));
        assert_memory_equal(whole.memory, single.memory, sizeof whole.memory);
    }
}

/* The same bits, so no vector body differs from its tail. */
TEST(a11_rows_of_1_to_67_weights_get_the_bits_of_single_weights)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    for (const tn_optim *const *o = tn_all_optims; *o != NULL; o++) {
        for (size_t n = 1; n <= 67 && strcmp((*o)->choice.name, "group_ftrl") != 0; n++) {
            compare_widths(arena, *o, n);
        }
    }
}

/* Eight sums in double, added in the tree that squares.h promises, one number at a time. */
static float plain_mean_square(size_t n, const float *g)
{
    volatile double lane[8] = {0};
    for (size_t i = 0; i < n; i++) {
        lane[i % 8] = lane[i % 8] + (double)g[i] * (double)g[i];
    }
    double low = (lane[0] + lane[4]) + (lane[2] + lane[6]);
    double high = (lane[1] + lane[5]) + (lane[3] + lane[7]);
    return (float)((low + high) / (double)n);
}

TEST(a11_a_row_with_one_sum_has_the_bits_of_plain_code_at_any_width)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    for (size_t n = 1; n <= 67; n++) {
        drive x;
        drive_begin(&x, arena, "adagrad", "rowwise=true lr=.5");
        float g[DRIVE_DIM_MAX];
        for (size_t i = 0; i < n; i++) {
            x.w[i] = (float)sin((double)(i * i + n));
            g[i] = (float)cos((double)(i + n));
        }
        drive plain = x;
        tn_optim_init(x.rule.optim, x.rule.opts, n, x.w, x.state);
        drive_step(&x, 0, n, g);
        volatile float sum = .1F + plain_mean_square(n, g);
        volatile float rate = .5F / (sqrtf(sum) + 1e-8F);
        for (size_t i = 0; i < n; i++) {
            volatile float step = rate * g[i];
            plain.w[i] -= step;
        }
        assert_true(x.state[0][0] == sum);
        assert_memory_equal(x.w, plain.w, n * sizeof(float));
    }
}
