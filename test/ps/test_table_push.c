/* test_table_push.c - rows of many keys updated at once get the bits of rows updated alone; rows
 * outside the batch decay with l2_mode: dense. */
#include "drive.h"
#include "ps/table/tabledef.h"
#include "support/test.h"

CLOSER(tn_table_free);

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
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 20);
    kit_model *m = model_of(arena, dim, optim, options, kinds);
    tn_table *t FREED(tn_table_free) = kit_table(m, 1);
    uint32_t found = 0;
    for (uint32_t g = 0; g < GROUPS; g++) {
        found += t->kind[g] == g;
    }
    assert_int_equal(found, kinds == 0 ? 1 : kinds);
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
        tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
        kit_model *m = model_of(arena, 8, "adagrad", options[i % 2], 0);
        tn_table *t FREED(tn_table_free) = kit_table(m, 1);
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
    }
}

TEST(keys_without_a_row_are_left_out)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    kit_model *m = model_of(arena, 8, "adagrad", "grad_scale=sum l2=.1", 0);
    tn_table *t FREED(tn_table_free) = kit_table(m, 1);
    const uint64_t key[] = {tn_mix(1), tn_mix(2), tn_mix(3)};
    kit_keys *k = kit_keys_new(arena, &m->layout, key, NULL, 3);
    float grads[27] = {1, 2, 2};
    tn_push push = kit_push(0);
    tn_table_push(t, NULL, &k->set, grads, &push, 1);
    assert_true(tn_table_push_whole(t, NULL, &k->set, grads, &push, false) == 9);
    assert_int_equal(tn_table_rows(t), 0);
}

TEST(a_model_without_keys_has_an_empty_table)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    kit_model *m = model_of(arena, 8, "adagrad", "rowwise=true", 0);
    m->layout.n_records = 0;
    m->layout.n_groups = 0;
    tn_table *t FREED(tn_table_free) = kit_table(m, 1);
    kit_keys *k = kit_keys_new(arena, &m->layout, NULL, NULL, 0);
    float none[1] = {0};
    tn_push push = kit_push(0);
    assert_int_equal(tn_table_pull(t, NULL, &k->set, none, NULL), TN_OK);
    tn_table_push(t, NULL, &k->set, none, &push, 1);
    assert_int_equal(tn_table_rows(t), 0);
}

/* ---- rows outside the batch ---- */

typedef struct one {
    tn_arena *arena;
    kit_model *m;
    tn_table *t;
} one;

enum { KEY = 12345, OTHER = 54321 };

/* A row of two weights, and one that other batches hold. */
static one one_begin(const char *optim, const char *options, float first, float second)
{
    one x = {.arena = tn_arena_new(1 << 16)};
    x.m = kit_model_plain(x.arena, 2, kit_rule(x.arena, optim, options));
    x.t = kit_table(x.m, 1);
    const uint64_t key[] = {KEY, OTHER};
    const kit_keys *k = kit_keys_new(x.arena, &x.m->layout, key, NULL, 2);
    float rows[4];
    assert_int_equal(tn_table_pull(x.t, NULL, &k->set, rows, NULL), TN_OK);
    kit_row row;
    assert_true(kit_row_of(x.t, KEY, &row));
    row.data[0] = first;
    row.data[1] = second;
    assert_int_equal(tn_table_restore(x.t, &row.view, NULL), TN_OK);
    return x;
}

static void one_end(one *x)
{
    tn_table_free(x->t);
    tn_arena_free(x->arena);
}

static void one_step(one *x, uint64_t key, uint64_t step, double factor, float g0, float g1)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 14);
    const kit_keys *k = kit_keys_new(arena, &x->m->layout, &key, NULL, 1);
    const float g[] = {g0, g1};
    tn_push push = kit_push(step);
    push.lr_factor = factor;
    (void)tn_table_norm2(x->t, NULL, &k->set, g, &push); /* changes nothing */
    tn_table_push(x->t, NULL, &k->set, g, &push, 1);
}

static void assert_weights(const one *x, double first, double second)
{
    float w[2];
    kit_peek(x->t, &x->m->layout, KEY, w);
    assert_near((double)w[0], first);
    assert_near((double)w[1], second);
}

TEST(v19_adam_that_is_left_out_of_one_batch)
{
    const char *options[] = {"lr=.01 l2=.1 l2_mode=dense",
                             "lr=.01 l2=.1 l2_mode=dense bias=global"};
    for (int i = 0; i < 2; i++) {
        one x = one_begin("adam", options[i], .5F, -.3F);
        one_step(&x, KEY, 0, 1, .1F, -.2F);
        assert_weights(&x, .490000001, -.29);
        one_step(&x, OTHER, 1, 1, .1F, -.2F);
        assert_weights(&x, .481319226, -.282420759);
        one_step(&x, KEY, 2, 1, -.3F, .05F);
        assert_weights(&x, .483173892, -.277185202);
        one_end(&x);
    }
}

/* The closed forms: w times the product of 1 - lr l2, and 1 - lr wd. */
TEST(descent_and_decay_shrink_by_a_product)
{
    const char *options[] = {"lr=.5 l2=.25 l2_mode=dense", "lr=.5 wd=.25 l2_mode=dense",
                             "lr=.5 wd=.25 l2_mode=dense grad_scale=sum"};
    const char *optim[] = {"sgd", "adamw", "adamw"};
    for (int i = 0; i < 3; i++) {
        one x = one_begin(optim[i], options[i], 2, -1);
        double product = 1;
        for (uint64_t step = 0; step < 10; step++) {
            const double factor = 1 / (double)(step + 1);
            one_step(&x, OTHER, step, factor, 1, 1);
            product *= 1 - .5 * factor * .25;
            assert_weights(&x, 2 * product, -product);
        }
        kit_row row;
        assert_true(kit_row_of(x.t, KEY, &row));
        for (uint32_t j = 2; j < row.view.n_floats; j++) {
            assert_true(row.data[j] == 0); /* means and counts stay */
        }
        one_end(&x);
    }
}

/* A rule that touches the batch alone is not swept beside one of all rows. */
TEST(only_segments_of_dense_rules_are_swept)
{
    const kit_segment segments[] = {{"wide", 1}, {"deep", 2}, {NULL, 0}};
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    kit_model *m = kit_model_new(arena, segments, 1);
    m->rule[0] = kit_rule(arena, "sgd", "lr=.5 l2=.25");
    m->rule[1] = kit_rule(arena, "sgd", "lr=.5 l2=.25 l2_mode=dense");
    m->rule[0].init = m->rule[1].init = (tn_init){.kind = TN_INIT_CONSTANT, .a = 2};
    tn_table *t FREED(tn_table_free) = kit_table(m, 1);
    const uint64_t key[] = {KEY, OTHER};
    const kit_keys *both = kit_keys_new(arena, &m->layout, key, NULL, 2);
    const kit_keys *other = kit_keys_new(arena, &m->layout, &key[1], NULL, 1);
    float rows[6];
    const float grads[3] = {1, 1, 1};
    const tn_push push = kit_push(0);
    assert_int_equal(tn_table_pull(t, NULL, &both->set, rows, NULL), TN_OK);
    tn_table_push(t, NULL, &other->set, grads, &push, 1);
    kit_peek(t, &m->layout, KEY, rows);
    assert_near((double)rows[0], 2);
    assert_near((double)rows[1], 2 * (1 - .5 * .25));
    assert_near((double)rows[2], 2 * (1 - .5 * .25));
}
