/* test_table_threads.c - the same bits for any number of threads, and many threads at once. */
#include "base/thread/team.h"
#include "base/thread/threads.h"
#include "onetable.h"
#include "support/test.h"

#include <stdatomic.h>

enum { KEYS = 6000, STEPS = 5 };

/* Bits of the rows after a few steps with norms and clips, in one array. */
typedef struct outcome {
    double norm[STEPS];
    float rows[KEYS * DIM];
} outcome;

static void train(uint32_t threads, const char *options, outcome *out)
{
    onetable f CLEANUP(onetable_end) = onetable_begin("adagrad", options, 3);
    tn_team *team FREED(tn_team_close) = NULL;
    assert_int_equal(tn_team_open(&team, threads, NULL), TN_OK);
    kit_keys *all = keys_of(&f, many_keys(&f, KEYS, 7), KEYS);
    float *rows = floats(&f, all);
    for (uint64_t s = 0; s < STEPS; s++) {
        kit_keys *k =
            keys_of(&f, many_keys(&f, KEYS - 1000 * (uint32_t)s, 7), KEYS - 1000 * (uint32_t)s);
        tn_push push = kit_push(s);
        assert_int_equal(tn_table_pull(f.t, team, &k->set, rows, NULL), TN_OK);
        for (uint32_t i = 0; i < k->n_floats; i++) {
            rows[i] = (float)(i % 91) - 45 * rows[i];
        }
        out->norm[s] = tn_table_norm2(f.t, team, &k->set, rows, &push);
        tn_table_push(f.t, team, &k->set, rows, &push, .25);
    }
    tn_table_peek(f.t, team, &all->set, NULL, out->rows, NULL);
}

TEST(one_two_and_four_threads_give_the_same_bits)
{
    const char *options[] = {"rowwise=true", "l2=.01", "rowwise=true l2=.01 l2_mode=dense"};
    outcome *one FREED(tn_free) = tn_alloc(1, sizeof *one, "an outcome");
    outcome *more FREED(tn_free) = tn_alloc(1, sizeof *more, "an outcome");
    for (size_t i = 0; i < 3; i++) {
        train(1, options[i], one);
        for (uint32_t threads = 2; threads <= 4; threads *= 2) {
            train(threads, options[i], more);
            assert_memory_equal(one, more, sizeof *one);
        }
    }
}

/* What the workers of one test share. Every row's weights are equal at all times: gradients and
 * first values are the same for all its coordinates, so a torn row shows. */
typedef struct shared {
    tn_table *t;
    kit_keys *k[4];
    _Atomic bool stop;
    _Atomic uint64_t pushes;
} shared;

enum { SHARED_KEYS = 2000, SHARED_ROUNDS = 60 };

static void check_untorn(const kit_keys *k, const float *rows)
{
    for (uint32_t i = 0; i < k->set.n; i++) {
        const float *row = rows + k->set.at[i];
        for (uint32_t j = 1; j < DIM; j++) {
            TN_ASSERT(row[j] == row[0]);
        }
    }
}

/* Pulls, looks and pushes, with a team of its own. */
static tn_status worker(void *arg, tn_error *err)
{
    shared *s = arg;
    tn_team *team FREED(tn_team_close) = NULL;
    TN_TRY(tn_team_open(&team, 2, err));
    float *rows FREED(tn_free) = tn_alloc((size_t)SHARED_KEYS * DIM, sizeof *rows, "rows");
    for (uint64_t round = 0; round < SHARED_ROUNDS; round++) {
        const kit_keys *k = s->k[round % 4];
        tn_push push = kit_push(round);
        TN_TRY(tn_table_pull(s->t, team, &k->set, rows, err));
        check_untorn(k, rows);
        for (uint32_t i = 0; i < k->n_floats; i++) {
            rows[i] = 1;
        }
        (void)tn_table_norm2(s->t, team, &k->set, rows, &push);
        tn_table_push(s->t, team, &k->set, rows, &push, 1);
        atomic_fetch_add(&s->pushes, k->set.n);
    }
    return TN_OK;
}

static tn_status evaluator(void *arg, tn_error *err)
{
    (void)err;
    shared *s = arg;
    float *rows FREED(tn_free) = tn_alloc((size_t)SHARED_KEYS * DIM, sizeof *rows, "rows");
    for (uint64_t round = 0; !atomic_load(&s->stop); round++) {
        tn_table_peek(s->t, NULL, &s->k[round % 4]->set, NULL, rows, NULL);
        check_untorn(s->k[round % 4], rows);
    }
    return TN_OK;
}

static tn_status check_row(void *arg, const tn_row_view *row, tn_error *err)
{
    (void)err;
    uint64_t *shows = arg;
    TN_ASSERT(row->data[0] == row->data[DIM - 1]);
    *shows += (uint64_t)row->show;
    return TN_OK;
}

static tn_status walker(void *arg, tn_error *err)
{
    shared *s = arg;
    uint64_t shows = 0;
    while (!atomic_load(&s->stop)) {
        for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
            TN_TRY(tn_table_walk(s->t, p, check_row, &shows, err));
        }
    }
    return TN_OK;
}

static void run_together(const char *options)
{
    onetable f CLEANUP(onetable_end) = onetable_begin("sgd", options, 1);
    f.m->rule[0].init = (tn_init){.kind = TN_INIT_CONSTANT, .a = .5};
    shared s = {.t = f.t};
    for (uint32_t i = 0; i < 4; i++) {
        uint64_t *key = many_keys(&f, SHARED_KEYS + 500 * i, 7);
        s.k[i] = keys_of(&f, key + (size_t)500 * i, SHARED_KEYS);
    }
    tn_thread_fn *const role[] = {worker, worker, evaluator, walker};
    tn_thread *thread[4];
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(tn_thread_start(&thread[i], "test", role[i], &s, NULL), TN_OK);
    }
    assert_int_equal(tn_thread_join(thread[0], NULL), TN_OK);
    assert_int_equal(tn_thread_join(thread[1], NULL), TN_OK);
    atomic_store(&s.stop, true);
    assert_int_equal(tn_thread_join(thread[2], NULL), TN_OK);
    assert_int_equal(tn_thread_join(thread[3], NULL), TN_OK);

    uint64_t shows = 0;
    for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
        assert_int_equal(tn_table_walk(f.t, p, check_row, &shows, NULL), TN_OK);
    }
    assert_int_equal(shows, atomic_load(&s.pushes));
    assert_int_equal(tn_table_rows(f.t), SHARED_KEYS + 3 * 500);
}

TEST(r8_no_reader_ever_sees_half_an_update)
{
    run_together("lr=.125");
}

TEST(r11_pull_push_peek_and_walk_may_run_at_once)
{
    run_together("lr=.125 l2=.001 l2_mode=dense");
}
