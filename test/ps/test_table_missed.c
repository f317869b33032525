/* test_table_missed.c - l2_mode: exact gives the bits of dense, whenever rows are looked at. */
#include "base/math/rng.h"
#include "base/thread/team.h"
#include "config/field.h"
#include "drive.h"
#include "ps/table/table_snapshot.h"
#include "ps/table/tabledef.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

enum { POOL = 300, BATCH = 40, STEPS = 120, DIM = 5, TEXT = 200 };

static const kit_segment segments[] = {{"wide", 1}, {"deep", DIM}, {NULL, 0}};

typedef struct world {
    tn_arena *arena;
    kit_model *m;
    tn_table *t;
} world;

/* Wide weights by plain descent with L2 that acts when touched, deep ones by the rule; `kinds`
 * groups, which differ by the clip of rows. */
static world begin(const char *name, const char *options, const char *mode, uint32_t kinds)
{
    char with_mode[TEXT];
    (void)snprintf(with_mode, sizeof with_mode, "%s l2_mode=%s", options, mode);
    world x = {.arena = tn_arena_new(1 << 20)};
    x.m = kit_model_new(x.arena, segments, kinds);
    for (uint32_t g = 0; g < kinds; g++) {
        tn_rule *rule = &x.m->rule[(size_t)g * TN_SEGMENTS_MAX];
        rule[0] = kit_rule(x.arena, "sgd", "lr=.1 l2=.2");
        rule[1] = kit_rule(x.arena, name, with_mode);
        rule[1].init = (tn_init){TN_INIT_UNIFORM, -.5, .5};
        rule[1].clip_row = g == 0 ? rule[1].clip_row : .02 * g;
    }
    x.t = kit_table(x.m, 1);
    assert_int_equal(x.t->n_kinds, kinds > TN_KINDS_TOGETHER ? TN_KINDS_TOGETHER + 1 : kinds);
    return x;
}

static void end(world *x)
{
    tn_table_free(x->t);
    tn_arena_free(x->arena);
}

/* Up to BATCH different keys and their gradients, a function of the step. Most keys are of one
 * partition, so that it has more rows than are worked at once. */
typedef struct batch {
    tn_arena *arena;
    kit_keys *k;
    float *grads, *rows;
    uint64_t stream, drawn;
} batch;

static uint64_t draw(batch *b, uint64_t n)
{
    return tn_below(tn_draw(b->stream, b->drawn++), n);
}

static batch batch_of(const world *x, uint64_t step)
{
    batch b = {.arena = tn_arena_new(1 << 16), .stream = tn_stream2(7, TN_RNG_GENERATE, step)};
    bool taken[POOL] = {false};
    uint64_t key[BATCH];
    uint16_t group[BATCH];
    uint32_t n = 0;
    const uint32_t want = (uint32_t)draw(&b, BATCH);
    while (n < want) {
        const uint64_t number = draw(&b, 4) == 0 ? draw(&b, POOL) : draw(&b, BATCH);
        if (!taken[number]) {
            taken[number] = true;
            group[n] = (uint16_t)(number % x->m->layout.n_groups);
            key[n++] = tn_mix(number) >> (number % 5 != 0 ? TN_ROW_PARTITION_BITS : 0);
        }
    }
    b.k = kit_keys_new(b.arena, &x->m->layout, key, group, n);
    b.grads = TN_NEW_ARRAY(b.arena, float, b.k->n_floats + 1);
    b.rows = TN_NEW_ARRAY(b.arena, float, b.k->n_floats + 1);
    for (uint32_t i = 0; i < b.k->n_floats; i++) {
        b.grads[i] = (float)draw(&b, 2000) / 1000 - 1;
    }
    return b;
}

static tn_push push_of(batch *b, uint64_t step)
{
    tn_push push = kit_push(step);
    push.weight_sum = 3;
    push.lr_factor = (double)(1 + draw(b, 4)) / 4;
    return push;
}

/* A step as training makes it; now and then its push is left out. */
static void step_of(world *x, tn_team *team, uint64_t step)
{
    batch b = batch_of(x, step);
    const tn_push push = push_of(&b, step);
    assert_int_equal(tn_table_pull(x->t, team, &b.k->set, b.rows, NULL), TN_OK);
    for (uint32_t i = 0; i < b.k->n_floats; i++) {
        b.grads[i] -= b.rows[i];
    }
    if (draw(&b, 8) != 0) {
        (void)tn_table_push_whole(x->t, team, &b.k->set, b.grads, &push, false);
    }
    tn_arena_free(b.arena);
}

typedef struct list {
    tn_row_view row[POOL];
    float data[POOL][8 * DIM];
    uint32_t n;
    tn_table *copy; /* NULL, or where rows are put */
} list;

static tn_status list_row(void *arg, const tn_row_view *row, tn_error *err)
{
    list *l = arg;
    assert_true(l->n < POOL && row->n_floats <= 8 * DIM);
    l->row[l->n] = *row;
    l->row[l->n].data = NULL;
    memcpy(l->data[l->n++], row->data, row->n_floats * sizeof(float));
    return l->copy != NULL ? tn_table_restore(l->copy, row, err) : TN_OK;
}

