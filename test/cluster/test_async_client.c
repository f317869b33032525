/* test_async_client.c - ranks that do not wait for each other: every update is made once, and the
 * model is that of all gradients. */
#include "freeranks.h"

#include "support/test.h"

#include <unistd.h>

TMPDIR_GROUP(dir);

TEST(every_gradient_counts_once_at_any_staleness)
{
    const double staleness[] = {0, 1, 3, (double)INFINITY};
    for (uint32_t n = 1; n <= FREE_RANKS_MAX; n++) {
        for (uint32_t i = 0; i < sizeof staleness / sizeof *staleness; i++) {
            const uint32_t permits = tn_async_permits_of(staleness[i]);
            free_world *w = free_world_new(
                &(free_opts){.n = n, .staleness = staleness[i], .ahead = permits > 1 ? 2 : 1}, dir);
            free_world_run(w);
            free_world_check(w, 0.1, 1e-5);
            free_world_free(w);
        }
    }
}

TEST(requests_that_are_lost_come_again_and_count_once)
{
    free_world *w = free_world_new(
        &(free_opts){.n = 3, .staleness = (double)INFINITY, .ahead = 6, .lossy = true}, dir);
    free_world_run(w);
    free_world_check(w, 0.1, 1e-5);
    tn_link_counts counts;
    tn_link_counts_of(w->seat[0].link, &counts);
    assert_true(counts.repeated > 0);
    free_world_free(w);
}

/* ---- what comes out ---- */

/* The same by plain calls, a batch after the other. */
static void run_single(const free_world *w, tn_shard *shard, const float *weights)
{
    for (uint64_t step = 0; step < w->opts.steps; step++) {
        uint64_t key[FREE_KEYS];
        const uint32_t n = free_batch(0, step, key);
        if (n == 0) {
            continue;
        }
        const kit_keys *keys = kit_keys_new(w->arena, &w->m->layout, key, NULL, n);
        float *rows = TN_NEW_ARRAY(w->arena, float, keys->n_floats);
        float dense[FREE_DENSE];
        assert_int_equal(tn_shard_pull(shard, NULL, &keys->set, rows, NULL), TN_OK);
        for (uint32_t i = 0; i < keys->n_floats; i++) {
            rows[i] -= free_gradient(keys->set.key[i / FREE_DIM], 99, 99, i % FREE_DIM);
        }
        for (uint32_t d = 0; d < FREE_DENSE; d++) {
            dense[d] = weights[d] - free_gradient(0, 99, 99, d);
        }
        const tn_push push = {.step = step, .weight_sum = n, .lr_factor = 1, .day = 9};
        const tn_gradients grads = {&keys->set, rows, dense, false};
        double norm;
        assert_int_equal(tn_shard_push(shard, NULL, &grads, &push, &norm, NULL), TN_OK);
    }
}

TEST(one_rank_is_a_single_process_at_any_staleness)
{
    const double staleness[] = {0, 5, (double)INFINITY};
    for (uint32_t i = 0; i < 3; i++) {
        free_world *w = free_world_new(&(free_opts){.n = 1,
                                                    .staleness = staleness[i],
                                                    .ahead = i > 0 ? 4 : 1,
                                                    .clip = .9,
                                                    .rule = "lr=.1 l2=.01",
                                                    .curved = true},
                                       dir);
        free_world_run(w);
        float weights[FREE_DENSE] = {0};
        tn_shard single = {.table = kit_table(w->m, 5), .rules = &w->m->rules};
        const tn_dense_opts dense = {.rule = &w->m->rules.dense,
                                     .weights = weights,
                                     .size = FREE_DENSE,
                                     .runs = w->trained,
                                     .n_runs = 1};
        assert_int_equal(tn_dense_new(&single.dense, &dense, NULL), TN_OK);
        run_single(w, &single, weights);
        assert_memory_equal(weights, w->seat[0].weights, sizeof weights);
        assert_int_equal(w->seat[0].staleness_max, 0);
        for (uint64_t k = 0; k < FREE_KEYS; k++) {
            kit_row a;
            kit_row b;
            const bool there = kit_row_of(single.table, free_key(k), &a);
            assert_int_equal(kit_row_of(w->seat[0].shard.table, free_key(k), &b), there);
            if (there) {
                assert_memory_equal(a.data, b.data, a.view.n_floats * sizeof(float));
            }
        }
        tn_dense_free(single.dense);
        tn_table_free(single.table);
        free_world_free(w);
    }
}

