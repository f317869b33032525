/* serving.c - see serving.h. */
#include "serving.h"

#include "base/core/bytes.h"
#include "cluster/wire/key_codec.h"
#include "ps/shard/dense.h"
#include "ranks.h"
#include "support/test.h"

static void keep(served *to, const tn_frame *frame, const tn_out_message *outgoing)
{
    *to = (served){.frame = outgoing->frame, .rank = frame->rank, .sequence = frame->sequence};
    memcpy(to->payload, outgoing->bytes + TN_FRAME_HEAD, outgoing->frame.bytes);
}

static void got_answer(void *arg, const tn_frame *request, tn_out_message *outgoing)
{
    serving *s = arg;
    (void)pthread_mutex_lock(&s->lock);
    if (s->n_answers < SERVING_ANSWERS && outgoing->frame.bytes <= SERVING_BYTES) {
        keep(&s->answer[s->n_answers++], request, outgoing);
    } else {
        s->n_lost++;
    }
    (void)pthread_mutex_unlock(&s->lock);
    tn_out_message_drop(outgoing);
    tn_wakeup_signal(&s->heard);
}

static tn_status got_norm(void *arg, uint32_t code, const double *values, uint32_t n, tn_error *err)
{
    serving *s = arg;
    (void)err;
    s->norm2 = values[0];
    s->n_norms += code == 0 && n == 1;
    return TN_OK;
}

static void choose_keys(serving *s)
{
    uint32_t n = 0;
    for (uint64_t i = 0; n < SERVING_KEYS || s->foreign == 0; i++) {
        const uint64_t key = ranks_key(i);
        const bool own = tn_partition_of(key, TN_PARTITIONS) < s->shares->owners.from[1];
        if (own && n < SERVING_KEYS) {
            s->key[n++] = key;
        } else if (!own) {
            s->foreign = key;
        }
    }
}

serving *serving_new(double clip)
{
    serving *s = tn_alloc(1, sizeof *s, "an owner");
    s->arena = tn_arena_new(1 << 16);
    s->m = kit_model_plain(s->arena, SERVING_DIM, kit_rule(s->arena, "sgd", "lr=1"));
    s->m->rules.dense = kit_rule(s->arena, "sgd", "lr=1");
    s->m->rules.clip_global = clip;
    assert_int_equal(tn_shares_new(&s->shares, SERVING_RANKS, SERVING_DENSE, NULL), TN_OK);
    assert_int_equal(s->shares->dense[1], SERVING_OWN);
    ranks_make_shard(s->m, s->weights, SERVING_OWN, &s->shard);
    assert_int_equal(tn_out_messages_new(&s->pool, NULL), TN_OK);
    tn_reply_queue_init(&s->replies);
    tn_wakeup_init(&s->heard);
    (void)pthread_mutex_init(&s->lock, NULL);
    choose_keys(s);
    for (uint32_t r = 0; r < SERVING_RANKS; r++) {
        tn_dedup_begin(&s->dedup[r], SERVING_START + r);
    }
    s->exchange = (tn_exchange){.arena = s->arena,
                                .pool = s->pool,
                                .replies = &s->replies,
                                .dedup = s->dedup,
                                .shares = s->shares,
                                .layout = &s->m->layout,
                                .shard = &s->shard,
                                .own = s->weights};
    const tn_reply_path reply = {s->pool, got_answer, s};
    assert_int_equal(tn_sync_server_new(&s->serve, &s->exchange, &reply, got_norm, NULL), TN_OK);
    return s;
}

void serving_free(serving *s)
{
    tn_sync_server_free(s->serve);
    assert_int_equal(s->n_lost, 0);
    tn_reply_queue_done(&s->replies);
    tn_wakeup_done(&s->heard);
    (void)pthread_mutex_destroy(&s->lock);
    tn_out_messages_free(s->pool);
    tn_dense_free(s->shard.dense);
    tn_table_free(s->shard.table);
    tn_shares_free(s->shares);
    tn_arena_free(s->arena);
    tn_free(s);
}

