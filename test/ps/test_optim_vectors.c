/* test_optim_vectors.c - every optimizer against the vectors of numerics section 6: by hand, as
 * dense weights and as rows of the table. */
#include "drive.h"
#include "ps/optim/optim.h"
#include "ps/shard/dense.h"
#include "support/test.h"

CLOSER(tn_table_free);

enum { STEPS = 3, DIM = 2 };

static const float gradients[STEPS][DIM] = {{.1F, -.2F}, {.4F, 0}, {-.3F, .05F}};

/* One line of V18: weights after each step. */
typedef struct vector {
    const char *optim;
    const char *options;
    bool from_zero; /* else from (.5, -.3) */
    double w[STEPS][DIM];
} vector;

static void check_direct(const vector *v)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 14);
    drive x;
    drive_begin(&x, arena, v->optim, v->options);
    x.w[0] = v->from_zero ? 0 : .5F;
    x.w[1] = v->from_zero ? 0 : -.3F;
    tn_optim_init(x.rule.optim, x.rule.opts, DIM, x.w, x.state);
    for (uint32_t s = 0; s < STEPS; s++) {
        drive_step(&x, s, DIM, gradients[s]);
        assert_near((double)x.w[0], v->w[s][0]);
        assert_near((double)x.w[1], v->w[s][1]);
    }
}

/* The same through the dense store, where the rule allows it. */
static void check_dense(const vector *v)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 14);
    tn_rule rule = kit_rule(arena, v->optim, v->options);
    if (rule.optim->dense == NULL || rule.optim->dense(rule.opts) == NULL) {
        float w[DIM] = {v->from_zero ? 0 : .5F, v->from_zero ? 0 : -.3F};
        tn_dense_run run = {0, DIM};
        tn_dense_opts opts = {.rule = &rule, .weights = w, .size = DIM, .runs = &run, .n_runs = 1};
        tn_dense_store *d = NULL;
        assert_int_equal(tn_dense_new(&d, &opts, NULL), TN_OK);
        for (uint32_t s = 0; s < STEPS; s++) {
            tn_push push = kit_push(s);
            tn_dense_push(d, NULL, gradients[s], &push, 1);
            assert_near((double)w[0], v->w[s][0]);
            assert_near((double)w[1], v->w[s][1]);
        }
        tn_dense_free(d);
    }
}

/* And through the table; first weights are the average and half the difference of a uniform that
 * is no random number at all: a restored row. */
static void check_row(const vector *v)
{
    const uint64_t key = UINT64_C(0x0123456789abcdef);
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 14);
    kit_model *m = kit_model_plain(arena, DIM, kit_rule(arena, v->optim, v->options));
    tn_table *t FREED(tn_table_free) = kit_table(m, 1);
    drive fresh;
    drive_begin(&fresh, arena, v->optim, v->options);
    fresh.w[0] = v->from_zero ? 0 : .5F;
    fresh.w[1] = v->from_zero ? 0 : -.3F;
    tn_optim_init(fresh.rule.optim, fresh.rule.opts, DIM, fresh.w, fresh.state);

    tn_place_in_row place = tn_table_place(t, 0, 0);
    tn_row_view row = {.key = key, .present = 1, .n_floats = DIM};
    float data[DIM * (1 + TN_STATES_MAX)] = {0};
    memcpy(data + place.w, fresh.w, DIM * sizeof(float));
    for (uint32_t i = 0; i < place.n_states; i++) {
        uint32_t n = place.spec[i].per_row ? 1 : DIM;
        memcpy(data + place.state[i], fresh.memory[i], n * sizeof(float));
        row.n_floats += n;
    }
    row.data = data;
    assert_int_equal(tn_table_restore(t, &row, NULL), TN_OK);

    kit_keys *k = kit_keys_new(arena, &m->layout, &key, NULL, 1);
    for (uint32_t s = 0; s < STEPS; s++) {
        tn_push push = kit_push(s);
        float w[DIM];
        tn_table_push(t, NULL, &k->set, gradients[s], &push, 1);
        kit_peek(t, &m->layout, key, w);
        assert_near((double)w[0], v->w[s][0]);
        assert_near((double)w[1], v->w[s][1]);
    }
}

static void check(const vector *v)
{
    check_direct(v);
    check_dense(v);
    check_row(v);
}

TEST(v18_sgd)
{
    check(&(vector){"sgd", "lr=.1", false, {{.49, -.28}, {.45, -.28}, {.48, -.285}}});
}

TEST(v18_momentum)
{
    check(
        &(vector){"momentum", "lr=.1 mu=.9", false, {{.49, -.28}, {.441, -.262}, {.4269, -.2508}}});
}

TEST(v18_nesterov)
{
    check(&(vector){
        "nesterov", "lr=.1 mu=.9", false, {{.481, -.262}, {.3969, -.2458}, {.41421, -.24072}}});
}

