/* test_sync_client.c - ranks on threads of their own, with real sockets: the model is that of one
 * process on the joint batches, and the same bits every time. */
#include "cluster/sync/sync_client.h"
#include "keys.h"
#include "ps/shard/dense.h"
#include "ranks.h"

#include "base/core/clock.h"
#include "support/test.h"

#include <pthread.h>

TMPDIR_GROUP(dir);
static uint32_t n_runs;

enum { MEETS = 2 }; /* after such steps rank 0 has all stand still */

/* What carries a rank's messages. */
typedef struct wire {
    tn_link *link;
    tn_out_messages *pool;
    tn_reply_queue replies;
    tn_dedup dedup[RANKS_MAX];
    void *_Atomic sync;       /* the client */
    uint32_t n_ranks, turned; /* by so many places the order of weights is; 0: as they come */
    tn_in_message *held[RANKS_MAX];
    uint32_t n_held;
} wire;

typedef struct run {
    ranks_world *w;
    tn_security security;
    tn_endpoint at[RANKS_MAX];
    wire wire[RANKS_MAX];
    void *sync[RANKS_MAX];                 /* clients */
    float weights[RANKS_MAX][RANKS_DENSE]; /* every rank's copy of the flat vector */
    uint64_t steps[RANKS_MAX];
    double norm[RANKS_MAX][RANKS_STEPS];
    tn_status status[RANKS_MAX];
    tn_error err[RANKS_MAX];
} run;

typedef struct seat {
    run *run;
    uint32_t rank;
} seat;

/* All keys of a batch, by owner, not in order. */
static kit_keys *keys_of(const run *x, tn_arena *arena, uint32_t rank, uint64_t step)
{
    const ranks_batch *b = &x->w->batch[rank][step];
    uint64_t key[RANKS_KEYS];
    for (uint32_t i = 0; i < b->n; i++) {
        key[i] = b->key[b->n - 1 - i];
    }
    kit_keys *keys = kit_keys_new(arena, &x->w->m->layout, key, NULL, b->n);
    keys->set.owners = &x->w->shares->owners;
    return keys;
}

typedef struct place {
    tn_arena *arena;
    kit_keys *keys[RANKS_STEPS + 2];
    float *rows[RANKS_STEPS + 2];
} place;

static tn_status pull(run *x, place *at, uint32_t rank, uint64_t step, tn_error *err)
{
    const ranks_batch *b = &x->w->batch[rank][step];
    at->keys[step] = keys_of(x, at->arena, rank, step);
    at->rows[step] = TN_NEW_ARRAY(at->arena, float, at->keys[step]->n_floats + 1);
    const tn_client_batch batch = {.keys = &at->keys[step]->set,
                                   .rows = at->rows[step],
                                   .examples = b->note.rows,
                                   .weight_sum = b->note.weight_sum,
                                   .meet = rank == 0 && step % 4 == MEETS};
    return tn_client_sync.pull(x->sync[rank], &batch, err);
}

static tn_status gather(run *x, uint32_t rank, uint64_t step, tn_error *err)
{
    bool good = true;
    for (uint32_t i = 0; i < 2; i++) {
        const double own[] = {rank, (double)(2 * step + i)};
        const double *all = NULL;
        TN_TRY(tn_client_sync.gather(x->sync[rank], NULL, own, 2, &all, err));
        for (size_t r = 0; r < x->w->n; r++) {
            good = good && all[2 * r] == (double)r && all[2 * r + 1] == own[1];
        }
    }
    return good ? TN_OK : tn_fail(err, TN_E_PEER, "other numbers");
}

static tn_status learn(run *x, place *at, uint32_t rank, uint64_t step, tn_error *err)
{
    const ranks_batch *b = &x->w->batch[rank][step];
    const kit_keys *keys = at->keys[step];
    float *grads = TN_NEW_ARRAY(at->arena, float, keys->n_floats + 1);
    for (uint32_t i = 0; i < keys->n_floats; i++) {
        grads[i] = ranks_gradient(at->rows[step][i], keys->set.key[i / RANKS_DIM], rank, step,
                                  i % RANKS_DIM);
    }
    const tn_push push = {.lr_factor = 1, .day = 9};
    const tn_client_gradients own = {.rows = b->n > 0 ? grads : NULL,
                                     .dense = b->dense,
                                     .loss = (double)(rank + 1) * (double)(step + 1)};
    const double n = (double)x->w->n;
    tn_client_update all = {0};
    TN_TRY(gather(x, rank, step, err));
    TN_TRY(tn_client_sync.push(x->sync[rank], NULL, &own, &push, &all, err));
    x->norm[rank][step] = all.norm;
    return all.loss == n * (n + 1) / 2 * (double)(step + 1)
               ? TN_OK
               : tn_fail(err, TN_E_PEER, "step %u: loss %g", (unsigned)step, all.loss);
}

