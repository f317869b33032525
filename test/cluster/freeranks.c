/* freeranks.c - see freeranks.h. */
#include "freeranks.h"

#include "keys.h"
#include "support/test.h"

uint64_t free_key(uint64_t i)
{
    return tn_stream2(11, 7, i);
}

uint32_t free_batch(uint32_t rank, uint64_t step, uint64_t *key)
{
    const uint64_t stream = tn_stream2(13, rank, step);
    uint32_t n = 0;
    for (uint64_t i = 0; i < FREE_KEYS && (step + rank) % 5 != 3; i++) {
        if (tn_unit(tn_draw(stream, i)) < 0.3) {
            key[n++] = free_key(i);
        }
    }
    return n;
}

float free_gradient(uint64_t key, uint32_t rank, uint64_t step, uint32_t d)
{
    return (float)(tn_unit(tn_draw(tn_stream2(key, rank, step), d)) - 0.5);
}

/* ---- a rank's work ---- */

typedef struct free_work {
    tn_arena *arena;
    kit_keys *keys;
    float *rows;
    uint32_t n;
} free_work;

/* The step behind which there is a batch that is not empty, or the end. */
static uint64_t skip_empty(const free_world *w, uint32_t rank, uint64_t step)
{
    uint64_t key[FREE_KEYS];
    const bool all = !w->opts.only.is;
    while (step < w->opts.steps &&
           (free_batch(rank, step, key) == 0 ||
            !(all || (rank == w->opts.only.rank && step == w->opts.only.step)))) {
        step++;
    }
    return step;
}

static tn_status pull(free_seat *s, free_work *x, uint64_t step, tn_error *err)
{
    uint64_t key[FREE_KEYS];
    x->n = free_batch(s->rank, step, key);
    x->keys = kit_keys_new(x->arena, &s->world->m->layout, key, NULL, x->n);
    x->keys->set.owners = &s->world->shares->owners;
    x->rows = TN_NEW_ARRAY(x->arena, float, x->keys->n_floats + 1);
    const tn_client_batch batch = {
        .keys = &x->keys->set, .rows = x->rows, .examples = x->n, .weight_sum = x->n};
    return tn_client_async.pull(s->async, &batch, err);
}

static tn_status learn(free_seat *s, const free_work *x, uint64_t step, tn_error *err)
{
    const free_world *w = s->world;
    const bool curved = w->opts.curved;
    float *grads = TN_NEW_ARRAY(x->arena, float, x->keys->n_floats + 1);
    float dense[FREE_DENSE];
    tn_joint_batch joint;
    TN_TRY(tn_client_async.rows(s->async, NULL, &joint, err));
    for (uint32_t i = 0; i < x->keys->n_floats; i++) {
        const uint64_t key = x->keys->set.key[i / FREE_DIM];
        const uint32_t d = i % FREE_DIM;
        grads[i] = curved ? x->rows[i] - free_gradient(key, 99, 99, d)
                          : free_gradient(key, s->rank, step, d);
    }
    for (uint32_t d = 0; d < FREE_DENSE; d++) {
        dense[d] = curved ? s->weights[d] - free_gradient(0, 99, 99, d)
                          : free_gradient(0, s->rank, step, d);
    }
    const tn_push push = {.lr_factor = 1, .day = 9};
    const tn_client_gradients own = {.rows = grads, .dense = dense};
    tn_client_update update;
    TN_TRY(tn_client_async.push(s->async, NULL, &own, &push, &update, err));
    s->norm = update.norm;
    s->staleness_max = update.staleness > s->staleness_max ? update.staleness : s->staleness_max;
    return TN_OK;
}

static tn_status train(free_seat *s, tn_arena *arena, tn_error *err)
{
    const free_world *w = s->world;
    free_work batch[TN_PERMITS_MAX];
    uint64_t pulled = skip_empty(w, s->rank, 0);
    uint64_t steps[TN_PERMITS_MAX];
    uint32_t first = 0;
    uint32_t n = 0;
    for (;;) {
        while (n < w->opts.ahead && pulled < w->opts.steps) {
            const uint32_t at = (first + n++) % TN_PERMITS_MAX;
            batch[at].arena = arena;
            steps[at] = pulled;
            TN_TRY(pull(s, &batch[at], pulled, err));
            pulled = skip_empty(w, s->rank, pulled + 1);
        }
        if (n == 0) {
            return tn_client_async.rest(s->async, NULL, err);
        }
        TN_TRY(learn(s, &batch[first], steps[first], err));
        first = (first + 1) % TN_PERMITS_MAX;
        n--;
    }
}

static void *work(void *arg)
{
    free_seat *s = arg;
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    s->status = train(s, arena, &s->err);
    (void)pthread_barrier_wait(&s->world->drained);
    if (s->status == TN_OK) {
        s->status = tn_client_async.refresh(s->async, &s->err);
    }
    return NULL;
}

/* ---- links ---- */

/* What is lost comes again, and what comes after it has overtaken it then. */
static bool is_lost(free_seat *s, const tn_in_message *incoming)
{
    const tn_dedup *dedup = &s->dedup[incoming->from];
    return s->world->opts.lossy && incoming->frame.sequence > dedup->top &&
           s->n_requests++ % 3 == 0;
}