TEST(v18_adagrad)
{
    check(&(vector){
        "adagrad",
        "lr=.1 n0=.1",
        false,
        {{.469848866, -.246547753}, {.392868832, -.246547753}, {.442868831, -.259793076}}});
}

TEST(v18_adagrad_rowwise)
{
    vector v = {"adagrad",
                "lr=.1 rowwise=true",
                false,
                {{.471715730, -.243431459}, {.383370511, -.243431459}, {.443221070, -.253406552}}};
    check(&v);

    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 14);
    drive x;
    drive_begin(&x, arena, v.optim, v.options);
    tn_optim_init(x.rule.optim, x.rule.opts, DIM, x.w, x.state);
    for (uint32_t s = 0; s < STEPS; s++) {
        drive_step(&x, s, DIM, gradients[s]);
    }
    assert_near((double)x.state[0][0], .25125);
}

TEST(v18_adagrad_paddle)
{
    check(&(vector){"adagrad",
                    "lr=.1 n0=.1 rowwise=true paddle=true",
                    false,
                    {{.49, -.28}, {.454222912, -.28}, {.475175821, -.283492151}}});
}

TEST(v18_rmsprop)
{
    check(&(vector){
        "rmsprop",
        "lr=.01 rho=.9",
        false,
        {{.468377233, -.268377228}, {.437608005, -.268377228}, {.456888751, -.276840869}}});
}

TEST(v18_adadelta)
{
    check(&(vector){
        "adadelta",
        "lr=1 rho=.9 eps=1e-6",
        false,
        {{.496839302, -.296838118}, {.492489092, -.296838118}, {.496243335, -.298004514}}});
}

TEST(v18_adam)
{
    check(&(vector){
        "adam",
        "lr=.01",
        false,
        {{.490000001, -.290000000}, {.481156236, -.283299418}, {.479389153, -.279825604}}});
}

TEST(v18_adamw)
{
    check(&(vector){
        "adamw",
        "lr=.01 wd=.1",
        false,
        {{.489500001, -.289700000}, {.480166736, -.282709718}, {.477919487, -.278953194}}});
}

TEST(v18_adam_l2)
{
    check(&(vector){
        "adam",
        "lr=.01 l2=.1",
        false,
        {{.490000001, -.290000000}, {.480819518, -.282420759}, {.477557851, -.277185202}}});
}

TEST(v18_ftrl)
{
    check(&(vector){
        "ftrl",
        "alpha=.1 beta=1 l1=.05 l2=.1",
        true,
        {{-.004504505, .012396694}, {-.032627758, .012396694}, {-.012889642, .008285377}}});
}

TEST(v18_ftrl_without_penalties)
{
    check(&(vector){
        "ftrl",
        "alpha=.1 beta=1",
        true,
        {{-.009090909, .016666667}, {-.037413292, .016666667}, {-.017544452, .012521263}}});
}

TEST(v18_group_ftrl)
{
    check(&(vector){
        "group_ftrl",
        "alpha=.1 beta=1 l1=.05 l2=.1 l21=.05",
        true,
        {{-.002490029, .006852724}, {-.027461042, .010577030}, {-.008059457, .005492560}}});
}

TEST(v18_ftrl_starts_warm)
{
    check(&(vector){
        "ftrl",
        "alpha=.1 beta=1 l2=.1",
        false,
        {{.490990991, -.283471074}, {.462867738, -.283471074}, {.482605853, -.287582391}}});
}

TEST(v19_ftrl_end_state)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 14);
    drive x;
    drive_begin(&x, arena, "ftrl", "alpha=.1 beta=1 l1=.05 l2=.1");
    tn_optim_init(x.rule.optim, x.rule.opts, DIM, x.w, x.state);
    for (uint32_t s = 0; s < STEPS; s++) {
        drive_step(&x, s, DIM, gradients[s]);
    }
    assert_near((double)x.state[0][0], .245909925);
    assert_near((double)x.state[0][1], -.150763051);
    assert_near((double)x.state[1][0], .26);
    assert_near((double)x.state[1][1], .0425);
}

TEST(v19_adagrad_decay_makes_up_for_steps_without_the_row)
{
    static const char *const options[] = {"n0=.1 every=10", "n0=.1 every=10 rowwise=true"};
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 14);
    for (size_t i = 0; i < 2; i++) {
        const float none[DIM] = {0};
        drive x;
        drive_begin(&x, arena, "adagrad_decay", options[i]);
        tn_optim_init(x.rule.optim, x.rule.opts, DIM, x.w, x.state);
        x.state[0][0] = 2;
        x.state[0][1] = .2F;
        drive_step(&x, 58, DIM, none); /* the 59th step: five decays by then */
        assert_near((double)x.state[0][0], 1.18098);
        assert_near((double)x.state[0][1], i == 0 ? .118098 : (double).2F);
        drive_step(&x, 58, DIM, none);
        assert_near((double)x.state[0][0], 1.18098);
        drive_step(&x, 10000, DIM, none);
        assert_near((double)x.state[0][0], .1);
        drive_step(&x, 10001, DIM, gradients[0]);
        assert_true(x.state[0][0] > .1F);
    }
}

