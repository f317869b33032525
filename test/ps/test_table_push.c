/* test_table_push.c - rows of many keys updated at once get the bits of rows updated alone. */
#include "base/math/rng.h"
#include "kit.h"
#include "ps/table/tabledef.h"
#include "support/test.h"

#include <math.h>
#include <string.h>

enum { KEYS = 3000, GROUPS = 10, STEPS = 2 };

/* Groups of `kinds` kinds: their rules differ by a clip that holds nothing back; 0: by nothing. */
static kit_model *model_of(tn_arena *arena, uint32_t dim, const char *optim, const char *options,
                           uint32_t kinds)
{
    const kit_segment segments[] = {{"wide", 1}, {"deep", dim}, {NULL, 0}};
    kit_model *m = kit_model_new(arena, segments, GROUPS);
    const tn_rule all = kit_rule(arena, optim, options);
    for (uint32_t g = 0; g < GROUPS; g++) {
        for (uint32_t s = 0; s < 2; s++) {
            tn_rule *rule = &m->rule[g * TN_SEGMENTS_MAX + s];
            *rule = all;
            rule->clip_row = kinds > 0 ? 1e20 + 1e19 * (double)(g % kinds) : rule->clip_row;
            rule->init = (tn_init){.kind = TN_INIT_UNIFORM, .a = -1, .b = 1};
        }
    }
    return m;
}

/* Returns the sum of all norms. */
static double train(tn_table *t, kit_keys *k, tn_arena *arena, bool whole)
{
    float *rows = TN_NEW_ARRAY(arena, float, k->n_floats);
    float *grads = TN_NEW_ARRAY(arena, float, k->n_floats);
    double sum = 0;
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
        push.weight_sum = 3;
        assert_int_equal(tn_table_pull(t, NULL, &k->set, rows, NULL), TN_OK);
        if (whole) {
            sum += tn_table_push_whole(t, NULL, &k->set, grads, &push, false);
        } else {
            sum += tn_table_norm2(t, NULL, &k->set, grads, &push);
            tn_table_push(t, NULL, &k->set, grads, &push, 1);
        }
    }
    return sum;
}

/* Trains rows of the same rule; returns the norm and, in *bits, a hash of all rows. */
static double result(const char *optim, const char *options, uint32_t dim, uint32_t kinds,
                     bool whole, uint64_t *bits)
{
    tn_arena *arena = tn_arena_new(1 << 20);
    kit_model *m = model_of(arena, dim, optim, options, kinds);
    tn_table *t = kit_table(m, 1);
    assert_int_equal(t->n_kinds, kinds == 0                  ? 1
                                 : kinds > TN_KINDS_TOGETHER ? TN_KINDS_TOGETHER + 1
                                                             : kinds);
    uint64_t *key = TN_NEW_ARRAY(arena, uint64_t, KEYS);
    uint16_t *group = TN_NEW_ARRAY(arena, uint16_t, KEYS);
    for (uint32_t i = 0; i < KEYS; i++) {
        key[i] = tn_mix(i);
        group[i] = (uint16_t)(i % GROUPS);
    }
    const double norm2 = train(t, kit_keys_new(arena, &m->layout, key, group, KEYS), arena, whole);
    *bits = 0;
    for (uint32_t i = 0; i < KEYS; i += GROUPS) { /* kit_row_of looks in group 0 */
        static kit_row x;
        assert_true(kit_row_of(t, key[i], &x));
        assert_true(x.view.show >= STEPS);
        for (uint32_t j = 0; j < t->plan[0].n_floats; j++) {
            *bits = tn_stream_next(*bits, tn_row_word(&x.data[j]));
        }
    }
    tn_table_free(t);
    tn_arena_free(arena);
    return norm2;
}