static list rows_of(tn_table *t)
{
    list l = {.n = 0};
    for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
        assert_int_equal(tn_table_walk(t, p, list_row, &l, NULL), TN_OK);
    }
    return l;
}

static void assert_same_rows(tn_table *a, tn_table *b)
{
    const list x = rows_of(a);
    const list y = rows_of(b);
    assert_true(x.n > 0);
    assert_int_equal(x.n, y.n);
    for (uint32_t i = 0; i < x.n; i++) {
        assert_true(x.row[i].key == y.row[i].key && x.row[i].show == y.row[i].show);
        assert_int_equal(x.row[i].n_floats, y.row[i].n_floats);
        assert_memory_equal(x.data[i], y.data[i], x.row[i].n_floats * sizeof(float));
    }
}

/* Evaluations of the keys of another step give the same, and change nothing. */
static void assert_same_peeks(world *a, world *b, uint64_t step)
{
    batch x = batch_of(a, step + 1000);
    batch y = batch_of(b, step + 1000);
    for (int i = 0; i < 2; i++) {
        tn_table_peek(a->t, NULL, &x.k->set, NULL, x.rows, NULL);
        tn_table_peek(b->t, NULL, &y.k->set, NULL, y.rows, NULL);
        assert_memory_equal(x.rows, y.rows, x.k->n_floats * sizeof(float));
    }
    tn_arena_free(x.arena);
    tn_arena_free(y.arena);
}

/* One table that is swept, one that is looked at in all ways, and one that is not until the end. */
static void check_kinds(const char *optim, const char *options, uint32_t kinds)
{
    print_message("%s %s\n", optim, options);
    world dense = begin(optim, options, "dense", kinds);
    world seen = begin(optim, options, "exact", kinds);
    world left = begin(optim, options, "exact", kinds);
    world touched = begin(optim, options, "touched", kinds);
    tn_team *team = NULL;
    assert_int_equal(tn_team_open(&team, 3, NULL), TN_OK);
    for (uint64_t step = 0; step < STEPS; step++) {
        step_of(&dense, NULL, step);
        step_of(&seen, team, step);
        step_of(&left, NULL, step);
        step_of(&touched, NULL, step);
        if (step % 3 == 1) {
            assert_same_peeks(&dense, &seen, step);
        }
        if (step % 31 == 13) {
            assert_same_rows(dense.t, seen.t);
        }
        if (step % 47 == 17) {
            tn_table_catch_up(seen.t, team);
        }
    }
    assert_same_peeks(&dense, &left, 0);
    assert_same_rows(dense.t, seen.t);
    assert_same_rows(dense.t, left.t);
    const list x = rows_of(dense.t);
    const list y = rows_of(touched.t);
    assert_memory_not_equal(x.data, y.data, sizeof x.data);
    for (uint32_t i = 0; i < x.n; i++) { /* wide weights, which others do not change */
        assert_memory_equal(x.data[i], y.data[i], sizeof(float));
    }
    tn_team_close(team);
    end(&dense);
    end(&seen);
    end(&left);
    end(&touched);
}

static void check_rule(const char *optim, const char *options)
{
    check_kinds(optim, options, 1);
}

TEST(exact_has_the_bits_of_dense_for_every_rule)
{
    uint32_t n = 0;
    for (const tn_optim *const *o = tn_all_optims; *o != NULL; o++) {
        bool has_l2 = false;
        bool has_mode = false;
        for (const tn_field *f = (*o)->choice.fields; f->kind != TN_KIND_END; f++) {
            has_l2 = has_l2 || strcmp(f->key, "l2") == 0;
            has_mode = has_mode || strcmp(f->key, "l2_mode") == 0;
        }
        if (has_l2 && has_mode) {
            check_rule((*o)->choice.name, "lr=.05 l2=.3");
            check_rule((*o)->choice.name,
                       "lr=.05 l2=.3 l1=.01 clip_row=.2 clip_value=.15 grad_scale=sum "
                       "bounds=-.4,.4");
            n++;
        }
    }
    assert_in_range(n, 7, 20);
    check_rule("adagrad", "lr=.05 l2=.3 rowwise=true");
    check_rule("adagrad_decay", "lr=.05 l2=.3 every=7 rho=.5");
    check_rule("adam", "lr=.05 l2=.3 bias=global");
    check_rule("adam", "lr=.05 l2=.3 bias=none");
    check_rule("adamw", "lr=.05 wd=.3");
    check_rule("adamw", "lr=.05 wd=.3 l1=.01 bounds=-.4,.4 bias=global");
}

TEST(each_row_makes_up_by_the_rules_of_its_group)
{
    check_kinds("adam", "lr=.05 l2=.3", 3);
    check_kinds("adagrad", "lr=.05 l2=.3 rowwise=true", TN_KINDS_TOGETHER + 2);
}

