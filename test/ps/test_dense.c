/* test_dense.c - the store of dense weights: runs, state, norms, threads. */
#include "base/thread/team.h"
#include "drive.h"
#include "ps/optim/optim.h"
#include "ps/shard/dense.h"
#include "support/mallocs.h"
#include "support/test.h"

enum { SIZE = 20000 };

static const tn_dense_run runs[] = {{16, 10000}, {10000, 10001}, {12000, SIZE - 3}};

typedef struct fixture {
    tn_arena *arena;
    tn_rule rule;
    float *w;
    float *g;
} fixture;

static fixture begin(const char *optim, const char *options)
{
    fixture f = {.arena = tn_arena_new(1 << 20)};
    f.rule = kit_rule(f.arena, optim, options);
    f.w = TN_NEW_ARRAY(f.arena, float, SIZE);
    f.g = TN_NEW_ARRAY(f.arena, float, SIZE);
    for (uint32_t i = 0; i < SIZE; i++) {
        f.w[i] = (float)sin(i);
        f.g[i] = (float)cos(i);
    }
    return f;
}

static tn_dense_store *store(fixture *f)
{
    tn_rule *rule = TN_NEW(f->arena, tn_rule); /* a fixture may move, the store keeps the address */
    *rule = f->rule;
    tn_dense_opts opts = {.rule = rule,
                          .weights = f->w,
                          .size = SIZE,
                          .runs = runs,
                          .n_runs = sizeof runs / sizeof runs[0]};
    tn_dense_store *d = NULL;
    assert_int_equal(tn_dense_new(&d, &opts, NULL), TN_OK);
    return d;
}

static void end(fixture *f, tn_dense_store *d)
{
    tn_dense_free(d);
    tn_arena_free(f->arena);
}

static bool is_trained(uint32_t i)
{
    return (i >= 16 && i < 10001) || (i >= 12000 && i < SIZE - 3);
}

TEST(only_the_runs_are_trained)
{
    fixture f = begin("sgd", "lr=1");
    tn_dense_store *d = store(&f);
    tn_push push = kit_push(0);
    tn_dense_push(d, NULL, f.g, &push, 1);
    for (uint32_t i = 0; i < SIZE; i++) {
        float before = (float)sin(i);
        assert_true(f.w[i] == (is_trained(i) ? before - f.g[i] : before));
    }
    end(&f, d);
}

TEST(the_norm_is_that_of_the_chain_and_changes_nothing)
{
    fixture f = begin("adam", "l2=.5 clip_value=1.25");
    tn_dense_store *d = store(&f);
    tn_push push = kit_push(0);
    double sum = 0;
    for (uint32_t i = 0; i < SIZE; i++) {
        double g = fmax(-1.25, fmin(1.25, (double)f.g[i] + .5 * (double)f.w[i]));
        sum += is_trained(i) ? g * g : 0;
    }
    assert_near(tn_dense_norm2(d, NULL, f.g, &push) / sum, 1);
    assert_true(f.w[20] == (float)sin(20));
    assert_int_equal(tn_dense_t(d), 0);
    end(&f, d);
}

TEST(states_are_as_long_as_the_vector_and_counts_are_not_among_them)
{
    fixture f = begin("adam", NULL);
    tn_dense_store *d = store(&f);
    tn_state spec[TN_STATES_MAX];
    assert_int_equal(tn_dense_states(d, spec), 2);
    assert_string_equal(spec[0].name, "m");
    assert_string_equal(spec[1].name, "v");
    tn_push push = kit_push(0);
    tn_dense_push(d, NULL, f.g, &push, 1);
    tn_dense_push(d, NULL, f.g, &push, 1);
    assert_int_equal(tn_dense_t(d), 2);
    const float *m = tn_dense_state(d, 0);
    for (uint32_t i = 0; i < SIZE; i++) {
        assert_true(is_trained(i) ? m[i] != 0 : m[i] == 0);
    }
    tn_dense_reset(d);
    assert_int_equal(tn_dense_t(d), 0);
    assert_true(m[20] == 0);
    end(&f, d);
}