static tn_status train(run *x, place *at, uint32_t rank, tn_error *err)
{
    TN_TRY(pull(x, at, rank, 0, err));
    for (uint64_t step = 0;; step++) {
        tn_joint_batch note;
        TN_TRY(tn_client_sync.rows(x->sync[rank], NULL, &note, err));
        if (note.meet != (step % 4 == MEETS)) {
            return tn_fail(err, TN_E_PEER, "step %u: meet %d", (unsigned)step, note.meet);
        }
        if (note.over && step == RANKS_STEPS) { /* some steps before are empty, too */
            return TN_OK;
        }
        if (step < RANKS_STEPS) {
            TN_TRY(pull(x, at, rank, step + 1, err));
        }
        if (note.weight_sum > 0) {
            x->steps[rank]++;
            TN_TRY(learn(x, at, rank, step, err));
        }
    }
}

static void *work(void *arg)
{
    const seat *s = arg;
    place at = {.arena = tn_arena_new(1 << 16)};
    s->run->status[s->rank] = train(s->run, &at, s->rank, &s->run->err[s->rank]);
    tn_arena_free(at.arena);
    return NULL;
}

static void got_request(void *arg, tn_in_message *incoming)
{
    wire *w = arg;
    if (atomic_load(&w->sync) == NULL) {
        tn_in_message_close(incoming); /* it comes again */
        return;
    }
    tn_client_sync.take_request(atomic_load(&w->sync), incoming);
}

/* Weights are kept until those of all others are there, and then come in another order. */
static void turn_answers(wire *w, tn_in_message *incoming)
{
    w->held[incoming->from] = incoming;
    if (++w->n_held < w->n_ranks - 1) {
        return;
    }
    for (uint32_t i = 0; i < w->n_ranks; i++) {
        tn_in_message **next = &w->held[(i * 3 + w->turned) % w->n_ranks];
        if (*next != NULL) {
            tn_reply_queue_put(&w->replies, *next);
        }
        *next = NULL;
    }
    w->n_held = 0;
}

static void got_answer(void *arg, tn_in_message *incoming)
{
    wire *w = arg;
    if (w->turned > 0 && incoming->frame.type == TN_FRAME_DENSE) {
        turn_answers(w, incoming);
        return;
    }
    tn_reply_queue_put(&w->replies, incoming);
}

static void ticked(void *arg, uint64_t now_ns)
{
    (void)arg;
    (void)now_ns;
}

static uint64_t incarnation_of(uint32_t rank)
{
    return 50 + rank;
}

/* The link of a rank and, with `sync`, what stands on it. */
static void open_rank(run *x, uint32_t rank, const tn_exchange *sync)
{
    wire *w = &x->wire[rank];
    char bound[TN_ENDPOINT_SIZE];
    *w = (wire){0};
    tn_reply_queue_init(&w->replies);
    assert_int_equal(tn_out_messages_new(&w->pool, NULL), TN_OK);
    const tn_link_opts link = {.rank = rank,
                               .size = x->w->n,
                               .job = 3,
                               .incarnation = incarnation_of(rank),
                               .retransmit_ns = 200000000,
                               .security = &x->security,
                               .events = {w, got_request, got_answer, ticked}};
    assert_int_equal(tn_link_open(&w->link, keys_zmq(), &link, &x->at[rank], bound, NULL), TN_OK);
    tn_exchange opts = *sync;
    opts.arena = x->w->arena;
    opts.link = w->link;
    opts.pool = w->pool;
    opts.replies = &w->replies;
    opts.rank = rank;
    opts.dedup = w->dedup;
    opts.shares = x->w->shares;
    opts.layout = &x->w->m->layout;
    opts.shard = &x->w->owner[rank].shard;
    opts.own = x->w->owner[rank].weights;
    opts.weights = x->weights[rank];
    for (uint32_t r = 0; r < x->w->n; r++) {
        tn_dedup_begin(&w->dedup[r], incarnation_of(r));
    }
    tn_client client;
    assert_int_equal(tn_sync_client_open(&client, &opts, NULL), TN_OK);
    x->sync[rank] = client.self;
    atomic_store(&w->sync, x->sync[rank]);
}

