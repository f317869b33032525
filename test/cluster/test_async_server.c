/* test_async_server.c - an owner that serves requests as they come: what is answered when, and each
 * push made once, whatever is lost, repeated or overtaken. */
#include "freeone.h"
#include "ps/shard/dense.h"
#include "support/test.h"

#include "base/core/bytes.h"
#include "base/core/clock.h"
#include "cluster/recovery.h"

CLOSER(free_one_free);

static void assert_all(const free_answer *a, tn_frame_type type, uint32_t n, float value)
{
    assert_non_null(a);
    assert_int_equal(a->type, type);
    assert_int_equal(a->n, n);
    for (uint32_t i = 0; i < n; i++) {
        assert_float_equal(a->value[i], value, 1e-6);
    }
}

TEST(permits_are_one_more_than_steps)
{
    assert_int_equal(tn_async_permits_of(0), 1);
    assert_int_equal(tn_async_permits_of(1), 2);
    assert_int_equal(tn_async_permits_of(2.5), 3);
    assert_int_equal(tn_async_permits_of(TN_PERMITS_MAX - 1), TN_PERMITS_MAX);
    assert_int_equal(tn_async_permits_of(1e6), TN_PERMITS_MAX);
    assert_int_equal(tn_async_permits_of((double)INFINITY), TN_PERMITS_MAX);
}

/* Nobody waits for anybody, and the answer tells how many others came between. */
TEST(a_push_is_an_update_of_its_own_and_knows_its_staleness)
{
    free_one *x FREED(free_one_free) = free_one_new(2, NULL);
    const free_pull slow = {.rank = 2, .sequence = 1, .to = 10, .show = 3, .examples = 5};
    free_one_pull(x, &slow);
    free_one_wait(x, 1);
    assert_all(free_one_answer(x, 2, 1), TN_FRAME_ROWS, 20, 0);
    for (uint64_t i = 0; i < 3; i++) {
        const free_pull p = {.rank = 1, .sequence = 1 + 2 * i, .to = 10, .show = 1, .examples = 5};
        free_one_pull(x, &p);
        free_one_wait(x, 2 + 2 * (uint32_t)i);
        assert_all(free_one_answer(x, 1, p.sequence), TN_FRAME_ROWS, 20, -.5F * (float)i);
        free_one_push(x, &(free_push){.of = &p, .sequence = 2 + 2 * i, .value = 1});
        free_one_wait(x, 3 + 2 * (uint32_t)i);
        const free_answer *a = free_one_answer(x, 1, 2 + 2 * i);
        assert_all(a, TN_FRAME_DENSE, x->dense, -.5F * (float)(i + 1));
        assert_int_equal(a->params.staleness, 0);
        assert_float_equal((float)a->params.grad_norm, sqrtf(20 + (float)x->dense), 1e-4);
    }
    free_one_push(x, &(free_push){.of = &slow, .sequence = 2, .value = 2});
    free_one_wait(x, 8);
    const free_answer *late = free_one_answer(x, 2, 2);
    assert_all(late, TN_FRAME_DENSE, x->dense, -2.5F);
    assert_int_equal(late->params.staleness, 3);
    assert_int_equal(tn_async_server_updates(x->serve), 104);
    kit_row row;
    assert_true(kit_row_of(x->shard.table, x->key[3], &row));
    assert_true(row.view.show == 6 && row.view.last_seen == 9);
}

TEST(a_batch_without_examples_asks_for_weights_and_is_no_update)
{
    free_one *x FREED(free_one_free) = free_one_new(2, NULL);
    const free_pull none = {.rank = 1, .sequence = 1};
    x->weights[0] = 7;
    free_one_pull(x, &none);
    free_one_wait(x, 1);
    assert_all(free_one_answer(x, 1, 1), TN_FRAME_ROWS, 0, 0);
    free_one_push(x, &(free_push){.of = &none, .sequence = 2});
    free_one_wait(x, 2);
    const free_answer *a = free_one_answer(x, 1, 2);
    assert_int_equal(a->n, x->dense);
    assert_true(a->value[0] == 7);
    assert_int_equal(tn_async_server_updates(x->serve), 100);
    assert_int_equal(tn_dense_t(x->shard.dense), 0);
}