/* ---- single rows ---- */

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
    tn_arena *arena = tn_arena_new(1 << 14);
    const kit_keys *k = kit_keys_new(arena, &x->m->layout, &key, NULL, 1);
    const float g[] = {g0, g1};
    tn_push push = kit_push(step);
    push.lr_factor = factor;
    (void)tn_table_norm2(x->t, NULL, &k->set, g, &push); /* changes nothing */
    tn_table_push(x->t, NULL, &k->set, g, &push, 1);
    tn_arena_free(arena);
}

static void assert_weights(const one *x, double first, double second)
{
    float w[2];
    kit_peek(x->t, &x->m->layout, KEY, w);
    assert_near((double)w[0], first);
    assert_near((double)w[1], second);
}

TEST(v19_adam_that_missed_one_step)
{
    const char *options[] = {"lr=.01 l2=.1 l2_mode=exact",
                             "lr=.01 l2=.1 l2_mode=exact bias=global"};
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
    const char *options[] = {"lr=.5 l2=.25 l2_mode=exact", "lr=.5 l2=.25 l2_mode=dense",
                             "lr=.5 wd=.25 l2_mode=exact", "lr=.5 wd=.25 l2_mode=dense",
                             "lr=.5 wd=.25 l2_mode=dense grad_scale=sum"};
    const char *optim[] = {"sgd", "sgd", "adamw", "adamw", "adamw"};
    for (int i = 0; i < 5; i++) {
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

TEST(a_row_expires_by_the_norm_that_it_has_by_then)
{
    tn_lifecycle life = TN_LIFECYCLE_NONE;
    life.norm_below = 1;
    one x = one_begin("sgd", "lr=.5 l2=.25 l2_mode=exact", 2, -1);
    tn_table_free(x.t);
    x.m->rules.life = &life;
    x.t = kit_table(x.m, 1);
    for (uint64_t step = 0; step < 11; step++) {
        const uint64_t key = step == 0 ? KEY : OTHER;
        float rows[2];
        tn_arena *arena = tn_arena_new(1 << 14);
        const kit_keys *k = kit_keys_new(arena, &x.m->layout, &key, NULL, 1);
        assert_int_equal(tn_table_pull(x.t, NULL, &k->set, rows, NULL), TN_OK);
        tn_arena_free(arena);
        one_step(&x, key, step, 1, -4, -4); /* 2, 2, that of KEY times .875^10 in the end */
    }
    tn_group_rows swept;
    assert_int_equal(tn_table_sweep(x.t, NULL, 0, &swept, NULL), TN_OK);
    assert_int_equal(swept.expired, 1);
    kit_row row;
    assert_false(kit_row_of(x.t, KEY, &row));
    assert_true(kit_row_of(x.t, OTHER, &row));
    one_end(&x);
}

TEST(a_list_of_steps_that_is_full_begins_anew)
{
    one exact = one_begin("momentum", "lr=.01 l2=.001 l2_mode=exact", .5F, -.3F);
    one dense = one_begin("momentum", "lr=.01 l2=.001 l2_mode=dense", .5F, -.3F);
    for (uint64_t step = 0; step < 2 * TN_STEPS_KEPT + 5; step++) {
        const uint64_t key = step % 1000 == 7 ? KEY : OTHER;
        one_step(&exact, key, step, 1, .1F, .2F);
        one_step(&dense, key, step, 1, .1F, .2F);
        assert_true(exact.t->n_steps < TN_STEPS_KEPT);
    }
    assert_int_equal(exact.t->n_steps, 5);
    assert_same_rows(exact.t, dense.t);
    one_end(&exact);
    one_end(&dense);
}

/* ---- cuts ---- */

static void take_cut(world *x, tn_team *team, bool delta, tn_table *into)
{
    tn_cut *cut = NULL;
    list l = {.copy = into};
    tn_table_catch_up(x->t, team);
    assert_int_equal(tn_cut_open(&cut, x->t, delta, NULL), TN_OK);
    for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
        if (p == TN_PARTITIONS / 2) { /* training goes on while it is read */
            step_of(x, team, 5000 + delta);
        }
        assert_int_equal(tn_cut_walk(cut, p, list_row, &l, NULL), TN_OK);
    }
    tn_cut_close(cut);
}

/* A table that a full cut and two deltas filled, and that goes on, is the one that went on. */
TEST(a_run_goes_on_from_a_cut_and_deltas)
{
    const char *options = "lr=.05 l2=.3";
    world x = begin("adam", options, "exact", 1);
    world copy = begin("adam", options, "exact", 1);
    tn_team *team = NULL;
    assert_int_equal(tn_team_open(&team, 2, NULL), TN_OK);
    assert_int_equal(tn_table_track(x.t, NULL), TN_OK);
    for (uint64_t step = 0; step < 90; step++) {
        step_of(&x, team, step);
        if (step % 30 == 29) {
            take_cut(&x, team, step > 30, copy.t);
            step_of(&copy, team, 5000 + (step > 30));
            assert_same_rows(x.t, copy.t);
        }
    }
    for (uint64_t step = 90; step < 120; step++) {
        step_of(&x, team, step);
        step_of(&copy, NULL, step);
    }
    assert_same_rows(x.t, copy.t);
    tn_team_close(team);
    end(&x);
    end(&copy);
}