static void compare(const char *optim, const char *options, uint32_t dim)
{
    uint64_t bits = 0;
    const double norm2 = result(optim, options, dim, 0, false, &bits);
    const bool clips = strstr(options, "clip_row") != NULL;
    static const uint32_t kinds[] = {0, 1, 3, GROUPS};
    for (size_t i = 0; i < (clips ? 1U : sizeof kinds / sizeof *kinds); i++) {
        for (uint32_t whole = 0; whole < 2; whole++) {
            uint64_t other = 0;
            const double norm = result(optim, options, dim, kinds[i], whole == 1, &other);
            assert_true(bits == other);
            /* without clips and all that, it is taken over a tile instead of row by row */
            assert_true(norm == norm2 || (i > 0 && fabs(norm / norm2 - 1) < 1e-12));
        }
    }
}

TEST(rows_updated_together_get_the_bits_of_rows_updated_alone)
{
    static const uint32_t dims[] = {1, 8, 33, 100};
    static const char *const adagrad[] = {"rowwise=true", "rowwise=true paddle=true", "n0=.3",
                                          "paddle=true"};
    static const char *const chain[] = {"l2=.1",        "l2=.1 grad_scale=sum clip_value=2",
                                        "clip_row=.5",  "grad_scale=show bounds=-1,.5",
                                        "l1=.01 dc=.1", "l2=.1 clip_row=.5 clip_value=.3"};
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        for (size_t o = 0; o < sizeof adagrad / sizeof *adagrad; o++) {
            compare("adagrad", adagrad[o], dims[i]);
        }
        for (size_t o = 0; o < sizeof chain / sizeof *chain; o++) {
            compare(o % 2 == 0 ? "adagrad" : "momentum", chain[o], dims[i]);
        }
    }
    for (size_t o = 0; tn_all_optims[o] != NULL; o++) {
        compare(tn_all_optims[o]->choice.name, "", 8);
        compare(tn_all_optims[o]->choice.name, "grad_scale=sum bounds=-1,1", 5);
    }
}

TEST(a_norm_that_is_not_finite_is_told)
{
    static const char *const options[] = {"l2=.1", ""};
    for (size_t i = 0; i < 4; i++) {
        tn_arena *arena = tn_arena_new(1 << 16);
        kit_model *m = model_of(arena, 8, "adagrad", options[i % 2], 0);
        tn_table *t = kit_table(m, 1);
        const uint64_t key[] = {tn_mix(1), tn_mix(2), tn_mix(3)};
        kit_keys *k = kit_keys_new(arena, &m->layout, key, NULL, 3);
        float rows[27];
        float grads[27] = {1};
        grads[26] = i < 2 ? NAN : -INFINITY;
        tn_push push = kit_push(0);
        assert_int_equal(tn_table_pull(t, NULL, &k->set, rows, NULL), TN_OK);
        const bool finite = isfinite(tn_table_push_whole(t, NULL, &k->set, grads, &push, false));
        assert_false(finite);
        for (size_t j = 0; j < 3; j++) {
            kit_row row;
            assert_true(kit_row_of(t, key[j], &row));
            assert_true(row.view.show < 1);
        }
        tn_table_free(t);
        tn_arena_free(arena);
    }
}

TEST(keys_without_a_row_are_left_out)
{
    tn_arena *arena = tn_arena_new(1 << 16);
    kit_model *m = model_of(arena, 8, "adagrad", "grad_scale=sum l2=.1", 0);
    tn_table *t = kit_table(m, 1);
    const uint64_t key[] = {tn_mix(1), tn_mix(2), tn_mix(3)};
    kit_keys *k = kit_keys_new(arena, &m->layout, key, NULL, 3);
    float grads[27] = {1, 2, 2};
    tn_push push = kit_push(0);
    tn_table_push(t, NULL, &k->set, grads, &push, 1);
    assert_true(tn_table_push_whole(t, NULL, &k->set, grads, &push, false) == 9);
    assert_int_equal(tn_table_rows(t), 0);
    tn_table_free(t);
    tn_arena_free(arena);
}

TEST(a_model_without_keys_has_an_empty_table)
{
    tn_arena *arena = tn_arena_new(1 << 16);
    kit_model *m = model_of(arena, 8, "adagrad", "rowwise=true", 0);
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