static void dial_others(run *x, uint32_t rank)
{
    tn_link_set_session(x->wire[rank].link, 8);
    for (uint32_t r = 0; r < x->w->n; r++) {
        if (r != rank) {
            tn_link_expect(x->wire[rank].link, r, incarnation_of(r));
            assert_int_equal(tn_link_dial(x->wire[rank].link, r, &x->at[r], NULL), TN_OK);
        }
    }
}

static void close_rank(run *x, uint32_t rank)
{
    tn_link_close(x->wire[rank].link);
    tn_client_sync.close(x->sync[rank]);
    tn_reply_queue_done(&x->wire[rank].replies);
    tn_out_messages_free(x->wire[rank].pool);
}

static void open_ranks_for(run *x, uint32_t n, const tn_exchange *opts, double clip)
{
    n_runs++; /* several may be open */
    x->w = ranks_new(n, clip, 1);
    assert_int_equal(tn_security_init(&x->security, keys_zmq(), NULL, NULL), TN_OK);
    for (uint32_t r = 0; r < n; r++) {
        x->at[r].is_ipc = true;
        int size = snprintf(x->at[r].path, sizeof x->at[r].path, "%s/%u-%u.sock", dir, n_runs, r);
        assert_in_range(size, 1, sizeof x->at[r].path - 1);
    }
    for (uint32_t r = 0; r < n; r++) {
        open_rank(x, r, opts);
    }
    for (uint32_t r = 0; r < n; r++) {
        dial_others(x, r);
    }
}

static void open_ranks(run *x, uint32_t n, double clip, tn_values kind)
{
    open_ranks_for(x, n, &(tn_exchange){.values = kind}, clip);
}

static void run_ranks(run *x)
{
    pthread_t thread[RANKS_MAX];
    seat seats[RANKS_MAX];
    for (uint32_t r = 0; r < x->w->n; r++) {
        seats[r] = (seat){x, r};
        assert_int_equal(pthread_create(&thread[r], NULL, work, &seats[r]), 0);
    }
    for (uint32_t r = 0; r < x->w->n; r++) {
        assert_int_equal(pthread_join(thread[r], NULL), 0);
    }
}

static void close_ranks(run *x)
{
    for (uint32_t r = 0; r < x->w->n; r++) {
        close_rank(x, r);
    }
    tn_security_done(&x->security);
    ranks_free(x->w);
}

static void check_ends(const run *x)
{
    for (uint32_t r = 0; r < x->w->n; r++) {
        assert_int_equal(atomic_load(&x->wire[r].replies.late), 0);
        fail_if(x->status[r] != TN_OK, "rank %u: %s", r, x->err[r].text);
        assert_int_equal(x->steps[r], x->steps[0]);
        for (uint32_t o = 0; o < x->w->n; o++) {
            const ranks_owner *own = &x->w->owner[o];
            assert_memory_equal(x->weights[r] + own->begin, own->weights,
                                own->size * sizeof(float));
        }
    }
}

TEST(ranks_over_sockets_train_the_model_of_the_joint_batch)
{
    for (uint32_t n = 1; n <= RANKS_MAX; n++) {
        for (uint32_t clipped = 0; clipped < 2; clipped++) {
            run *x FREED(tn_free) = tn_alloc(1, sizeof *x, "a run");
            open_ranks(x, n, clipped ? 0.7 : (double)INFINITY, TN_VALUES_F32);
            run_ranks(x);
            check_ends(x);
            ranks_check(x->w);
            close_ranks(x);
        }
    }
}

/* C10 */
TEST(c10_four_ranks_repeat_exactly)
{
    run *x[3];
    for (uint32_t i = 0; i < 3; i++) {
        x[i] = tn_alloc(1, sizeof *x[i], "a run");
        open_ranks(x[i], RANKS_MAX, 0.7, TN_VALUES_F32);
        run_ranks(x[i]);
        check_ends(x[i]);
        assert_memory_equal(x[i]->weights, x[0]->weights, sizeof x[0]->weights);
        for (uint32_t o = 0; o < RANKS_MAX; o++) {
            for (uint64_t k = 0; k < RANKS_KEYS; k++) {
                kit_row a;
                kit_row b;
                bool there = kit_row_of(x[0]->w->owner[o].shard.table, ranks_key(k), &a);
                assert_int_equal(kit_row_of(x[i]->w->owner[o].shard.table, ranks_key(k), &b),
                                 there);
                if (there) {
                    assert_memory_equal(a.data, b.data, a.view.n_floats * sizeof(float));
                }
            }
        }
    }
    for (uint32_t i = 0; i < 3; i++) {
        close_ranks(x[i]);
        tn_free(x[i]);
    }
}