static void got_request(void *arg, tn_in_message *incoming)
{
    free_seat *s = arg;
    if (atomic_load(&s->async) == NULL || is_lost(s, incoming)) {
        tn_in_message_close(incoming);
        return;
    }
    tn_client_async.take_request(s->async, incoming);
}

static void got_answer(void *arg, tn_in_message *incoming)
{
    const free_seat *s = arg;
    tn_client_async.take_answer(s->async, incoming);
}

static void ticked(void *arg, uint64_t now_ns)
{
    (void)arg;
    (void)now_ns;
}

static uint64_t incarnation_of(uint32_t rank)
{
    return 70 + rank;
}

static void make_shard(const free_world *w, free_seat *s)
{
    tn_dense_run run[2];
    const size_t from = w->shares->dense[s->rank];
    tn_dense_opts dense = {.rule = &w->m->rules.dense,
                           .weights = s->own,
                           .size = w->shares->dense[s->rank + 1] - from,
                           .runs = run};
    dense.n_runs = tn_shares_runs(w->shares, s->rank, w->trained, w->n_trained, run);
    s->shard = (tn_shard){.table = kit_table(w->m, 5), .rules = &w->m->rules};
    assert_int_equal(tn_dense_new(&s->shard.dense, &dense, NULL), TN_OK);
}

static void open_seat(free_world *w, uint32_t rank)
{
    free_seat *s = &w->seat[rank];
    char bound[TN_ENDPOINT_SIZE];
    s->world = w;
    s->rank = rank;
    make_shard(w, s);
    tn_reply_queue_init(&s->replies);
    assert_int_equal(tn_out_messages_new(&s->pool, NULL), TN_OK);
    const tn_link_opts link = {.rank = rank,
                               .size = w->opts.n,
                               .job = 3,
                               .incarnation = incarnation_of(rank),
                               .retransmit_ns = w->opts.lossy ? 20000000 : 200000000,
                               .security = &w->security,
                               .events = {s, got_request, got_answer, ticked}};
    for (uint32_t r = 0; r < w->opts.n; r++) {
        tn_dedup_begin(&s->dedup[r], incarnation_of(r));
    }
    assert_int_equal(tn_link_open(&s->link, keys_zmq(), &link, &w->at[rank], bound, NULL), TN_OK);
    const tn_exchange exchange = {.arena = w->arena,
                                  .link = s->link,
                                  .pool = s->pool,
                                  .replies = &s->replies,
                                  .rank = rank,
                                  .staleness = w->opts.staleness,
                                  .dedup = s->dedup,
                                  .shares = w->shares,
                                  .layout = &w->m->layout,
                                  .shard = &s->shard,
                                  .weights = s->weights,
                                  .trained = w->trained,
                                  .n_trained = w->n_trained,
                                  .moving = &w->opts.moving,
                                  .n_moving = w->opts.moving.end > 0,
                                  .values = w->opts.kind};
    tn_client client;
    assert_int_equal(tn_async_client_open(&client, &exchange, NULL), TN_OK);
    atomic_store(&s->async, client.self);
}

static void dial_others(free_world *w, uint32_t rank)
{
    tn_link *l = w->seat[rank].link;
    tn_link_set_session(l, 8);
    for (uint32_t r = 0; r < w->opts.n; r++) {
        if (r != rank) {
            tn_link_expect(l, r, incarnation_of(r));
            assert_int_equal(tn_link_dial(l, r, &w->at[r], NULL), TN_OK);
        }
    }
}

static void make_model(free_world *w)
{
    const char *rule = w->opts.rule != NULL ? w->opts.rule : "lr=.1";
    w->m = kit_model_plain(w->arena, FREE_DIM, kit_rule(w->arena, "sgd", rule));
    w->m->rules.dense = kit_rule(w->arena, "sgd", w->opts.dense != NULL ? w->opts.dense : rule);
    w->m->rules.clip_global = w->opts.clip > 0 ? w->opts.clip : (double)INFINITY;
    const tn_dense_run *moving = &w->opts.moving;
    w->trained[0] = (tn_dense_run){0, moving->end > 0 ? moving->begin : FREE_DENSE};
    w->trained[1] = (tn_dense_run){moving->end, FREE_DENSE};
    w->n_trained = moving->end > 0 ? 2 : 1;
}

free_world *free_world_new(const free_opts *opts, const char *dir)
{
    free_world *w = tn_alloc(1, sizeof *w, "ranks");
    *w = (free_world){.opts = *opts, .arena = tn_arena_new(1 << 16)};
    w->opts.steps = opts->steps > 0 ? opts->steps : FREE_STEPS;
    w->opts.ahead = opts->ahead > 0 ? opts->ahead : 1;
    assert_int_equal(tn_shares_new(&w->shares, opts->n, FREE_DENSE, NULL), TN_OK);
    assert_int_equal(tn_security_init(&w->security, keys_zmq(), NULL, NULL), TN_OK);
    assert_int_equal(pthread_barrier_init(&w->drained, NULL, opts->n), 0);
    make_model(w);
    for (uint32_t r = 0; r < opts->n; r++) {
        w->at[r].is_ipc = true;
        int size = snprintf(w->at[r].path, sizeof w->at[r].path, "%s/%u.sock", dir, r);
        assert_in_range(size, 1, sizeof w->at[r].path - 1);
    }
    for (uint32_t r = 0; r < opts->n; r++) {
        open_seat(w, r);
    }
    for (uint32_t r = 0; r < opts->n; r++) {
        dial_others(w, r);
    }
    return w;
}