/* The largest distance of a weight from where the gradients pull it. */
static double distance(const free_world *w)
{
    double far = 0;
    for (uint32_t d = 0; d < FREE_DENSE; d++) {
        far = fmax(far, fabs((double)(w->seat[0].weights[d] - free_gradient(0, 99, 99, d))));
    }
    for (uint64_t k = 0; k < FREE_KEYS; k++) {
        for (uint32_t r = 0; r < w->opts.n; r++) {
            kit_row row;
            const bool there = kit_row_of(w->seat[r].shard.table, free_key(k), &row);
            for (uint32_t d = 0; there && d < FREE_DIM; d++) {
                far =
                    fmax(far, fabs((double)(row.data[d] - free_gradient(free_key(k), 99, 99, d))));
            }
        }
    }
    return far;
}

/* Late gradients of a convex loss lead to the same place. */
TEST(any_staleness_finds_the_minimum)
{
    const double staleness[] = {0, 1, (double)INFINITY, (double)INFINITY};
    for (uint32_t i = 0; i < 4; i++) {
        free_world *w = free_world_new(&(free_opts){.n = 3,
                                                    .staleness = staleness[i],
                                                    .ahead = i > 1 ? 4 : i + 1,
                                                    .steps = 150,
                                                    .rule = i == 3 ? "lr=.1 dc=.04" : NULL,
                                                    .curved = true},
                                       dir);
        free_world_run(w);
        assert_true(distance(w) < .01);
        free_world_free(w);
    }
}

TEST(floats_in_16_bits_lose_little)
{
    for (tn_values kind = TN_VALUES_F16; kind < TN_VALUES_KINDS; kind++) {
        free_world *w =
            free_world_new(&(free_opts){.n = 3, .staleness = 2, .ahead = 2, .kind = kind}, dir);
        free_world_run(w);
        free_world_check(w, 0.1, kind == TN_VALUES_F16 ? 2e-3 : 2e-2);
        free_world_free(w);
    }
}

/* One push is clipped by its whole norm, wherever its parts go. */
TEST(the_global_clip_is_that_of_one_push)
{
    const uint64_t step = 1;
    uint64_t key[FREE_KEYS];
    const uint32_t n = free_batch(0, step, key);
    double norm2 = 0;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t d = 0; d < FREE_DIM; d++) {
            norm2 += pow((double)free_gradient(key[i], 0, step, d), 2);
        }
    }
    for (uint32_t d = 0; d < FREE_DENSE; d++) {
        norm2 += pow((double)free_gradient(0, 0, step, d), 2);
    }
    for (uint32_t ranks = 2; ranks <= FREE_RANKS_MAX; ranks++) {
        free_world *w = free_world_new(
            &(free_opts){.n = ranks, .staleness = 1, .clip = .25, .only = {true, 0, step}}, dir);
        free_world_run(w);
        const double clip = .25 / sqrt(norm2);
        assert_true(clip < .5);
        for (uint32_t d = 0; d < FREE_DENSE; d++) {
            const double want = -.1 * clip * (double)free_gradient(0, 0, step, d);
            assert_true(fabs((double)w->seat[ranks - 1].weights[d] - want) < 1e-6);
        }
        assert_true(fabs(free_world_again(w, 0, step) - sqrt(norm2)) < 1e-5);
        free_world_free(w);
    }
}

