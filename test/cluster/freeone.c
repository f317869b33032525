/* freeone.c - see freeone.h. */
#include "freeone.h"

#include "base/core/bytes.h"
#include "base/core/clock.h"
#include "base/math/crc32c.h"
#include "ps/shard/dense.h"
#include "support/test.h"

static uint64_t incarnation_of(uint32_t rank)
{
    return 90 + rank;
}

static void keep_answer(void *arg, const tn_frame *request, tn_out_message *outgoing)
{
    free_one *x = arg;
    if (x->damage != 0 && request->rank == 1) {
        tn_out_message_drop(outgoing); /* it does not listen */
        return;
    }
    (void)pthread_mutex_lock(&x->lock);
    assert_true(x->n_answers < FREE_ONE_ANSWERS_MAX);
    free_answer *a = &x->answer[x->n_answers++];
    const char *payload = tn_out_message_payload(outgoing);
    *a = (free_answer){.rank = request->rank,
                       .code = outgoing->frame.code,
                       .type = outgoing->frame.type,
                       .sequence = request->sequence};
    if (a->type == TN_FRAME_ROWS) {
        a->n = outgoing->frame.count[TN_ROW_FLOATS];
        payload += TN_ROWS_PARAMS;
    } else if (a->type == TN_FRAME_DENSE) {
        a->n = outgoing->frame.count[TN_DENSE_FLOATS];
        assert_int_equal(tn_dense_params_get(&a->params, payload), TN_DROP_NONE);
        payload += TN_DENSE_PARAMS;
    }
    assert_true(a->n <= FREE_ONE_ROW_FLOATS + FREE_ONE_FLAT);
    memcpy(a->value, payload, a->n * sizeof *a->value);
    (void)pthread_mutex_unlock(&x->lock);
    tn_out_message_drop(outgoing);
    tn_wakeup_signal(&x->wakeup);
}

static void make_keys(free_one *x)
{
    uint32_t n = 0;
    for (uint64_t i = 0; n < FREE_ONE_KEYS; i++) {
        const uint64_t key = tn_stream2(29, 3, i);
        if (tn_partition_of(key, TN_PARTITIONS) < x->shares->owners.from[1]) {
            x->key[n++] = key;
        }
    }
}

static void make_shard(free_one *x)
{
    x->dense = (uint32_t)x->shares->dense[1];
    const tn_dense_run run = {0, x->dense};
    const tn_dense_opts dense = {.rule = &x->m->rules.dense,
                                 .weights = x->weights,
                                 .size = x->dense,
                                 .runs = &run,
                                 .n_runs = 1};
    x->shard = (tn_shard){.table = kit_table(x->m, 5), .rules = &x->m->rules};
    assert_int_equal(tn_dense_new(&x->shard.dense, &dense, NULL), TN_OK);
}

free_one *free_one_new(uint32_t permits, const char *rule)
{
    free_one *x = tn_alloc(1, sizeof *x, "an owner");
    *x = (free_one){.arena = tn_arena_new(1 << 16)};
    const char *options = rule != NULL ? rule : "lr=.5";
    x->answer = tn_alloc(FREE_ONE_ANSWERS_MAX, sizeof *x->answer, "answers");
    x->m = kit_model_plain(x->arena, FREE_ONE_DIM, kit_rule(x->arena, "sgd", options));
    x->m->rules.dense = kit_rule(x->arena, "sgd", options);
    x->m->rules.clip_global = (double)INFINITY;
    assert_int_equal(tn_shares_new(&x->shares, FREE_ONE_RANKS, FREE_ONE_FLAT, NULL), TN_OK);
    assert_int_equal(tn_out_messages_new(&x->pool, NULL), TN_OK);
    make_keys(x);
    make_shard(x);
    tn_wakeup_init(&x->wakeup);
    tn_reply_queue_init(&x->replies);
    (void)pthread_mutex_init(&x->lock, NULL);
    for (uint32_t r = 0; r < FREE_ONE_RANKS; r++) {
        tn_dedup_begin(&x->dedup[r], incarnation_of(r));
    }
    x->exchange = (tn_exchange){.arena = x->arena,
                                .pool = x->pool,
                                .replies = &x->replies,
                                .step = 100,
                                .staleness = permits - 1,
                                .dedup = x->dedup,
                                .shares = x->shares,
                                .layout = &x->m->layout,
                                .shard = &x->shard};
    const tn_reply_path reply = {x->pool, keep_answer, x};
    assert_int_equal(tn_async_server_open(&x->serve, &x->exchange, &reply, NULL), TN_OK);
    return x;
}

void free_one_free(free_one *x)
{
    tn_async_server_close(x->serve);
    tn_wakeup_done(&x->wakeup);
    tn_reply_queue_done(&x->replies);
    (void)pthread_mutex_destroy(&x->lock);
    tn_dense_free(x->shard.dense);
    tn_table_free(x->shard.table);
    tn_out_messages_free(x->pool);
    tn_shares_free(x->shares);
    tn_arena_free(x->arena);
    tn_free(x->answer);
    tn_free(x);
}