/* Rows that are updated together get the bits of rows updated one by one, and a checkpoint's bytes
 * of a row are enough to go on. */
TEST(adagrad_decay_of_a_table_survives_a_row_written_and_read)
{
    enum { KEYS = 70, WIDE = 5, MOVED_AT = 25, ALL = 60 };
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    kit_model *m =
        kit_model_plain(arena, WIDE, kit_rule(arena, "adagrad_decay", "lr=.1 every=7 rho=.5"));
    tn_table *t FREED(tn_table_free) = kit_table(m, 1);
    tn_table *moved FREED(tn_table_free) = kit_table(m, 1);
    uint64_t key[KEYS];
    for (uint32_t i = 0; i < KEYS; i++) {
        key[i] = i * UINT64_C(0x9e3779b97f4a7c15);
    }
    kit_keys *k = kit_keys_new(arena, &m->layout, key, NULL, KEYS);
    float *g = TN_NEW_ARRAY(arena, float, k->n_floats);
    assert_int_equal(tn_table_pull(t, NULL, &k->set, g, NULL), TN_OK);
    for (uint64_t step = 0; step < ALL; step += step % 3 + 1) {
        tn_push push = kit_push(step);
        for (uint32_t i = 0; i < k->n_floats; i++) {
            g[i] = .1F * (float)((i + step) % 9) - .4F;
        }
        tn_table_push(t, NULL, &k->set, g, &push, 1);
        if (step > MOVED_AT) {
            tn_table_push(moved, NULL, &k->set, g, &push, 1);
            continue;
        }
        tn_table_clear(moved);
        for (uint32_t i = 0; i < KEYS; i++) {
            kit_row row;
            assert_true(kit_row_of(t, key[i], &row));
            assert_int_equal(tn_table_restore(moved, &row.view, NULL), TN_OK);
        }
    }
    drive one;
    for (uint32_t i = 0; i < KEYS; i++) {
        kit_row a;
        kit_row b;
        assert_true(kit_row_of(t, key[i], &a) && kit_row_of(moved, key[i], &b));
        assert_memory_equal(a.data, b.data, a.view.n_floats * sizeof(float));
        drive_begin(&one, arena, "adagrad_decay", "lr=.1 every=7 rho=.5");
        tn_optim_init(one.rule.optim, one.rule.opts, WIDE, one.w, one.state);
        for (uint64_t step = 0; step < ALL; step += step % 3 + 1) {
            float own[WIDE];
            for (uint32_t j = 0; j < WIDE; j++) {
                own[j] = .1F * (float)((k->set.at[k->index[i]] + j + step) % 9) - .4F;
            }
            drive_step(&one, step, WIDE, own);
        }
        assert_memory_equal(a.data, one.w, sizeof(float) * WIDE);
        assert_memory_equal(a.data + WIDE, one.state[0], sizeof(float) * WIDE);
    }
}

/* A row that is in steps 1 and 3 only, with the first and the third gradient. */
static void check_lazy_adam(const char *options, double w0, double w1)
{
    const uint64_t key = 77;
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 14);
    tn_rule rule = kit_rule(arena, "adam", options);
    kit_model *m = kit_model_plain(arena, DIM, rule);
    tn_table *t FREED(tn_table_free) = kit_table(m, 1);
    tn_place_in_row place = tn_table_place(t, 0, 0);
    float data[3 * DIM + 1] = {0};
    data[place.w] = .5F;
    data[place.w + 1] = -.3F;
    uint32_t n_floats = place.n_states == 3 ? 3 * DIM + 1 : 3 * DIM;
    tn_row_view row = {.key = key, .present = 1, .data = data, .n_floats = n_floats};
    assert_int_equal(tn_table_restore(t, &row, NULL), TN_OK);

    kit_keys *k = kit_keys_new(arena, &m->layout, &key, NULL, 1);
    tn_push first = kit_push(0);
    tn_push third = kit_push(2);
    tn_table_push(t, NULL, &k->set, gradients[0], &first, 1);
    tn_table_push(t, NULL, &k->set, gradients[2], &third, 1);
    float w[DIM];
    kit_peek(t, &m->layout, key, w);
    assert_near((double)w[0], w0);
    assert_near((double)w[1], w1);
}

TEST(v19_lazy_adam_counts_by_row_by_step_or_not_at_all)
{
    check_lazy_adam("lr=.01 bias=row", .494941899, -.285305319);
    check_lazy_adam("lr=.01 bias=global", .494242435, -.285969792);
    check_lazy_adam("lr=.01 bias=none", .489378352, -.248426824);
}
