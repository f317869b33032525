/* test_table_model.c - the table against a plain list under random operations, its growth from one
 * row to many, and every allocation that can fail. */
#include "drive.h"
#include "naive.h"
#include "support/test.h"

enum { POOL = 3000, BATCH = 200, ROUNDS = 150 };

typedef struct world {
    tn_arena *arena;
    kit_model *m;
    tn_table *t;
    naive *n;
    uint64_t stream;
    uint64_t drawn;
} world;

static uint64_t draw(world *x, uint64_t n)
{
    return tn_below(tn_draw(x->stream, x->drawn++), n);
}

static world begin(const char *options, double l2, bool dense, uint64_t seed)
{
    world x = {.arena = tn_arena_new(1 << 20)};
    x.m = kit_model_plain(x.arena, NAIVE_DIM, kit_rule(x.arena, "momentum", options));
    x.t = kit_table(x.m, 1);
    x.n = TN_NEW(x.arena, naive);
    *x.n = (naive){.lr = .1, .mu = .9, .l2 = l2, .dense = dense};
    x.stream = tn_stream2(seed, TN_RNG_GENERATE, 0);
    return x;
}

static void end(world *x)
{
    tn_table_free(x->t);
    tn_arena_free(x->arena);
}

/* Up to BATCH different keys of a pool whose hashes crowd one partition and spread over the rest.
 */
static kit_keys *some_keys(world *x, tn_arena *arena, uint64_t *key)
{
    uint32_t n = 0;
    uint32_t want = (uint32_t)draw(x, BATCH);
    bool taken[POOL] = {false};
    while (n < want) {
        uint64_t number = draw(x, POOL);
        if (!taken[number]) {
            taken[number] = true;
            key[n++] = number % 3 == 0 ? number : tn_mix(number);
        }
    }
    return kit_keys_new(arena, &x->m->layout, key, NULL, n);
}

static void check_row(world *x, uint64_t key, const float *w)
{
    naive_row *row = naive_find(x->n, key);
    for (uint32_t j = 0; j < NAIVE_DIM; j++) {
        assert_near((double)w[j], row != NULL ? row->w[j] : 0);
    }
}

static void pull(world *x, const kit_keys *k, float *rows)
{
    assert_int_equal(tn_table_pull(x->t, NULL, &k->set, rows, NULL), TN_OK);
    for (uint32_t i = 0; i < k->set.n; i++) {
        if (naive_find(x->n, k->set.key[i]) == NULL) {
            (void)naive_add(x->n, k->set.key[i]);
        }
        check_row(x, k->set.key[i], rows + k->set.at[i]);
    }
}

static void peek(world *x, const kit_keys *k, float *rows)
{
    tn_table_peek(x->t, NULL, &k->set, NULL, rows, NULL);
    for (uint32_t i = 0; i < k->set.n; i++) {
        check_row(x, k->set.key[i], rows + k->set.at[i]);
    }
}

static void push(world *x, kit_keys *k, const float *grads, uint64_t step)
{
    tn_push p = kit_push(step);
    double clip = draw(x, 2) == 0 ? 1 : .5;
    double sum = 0;
    x->n->stamp++;
    for (uint32_t i = 0; i < k->set.n; i++) {
        sum += naive_norm2(x->n, k->set.key[i], grads + k->set.at[i]);
        k->show[i] = 1 + (uint32_t)draw(x, 5);
        k->click[i] = (uint32_t)draw(x, k->show[i] + 1);
    }
    sum += naive_rest_norm2(x->n);
    assert_near(tn_table_norm2(x->t, NULL, &k->set, grads, &p), sum);
    tn_table_push(x->t, NULL, &k->set, grads, &p, clip);
    for (uint32_t i = 0; i < k->set.n; i++) {
        if (!naive_push(x->n, k->set.key[i], grads + k->set.at[i], clip)) {
            continue;
        }
        naive_row *row = naive_find(x->n, k->set.key[i]);
        row->show += k->show[i];
        row->click += k->click[i];
        row->last_seen = p.day;
    }
    naive_sweep(x->n, clip);
}

static void check_all(world *x)
{
    assert_int_equal(tn_table_rows(x->t), x->n->n);
    for (uint32_t i = 0; i < x->n->n; i++) {
        const naive_row *row = &x->n->row[i];
        kit_row got;
        assert_true(kit_row_of(x->t, row->key, &got));
        assert_true(got.view.show == row->show && got.view.click == row->click);
        assert_int_equal(got.view.last_seen, row->last_seen);
        for (uint32_t j = 0; j < NAIVE_DIM; j++) {
            assert_near((double)got.data[j], row->w[j]);
            assert_near((double)got.data[NAIVE_DIM + j], row->m[j]);
        }
    }
}

