/* test_table_push.c - rows of many keys updated at once get the bits of rows updated alone. */
#include "base/math/rng.h"
#include "kit.h"
#include "ps/table/tabledef.h"
#include "support/test.h"

#include <math.h>
#include <string.h>

enum { KEYS = 3000, GROUPS = 3, STEPS = 4 };

/* Bounds that hold nothing back, but send updates the other way. */
#define LOOSE " bounds=-1e30,1e30"

static kit_model *model_of(tn_arena *arena, uint32_t dim, const char *options)
{
    const kit_segment segments[] = {{"wide", 1}, {"deep", dim}, {NULL, 0}};
    kit_model *m = kit_model_new(arena, segments, GROUPS);
    for (uint32_t g = 0; g < GROUPS; g++) {
        for (uint32_t s = 0; s < 2; s++) {
            m->rule[g * TN_SEGMENTS_MAX + s] = kit_rule(arena, "adagrad", options);
            m->rule[g * TN_SEGMENTS_MAX + s].init =
                (tn_init){.kind = TN_INIT_UNIFORM, .a = -1, .b = 1};
        }
    }
    return m;
}

static void train(tn_table *t, kit_keys *k, tn_arena *arena)
{
    float *rows = TN_NEW_ARRAY(arena, float, k->n_floats);
    float *grads = TN_NEW_ARRAY(arena, float, k->n_floats);
    for (uint64_t step = 0; step < STEPS; step++) {
        uint64_t stream = tn_stream2(7, TN_RNG_GENERATE, step);
        for (uint32_t i = 0; i < k->n_floats; i++) {
            grads[i] = (float)tn_below(tn_draw(stream, i), 2001) / 1000.F - 1;
        }
        for (uint32_t i = 0; i < k->set.n; i++) {
            k->show[i] = i % 5 + 1;
            k->click[i] = i % 2;
        }
        tn_push push = kit_push(step);
        push.lr_factor = .5;
        assert_int_equal(tn_table_pull(t, NULL, &k->set, rows, NULL), TN_OK);
        tn_table_push(t, NULL, &k->set, grads, &push, 1);
    }
}

/* Trains the same rows both ways. */
static void compare(uint32_t dim, const char *options, const char *loose)
{
    tn_arena *arena = tn_arena_new(1 << 20);
    kit_model *fast = model_of(arena, dim, options);
    kit_model *slow = model_of(arena, dim, loose);
    tn_table *a = kit_table(fast, 1);
    tn_table *b = kit_table(slow, 1);
    assert_true(a->together);
    assert_false(b->together);
    uint64_t *key = TN_NEW_ARRAY(arena, uint64_t, KEYS);
    uint16_t *group = TN_NEW_ARRAY(arena, uint16_t, KEYS);
    for (uint32_t i = 0; i < KEYS; i++) {
        key[i] = tn_mix(i);
        group[i] = (uint16_t)(i % GROUPS);
    }
    train(a, kit_keys_new(arena, &fast->layout, key, group, KEYS), arena);
    train(b, kit_keys_new(arena, &slow->layout, key, group, KEYS), arena);
    for (uint32_t i = 0; i < KEYS; i += GROUPS) { /* kit_row_of looks in group 0 */
        static kit_row x;
        static kit_row y;
        assert_true(kit_row_of(a, key[i], &x) && kit_row_of(b, key[i], &y));
        assert_memory_equal(x.data, y.data, a->plan[0].n_floats * sizeof(float));
        assert_true(fabs(x.view.show - y.view.show) < 1e-9 && x.view.show >= STEPS);
    }
    tn_table_free(a);
    tn_table_free(b);
    tn_arena_free(arena);
}

static void rows_updated_together_get_the_bits_of_rows_updated_alone(void **state)
{
    (void)state;
    static const uint32_t dims[] = {1, 5, 8, 16, 32, 33};
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        compare(dims[i], "rowwise=true", "rowwise=true" LOOSE);
        compare(dims[i], "rowwise=true paddle=true", "rowwise=true paddle=true" LOOSE);
        compare(dims[i], "n0=.3", "n0=.3" LOOSE);
        compare(dims[i], "paddle=true", "paddle=true" LOOSE);
    }
}

static bool together(const char *options, const char *other)
{
    tn_arena *arena = tn_arena_new(1 << 16);
    kit_model *m = model_of(arena, 8, options);
    m->rule[TN_SEGMENTS_MAX] = kit_rule(arena, "adagrad", other); /* of the second group */
    tn_table *t = kit_table(m, 1);
    bool yes = t->together;
    tn_table_free(t);
    tn_arena_free(arena);
    return yes;
}

static void rules_that_do_more_than_update_go_row_by_row(void **state)
{
    (void)state;
    assert_true(together("lr=.1", "lr=.1"));
    assert_false(together("lr=.1", "lr=.2"));
    assert_false(together("l1=.1", "l1=.1"));
    assert_false(together("l2=.1", "l2=.1"));
    assert_false(together("clip_row=1", "clip_row=1"));
    assert_false(together("grad_scale=show", "grad_scale=show"));
}

static void keys_without_a_row_are_left_out(void **state)
{
    (void)state;
    tn_arena *arena = tn_arena_new(1 << 16);
    kit_model *m = model_of(arena, 8, "rowwise=true");
    tn_table *t = kit_table(m, 1);
    const uint64_t key[] = {tn_mix(1), tn_mix(2), tn_mix(3)};
    kit_keys *k = kit_keys_new(arena, &m->layout, key, NULL, 3);
    float grads[27] = {1};
    tn_push push = kit_push(0);
    tn_table_push(t, NULL, &k->set, grads, &push, 1);
    assert_int_equal(tn_table_rows(t), 0);
    tn_table_free(t);
    tn_arena_free(arena);
}

static void a_model_without_keys_has_an_empty_table(void **state)
{
    (void)state;
    tn_arena *arena = tn_arena_new(1 << 16);
    kit_model *m = model_of(arena, 8, "rowwise=true");
    m->layout.n_records = 0;
    m->layout.n_groups = 0;
    tn_table *t = kit_table(m, 1);
    kit_keys *k = kit_keys_new(arena, &m->layout, NULL, NULL, 0);
    float none[1] = {0};
    tn_push push = kit_push(0);
    assert_int_equal(tn_table_pull(t, NULL, &k->set, none, NULL), TN_OK);
    tn_table_push(t, NULL, &k->set, none, &push, 1);
    assert_int_equal(tn_table_rows(t), 0);
    tn_table_free(t);
    tn_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_updated_together_get_the_bits_of_rows_updated_alone),
        cmocka_unit_test(rules_that_do_more_than_update_go_row_by_row),
        cmocka_unit_test(keys_without_a_row_are_left_out),
        cmocka_unit_test(a_model_without_keys_has_an_empty_table),
    };
    return cmocka_run_group_tests_name("ps/table_push", tests, NULL, NULL);
}