TEST(the_own_rank_is_served_by_calls)
{
    free_one *x FREED(free_one_free) = free_one_new(2, NULL);
    kit_keys *keys = kit_keys_new(x->arena, &x->m->layout, x->key, NULL, 10);
    float rows[20];
    float ones[FREE_ONE_FLAT];
    for (uint32_t i = 0; i < FREE_ONE_FLAT; i++) {
        ones[i] = 1;
    }
    keys->set.owners = &x->shares->owners;
    const tn_push push = {.weight_sum = 1, .lr_factor = 1};
    for (uint32_t place = 0; place < 2; place++) {
        assert_int_equal(tn_async_server_pull(x->serve, NULL, place, &keys->set, rows, NULL),
                         TN_OK);
        assert_true(rows[0] == 0);
    }
    for (uint32_t place = 0; place < 2; place++) {
        const tn_slices_gradients own = {.rows = ones, .dense = ones, .push = &push};
        tn_dense_params what;
        assert_int_equal(tn_async_server_push(x->serve, NULL, place, &own, &what, NULL), TN_OK);
        assert_int_equal(what.staleness, place);
        assert_float_equal((float)what.grad_norm, sqrtf(20 + (float)x->dense), 1e-4);
    }
    assert_int_equal(tn_async_server_pull(x->serve, NULL, 0, &keys->set, rows, NULL), TN_OK);
    assert_true(rows[0] == -1 && x->weights[0] == -1);
}

/* The norm that came with the push, not that of the owner's part. */
TEST(the_global_clip_is_by_the_norm_of_the_whole_push)
{
    free_one *x FREED(free_one_free) = free_one_new(2, NULL);
    x->m->rules.clip_global = 2;
    const free_pull p = {.rank = 1, .sequence = 1, .to = 10, .show = 1, .examples = 5};
    free_one_pull(x, &p);
    free_one_wait(x, 1);
    free_one_push(x, &(free_push){.of = &p, .sequence = 2, .value = 1, .norm = 8});
    free_one_wait(x, 2);
    const free_answer *a = free_one_answer(x, 1, 2);
    assert_all(a, TN_FRAME_DENSE, x->dense, -.5F / 4);
    assert_true(a->params.grad_norm > 7.99 && a->params.grad_norm < 8.01);
}

TEST(a_repeated_pull_gets_the_rows_of_today)
{
    free_one *x FREED(free_one_free) = free_one_new(2, NULL);
    const free_pull p = {.rank = 1, .sequence = 1, .to = 4, .show = 1, .examples = 5};
    const free_pull other = {.rank = 2, .sequence = 1, .to = 4, .show = 1, .examples = 5};
    free_one_pull(x, &p);
    free_one_pull(x, &other);
    free_one_wait(x, 2);
    free_one_push(x, &(free_push){.of = &other, .sequence = 2, .value = 1});
    free_one_wait(x, 3);
    free_one_pull(x, &p);
    free_one_wait(x, 4);
    assert_all(free_one_answer(x, 1, 1), TN_FRAME_ROWS, 8, -.5F);
    free_one_push(x, &(free_push){.of = &p, .sequence = 2, .value = 1});
    free_one_wait(x, 5);
    assert_int_equal(free_one_answer(x, 1, 2)->params.staleness, 1); /* since the first */
    kit_row row;
    assert_true(kit_row_of(x->shard.table, x->key[0], &row));
    assert_true(row.view.show == 2);
}

