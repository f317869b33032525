/* test_pushnorm.c - the norm that a sender finds is that which one owner of everything would. */
#include "cluster/async/pushnorm.h"
#include "ps/kit.h"

#include "base/thread/team.h"
#include "ps/shard/dense.h"
#include "support/test.h"

enum { KEYS = 500, DIM = 5, FLAT = 3000, BEGIN = 100, END = 2700 };

typedef struct world {
    tn_arena *arena;
    kit_model *m;
    kit_keys *keys;
    tn_shard shard;
    float weights[FLAT], dense[FLAT];
    float *rows, *grads;
    tn_push push;
} world;

static const tn_dense_run trained[] = {{0, BEGIN}, {BEGIN + 1, END}};

static world *world_new(const char *rows, const char *dense)
{
    tn_arena *arena = tn_arena_new(1 << 16);
    world *w = TN_NEW(arena, world);
    uint64_t key[KEYS];
    w->arena = arena;
    w->m = kit_model_plain(arena, DIM, kit_rule(arena, "adagrad", rows));
    w->m->rule[0].init = (tn_init){.kind = TN_INIT_UNIFORM, .a = -1, .b = 1};
    w->m->rules.dense = kit_rule(arena, "adam", dense);
    w->m->rules.clip_global = (double)INFINITY;
    for (uint32_t i = 0; i < KEYS; i++) {
        key[i] = tn_stream2(3, 5, i);
    }
    w->keys = kit_keys_new(arena, &w->m->layout, key, NULL, KEYS);
    w->rows = TN_NEW_ARRAY(arena, float, w->keys->n_floats);
    w->grads = TN_NEW_ARRAY(arena, float, w->keys->n_floats);
    for (uint32_t i = 0; i < KEYS; i++) {
        w->keys->show[i] = 1 + i % 4;
    }
    for (uint32_t i = 0; i < w->keys->n_floats; i++) {
        w->grads[i] = (float)(tn_unit(tn_draw(17, i)) - .5);
    }
    for (uint32_t i = 0; i < FLAT; i++) {
        w->weights[i] = (float)tn_unit(tn_draw(18, i));
        w->dense[i] = (float)(tn_unit(tn_draw(19, i)) - .3);
    }
    const tn_dense_opts opts = {.rule = &w->m->rules.dense,
                                .weights = w->weights,
                                .size = FLAT,
                                .runs = trained,
                                .n_runs = 2};
    w->shard = (tn_shard){.table = kit_table(w->m, 5), .rules = &w->m->rules};
    assert_int_equal(tn_dense_new(&w->shard.dense, &opts, NULL), TN_OK);
    w->push = (tn_push){.weight_sum = 37, .lr_factor = 1};
    assert_int_equal(tn_shard_pull(&w->shard, NULL, &w->keys->set, w->rows, NULL), TN_OK);
    return w;
}

static void world_free(world *w)
{
    tn_dense_free(w->shard.dense);
    tn_table_free(w->shard.table);
    tn_arena_free(w->arena);
}

static double norm2(world *w, tn_team *team)
{
    const tn_exchange x = {
        .shard = &w->shard, .trained = trained, .n_trained = 2, .weights = w->weights};
    const tn_gradients grads = {&w->keys->set, w->grads, w->dense, false};
    return tn_pushnorm2(team, &x, w->rows, &grads, &w->push);
}

TEST(it_is_that_of_one_owner_under_any_rule)
{
    static const char *const rule[][2] = {
        {NULL, NULL},
        {"l2=.3", "l2=.2"},
        {"grad_scale=show", NULL},
        {"grad_scale=sum clip_value=.4", "clip_value=.1"},
        {"clip_row=.5 l2=.1", "l2=.01 clip_value=.3"},
    };
    double before = 0;
    for (uint32_t i = 0; i < sizeof rule / sizeof *rule; i++) {
        world *w = world_new(rule[i][0], rule[i][1]);
        const tn_gradients grads = {&w->keys->set, w->grads, w->dense, false};
        const double want = tn_shard_norm2(&w->shard, NULL, &grads, &w->push);
        const double got = norm2(w, NULL);
        assert_true(fabs(got - want) < 1e-9 * want);
        assert_true(i == 0 || fabs(got - before) > 1e-3 * got); /* the rule matters */
        before = got;
        world_free(w);
    }
}

TEST(it_has_the_same_bits_for_any_team)
{
    world *w = world_new("l2=.3", "l2=.2");
    tn_team *team FREED(tn_team_close) = NULL;
    assert_int_equal(tn_team_open(&team, 3, NULL), TN_OK);
    const double alone = norm2(w, NULL);
    const double shared = norm2(w, team);
    assert_memory_equal(&alone, &shared, sizeof alone);
    world_free(w);
}

TEST(a_gradient_that_is_not_finite_shows)
{
    world *w = world_new("clip_value=.4", "clip_value=.1");
    assert_true(isfinite(norm2(w, NULL)));
    w->grads[7] = NAN;
    assert_true(!isfinite(norm2(w, NULL)));
    w->grads[7] = 0;
    w->dense[END - 1] = INFINITY;
    assert_true(!isfinite(norm2(w, NULL)));
    w->dense[END - 1] = 0;
    w->dense[END] = NAN; /* not trained */
    w->dense[BEGIN] = NAN;
    assert_true(isfinite(norm2(w, NULL)));
    world_free(w);
}