/* Some bytes are others, and all that any sender can put right is: what could be read. */
static bool damage(free_one *x, tn_frame *f, char *bytes)
{
    const tn_frame_limits limits = {.bytes_max = 1 << 20,
                                    .peers = FREE_ONE_RANKS,
                                    .count_max = {UINT32_MAX, UINT32_MAX, UINT32_MAX}};
    const size_t size = TN_FRAME_HEAD + f->bytes;
    const char *payload = f->payload;
    tn_frame_seal(bytes, f);
    for (uint64_t n = tn_draw(x->damage, x->draws++) % 4; n > 0; n--) {
        const uint64_t drawn = tn_draw(x->damage, x->draws++);
        size_t at = drawn % size;
        if (drawn >> 60 < 6) {
            at = 4 + drawn % 76; /* half of them in the header */
        }
        bytes[at] = (char)(drawn >> 32);
    }
    tn_store_u32(bytes, TN_FRAME_MAGIC);
    tn_store_u16(bytes + 4, TN_FRAME_VERSION);
    tn_store_u64(bytes + 8, 0);
    tn_store_u64(bytes + 16, 0);
    tn_store_u64(bytes + 64, size - TN_FRAME_HEAD);
    tn_store_u32(bytes + TN_FRAME_HEAD - 4,
                 tn_crc32c(tn_crc32c(0, bytes, TN_FRAME_HEAD - 4), payload, f->bytes));
    /* The rank is that of the connection. */
    return tn_frame_read(f, bytes, size, &limits) == TN_DROP_NONE && f->rank == 1 &&
           (f->type == TN_FRAME_PULL || f->type == TN_FRAME_PUSH);
}

/* The payload ends where its memory does, so that a reader that goes beyond is found. */
static void take(free_one *x, tn_out_message *p, uint32_t rank, uint64_t sequence, free_edit *edit)
{
    char *bytes FREED(tn_free) = tn_alloc(TN_FRAME_HEAD + p->frame.bytes, 1, "a message");
    free_message m = {p->frame, bytes + TN_FRAME_HEAD};
    memcpy(m.payload, tn_out_message_payload(p), m.frame.bytes);
    m.frame.rank = rank;
    m.frame.incarnation = incarnation_of(rank);
    m.frame.sequence = sequence;
    m.frame.payload = m.payload;
    if (edit != NULL) {
        edit(&m);
    }
    if (x->damage == 0 || rank != 1) {
        tn_async_server_take(x->serve, &m.frame);
    } else if (damage(x, &m.frame, bytes)) {
        x->n_damaged++;
        tn_async_server_take(x->serve, &m.frame);
    }
    tn_out_message_drop(p);
}

static kit_keys *keys_of(free_one *x, tn_arena *arena, const free_pull *p)
{
    kit_keys *keys = kit_keys_new(arena, &x->m->layout, x->key + p->from, NULL, p->to - p->from);
    keys->set.owners = &x->shares->owners;
    for (uint32_t i = 0; i < keys->set.n; i++) {
        keys->show[i] = p->show;
    }
    return keys;
}

void free_one_pull(free_one *x, const free_pull *p)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 14);
    const tn_pull_params params = {p->examples, (double)p->examples};
    tn_owner_slices slices = {0};
    tn_out_message *outgoing = NULL;
    assert_int_equal(
        tn_owner_slices_begin(&slices, FREE_ONE_RANKS, &keys_of(x, arena, p)->set, NULL, NULL),
        TN_OK);
    assert_int_equal(tn_owner_slices_pull(&slices, &x->exchange, 0, &params, &outgoing, NULL),
                     TN_OK);
    take(x, outgoing, p->rank, p->sequence, p->edit);
    tn_owner_slices_done(&slices);
}

void free_one_push(free_one *x, const free_push *p)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 14);
    const tn_push push = {.lr_factor = 1, .day = 9};
    float grads[FREE_ONE_ROW_FLOATS];
    float dense[FREE_ONE_FLAT];
    tn_owner_slices slices = {0};
    tn_out_message *outgoing = NULL;
    for (uint32_t i = 0; i < FREE_ONE_ROW_FLOATS; i++) {
        grads[i] = p->value;
    }
    for (uint32_t i = 0; i < FREE_ONE_FLAT; i++) {
        dense[i] = p->value;
    }
    const tn_slices_gradients all = {
        .rows = grads, .dense = p->of->examples > 0 ? dense : NULL, .norm = p->norm, .push = &push};
    assert_int_equal(
        tn_owner_slices_begin(&slices, FREE_ONE_RANKS, &keys_of(x, arena, p->of)->set, NULL, NULL),
        TN_OK);
    assert_int_equal(
        tn_owner_slices_pull(&slices, &x->exchange, 0, &(tn_pull_params){0}, &outgoing, NULL),
        TN_OK); /* for the order of the keys */
    tn_out_message_drop(outgoing);
    slices.of[0].sequence = p->of->sequence;
    assert_int_equal(tn_owner_slices_push(&slices, &x->exchange, 0, &all, &outgoing, NULL), TN_OK);
    take(x, outgoing, p->of->rank, p->sequence, p->edit);
    tn_owner_slices_done(&slices);
}

void free_one_wait(free_one *x, uint32_t n)
{
    const uint64_t until = tn_clock_ns() + UINT64_C(120000000000);
    for (;;) {
        const uint64_t heard = tn_wakeup_count(&x->wakeup);
        (void)pthread_mutex_lock(&x->lock);
        const bool there = x->n_answers >= n;
        (void)pthread_mutex_unlock(&x->lock);
        if (there) {
            return;
        }
        assert_true(tn_wakeup_wait(&x->wakeup, heard, until));
    }
}

const free_answer *free_one_answer(free_one *x, uint32_t rank, uint64_t sequence)
{
    const free_answer *found = NULL;
    (void)pthread_mutex_lock(&x->lock);
    for (uint32_t i = 0; i < x->n_answers; i++) {
        if (x->answer[i].rank == rank && x->answer[i].sequence == sequence) {
            found = &x->answer[i];
        }
    }
    (void)pthread_mutex_unlock(&x->lock);
    return found;
}