TEST(a_repeated_push_is_acknowledged_and_not_made_again)
{
    free_one *x FREED(free_one_free) = free_one_new(1, NULL);
    const free_pull p = {.rank = 1, .sequence = 1, .to = 4, .show = 1, .examples = 5};
    const free_push push = {.of = &p, .sequence = 2, .value = 1};
    free_one_pull(x, &p);
    free_one_wait(x, 1);
    free_one_push(x, &push);
    free_one_wait(x, 2);
    const double norm = free_one_answer(x, 1, 2)->params.grad_norm;
    free_one_push(x, &push);
    free_one_wait(x, 3);
    const free_answer *a = free_one_answer(x, 1, 2);
    assert_all(a, TN_FRAME_DENSE, x->dense, -.5F);
    assert_true(a->params.grad_norm == norm && norm > 1);
    /* Even when nobody knows any more what became of it. */
    const free_pull next = {.rank = 1, .sequence = 3, .to = 4, .show = 1, .examples = 5};
    free_one_pull(x, &next);
    free_one_wait(x, 4);
    free_one_push(x, &(free_push){.of = &next, .sequence = 4, .value = 1});
    free_one_wait(x, 5);
    free_one_push(x, &push);
    free_one_wait(x, 6);
    assert_all(free_one_answer(x, 1, 2), TN_FRAME_DENSE, x->dense, -1);
    free_one_pull(x, &p); /* whose push has come: nobody waits for rows */
    free_one_pull(x, &(free_pull){.rank = 2, .sequence = 1, .to = 1, .show = 1, .examples = 1});
    free_one_wait(x, 7);
    assert_int_equal(x->answer[6].rank, 2);
    assert_int_equal(tn_async_server_updates(x->serve), 102);
}

TEST(a_shard_that_fails_tells_once_and_stops)
{
    free_one *x FREED(free_one_free) = free_one_new(2, "lr=.5 l2=1");
    const free_pull p = {.rank = 1, .sequence = 1, .to = 4, .show = 1, .examples = 5};
    free_one_pull(x, &p);
    free_one_wait(x, 1);
    x->weights[0] = NAN; /* makes the gradient one, by l2 */
    tn_error err = {0};
    uint64_t heard = tn_reply_queue_read(&x->replies, NULL, NULL);
    free_one_push(x, &(free_push){.of = &p, .sequence = 2, .value = 1});
    assert_true(tn_wakeup_wait(&x->replies.wakeup, heard, tn_clock_ns() + UINT64_C(60000000000)));
    tn_async_server_stop(x->serve);
    tn_async_server_stop(x->serve);
    (void)tn_reply_queue_read(&x->replies, NULL, NULL);
    assert_int_equal(tn_reply_queue_check(&x->replies, &err), TN_E_DIVERGED);
    assert_non_null(strstr(err.text, "is not finite"));
    assert_int_equal(x->n_answers, 1);
    tn_async_server_close(NULL);
}

TEST(rows_that_are_not_finite_are_refused)
{
    free_one *x FREED(free_one_free) = free_one_new(2, NULL);
    const free_pull none = {.rank = 1, .sequence = 1};
    free_one_pull(x, &none);
    free_one_wait(x, 1);
    x->weights[1] = INFINITY;
    free_one_push(x, &(free_push){.of = &none, .sequence = 2});
    free_one_wait(x, 2);
    assert_int_equal(free_one_answer(x, 1, 2)->type, TN_FRAME_REFUSED);
    assert_int_equal(free_one_answer(x, 1, 2)->code, TN_REFUSAL_DIVERGED);
    for (uint32_t i = 0; i < 3; i++) { /* rows grow beyond what a float holds */
        const free_pull p = {.rank = 2, .sequence = 1 + 2 * i, .to = 2, .show = 1, .examples = 1};
        free_one_pull(x, &p);
        free_one_wait(x, 3 + 2 * i);
        free_one_push(x, &(free_push){.of = &p, .sequence = 2 + 2 * i, .value = 3e38F});
        free_one_wait(x, 4 + 2 * i);
    }
    free_one_pull(x, &(free_pull){.rank = 2, .sequence = 7, .to = 2, .show = 1, .examples = 1});
    free_one_wait(x, 9);
    assert_int_equal(free_one_answer(x, 2, 7)->code, TN_REFUSAL_DIVERGED);
}

enum { BATCHES = 60, PERMITS = 4, NETWORKS = 12 };