static void play(const char *options, double l2, bool dense, uint64_t seed)
{
    print_message("seed %llu, %s\n", (unsigned long long)seed, options);
    world x CLEANUP(end) = begin(options, l2, dense, seed);
    uint64_t key[BATCH];
    for (uint64_t step = 0; step < ROUNDS; step++) {
        tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
        kit_keys *k = some_keys(&x, arena, key);
        float *rows = TN_NEW_ARRAY(arena, float, k->n_floats + 1);
        switch (draw(&x, 4)) {
        case 0:
            peek(&x, k, rows);
            break;
        case 1:
            pull(&x, k, rows);
            break;
        default:
            for (uint32_t i = 0; i < k->n_floats; i++) {
                rows[i] = (float)draw(&x, 2001) / 1000 - 1;
            }
            push(&x, k, rows, step);
            break;
        }
    }
    check_all(&x);
}

TEST(random_operations_leave_what_a_plain_list_holds)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        play("lr=.1 mu=.9", 0, false, seed);
        play("lr=.1 mu=.9 l2=.1", .1, false, seed);
        play("lr=.1 mu=.9 l2=.1 l2_mode=dense", .1, true, seed);
    }
}

/* A13: without l2_mode: dense nothing beyond the batch is read or changed. */
TEST(a13_touched_l2_leaves_rows_outside_the_batch_alone)
{
    world x CLEANUP(end) = begin("lr=.1 mu=.9 l2=.1", .1, false, 1);
    const uint64_t key[] = {tn_mix(1), tn_mix(2)};
    const float w[2 * NAIVE_DIM] = {1, 2, 3};
    tn_row_view other = {.key = key[1], .present = 1, .data = w, .n_floats = 2 * NAIVE_DIM};
    assert_int_equal(tn_table_restore(x.t, &other, NULL), TN_OK);
    kit_keys *k = kit_keys_new(x.arena, &x.m->layout, key, NULL, 1);
    float rows[NAIVE_DIM];
    pull(&x, k, rows);
    tn_push p = kit_push(0);
    tn_table_push(x.t, NULL, &k->set, rows, &p, 1);
    kit_row row;
    assert_true(kit_row_of(x.t, key[1], &row));
    assert_memory_equal(row.data, w, sizeof w);
}

/* Rows from one to 300,000 in one partition: the first chunk, the first block, hundreds of splits.
 */
TEST(a_partition_grows_from_one_row_to_many)
{
    enum { ROWS = 300000, AT_ONCE = 5000 };
    world x CLEANUP(end) = begin(NULL, 0, false, 1);
    uint64_t bytes = 0;
    for (uint32_t from = 0; from < ROWS; from += AT_ONCE) {
        tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 20);
        uint64_t *key = TN_NEW_ARRAY(arena, uint64_t, AT_ONCE);
        for (uint32_t i = 0; i < AT_ONCE; i++) {
            key[i] = UINT64_C(5) << 54 | tn_mix(from + i) >> 10;
        }
        kit_keys *k = kit_keys_new(arena, &x.m->layout, key, NULL, AT_ONCE);
        float *rows = TN_NEW_ARRAY(arena, float, k->n_floats);
        assert_int_equal(tn_table_pull(x.t, NULL, &k->set, rows, NULL), TN_OK);
        for (uint32_t i = 0; i < k->n_floats; i++) {
            rows[i] = (float)(from + k->set.key[i / NAIVE_DIM] % 1000);
        }
        tn_push p = kit_push(from);
        tn_table_push(x.t, NULL, &k->set, rows, &p, 1);
        assert_true(tn_table_bytes(x.t) >= bytes);
        bytes = tn_table_bytes(x.t);
    }
    assert_int_equal(tn_table_rows(x.t), ROWS);
    for (uint32_t i = 0; i < ROWS; i += 997) {
        uint64_t key = UINT64_C(5) << 54 | tn_mix(i) >> 10;
        float w[NAIVE_DIM];
        kit_peek(x.t, &x.m->layout, key, w);
        uint64_t g = i - i % AT_ONCE + key % 1000;
        assert_near((double)w[0], -.01 * (double)g);
    }
    assert_true((double)bytes / ROWS < 28 + 24 + 12);
}