/* What a checkpoint does: weights, states and count into a new store. */
TEST(a_store_goes_on_from_copied_state)
{
    for (const tn_optim *const *o = tn_all_optims; *o != NULL; o++) {
        fixture f = begin((*o)->choice.name, NULL);
        if ((*o)->dense != NULL && (*o)->dense(f.rule.opts) != NULL) {
            tn_arena_free(f.arena);
            continue;
        }
        fixture g = begin((*o)->choice.name, NULL);
        tn_dense_store *a = store(&f);
        tn_push push = kit_push(0);
        tn_dense_push(a, NULL, f.g, &push, 1);
        tn_dense_push(a, NULL, f.g, &push, .5);

        memcpy(g.w, f.w, SIZE * sizeof *f.w);
        tn_dense_store *b = store(&g);
        tn_state spec[TN_STATES_MAX];
        for (uint32_t i = 0; i < tn_dense_states(a, spec); i++) {
            memcpy(tn_dense_state(b, i), tn_dense_state(a, i), SIZE * sizeof(float));
        }
        tn_dense_set_t(b, tn_dense_t(a));
        tn_dense_push(a, NULL, f.g, &push, 1);
        tn_dense_push(b, NULL, f.g, &push, 1);
        assert_memory_equal(f.w, g.w, SIZE * sizeof *f.w);
        end(&f, a);
        end(&g, b);
    }
}

TEST(threads_change_no_bit)
{
    fixture f[3];
    tn_dense_store *d[3];
    double norm[3];
    for (uint32_t i = 0; i < 3; i++) {
        tn_team *team FREED(tn_team_close) = NULL;
        assert_int_equal(tn_team_open(&team, 1U << i, NULL), TN_OK);
        f[i] = begin("adam", "l2=.01");
        d[i] = store(&f[i]);
        tn_push push = kit_push(0);
        norm[i] = tn_dense_norm2(d[i], team, f[i].g, &push);
        tn_dense_push(d[i], team, f[i].g, &push, 1 / norm[i]);
        assert_true(norm[i] == norm[0]);
        assert_memory_equal(f[0].w, f[i].w, SIZE * sizeof(float));
    }
    for (uint32_t i = 0; i < 3; i++) {
        end(&f[i], d[i]);
    }
}

TEST(rules_for_rows_only_are_refused)
{
    fixture f = begin("adagrad", "rowwise=true");
    tn_dense_store *d = NULL;
    tn_error err = {0};
    tn_dense_opts opts = {.rule = &f.rule, .weights = f.w, .size = SIZE};
    assert_int_equal(tn_dense_new(&d, &opts, &err), TN_E_CONFIG);
    assert_non_null(strstr(err.text, "'adagrad'"));
    assert_null(d);
    end(&f, d);
}

TEST(failing_allocations_are_told_and_warm_steps_make_none)
{
    fixture f = begin("adam", "l2=.1");
    tn_dense_opts opts = {.rule = &f.rule, .weights = f.w, .size = SIZE, .runs = runs, .n_runs = 3};
    tn_dense_store *d = NULL;
    uint64_t nth = 1;
    for (; d == NULL; nth++) {
        tn_alloc_fail_at(nth);
        tn_error err = {0};
        tn_status status = tn_dense_new(&d, &opts, &err);
        tn_alloc_fail_at(0);
        assert_int_equal(status, d == NULL ? TN_E_MEMORY : TN_OK);
    }
    assert_int_equal(nth, 7); /* five allocations */
    uint64_t before = tn_mallocs();
    tn_push push = kit_push(0);
    (void)tn_dense_norm2(d, NULL, f.g, &push);
    tn_dense_push(d, NULL, f.g, &push, 1);
    assert_int_equal(tn_mallocs(), before);
    end(&f, d);
}