/* One batch of a sender: what is to be sent until it is answered. */
typedef struct sending {
    bool begun, given, done;
    uint64_t pull, push; /* sequences */
    free_pull what;
} sending;

typedef struct storm {
    free_one *x;
    sending batch[FREE_ONE_RANKS][BATCHES];
    uint64_t sequence[FREE_ONE_RANKS];
    uint32_t heard;
    uint64_t stream, draws;
} storm;

static uint64_t draw(storm *s, uint64_t below)
{
    return tn_draw(s->stream, s->draws++) % below;
}

static float value_of(uint32_t rank, uint32_t batch)
{
    return (float)(1 + (rank * 7 + batch * 3) % 5) / 8;
}

/* At most PERMITS are begun and not done. */
static void begin_some(storm *s, uint32_t rank)
{
    uint32_t open = 0;
    for (uint32_t i = 0; i < BATCHES && open < PERMITS; i++) {
        sending *b = &s->batch[rank][i];
        if (!b->begun) {
            b->begun = true;
            b->pull = ++s->sequence[rank];
            b->what = (free_pull){.rank = rank,
                                  .sequence = b->pull,
                                  .from = i % 20,
                                  .to = i % 20 + 1 + i % 15,
                                  .show = 1 + i % 3,
                                  .examples = 4};
        }
        open += !b->done;
    }
}

static void send_one(storm *s, uint32_t rank, uint32_t i)
{
    const sending *b = &s->batch[rank][i];
    if (!b->begun || b->done || draw(s, 4) == 0) {
        return; /* or it is lost */
    }
    for (uint64_t times = 1 + draw(s, 2); times > 0; times--) {
        if (b->given && draw(s, 5) > 0) {
            free_one_push(
                s->x,
                &(free_push){.of = &b->what, .sequence = b->push, .value = value_of(rank, i)});
        } else {
            free_one_pull(s->x, &b->what); /* again, maybe late */
        }
    }
}

/* Answers that came; one in three gets lost. */
static void listen(storm *s)
{
    (void)pthread_mutex_lock(&s->x->lock);
    for (; s->heard < s->x->n_answers; s->heard++) {
        const free_answer *a = &s->x->answer[s->heard];
        assert_int_not_equal(a->type, TN_FRAME_REFUSED);
        const bool lost = draw(s, 3) == 0;
        for (uint32_t i = 0; i < BATCHES && !lost; i++) {
            sending *b = &s->batch[a->rank][i];
            if (a->type == TN_FRAME_ROWS && b->pull == a->sequence && !b->given) {
                b->given = true;
                b->push = ++s->sequence[a->rank];
            } else if (a->type == TN_FRAME_DENSE && b->given && b->push == a->sequence) {
                b->done = true;
            }
        }
    }
    (void)pthread_mutex_unlock(&s->x->lock);
}

static bool is_over(const storm *s)
{
    for (uint32_t r = 1; r < FREE_ONE_RANKS; r++) {
        for (uint32_t i = 0; i < BATCHES; i++) {
            if (!s->batch[r][i].done) {
                return false;
            }
        }
    }
    return true;
}

static void check_key(const storm *s, uint32_t k)
{
    double sum = 0;
    double shows = 0;
    for (uint32_t r = 1; r < FREE_ONE_RANKS; r++) {
        for (uint32_t i = 0; i < BATCHES; i++) {
            const free_pull *p = &s->batch[r][i].what;
            const bool has = k >= p->from && k < p->to;
            sum += has ? (double)value_of(r, i) : 0;
            shows += has ? p->show : 0;
        }
    }
    kit_row row;
    assert_int_equal(kit_row_of(s->x->shard.table, s->x->key[k], &row), shows > 0);
    if (shows > 0) {
        assert_true(row.view.show == shows);
        assert_true(fabs((double)row.data[0] + .5 * sum) < 1e-5);
    }
}