/* Running statistics: the newest value wins, everywhere the same. */
TEST(what_no_optimizer_trains_is_taken_as_it_is)
{
    const tn_dense_run moving = {10, 14};
    free_world *w =
        free_world_new(&(free_opts){.n = 3, .staleness = 1, .ahead = 2, .moving = moving}, dir);
    free_world_run(w);
    free_world_check(w, 0.1, 1e-5);
    for (size_t d = moving.begin; d < moving.end; d++) {
        const float got = w->seat[0].weights[d];
        bool is_one = false;
        for (uint32_t r = 0; r < 3; r++) {
            assert_true(w->seat[r].weights[d] == got);
            for (uint64_t step = 0; step < FREE_STEPS; step++) {
                is_one = is_one || got == free_gradient(0, r, step, (uint32_t)d);
            }
        }
        assert_true(is_one);
    }
    free_world_free(w);
}

/* ---- what goes wrong ---- */

typedef struct alone {
    free_world *w;
    void *g; /* the client */
    kit_keys *keys;
    float rows[FREE_KEYS * FREE_DIM], grads[FREE_KEYS * FREE_DIM], dense[FREE_DENSE];
} alone;

/* Rank 0 of two, by hand. */
static void alone_begin(alone *x, const free_opts *opts)
{
    uint64_t key[FREE_KEYS];
    const uint32_t n = free_batch(0, 0, key);
    *x = (alone){.w = free_world_new(opts, dir)};
    x->g = x->w->seat[0].async;
    x->keys = kit_keys_new(x->w->arena, &x->w->m->layout, key, NULL, n);
    x->keys->set.owners = &x->w->shares->owners;
}

static tn_status alone_pull(alone *x, tn_error *err)
{
    const tn_client_batch batch = {
        .keys = &x->keys->set, .rows = x->rows, .examples = 5, .weight_sum = 5};
    return tn_client_async.pull(x->g, &batch, err);
}

static tn_status alone_rows(alone *x, tn_error *err)
{
    tn_joint_batch joint;
    return tn_client_async.rows(x->g, NULL, &joint, err);
}

static tn_status alone_push(alone *x, tn_error *err)
{
    const tn_push push = {.lr_factor = 1, .day = 9};
    const tn_client_gradients own = {.rows = x->grads, .dense = x->dense};
    tn_client_update update;
    return tn_client_async.push(x->g, NULL, &own, &push, &update, err);
}

/* Once it waits for rank 1. */
static void *fail_it(void *arg)
{
    tn_reply_queue *q = arg;
    while (atomic_load(&q->late) != 2) {
        (void)usleep(1000);
    }
    tn_reply_queue_end(q, TN_E_DATA, "rank 1: no such file");
    tn_reply_queue_end(q, TN_E_PEER, "a later one");
    return NULL;
}

TEST(a_failure_from_elsewhere_ends_any_wait)
{
    for (uint32_t i = 0; i < 3; i++) {
        alone x;
        tn_error err = {0};
        pthread_t thread;
        alone_begin(&x, &(free_opts){.n = 2});
        if (i == 0) { /* before it can answer the pull */
            tn_client_async.stop(x.w->seat[1].async);
        }
        assert_int_equal(alone_pull(&x, &err), TN_OK);
        if (i > 0) {
            assert_int_equal(alone_rows(&x, &err), TN_OK);
            tn_client_async.stop(x.w->seat[1].async);
        }
        assert_int_equal(i > 0 ? alone_push(&x, &err) : TN_OK, TN_OK);
        assert_int_equal(pthread_create(&thread, NULL, fail_it, &x.w->seat[0].replies), 0);
        /* Where it has pushed the only permit is not back. */
        assert_int_equal(i == 0   ? alone_rows(&x, &err)
                         : i == 1 ? alone_pull(&x, &err)
                                  : tn_client_async.rest(x.g, NULL, &err),
                         TN_E_DATA);
        assert_string_equal(err.text, "rank 1: no such file");
        assert_int_equal(pthread_join(thread, NULL), 0);
        free_world_free(x.w);
    }
}

