/* test_batch_messages.c - what a worker writes of its batch for each owner, as the owner reads it.
 */
#include "cluster/exchange/batch_messages.h"
#include "ps/kit.h"

#include "support/test.h"

enum { RANKS = 3, KEYS = 90, DIM = 2, FLAT = 100 };

typedef struct world {
    tn_arena *arena;
    kit_model *m;
    kit_keys *keys;
    tn_out_messages *pool;
    tn_shares *shares;
    tn_exchange exchange;
    float residual[FLAT];
    tn_owner_slices slices;
    float rows[KEYS * DIM], grads[KEYS * DIM], dense[FLAT];
} world;

static world *world_new(tn_values kind)
{
    tn_arena *arena = tn_arena_new(1 << 16);
    world *w = TN_NEW(arena, world);
    uint64_t key[KEYS];
    w->arena = arena;
    w->m = kit_model_plain(arena, DIM, kit_rule(arena, "sgd", NULL));
    for (uint32_t i = 0; i < KEYS; i++) {
        key[i] = tn_stream2(23, 5, i);
    }
    for (uint32_t i = 0; i < KEYS * DIM; i++) {
        w->grads[i] = (float)i - 20;
    }
    for (uint32_t i = 0; i < FLAT; i++) {
        w->dense[i] = (float)i + 1.0F / 3;
    }
    assert_int_equal(tn_shares_new(&w->shares, RANKS, FLAT, NULL), TN_OK);
    assert_int_equal(tn_out_messages_new(&w->pool, NULL), TN_OK);
    w->exchange = (tn_exchange){.pool = w->pool, .shares = w->shares, .values = kind};
    w->keys = kit_keys_new(arena, &w->m->layout, key, NULL, KEYS);
    w->keys->set.owners = &w->shares->owners;
    assert_int_equal(tn_owner_slices_begin(&w->slices, RANKS, &w->keys->set, w->rows, NULL), TN_OK);
    return w;
}

static void world_free(world *w)
{
    tn_owner_slices_done(&w->slices);
    tn_out_messages_free(w->pool);
    tn_shares_free(w->shares);
    tn_arena_free(w->arena);
}

/* The rows that an owner answers: each float tells its key. */
static float row_of(uint64_t key, uint32_t d)
{
    return (float)(key >> 48) + (float)d;
}

static tn_frame answer_of(world *w, const tn_keyset *keys, char *payload, uint64_t sequence)
{
    const uint32_t n = keys->n * DIM;
    float *rows = TN_NEW_ARRAY(w->arena, float, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        rows[i] = row_of(keys->key[i / DIM], i % DIM);
    }
    assert_true(tn_values_write(w->exchange.values, rows, n, payload + TN_ROWS_PARAMS) ==
                TN_VALUES_FINITE);
    return (tn_frame){.type = TN_FRAME_ROWS,
                      .flags = tn_frame_flags(w->exchange.values, TN_VALUES_F32),
                      .sequence = sequence,
                      .count = {keys->n, n, 0},
                      .payload = payload};
}

static void ask_owner(world *w, uint32_t owner, tn_keyblock *block)
{
    const tn_keyblock_rules rules = {&w->shares->owners, &w->m->layout, owner};
    const tn_pull_params params = {KEYS, 45};
    tn_pull_params got;
    tn_out_message *p = NULL;
    assert_int_equal(tn_owner_slices_pull(&w->slices, &w->exchange, owner, &params, &p, NULL),
                     TN_OK);
    assert_int_equal(p->frame.type, TN_FRAME_PULL);
    assert_int_equal(tn_pull_params_get(&got, tn_out_message_payload(p)), TN_DROP_NONE);
    assert_true(got.examples == KEYS && got.weight_sum > 44 && got.weight_sum < 46);
    assert_int_equal(tn_keyblock_read(block, tn_out_message_payload(p) + TN_PULL_PARAMS,
                                      p->frame.bytes - TN_PULL_PARAMS, p->frame.count, &rules),
                     TN_DROP_NONE);
    tn_out_message_drop(p);
}

static void check_push(world *w, uint32_t owner, const tn_keyblock *block, uint64_t sequence)
{
    const tn_push push = {.lr_factor = .5, .day = 8};
    const tn_slices_gradients grads = {w->grads, w->dense, w->residual, 3, .25, &push};
    const size_t from = w->shares->dense[owner];
    const size_t n_dense = w->shares->dense[owner + 1] - from;
    float got[KEYS * DIM + FLAT];
    tn_push_params params;
    tn_out_message *p = NULL;
    assert_int_equal(tn_owner_slices_push(&w->slices, &w->exchange, owner, &grads, &p, NULL),
                     TN_OK);
    assert_int_equal(p->frame.type, TN_FRAME_PUSH);
    assert_int_equal(p->frame.count[TN_KEYS], block->keys.n);
    assert_int_equal(p->frame.count[TN_DENSE_FLOATS], n_dense);
    assert_int_equal(tn_push_params_get(&params, tn_out_message_payload(p)), TN_DROP_NONE);
    assert_true(params.pull == sequence && params.day == 8 && params.norm > 2.9F &&
                params.norm < 3.1F && params.lr_factor < .6 && params.loss == .25);
    const uint32_t n = p->frame.count[TN_ROW_FLOATS];
    const char *floats = tn_out_message_payload(p) + TN_PUSH_PARAMS;
    assert_int_equal(tn_values_read(w->exchange.values, floats, n, got), TN_VALUES_FINITE);
    assert_int_equal(tn_values_read(w->exchange.values,
                                    floats + n * tn_values_bytes(w->exchange.values), n_dense,
                                    got + n),
                     TN_VALUES_FINITE);
    for (uint32_t k = 0; k < KEYS; k++) {
        for (uint32_t i = 0; i < block->keys.n; i++) {
            if (block->keys.key[i] == w->keys->set.key[k]) {
                assert_memory_equal(got + (size_t)i * DIM, w->grads + w->keys->set.at[k],
                                    DIM * sizeof(float));
            }
        }
    }
    for (size_t i = 0; i < n_dense; i++) {
        assert_float_equal(got[n + i], w->dense[from + i], .05);
    }
    tn_out_message_drop(p);
}