static void check_storm(const storm *s)
{
    free_one *x = s->x;
    double dense = 0;
    for (uint32_t k = 0; k < FREE_ONE_KEYS; k++) {
        check_key(s, k);
    }
    for (uint32_t r = 1; r < FREE_ONE_RANKS; r++) {
        for (uint32_t i = 0; i < BATCHES; i++) {
            dense += (double)value_of(r, i);
        }
        assert_int_equal(recovery_holes(&x->dedup[r]), 0);
        assert_int_equal(x->dedup[r].low, 2 * BATCHES);
    }
    assert_true(fabs((double)x->weights[0] + .5 * dense) < 1e-4);
    assert_int_equal(tn_async_server_updates(x->serve), 100 + 2 * BATCHES);
}

TEST(every_push_counts_once_over_a_bad_network)
{
    for (uint64_t seed = 1; seed <= NETWORKS; seed++) {
        storm *s FREED(tn_free) = tn_alloc(1, sizeof *s, "a storm");
        *s = (storm){.x = free_one_new(PERMITS, NULL), .stream = tn_stream2(seed, 31, 0)};
        while (!is_over(s)) {
            const uint64_t heard = tn_wakeup_count(&s->x->wakeup);
            for (uint32_t r = 1; r < FREE_ONE_RANKS; r++) {
                begin_some(s, r);
                const uint32_t from = (uint32_t)draw(s, BATCHES);
                for (uint32_t i = 0; i < BATCHES; i++) {
                    send_one(s, r, (from + i) % BATCHES);
                }
            }
            (void)tn_wakeup_wait(&s->x->wakeup, heard, tn_clock_ns() + 1000000);
            listen(s);
        }
        check_storm(s);
        free_one_free(s->x);
    }
}

static const free_pull good = {.rank = 1, .sequence = 1, .to = 4, .show = 1, .examples = 5};

static void assert_refused(free_one *x, uint32_t rank, uint64_t sequence, tn_refusal why)
{
    const free_answer *a = free_one_answer(x, rank, sequence);
    assert_non_null(a);
    assert_int_equal(a->type, TN_FRAME_REFUSED);
    assert_int_equal(a->code, why);
}

/* The bound on staleness, as the owner sees it. */
TEST(a_rank_has_no_more_pulls_than_permits)
{
    free_one *x FREED(free_one_free) = free_one_new(2, NULL);
    free_pull p = good;
    for (p.sequence = 1; p.sequence <= 3; p.sequence++) {
        free_one_pull(x, &p);
    }
    free_one_wait(x, 3);
    assert_refused(x, 1, 3, TN_REFUSAL_FULL);
    p.rank = 2;
    p.sequence = 1;
    free_one_pull(x, &p); /* others have their own */
    free_one_wait(x, 4);
    assert_int_equal(free_one_answer(x, 2, 1)->type, TN_FRAME_ROWS);
    p = good;
    free_one_push(x, &(free_push){.of = &good, .sequence = 4, .value = 1});
    free_one_wait(x, 5);
    p.sequence = 3; /* a permit is back: the refused one may come */
    free_one_pull(x, &p);
    free_one_wait(x, 6);
    assert_int_equal(free_one_answer(x, 1, 3)->type, TN_FRAME_ROWS);
}

TEST(a_push_must_name_a_pull_that_was_answered)
{
    free_one *x FREED(free_one_free) = free_one_new(2, NULL);
    free_pull other = good;
    free_one_pull(x, &good);
    free_one_wait(x, 1);
    other.sequence = 9;
    free_one_push(x, &(free_push){.of = &other, .sequence = 2, .value = 1});
    other.sequence = 1;
    other.rank = 2; /* of another rank */
    free_one_push(x, &(free_push){.of = &other, .sequence = 1, .value = 1});
    free_one_wait(x, 3);
    assert_refused(x, 1, 2, TN_REFUSAL_PULL);
    assert_refused(x, 2, 1, TN_REFUSAL_PULL);
    free_one_push(x, &(free_push){.of = &good, .sequence = 3, .value = 1});
    free_one_wait(x, 4);
    free_one_push(x, &(free_push){.of = &good, .sequence = 4, .value = 1}); /* twice */
    free_one_wait(x, 5);
    assert_refused(x, 1, 4, TN_REFUSAL_PULL);
    assert_int_equal(tn_async_server_updates(x->serve), 101);
}