/* Without the global clip each owner knows its own part of the norm alone. */
TEST(the_norm_does_not_depend_on_whose_part_comes_first)
{
    double first[RANKS_STEPS];
    for (uint32_t turned = 0; turned <= RANKS_MAX; turned++) {
        run *x FREED(tn_free) = tn_alloc(1, sizeof *x, "a run");
        open_ranks(x, RANKS_MAX, (double)INFINITY, TN_VALUES_F32);
        for (uint32_t r = 0; r < RANKS_MAX; r++) {
            x->wire[r].n_ranks = RANKS_MAX;
            x->wire[r].turned = turned;
        }
        run_ranks(x);
        check_ends(x);
        if (turned == 0) {
            memcpy(first, x->norm[0], sizeof first);
        }
        for (uint32_t r = 0; r < RANKS_MAX; r++) {
            assert_memory_equal(x->norm[r], first, sizeof first);
        }
        close_ranks(x);
    }
}

/* The weights come close to those of whole floats: error feedback keeps what rounding takes. */
TEST(floats_in_16_bits_train_nearly_the_same)
{
    run *whole FREED(tn_free) = tn_alloc(1, sizeof *whole, "a run");
    run *half FREED(tn_free) = tn_alloc(1, sizeof *half, "a run");
    open_ranks(whole, 2, (double)INFINITY, TN_VALUES_F32);
    run_ranks(whole);
    check_ends(whole);
    tn_link_counts many;
    tn_link_counts_of(whole->wire[0].link, &many);
    close_ranks(whole);
    open_ranks(half, 2, (double)INFINITY, TN_VALUES_F16);
    run_ranks(half);
    assert_int_equal(half->status[0], TN_OK);
    assert_int_equal(half->status[1], TN_OK);
    for (uint32_t d = 0; d < RANKS_DENSE; d++) {
        assert_float_equal(half->weights[0][d], whole->weights[0][d], 2e-3);
    }
    close_ranks(half);
}

/* ---- running statistics ---- */

static const tn_dense_run moving[] = {{2, 9}, {RANKS_DENSE - 4, RANKS_DENSE}};
static const tn_dense_run trained[] = {{0, 2}, {9, RANKS_DENSE - 4}};

static float statistic(uint64_t step, size_t at)
{
    return 1.0001F * (float)(step + 1) + (float)at; /* has no 16 bits */
}

/* Every rank brings the same ones; no optimizer trains them. */
static void bring_statistics(const run *x)
{
    for (uint32_t r = 0; r < x->w->n; r++) {
        ranks_owner *own = &x->w->owner[r];
        tn_dense_run runs[2];
        const tn_dense_opts dense = {.rule = &x->w->m->rules.dense,
                                     .weights = own->weights,
                                     .size = own->size,
                                     .runs = runs,
                                     .n_runs = tn_shares_runs(x->w->shares, r, trained, 2, runs)};
        tn_dense_free(own->shard.dense);
        assert_int_equal(tn_dense_new(&own->shard.dense, &dense, NULL), TN_OK);
        for (uint64_t step = 0; step < RANKS_STEPS; step++) {
            for (size_t i = 0; i < 2; i++) {
                for (size_t at = moving[i].begin; at < moving[i].end; at++) {
                    x->w->batch[r][step].dense[at] = statistic(step, at);
                }
            }
        }
    }
}

static uint64_t last_step(const run *x)
{
    for (uint64_t step = RANKS_STEPS; step-- > 0;) {
        for (uint32_t r = 0; r < x->w->n; r++) {
            if (x->w->batch[r][step].note.weight_sum > 0) {
                return step;
            }
        }
    }
    return 0;
}

static void check_statistics(const run *x, uint32_t rank, const tn_dense_run *of)
{
    const ranks_owner *own = &x->w->owner[rank];
    for (size_t at = of->begin; at < of->end; at++) {
        const float want = statistic(last_step(x), at);
        assert_memory_equal(&x->weights[rank][at], &want, sizeof want);
        if (at >= own->begin && at < own->begin + own->size) {
            assert_memory_equal(&own->weights[at - own->begin], &want, sizeof want);
        }
    }
}

TEST(running_statistics_are_whole_floats_everywhere)
{
    for (uint32_t n = 1; n <= RANKS_MAX; n++) {
        run *x FREED(tn_free) = tn_alloc(1, sizeof *x, "a run");
        const tn_exchange opts = {.moving = moving, .n_moving = 2, .values = TN_VALUES_F16};
        open_ranks_for(x, n, &opts, (double)INFINITY);
        bring_statistics(x);
        run_ranks(x);
        for (uint32_t r = 0; r < n; r++) {
            assert_int_equal(x->status[r], TN_OK);
            check_statistics(x, r, &moving[0]);
            check_statistics(x, r, &moving[1]);
        }
        close_ranks(x);
    }
}

