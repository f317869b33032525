/* test_delay_compensation.c - late gradients are corrected by the formula, in rows and dense
 * weights, each by the option of its own rule. */
#include "freeone.h"

#include "support/test.h"

CLOSER(free_one_free);

enum { KEYS = 5 };

static const free_pull late = {.rank = 1, .sequence = 1, .to = KEYS, .show = 1, .examples = 5};
static const free_pull early = {.rank = 2, .sequence = 1, .to = KEYS, .show = 1, .examples = 5};

static float corrected(float g, float dc, float moved)
{
    return g + dc * g * g * moved;
}

/* Of two that pulled the same, the second to push is corrected by what the first has moved. */
TEST(v_dc_a_late_push_follows_the_formula)
{
    free_one *x FREED(free_one_free) = free_one_new(2, "lr=.5 dc=.25");
    free_one_pull(x, &late);
    free_one_pull(x, &early);
    free_one_wait(x, 2);
    free_one_push(x, &(free_push){.of = &early, .sequence = 2, .value = 1});
    free_one_wait(x, 3);
    free_one_push(x, &(free_push){.of = &late, .sequence = 2, .value = 2});
    free_one_wait(x, 4);
    const float want = -.5F - .5F * corrected(2, .25F, -.5F); /* -.5 - .5 * 1.5 */
    const free_answer *a = free_one_answer(x, 1, 2);
    assert_int_equal(a->params.staleness, 1);
    for (uint32_t i = 0; i < a->n; i++) {
        assert_float_equal(a->value[i], want, 1e-6);
    }
    for (uint32_t k = 0; k < KEYS; k++) {
        kit_row row;
        assert_true(kit_row_of(x->shard.table, x->key[k], &row));
        assert_float_equal(row.data[0], want, 1e-6);
        assert_float_equal(row.data[1], want, 1e-6);
    }
}

TEST(a_push_that_is_not_late_is_left_alone)
{
    free_one *x FREED(free_one_free) = free_one_new(2, "lr=.5 dc=.25");
    free_pull p = late;
    for (uint64_t i = 0; i < 3; i++) {
        p.sequence = 1 + 2 * i;
        free_one_pull(x, &p);
        free_one_wait(x, 1 + 2 * (uint32_t)i);
        free_one_push(x, &(free_push){.of = &p, .sequence = 2 + 2 * i, .value = 1});
        free_one_wait(x, 2 + 2 * (uint32_t)i);
        assert_float_equal(free_one_answer(x, 1, 2 + 2 * i)->value[0], -.5F * (float)(i + 1), 1e-6);
    }
}

/* Rows may be corrected where dense weights are not, and the other way round. */
TEST(each_rule_has_its_own_factor)
{
    for (uint32_t dense = 0; dense < 2; dense++) {
        free_one *x FREED(free_one_free) = free_one_new(2, "lr=.5 dc=.25");
        const tn_rule none = kit_rule(x->arena, "sgd", "lr=.5");
        if (dense == 1) {
            x->m->rule[0] = none;
        } else {
            x->m->rules.dense = none;
        }
        free_one_pull(x, &late);
        free_one_pull(x, &early);
        free_one_wait(x, 2);
        free_one_push(x, &(free_push){.of = &early, .sequence = 2, .value = 1});
        free_one_wait(x, 3);
        free_one_push(x, &(free_push){.of = &late, .sequence = 2, .value = 2});
        free_one_wait(x, 4);
        const float with = -.5F - .5F * corrected(2, .25F, -.5F);
        kit_row row;
        assert_true(kit_row_of(x->shard.table, x->key[1], &row));
        assert_float_equal(row.data[0], dense == 1 ? -1.5F : with, 1e-6);
        assert_float_equal(x->weights[0], dense == 1 ? with : -1.5F, 1e-6);
    }
}

/* By calls, and of a slice that begins anywhere in its batch's rows. */
TEST(the_own_rank_is_compensated_too)
{
    free_one *x FREED(free_one_free) = free_one_new(2, "lr=.5 dc=.25");
    uint64_t key[KEYS + 1];
    float rows[2 * KEYS + 2];
    float twos[FREE_ONE_FLAT];
    for (uint32_t i = 0; i < KEYS; i++) {
        key[i] = x->key[i];
    }
    key[KEYS] = UINT64_MAX; /* of the last owner */
    for (uint32_t i = 0; i < FREE_ONE_FLAT; i++) {
        twos[i] = 2;
    }
    kit_keys *keys = kit_keys_new(x->arena, &x->m->layout, key, NULL, KEYS + 1);
    keys->set.owners = &x->shares->owners;
    assert_int_equal(tn_async_server_pull(x->serve, NULL, 0, &keys->set, rows, NULL), TN_OK);
    free_one_pull(x, &early);
    free_one_wait(x, 1);
    free_one_push(x, &(free_push){.of = &early, .sequence = 2, .value = 1});
    free_one_wait(x, 2);
    const tn_push push = {.weight_sum = 1, .lr_factor = 1};
    const tn_slices_gradients own = {.rows = twos, .dense = twos, .push = &push};
    tn_dense_params what;
    assert_int_equal(tn_async_server_push(x->serve, NULL, 0, &own, &what, NULL), TN_OK);
    assert_int_equal(what.staleness, 1);
    const float want = -.5F - .5F * corrected(2, .25F, -.5F);
    kit_row row;
    assert_true(kit_row_of(x->shard.table, key[2], &row));
    assert_float_equal(row.data[0], want, 1e-6);
    assert_float_equal(x->weights[3], want, 1e-6);
    assert_true(twos[0] == 2); /* the caller's own */
}