TEST(every_failing_allocation_is_told_and_leaves_a_table_that_works)
{
    enum { KEYS = 3000 };
    uint64_t nth = 1;
    for (bool failed = true; failed; nth++) {
        world x CLEANUP(end) = {.arena = tn_arena_new(1 << 20)};
        x.m = kit_model_plain(x.arena, NAIVE_DIM,
                              kit_rule(x.arena, "momentum", "l2=.1 l2_mode=dense"));
        uint64_t key[KEYS];
        for (uint32_t i = 0; i < KEYS; i++) {
            key[i] = UINT64_C(9) << 54 | tn_mix(i) >> 10;
        }
        kit_keys *k = kit_keys_new(x.arena, &x.m->layout, key, NULL, KEYS);
        float *rows = TN_NEW_ARRAY(x.arena, float, k->n_floats);
        tn_error err = {0};
        tn_table_opts opts = {.rules = &x.m->rules, .seed = 1};
        tn_alloc_fail_at(nth);
        tn_status status = tn_table_new(&x.t, &opts, &err);
        if (status == TN_OK) {
            status = tn_table_pull(x.t, NULL, &k->set, rows, &err);
        }
        tn_alloc_fail_at(0);
        failed = status != TN_OK;
        if (failed) {
            assert_int_equal(status, TN_E_MEMORY);
            assert_int_equal(err.code, TN_E_MEMORY);
            assert_non_null(strstr(err.text, "out of memory"));
        }
        if (x.t != NULL) {
            assert_int_equal(tn_table_pull(x.t, NULL, &k->set, rows, NULL), TN_OK);
            assert_int_equal(tn_table_rows(x.t), KEYS);
            tn_push p = kit_push(0);
            tn_table_push(x.t, NULL, &k->set, rows, &p, 1);
        }
    }
    assert_true(nth > 10);
}

/* Batch by batch, through all sizes of chunks and blocks that so many rows come to. */
TEST(what_rows_will_take_is_known_before)
{
    enum { MANY = 1500, BATCHES = 700 };
    world x CLEANUP(end) = {.arena = tn_arena_new(1 << 20)};
    x.m = kit_model_plain(x.arena, NAIVE_DIM, kit_rule(x.arena, "sgd", NULL));
    const tn_table_opts opts = {.rules = &x.m->rules, .seed = 1};
    const tn_range all = {0, TN_PARTITIONS};
    assert_int_equal(tn_table_new(&x.t, &opts, NULL), TN_OK);
    uint64_t told = 0;
    for (uint32_t b = 0; b < BATCHES; b++) {
        uint64_t key[MANY];
        for (uint32_t i = 0; i < MANY; i++) {
            key[i] = tn_mix(b * MANY + i);
        }
        tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 20);
        kit_keys *k = kit_keys_new(arena, &x.m->layout, key, NULL, MANY);
        float *rows = TN_NEW_ARRAY(arena, float, k->n_floats);
        const uint64_t before = tn_table_bytes(x.t);
        const uint64_t most = tn_table_growth(x.t, all, MANY);
        assert_true(most <= tn_table_growth_most(x.t, all, MANY));
        assert_int_equal(tn_table_pull(x.t, NULL, &k->set, rows, NULL), TN_OK);
        fail_if(tn_table_bytes(x.t) - before > most, "batch %u took %llu bytes, %llu were foreseen",
                b, (unsigned long long)(tn_table_bytes(x.t) - before), (unsigned long long)most);
        told += most;
    }
    assert_true(told < 60 * tn_table_bytes(x.t)); /* not by far too much */
    tn_group_rows groups[4] = {{0}};
    tn_table_count_groups(x.t, groups);
    assert_int_equal(groups[0].rows, tn_table_rows(x.t));
}

TEST(rows_beyond_the_limit_are_not_put_back)
{
    enum { KEYS = 3000 };
    world x CLEANUP(end) = {.arena = tn_arena_new(1 << 20)};
    x.m = kit_model_plain(x.arena, NAIVE_DIM, kit_rule(x.arena, "sgd", NULL));
    const tn_table_opts opts = {.rules = &x.m->rules, .seed = 1};
    float data[64] = {0};
    tn_error err = {0};
    assert_int_equal(tn_table_new(&x.t, &opts, NULL), TN_OK);
    tn_table_set_limit(x.t, 100000);
    assert_int_equal(tn_table_limit(x.t), 100000);
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < KEYS && status == TN_OK; i++) {
        const tn_row_view row = {
            .key = tn_mix(i), .present = 1, .data = data, .n_floats = NAIVE_DIM};
        status = tn_table_restore(x.t, &row, &err);
    }
    assert_int_equal(status, TN_E_MEMORY);
    assert_non_null(strstr(err.text, "more than 0.1 MB"));
    assert_in_range(tn_table_bytes(x.t), 100000, 110000);
    assert_in_range(tn_table_next_extent(x.t), 1, 1 << 20);
}