/* ---- what goes wrong ---- */

/* Rank 0 of two, of which the other never comes, has asked for its first rows. */
static run *wait_alone(place *at)
{
    run *x = tn_alloc(1, sizeof *x, "a run");
    x->w = ranks_new(2, (double)INFINITY, 1);
    assert_int_equal(tn_security_init(&x->security, keys_zmq(), NULL, NULL), TN_OK);
    x->at[0] = (tn_endpoint){.host = "127.0.0.1"};
    x->at[1] = (tn_endpoint){.host = "127.0.0.1", .port = 1};
    open_rank(x, 0, &(tn_exchange){0});
    dial_others(x, 0);
    assert_int_equal(pull(x, at, 0, 0, NULL), TN_OK);
    return x;
}

static void stop_waiting(run *x, place *at)
{
    close_rank(x, 0);
    tn_security_done(&x->security);
    tn_arena_free(at->arena);
    ranks_free(x->w);
    tn_free(x);
}

TEST(a_failure_from_elsewhere_ends_the_wait)
{
    place at = {.arena = tn_arena_new(1 << 16)};
    tn_joint_batch note;
    tn_error err = {0};
    run *x = wait_alone(&at);
    tn_reply_queue_end(&x->wire[0].replies, TN_E_DATA, "rank 1: no such file");
    tn_reply_queue_end(&x->wire[0].replies, TN_E_PEER, "a later one");
    assert_int_equal(tn_client_sync.rows(x->sync[0], NULL, &note, &err), TN_E_DATA);
    assert_string_equal(err.text, "rank 1: no such file");
    stop_waiting(x, &at);
}

/* Fails the run when its rank says that it waits for rank 1. */
static void *fail_when_it_waits(void *arg)
{
    run *x = arg;
    const uint64_t until = tn_clock_ns() + UINT64_C(50000000000);
    while (atomic_load(&x->wire[0].replies.late) != 2 && tn_clock_ns() < until) {
    }
    tn_reply_queue_end(&x->wire[0].replies, TN_E_DATA,
                       tn_clock_ns() < until ? "seen" : "never seen");
    return NULL;
}

TEST(whom_a_rank_waits_for_and_how_long_can_be_asked)
{
    place at = {.arena = tn_arena_new(1 << 16)};
    tn_joint_batch note;
    tn_error err = {0};
    pthread_t thread;
    run *x = wait_alone(&at);
    assert_int_equal(pthread_create(&thread, NULL, fail_when_it_waits, x), 0);
    assert_int_equal(tn_client_sync.rows(x->sync[0], NULL, &note, &err), TN_E_DATA);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_string_equal(err.text, "seen");
    const tn_client_waits waits = tn_client_sync.waited(x->sync[0]);
    assert_true(waits.rows_s > 0 && waits.weights_s == 0);
    stop_waiting(x, &at);
}

static void *get_rows(void *arg)
{
    const seat *s = arg;
    run *x = s->run;
    place at = {.arena = tn_arena_new(1 << 16)};
    tn_joint_batch note;
    x->status[s->rank] = pull(x, &at, s->rank, 0, NULL);
    x->status[s->rank] |= tn_client_sync.rows(x->sync[s->rank], NULL, &note, NULL);
    tn_arena_free(at.arena);
    return NULL;
}

TEST(a_lost_rank_ends_the_wait_for_its_numbers)
{
    run *x FREED(tn_free) = tn_alloc(1, sizeof *x, "a run");
    seat seats[2] = {{x, 0}, {x, 1}};
    pthread_t thread;
    const double own = 1;
    const double *all = NULL;
    tn_error err = {0};
    open_ranks(x, 2, (double)INFINITY, TN_VALUES_F32);
    assert_int_equal(pthread_create(&thread, NULL, get_rows, &seats[1]), 0);
    (void)get_rows(&seats[0]);
    assert_int_equal(pthread_join(thread, NULL) | (int)x->status[0] | (int)x->status[1], 0);
    tn_reply_queue_end(&x->wire[0].replies, TN_E_PEER, "rank 1 was last heard of 15.1 s ago");
    assert_int_equal(tn_client_sync.gather(x->sync[0], NULL, &own, 1, &all, &err), TN_E_PEER);
    assert_string_equal(err.text, "rank 1 was last heard of 15.1 s ago");
    close_ranks(x);
}