static tn_frame request_of(serving *s, tn_frame_type type, uint32_t rank, uint64_t sequence)
{
    return (tn_frame){.type = type,
                      .rank = rank,
                      .sequence = sequence,
                      .incarnation = SERVING_START + rank,
                      .payload = s->payload};
}

tn_frame serving_pull_keys(serving *s, uint32_t rank, uint64_t sequence, const uint64_t *key,
                           uint32_t n)
{
    const kit_keys *keys = kit_keys_new(s->arena, &s->m->layout, key, NULL, n);
    tn_key_place scratch[2 * SERVING_KEYS];
    uint32_t index[SERVING_KEYS];
    const tn_key_order order = tn_keyblock_sort(&keys->set, 0, scratch, index);
    const tn_keyblock_shape shape = tn_keyblock_measure(&keys->set, order);
    tn_frame f = request_of(s, TN_FRAME_PULL, rank, sequence);
    f.bytes = TN_PULL_PARAMS + shape.bytes;
    f.count[TN_KEYS] = n;
    f.count[TN_ROW_FLOATS] = shape.floats;
    assert_true(f.bytes <= SERVING_BYTES);
    memcpy(s->payload, &(tn_pull_params){.examples = 4, .weight_sum = 4}, TN_PULL_PARAMS);
    tn_keyblock_write(&keys->set, order, &shape, s->payload + TN_PULL_PARAMS);
    return f;
}

tn_frame serving_pull(serving *s, uint32_t rank, uint64_t sequence)
{
    return serving_pull_keys(s, rank, sequence, s->key, SERVING_KEYS);
}

tn_frame serving_push(serving *s, uint32_t rank, uint64_t sequence, float gradient)
{
    float all[SERVING_FLOATS + SERVING_OWN];
    for (uint32_t i = 0; i < SERVING_FLOATS + SERVING_OWN; i++) {
        all[i] = gradient;
    }
    tn_frame f = request_of(s, TN_FRAME_PUSH, rank, sequence);
    f.bytes = TN_PUSH_PARAMS + sizeof all;
    f.count[TN_KEYS] = SERVING_KEYS;
    f.count[TN_ROW_FLOATS] = SERVING_FLOATS;
    f.count[TN_DENSE_FLOATS] = SERVING_OWN;
    memcpy(s->payload, &(tn_push_params){.pull = sequence, .lr_factor = 1}, TN_PUSH_PARAMS);
    memcpy(s->payload + TN_PUSH_PARAMS, all, sizeof all);
    return f;
}

tn_frame serving_norm(serving *s, uint32_t rank, uint64_t sequence, double norm2)
{
    tn_frame f = request_of(s, TN_FRAME_SHARE, rank, sequence);
    f.bytes = sizeof norm2;
    f.count[TN_DENSE_FLOATS] = 1;
    tn_store_f64(s->payload, norm2);
    return f;
}

void serving_take(serving *s, tn_frame request)
{
    tn_sync_server_take(s->serve, &request);
}

void serving_run(serving *s)
{
    tn_error err = {0};
    tn_status status = tn_sync_server_run(s->serve, NULL, &err);
    assert_ok(status, err.text);
}

void serving_refused(const serving *s, uint32_t n, const tn_frame *request, tn_refusal code)
{
    assert_int_equal(s->n_answers, n);
    const served *a = &s->answer[n - 1];
    assert_int_equal(a->frame.type, TN_FRAME_REFUSED);
    assert_int_equal(a->frame.code, code);
    assert_int_equal(a->rank, request->rank);
    assert_int_equal(a->sequence, request->sequence);
}

const served *serving_answer(const serving *s, uint32_t rank, uint64_t sequence)
{
    const served *found = NULL;
    for (uint32_t i = 0; i < s->n_answers; i++) {
        if (s->answer[i].rank == rank && s->answer[i].sequence == sequence) {
            found = &s->answer[i];
        }
    }
    return found;
}