static void bad_weight(free_message *m)
{
    tn_store_f64(m->payload + 8, -1);
}

static void bad_keys(free_message *m)
{
    m->payload[TN_PULL_PARAMS] = 9; /* width of deltas */
}

static void bad_factor(free_message *m)
{
    tn_store_f64(m->payload + 8, (double)NAN);
}

static void fewer_keys(free_message *m)
{
    m->frame.count[TN_KEYS]--;
}

static void fewer_floats(free_message *m)
{
    m->frame.count[TN_ROW_FLOATS] -= FREE_ONE_DIM;
}

static void no_dense(free_message *m)
{
    m->frame.count[TN_DENSE_FLOATS] = 0;
}

static void bad_row(free_message *m)
{
    tn_store_f32(m->payload + TN_PUSH_PARAMS, NAN);
}

static void bad_dense(free_message *m)
{
    tn_store_f32(m->payload + m->frame.bytes - sizeof(float), INFINITY);
}

TEST(what_is_damaged_is_refused_and_changes_nothing)
{
    static free_edit *const of_pull[] = {bad_weight, bad_keys};
    static const struct {
        free_edit *edit;
        tn_refusal why;
    } of_push[] = {
        {bad_factor, TN_REFUSAL_DAMAGED},   {fewer_keys, TN_REFUSAL_DAMAGED},
        {fewer_floats, TN_REFUSAL_DAMAGED}, {no_dense, TN_REFUSAL_DAMAGED},
        {bad_row, TN_REFUSAL_DIVERGED},     {bad_dense, TN_REFUSAL_DIVERGED},
    };
    free_one *x FREED(free_one_free) = free_one_new(1, NULL);
    uint32_t n = 0;
    for (uint32_t i = 0; i < sizeof of_pull / sizeof *of_pull; i++) {
        free_pull bad = good;
        bad.edit = of_pull[i];
        free_one_pull(x, &bad);
        free_one_wait(x, ++n);
        assert_refused(x, 1, 1, TN_REFUSAL_DAMAGED);
    }
    free_one_pull(x, &good); /* the same id: it was never applied */
    free_one_wait(x, ++n);
    assert_int_equal(free_one_answer(x, 1, 1)->type, TN_FRAME_ROWS);
    for (uint32_t i = 0; i < sizeof of_push / sizeof *of_push; i++) {
        free_one_push(
            x, &(free_push){.of = &good, .sequence = 2, .value = 1, .edit = of_push[i].edit});
        free_one_wait(x, ++n);
        assert_refused(x, 1, 2, of_push[i].why);
    }
    assert_int_equal(tn_async_server_updates(x->serve), 100);
    free_one_push(x, &(free_push){.of = &good, .sequence = 2, .value = 1});
    free_one_wait(x, ++n);
    assert_int_equal(free_one_answer(x, 1, 2)->type, TN_FRAME_DENSE);
    assert_int_equal(tn_async_server_updates(x->serve), 101);
}

static void keys_of_no_examples(free_message *m)
{
    tn_store_u64(m->payload, 0);
    tn_store_f64(m->payload + 8, 0);
}

TEST(a_pull_of_keys_without_examples_is_refused)
{
    free_one *x FREED(free_one_free) = free_one_new(1, NULL);
    free_pull p = good;
    p.edit = keys_of_no_examples;
    free_one_pull(x, &p);
    free_one_wait(x, 1);
    assert_refused(x, 1, 1, TN_REFUSAL_DAMAGED);
    assert_int_equal(tn_table_rows(x->shard.table), 0);
}

static void weighs_nothing(free_message *m)
{
    tn_store_f64(m->payload + 8, 0);
}