/* The owner's own worker hears of it. */
TEST(a_shard_that_fails_ends_its_worker)
{
    alone x;
    tn_error err = {0};
    alone_begin(&x, &(free_opts){.n = 2, .rule = "lr=.1 l2=1"});
    const free_seat *other = &x.w->seat[1];
    const float nan = NAN; /* makes the gradient one, by l2 */
    tn_dense_set(other->shard.dense, 0, 1, &nan);
    assert_int_equal(alone_pull(&x, &err), TN_OK);
    assert_int_equal(alone_rows(&x, &err), TN_OK);
    assert_int_equal(alone_push(&x, &err), TN_OK);
    tn_status status = TN_OK;
    while (status == TN_OK) { /* each takes two round trips */
        status = tn_client_async.refresh(other->async, &err);
    }
    assert_int_equal(status, TN_E_DIVERGED);
    free_world_free(x.w);
}

TEST(a_gradient_that_is_not_finite_goes_nowhere)
{
    for (uint32_t clipped = 0; clipped < 2; clipped++) {
        alone x;
        tn_error err = {0};
        alone_begin(&x, &(free_opts){.n = 2, .clip = clipped ? 1 : 0});
        assert_int_equal(alone_pull(&x, &err), TN_OK);
        assert_int_equal(alone_rows(&x, &err), TN_OK);
        x.dense[FREE_DENSE - 1] = NAN;
        assert_int_equal(alone_push(&x, &err), TN_E_DIVERGED);
        assert_non_null(strstr(err.text, "is not finite"));
        assert_int_equal(tn_client_async.updates(x.w->seat[1].async), 0);
        assert_int_equal(tn_client_async.updates(x.g), 0);
        free_world_free(x.w);
    }
}

/* ---- answers that nobody asked for ---- */

static int no_message(zmq_msg_t *message)
{
    (void)message;
    return 0;
}

static void hand_in(alone *x, const tn_frame *frame)
{
    tn_in_message *incoming = tn_alloc(1, sizeof *incoming, "a letter");
    *incoming = (tn_in_message){.frame = *frame, .from = 1, .close = no_message};
    tn_client_async.take_answer(x->g, incoming);
}

TEST(answers_that_do_not_fit_are_told)
{
    static const char zeros[256] = {0};
    static const struct {
        tn_frame frame;
        tn_status status;
        const char *text;
    } reject[] = {
        {{.type = TN_FRAME_ROWS, .step = 77}, TN_E_PEER, "rank 1 sent rows that nobody can use"},
        {{.type = TN_FRAME_DENSE, .step = 77}, TN_E_PEER, "rank 1 sent weights that nobody"},
        {{.type = TN_FRAME_DENSE, .count = {0, 0, 3}}, TN_E_PEER, "rank 1 sent weights that"},
        {{.type = TN_FRAME_REFUSED, .step = 4, .code = TN_REFUSAL_FULL},
         TN_E_PEER,
         "rank 1 refused a request of step 5: too many requests are waiting"},
        {{.type = TN_FRAME_REFUSED, .code = TN_REFUSAL_DIVERGED}, TN_E_DIVERGED, "not finite"},
    };
    for (uint32_t i = 0; i < sizeof reject / sizeof *reject; i++) {
        alone x;
        tn_error err = {0};
        tn_frame frame = reject[i].frame;
        frame.sequence = 1;
        frame.payload = zeros;
        alone_begin(&x, &(free_opts){.n = 2});
        hand_in(&x, &frame);
        hand_in(&x, &(tn_frame){.type = TN_FRAME_NOTED}); /* of no interest */
        assert_int_equal(alone_pull(&x, &err), reject[i].status);
        assert_non_null(strstr(err.text, reject[i].text));
        hand_in(&x, &frame); /* closed with the rest */
        free_world_free(x.w);
    }
}

/* It has no id. */
TEST(a_late_answer_to_an_evaluation_does_no_harm)
{
    alone x;
    alone_begin(&x, &(free_opts){.n = 2});
    hand_in(&x, &(tn_frame){.type = TN_FRAME_ROWS, .step = 77});
    assert_int_equal(alone_pull(&x, NULL), TN_OK);
    assert_int_equal(alone_rows(&x, NULL), TN_OK);
    assert_int_equal(alone_push(&x, NULL), TN_OK);
    free_world_free(x.w);
}