TEST(every_owner_gets_its_slice_and_its_answer_finds_home)
{
    for (tn_values kind = TN_VALUES_F32; kind <= TN_VALUES_F16; kind++) {
        world *w = world_new(kind);
        tn_keyblock block[RANKS] = {{{0}, NULL}};
        char payload[TN_ROWS_PARAMS + sizeof(float) * KEYS * DIM];
        uint32_t n = 0;
        for (uint32_t r = 0; r < RANKS; r++) {
            ask_owner(w, r, &block[r]);
            n += block[r].keys.n;
        }
        assert_int_equal(n, KEYS);
        for (uint32_t r = 0; r < RANKS; r++) {
            tn_frame f = answer_of(w, &block[r].keys, payload, 40 + r);
            assert_true(tn_owner_slices_rows(&w->slices, r, &f, true));
            assert_int_equal(w->slices.n_rows, r + 1);
            check_push(w, r, &block[r], 40 + r);
            tn_keyblock_done(&block[r]);
        }
        for (uint32_t i = 0; i < KEYS * DIM && kind == TN_VALUES_F32; i++) {
            assert_true(w->rows[i] == row_of(w->keys->set.key[i / DIM], i % DIM));
        }
        world_free(w);
    }
}

TEST(an_answer_that_does_not_fit_is_told)
{
    world *w = world_new(TN_VALUES_F32);
    tn_keyblock block CLEANUP(tn_keyblock_done) = {{0}, NULL};
    char payload[TN_ROWS_PARAMS + sizeof(float) * KEYS * DIM];
    ask_owner(w, 1, &block);
    tn_frame f = answer_of(w, &block.keys, payload, 7);
    tn_frame shorter = f;
    shorter.count[TN_ROW_FLOATS]--;
    assert_false(tn_owner_slices_rows(&w->slices, 1, &shorter, true));
    assert_false(tn_owner_slices_rows(&w->slices, 1, &f, false)); /* none were due */
    const float bad = NAN;
    char was[sizeof bad];
    memcpy(was, payload + TN_ROWS_PARAMS, sizeof was);
    memcpy(payload + TN_ROWS_PARAMS, &bad, sizeof bad);
    assert_false(tn_owner_slices_rows(&w->slices, 1, &f, true));
    memcpy(payload + TN_ROWS_PARAMS, was, sizeof was);
    assert_int_equal(w->slices.n_rows, 0);
    assert_true(tn_owner_slices_rows(&w->slices, 1, &f, true));
    assert_false(tn_owner_slices_rows(&w->slices, 1, &f, true)); /* twice */
    assert_int_equal(w->slices.n_rows, 1);
    world_free(w);
}

TEST(a_gradient_that_cannot_travel_is_told)
{
    for (uint32_t dense = 0; dense < 2; dense++) {
        world *w = world_new(TN_VALUES_F16);
        const tn_push push = {.step = 12};
        const tn_slices_gradients grads = {w->grads, w->dense, w->residual, 0, 0, &push};
        tn_keyblock block CLEANUP(tn_keyblock_done) = {{0}, NULL};
        tn_out_message *p = NULL;
        tn_error err = {0};
        ask_owner(w, 0, &block);
        float *which = dense ? &w->dense[0] : &w->grads[0];
        *which = 1e9F; /* beyond f16 */
        assert_int_equal(tn_owner_slices_push(&w->slices, &w->exchange, 0, &grads, &p, &err),
                         TN_E_DIVERGED);
        assert_string_equal(err.text, "the gradient of step 13 is not finite");
        world_free(w);
    }
}

TEST(error_feedback_brings_what_rounding_took)
{
    world *w = world_new(TN_VALUES_BF16);
    const tn_push push = {.step = 0};
    tn_keyblock block CLEANUP(tn_keyblock_done) = {{0}, NULL};
    ask_owner(w, 0, &block);
    double sent = 0;
    for (uint32_t i = 0; i < 64; i++) {
        const tn_slices_gradients grads = {w->grads, w->dense, w->residual, 0, 0, &push};
        tn_out_message *p = NULL;
        float got;
        assert_int_equal(tn_owner_slices_push(&w->slices, &w->exchange, 0, &grads, &p, NULL),
                         TN_OK);
        const size_t at = TN_PUSH_PARAMS + sizeof(uint16_t) * block.keys.n * DIM;
        assert_int_equal(tn_values_read(TN_VALUES_BF16, tn_out_message_payload(p) + at, 1, &got),
                         TN_VALUES_FINITE);
        sent += (double)got;
        tn_out_message_drop(p);
    }
    assert_true(fabs(sent - 64.0 / 3) < .01); /* one rounding alone is off by .001, 64 by .08 */
    world_free(w);
}