TEST(a_batch_that_weighs_nothing_is_no_update)
{
    free_one *x FREED(free_one_free) = free_one_new(1, NULL);
    free_pull p = good;
    p.edit = weighs_nothing;
    free_one_pull(x, &p);
    free_one_wait(x, 1);
    free_one_push(x, &(free_push){.of = &p, .sequence = 2, .value = 1});
    free_one_wait(x, 2);
    assert_int_equal(free_one_answer(x, 1, 2)->type, TN_FRAME_DENSE);
    assert_int_equal(tn_async_server_updates(x->serve), 100);
    assert_true(x->weights[0] == 0);
}

enum { SEQUENCES = 50000, STARTS = 50 };

/* A learning rate of 1e300 is a number: then weights are none any more, and that is told. */
static void assert_served(const free_answer *a, tn_frame_type type)
{
    assert_non_null(a);
    if (a->type == TN_FRAME_REFUSED) {
        assert_int_equal(a->code, TN_REFUSAL_DIVERGED);
    } else {
        assert_int_equal(a->type, type);
    }
}

/* Pulls and pushes of rank 1 with bytes changed; those of rank 2 are served all the while. */
TEST(r50000_damaged_sequences_leave_a_live_owner_well)
{
    uint32_t n_read = 0;
    for (uint64_t start = 1; start <= STARTS; start++) {
        free_one *x FREED(free_one_free) = free_one_new(3, NULL);
        x->damage = tn_stream2(41, start, 1);
        free_pull bad = good;
        free_pull well = {.rank = 2, .to = 10, .show = 1, .examples = 3};
        for (uint32_t i = 0; i < SEQUENCES / STARTS; i++) {
            const uint64_t drawn = tn_draw(x->damage, x->draws++);
            bad.sequence = 1 + drawn % (2 + i / 8);
            bad.to = (uint32_t)(drawn >> 32) % FREE_ONE_KEYS;
            free_one_pull(x, &bad);
            free_one_push(x, &(free_push){.of = &bad, .sequence = bad.sequence + 1, .value = 1});
            if (i % 100 == 99) {
                const uint32_t before = x->n_answers;
                well.sequence = 1 + i / 50;
                free_one_pull(x, &well);
                free_one_wait(x, before + 1);
                free_one_push(x, &(free_push){.of = &well, .sequence = well.sequence + 1});
                free_one_wait(x, before + 2);
                assert_served(free_one_answer(x, 2, well.sequence), TN_FRAME_ROWS);
                assert_served(free_one_answer(x, 2, well.sequence + 1), TN_FRAME_DENSE);
            }
        }
        n_read += x->n_damaged;
        (void)tn_reply_queue_read(&x->replies, NULL, NULL);
        assert_int_equal(tn_reply_queue_check(&x->replies, NULL), TN_OK);
    }
    assert_true(n_read > SEQUENCES / 2); /* most get past the header */
}

static void other_start(free_message *m)
{
    m->frame.incarnation++;
}

static void far_ahead(free_message *m)
{
    m->frame.sequence = TN_DEDUP_WINDOW + 1;
}

static void the_own_rank(free_message *m)
{
    m->frame.rank = 0;
}

static void a_share(free_message *m)
{
    m->frame.type = TN_FRAME_SHARE;
}

TEST(what_is_not_of_this_mode_is_not_served)
{
    free_one *x FREED(free_one_free) = free_one_new(1, NULL);
    free_pull p = good;
    p.edit = the_own_rank;
    free_one_pull(x, &p); /* nobody to answer */
    p.edit = a_share;
    free_one_pull(x, &p);
    free_one_wait(x, 1);
    assert_refused(x, 1, 1, TN_REFUSAL_DAMAGED);
    assert_int_equal(x->n_answers, 1);
}

TEST(another_start_and_what_is_far_ahead_are_refused)
{
    free_one *x FREED(free_one_free) = free_one_new(1, NULL);
    free_pull p = good;
    p.edit = other_start;
    free_one_pull(x, &p);
    p.edit = far_ahead;
    free_one_pull(x, &p);
    free_one_wait(x, 2);
    assert_refused(x, 1, 1, TN_REFUSAL_INCARNATION);
    assert_refused(x, 1, TN_DEDUP_WINDOW + 1, TN_REFUSAL_BEYOND);
}
