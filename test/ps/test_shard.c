/* test_shard.c - a shard: one push reaches rows and dense weights, one clip, one failure told. */
#include "drive.h"
#include "ps/shard/dense.h"
#include "support/test.h"

enum { DIM = 2, DENSE = 3 };

typedef struct world {
    tn_arena *arena;
    kit_model *m;
    tn_shard shard;
    kit_keys *k;
    float dense[DENSE];
} world;

/* A table and a dense store under sgd with lr 1, both from 0; a global clip of 10. */
static void begin(world *x, const char *row_options)
{
    static const tn_dense_run run = {0, DENSE};
    const uint64_t key[] = {11, UINT64_C(7) << 60};
    *x = (world){.arena = tn_arena_new(1 << 16)};
    x->m = kit_model_plain(x->arena, DIM, kit_rule(x->arena, "sgd", row_options));
    x->m->rules.dense = kit_rule(x->arena, "sgd", "lr=1");
    x->m->rules.clip_global = 10;
    tn_dense_opts opts = {
        .rule = &x->m->rules.dense, .weights = x->dense, .size = DENSE, .runs = &run, .n_runs = 1};
    x->shard = (tn_shard){.table = kit_table(x->m, 1), .rules = &x->m->rules};
    assert_int_equal(tn_dense_new(&x->shard.dense, &opts, NULL), TN_OK);
    x->k = kit_keys_new(x->arena, &x->m->layout, key, NULL, 2);
}

static void end(world *x)
{
    tn_dense_free(x->shard.dense);
    tn_table_free(x->shard.table);
    tn_arena_free(x->arena);
}

static void pull(world *x, float rows[2 * DIM])
{
    assert_int_equal(tn_shard_pull(&x->shard, NULL, &x->k->set, rows, NULL), TN_OK);
}

/* The norm of the gradients. */
static double push_all(world *x, const float *rows, const float *dense, const tn_push *push)
{
    const tn_gradients grads = {&x->k->set, rows, dense, false};
    double norm = -1;
    assert_int_equal(tn_shard_push(&x->shard, NULL, &grads, push, &norm, NULL), TN_OK);
    return norm;
}

TEST(one_push_reaches_rows_and_dense_weights)
{
    world x CLEANUP(end);
    begin(&x, "lr=1");
    float rows[2 * DIM];
    const float grads[2 * DIM] = {1, 0, 0, 2};
    const float dense[DENSE] = {2, 0, 0};
    pull(&x, rows);
    tn_push push = kit_push(0);
    assert_true(push_all(&x, grads, dense, &push) == 3);
    pull(&x, rows);
    assert_true(rows[0] == -1 && rows[3] == -2 && x.dense[0] == -2);
}

TEST(the_global_clip_is_over_rows_and_dense_weights_together)
{
    world x CLEANUP(end);
    begin(&x, "lr=1");
    float rows[2 * DIM];
    const float grads[2 * DIM] = {12, 0, 0, 0};
    const float dense[DENSE] = {0, 16, 0};
    pull(&x, rows);
    tn_push push = kit_push(0);
    assert_true(push_all(&x, grads, dense, &push) == 20);
    pull(&x, rows);
    assert_true(rows[0] == -6 && x.dense[1] == -8);
}

TEST(a3_the_schedule_reaches_rows_and_dense_weights)
{
    world x CLEANUP(end);
    begin(&x, "lr=2");
    float rows[2 * DIM];
    const float grads[2 * DIM] = {1, 0, 0, 0};
    const float dense[DENSE] = {1, 0, 0};
    pull(&x, rows);
    tn_push push = kit_push(0);
    push.lr_factor = .25;
    (void)push_all(&x, grads, dense, &push);
    pull(&x, rows);
    assert_true(rows[0] == -.5F && x.dense[0] == -.25F);
}

TEST(a_gradient_that_is_not_finite_changes_nothing)
{
    const float bad[] = {NAN, INFINITY};
    for (size_t i = 0; i < 4; i++) {
        world x CLEANUP(end);
        begin(&x, "lr=1");
        float rows[2 * DIM];
        float grads[2 * DIM] = {1, 1, 1, 1};
        float dense[DENSE] = {1, 1, 1};
        *(i < 2 ? &grads[3] : &dense[2]) = bad[i % 2];
        pull(&x, rows);
        tn_push push = kit_push(5);
        tn_error err = {0};
        const tn_gradients all = {&x.k->set, grads, dense, false};
        double norm = 0;
        assert_int_equal(tn_shard_push(&x.shard, NULL, &all, &push, &norm, &err), TN_E_DIVERGED);
        assert_non_null(strstr(err.text, "step 6"));

        pull(&x, rows);
        for (uint32_t j = 0; j < 2 * DIM; j++) {
            assert_true(rows[j] == 0);
        }
        assert_true(x.dense[0] == 0 && tn_dense_t(x.shard.dense) == 0);
        kit_row row;
        assert_true(kit_row_of(x.shard.table, 11, &row));
        assert_true(row.view.show == 0);
    }
}

TEST(a_step_without_weight_changes_nothing_counts_included)
{
    world x CLEANUP(end);
    begin(&x, "lr=1 l2=1 l2_mode=dense");
    float rows[2 * DIM];
    const float grads[2 * DIM] = {1, 1, 1, 1};
    const float dense[DENSE] = {1, 1, 1};
    pull(&x, rows);
    tn_push push = kit_push(0);
    push.weight_sum = 0;
    assert_true(push_all(&x, grads, dense, &push) == 0);
    pull(&x, rows);
    assert_true(rows[0] == 0 && x.dense[0] == 0 && tn_dense_t(x.shard.dense) == 0);
    kit_row row;
    assert_true(kit_row_of(x.shard.table, 11, &row));
    assert_true(row.view.show == 0);
}

TEST(a_peek_creates_nothing)
{
    world x CLEANUP(end);
    begin(&x, "lr=1");
    float rows[2 * DIM] = {1, 1, 1, 1};
    tn_shard_peek(&x.shard, NULL, &x.k->set, rows, NULL);
    assert_true(rows[0] == 0 && rows[3] == 0);
    assert_int_equal(tn_table_rows(x.shard.table), 0);
}
