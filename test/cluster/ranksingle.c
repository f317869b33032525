/* ranksingle.c - the same by one process: the union of the ranks' keys, gradients added in rank
 * order. */
#include "ps/shard/dense.h"
#include "ranks.h"
#include "support/test.h"

typedef struct single {
    tn_shard shard;
    float weights[RANKS_DENSE];
} single;

static uint32_t unite(ranks_world *w, uint64_t k, uint64_t *key, uint32_t *show)
{
    uint32_t n = 0;
    for (uint64_t i = 0; i < RANKS_KEYS; i++) {
        uint32_t times = 0;
        for (uint32_t r = 0; r < w->n; r++) {
            const ranks_batch *b = &w->batch[r][k];
            for (uint32_t x = 0; x < b->n; x++) {
                times += b->key[x] == ranks_key(i);
            }
        }
        if (times > 0) {
            key[n] = ranks_key(i);
            show[n++] = times;
        }
    }
    return n;
}

static bool holds(const ranks_batch *b, uint64_t key)
{
    for (uint32_t i = 0; i < b->n; i++) {
        if (b->key[i] == key) {
            return true;
        }
    }
    return false;
}

static void single_step(ranks_world *w, single *one, uint64_t k, uint64_t step)
{
    uint64_t key[RANKS_KEYS];
    uint32_t show[RANKS_KEYS];
    uint32_t n = unite(w, k, key, show);
    kit_keys *keys = kit_keys_new(w->arena, &w->m->layout, key, NULL, n);
    float rows[RANKS_KEYS * RANKS_DIM];
    float grads[RANKS_KEYS * RANKS_DIM] = {0};
    float dense[RANKS_DENSE] = {0};
    tn_push push = {.step = step, .lr_factor = 1, .day = 9};
    assert_int_equal(tn_shard_pull(&one->shard, NULL, &keys->set, rows, NULL), TN_OK);
    for (uint32_t i = 0; i < n; i++) {
        keys->show[keys->index[i]] = show[i];
    }
    for (uint32_t r = 0; r < w->n; r++) {
        const ranks_batch *b = &w->batch[r][k];
        push.weight_sum += b->n;
        for (uint32_t i = 0; i < n * RANKS_DIM; i++) {
            uint64_t row = keys->set.key[i / RANKS_DIM];
            grads[i] += holds(b, row) ? ranks_gradient(rows[i], row, r, k, i % RANKS_DIM) : 0;
        }
        for (uint32_t d = 0; d < RANKS_DENSE && b->n > 0; d++) {
            dense[d] += b->dense[d];
        }
    }
    double norm = 0;
    tn_gradients all = {.keys = &keys->set, .rows = grads, .dense = dense};
    assert_int_equal(tn_shard_push(&one->shard, NULL, &all, &push, &norm, NULL), TN_OK);
}

static void run_single(ranks_world *w, single *one)
{
    *one = (single){.weights = {0}};
    ranks_make_shard(w->m, one->weights, RANKS_DENSE, &one->shard);
    uint64_t step = 0;
    for (uint64_t k = 0; k < RANKS_STEPS; k++) {
        double weight = 0;
        for (uint32_t r = 0; r < w->n; r++) {
            weight += w->batch[r][k].note.weight_sum;
        }
        if (weight > 0) {
            single_step(w, one, k, step++);
        }
    }
}

void ranks_check(ranks_world *w)
{
    const uint32_t *from = w->shares->owners.from;
    single one;
    run_single(w, &one);
    uint64_t n_rows = 0;
    for (uint64_t i = 0; i < RANKS_KEYS; i++) {
        uint32_t p = tn_partition_of(ranks_key(i), TN_PARTITIONS);
        kit_row want;
        bool there = kit_row_of(one.shard.table, ranks_key(i), &want);
        for (uint32_t o = 0; o < w->n; o++) {
            kit_row got;
            bool mine = p >= from[o] && p < from[o + 1];
            assert_int_equal(kit_row_of(w->owner[o].shard.table, ranks_key(i), &got),
                             mine && there);
            if (!mine || !there) {
                continue;
            }
            n_rows++;
            assert_true(got.view.show == want.view.show && got.view.last_seen == 9);
            assert_int_equal(got.view.n_floats, want.view.n_floats);
            for (uint32_t x = 0; x < want.view.n_floats; x++) {
                assert_float_equal(got.data[x], want.data[x], 2e-6);
            }
        }
    }
    assert_int_equal(n_rows, tn_table_rows(one.shard.table));
    assert_true(n_rows > RANKS_KEYS / 2);
    for (uint32_t o = 0; o < w->n; o++) {
        for (uint32_t d = 0; d < w->owner[o].size; d++) {
            assert_float_equal(w->owner[o].weights[d], one.weights[w->owner[o].begin + d], 2e-6);
        }
    }
    tn_dense_free(one.shard.dense);
    tn_table_free(one.shard.table);
}