void free_world_free(free_world *w)
{
    for (uint32_t r = 0; r < w->opts.n; r++) {
        free_seat *s = &w->seat[r];
        tn_client_async.stop(s->async);
        tn_link_close(s->link);
        tn_client_async.close(s->async);
        tn_reply_queue_done(&s->replies);
        tn_out_messages_free(s->pool);
        tn_dense_free(s->shard.dense);
        tn_table_free(s->shard.table);
    }
    (void)pthread_barrier_destroy(&w->drained);
    tn_security_done(&w->security);
    tn_shares_free(w->shares);
    tn_arena_free(w->arena);
    tn_free(w);
}

void free_world_run(free_world *w)
{
    for (uint32_t r = 0; r < w->opts.n; r++) {
        assert_int_equal(pthread_create(&w->seat[r].thread, NULL, work, &w->seat[r]), 0);
    }
    for (uint32_t r = 0; r < w->opts.n; r++) {
        assert_int_equal(pthread_join(w->seat[r].thread, NULL), 0);
    }
    for (uint32_t r = 0; r < w->opts.n; r++) {
        free_seat *s = &w->seat[r];
        fail_if(s->status != TN_OK, "rank %u: %s", r, s->err.text);
        s->updates = tn_client_async.updates(s->async);
    }
}

double free_world_again(free_world *w, uint32_t rank, uint64_t step)
{
    free_seat *s = &w->seat[rank];
    free_work x = {.arena = w->arena};
    assert_int_equal(pull(s, &x, step, NULL), TN_OK);
    assert_int_equal(learn(s, &x, step, NULL), TN_OK);
    assert_int_equal(tn_client_async.rest(s->async, NULL, NULL), TN_OK);
    return s->norm;
}

/* ---- what must have come of it ---- */

static void check_row(free_world *w, uint64_t key, double lr, double tolerance)
{
    uint64_t batch[FREE_KEYS];
    double sum[FREE_DIM] = {0};
    uint32_t shows = 0;
    for (uint32_t r = 0; r < w->opts.n; r++) {
        for (uint64_t step = 0; step < w->opts.steps; step++) {
            const uint32_t n = free_batch(r, step, batch);
            for (uint32_t i = 0; i < n; i++) {
                for (uint32_t d = 0; d < FREE_DIM && batch[i] == key; d++) {
                    sum[d] += (double)free_gradient(key, r, step, d);
                }
                shows += batch[i] == key;
            }
        }
    }
    uint32_t owner = 0;
    while (tn_partition_of(key, TN_PARTITIONS) >= w->shares->owners.from[owner + 1]) {
        owner++;
    }
    kit_row row;
    assert_int_equal(kit_row_of(w->seat[owner].shard.table, key, &row), shows > 0);
    if (shows > 0) {
        assert_true(row.view.show == shows);
        for (uint32_t d = 0; d < FREE_DIM; d++) {
            assert_true(fabs((double)row.data[d] + lr * sum[d]) < tolerance);
        }
    }
}

static void check_dense(const free_world *w, double lr, double tolerance)
{
    uint64_t batch[FREE_KEYS];
    for (uint32_t d = 0; d < FREE_DENSE; d++) {
        double sum = 0;
        for (uint32_t r = 0; r < w->opts.n; r++) {
            for (uint64_t step = 0; step < w->opts.steps; step++) {
                const bool some = free_batch(r, step, batch) > 0;
                sum += some ? (double)free_gradient(0, r, step, d) : 0;
            }
        }
        if (d >= w->opts.moving.begin && d < w->opts.moving.end) {
            continue;
        }
        for (uint32_t r = 0; r < w->opts.n; r++) {
            assert_true(fabs((double)w->seat[r].weights[d] + lr * sum) < tolerance);
        }
    }
}

void free_world_check(free_world *w, double lr, double tolerance)
{
    uint64_t batch[FREE_KEYS];
    uint64_t all = 0;
    for (uint32_t r = 0; r < w->opts.n; r++) {
        for (uint64_t step = 0; step < w->opts.steps; step++) {
            all += free_batch(r, step, batch) > 0;
        }
    }
    for (uint32_t r = 0; r < w->opts.n; r++) {
        assert_int_equal(w->seat[r].updates, all);
        assert_int_equal(tn_dense_t(w->seat[r].shard.dense), all);
    }
    for (uint64_t i = 0; i < FREE_KEYS; i++) {
        check_row(w, free_key(i), lr, tolerance);
    }
    check_dense(w, lr, tolerance);
}
