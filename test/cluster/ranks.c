/* ranks.c - see ranks.h. */
#include "ranks.h"

#include "ps/shard/dense.h"
#include "support/test.h"

uint64_t ranks_key(uint64_t i)
{
    return tn_stream2(7, 7, i);
}

/* The batches are a function of (rank, step), not of the number of ranks. */
static void make_batch(ranks_world *w, uint32_t rank, uint64_t step)
{
    ranks_batch *b = &w->batch[rank][step];
    uint64_t stream = tn_stream2(3, rank, step);
    if (step == RANKS_STEPS) {
        return;
    }
    bool empty = (step + rank) % 5 == 3;
    for (uint64_t i = 0; i < RANKS_KEYS && !empty; i++) {
        if (tn_unit(tn_draw(stream, i)) < 0.3) {
            b->key[b->n++] = ranks_key(i);
        }
    }
    b->note.rows = b->n;
    b->note.weight_sum = step == 4 ? 0 : b->n; /* nobody's rows weigh anything then */
    for (uint32_t d = 0; d < RANKS_DENSE && b->n > 0; d++) {
        b->dense[d] = (float)tn_unit(tn_draw(stream, 1000 + d)) - 0.5F;
    }
}

static int ascending(const void *a, const void *b)
{
    const uint64_t *x = a;
    const uint64_t *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* A slice per owner, sorted. */
static void slice_batch(ranks_world *w, ranks_batch *b)
{
    qsort(b->key, b->n, sizeof *b->key, ascending);
    for (uint32_t o = 0; o < w->n; o++) {
        uint64_t key[RANKS_KEYS];
        uint32_t n = 0;
        for (uint32_t i = 0; i < b->n; i++) {
            uint32_t p = tn_partition_of(b->key[i], TN_PARTITIONS);
            if (p >= w->shares->owners.from[o] && p < w->shares->owners.from[o + 1]) {
                key[n++] = b->key[i];
            }
        }
        b->slice[o] = kit_keys_new(w->arena, &w->m->layout, key, NULL, n);
        b->rows[o] = TN_NEW_ARRAY(w->arena, float, (size_t)n *RANKS_DIM + 1);
        b->grads[o] = TN_NEW_ARRAY(w->arena, float, (size_t)n *RANKS_DIM + 1);
    }
}

static kit_model *model_of(tn_arena *arena, double clip)
{
    kit_model *m = kit_model_plain(arena, RANKS_DIM, kit_rule(arena, "adagrad", "lr=.1 l2=.01"));
    m->rules.dense = kit_rule(arena, "adam", "lr=.01 l2=.001");
    m->rules.clip_global = clip;
    return m;
}

void ranks_make_shard(const kit_model *m, float *weights, uint32_t size, tn_shard *out)
{
    const tn_dense_run run = {0, size};
    tn_dense_opts dense = {.rule = &m->rules.dense, .size = size, .runs = &run, .n_runs = size > 0};
    dense.weights = weights;
    *out = (tn_shard){.table = kit_table(m, 5), .rules = &m->rules};
    assert_int_equal(tn_dense_new(&out->dense, &dense, NULL), TN_OK);
}

ranks_world *ranks_new(uint32_t n, double clip, uint64_t seed)
{
    ranks_world *w = tn_alloc(1, sizeof *w, "ranks");
    *w = (ranks_world){.arena = tn_arena_new(1 << 16), .n = n, .stream = tn_stream2(seed, 1, n)};
    w->m = model_of(w->arena, clip);
    assert_int_equal(tn_shares_new(&w->shares, n, RANKS_DENSE, NULL), TN_OK);
    for (uint32_t o = 0; o < n; o++) {
        ranks_owner *own = &w->owner[o];
        own->begin = (uint32_t)w->shares->dense[o];
        own->size = (uint32_t)w->shares->dense[o + 1] - own->begin;
        ranks_make_shard(w->m, own->weights, own->size, &own->shard);
        const tn_exchange exchange = {.arena = w->arena,
                                      .rank = o,
                                      .shares = w->shares,
                                      .layout = &w->m->layout,
                                      .shard = &own->shard};
        assert_int_equal(tn_sync_step_new(&own->steps, &exchange, NULL), TN_OK);
    }
    for (uint32_t r = 0; r < n; r++) {
        for (uint64_t k = 0; k <= RANKS_STEPS; k++) {
            make_batch(w, r, k);
            slice_batch(w, &w->batch[r][k]);
        }
    }
    return w;
}

void ranks_free(ranks_world *w)
{
    for (uint32_t o = 0; o < w->n; o++) {
        tn_sync_step_free(w->owner[o].steps);
        tn_dense_free(w->owner[o].shard.dense);
        tn_table_free(w->owner[o].shard.table);
    }
    tn_shares_free(w->shares);
    tn_arena_free(w->arena);
    tn_free(w);
}

static void put(ranks_world *w, ranks_message m)
{
    assert_true(w->n_pending < RANKS_MESSAGES_MAX);
    w->pending[w->n_pending++] = m;
}

static void pull_all(ranks_world *w, uint32_t rank, uint64_t step)
{
    for (uint32_t o = 0; o < w->n && step <= RANKS_STEPS; o++) {
        put(w, (ranks_message){.kind = RANKS_PULL, .from = rank, .to = o, .step = step});
    }
}

float ranks_gradient(float row, uint64_t key, uint32_t rank, uint64_t step, uint32_t d)
{
    double noise = tn_unit(tn_draw(tn_stream2(key, rank, step), d)) - 0.5;
    return (float)noise + 0.1F * row;
}

/* A rank has the rows of all owners. */
static void compute(ranks_world *w, uint32_t rank, uint64_t step)
{
    ranks_batch *b = &w->batch[rank][step];
    pull_all(w, rank, step + 1); /* one step early */
    for (uint32_t o = 0; o < w->n; o++) {
        const tn_keyset *keys = &b->slice[o]->set;
        for (uint32_t i = 0; i < keys->n * RANKS_DIM; i++) {
            b->grads[o][i] =
                ranks_gradient(b->rows[o][i], keys->key[i / RANKS_DIM], rank, step, i % RANKS_DIM);
        }
        put(w, (ranks_message){.kind = RANKS_PUSH, .from = rank, .to = o, .step = step});
    }
}

static void hand_out_rows(ranks_world *w, uint32_t o, bool skipped)
{
    tn_sync_step *l = w->owner[o].steps;
    for (uint32_t r = 0; r < w->n; r++) {
        uint64_t step = w->owner[o].answered;
        ranks_batch *b = &w->batch[r][step];
        tn_joint_batch note = tn_sync_step_note(l, r);
        uint64_t first = 0;
        uint64_t all = 0;
        double weight = 0;
        for (uint32_t x = 0; x < w->n; x++) {
            first += x < r ? w->batch[x][step].note.rows : 0;
            all += w->batch[x][step].note.rows;
            weight += w->batch[x][step].note.weight_sum;
        }
        assert_int_equal(note.first_row, first);
        assert_int_equal(note.rows, all);
        assert_true(note.weight_sum == weight && note.over == (all == 0));
        if (!skipped) {
            tn_sync_step_give(l, NULL, r, b->rows[o]);
        }
        if (++b->n_answers < w->n) {
            continue;
        }
        w->over[r] = note.over;
        if (skipped) {
            pull_all(w, r, step + 1);
        } else {
            compute(w, r, step);
        }
    }
    w->owner[o].answered++;
}

static void turn(ranks_world *w, uint32_t o)
{
    tn_sync_step *l = w->owner[o].steps;
    for (;;) {
        tn_turn t;
        assert_int_equal(tn_sync_step_advance(l, NULL, &t, NULL), TN_OK);
        if (t == TN_TURN_NONE) {
            return;
        }
        if (t == TN_TURN_NORM) {
            for (uint32_t to = 0; to < w->n; to++) {
                put(w,
                    (ranks_message){
                        .kind = RANKS_NORM, .from = o, .to = to, .norm2 = tn_sync_step_norm2(l)});
            }
        } else if (t != TN_TURN_APPLIED) {
            hand_out_rows(w, o, t == TN_TURN_SKIPPED);
        }
    }
}

static void deliver(ranks_world *w, ranks_message m)
{
    ranks_batch *b = &w->batch[m.from][m.step];
    tn_sync_step *l = w->owner[m.to].steps;
    tn_status status = TN_OK;
    switch (m.kind) {
    case RANKS_PULL:
        status =
            tn_sync_step_pull(l, m.from, &b->note, b->n > 0 ? &b->slice[m.to]->set : NULL, NULL);
        break;
    case RANKS_PUSH:
        status = tn_sync_step_push(
            l, m.from,
            &(tn_pushed){.grads = b->grads[m.to],
                         .dense = b->n > 0 ? b->dense + w->owner[m.to].begin : NULL,
                         .lr_factor = 1,
                         .day = 9},
            NULL);
        break;
    case RANKS_NORM:
    default:
        status = tn_sync_step_norm(l, m.from, m.norm2, NULL);
        break;
    }
    assert_int_equal(status, TN_OK);
    turn(w, m.to);
}

/* Whether a message may overtake those before it: not one between the same two. */
static bool is_next(const ranks_world *w, uint32_t i)
{
    for (uint32_t j = 0; j < i; j++) {
        if (w->pending[j].from == w->pending[i].from && w->pending[j].to == w->pending[i].to) {
            return false;
        }
    }
    return true;
}

void ranks_run(ranks_world *w)
{
    for (uint32_t r = 0; r < w->n; r++) {
        pull_all(w, r, 0);
    }
    while (w->n_pending > 0) {
        uint32_t i = (uint32_t)(tn_draw(w->stream, w->draws++) % w->n_pending);
        if (!is_next(w, i)) {
            continue;
        }
        ranks_message m = w->pending[i];
        memmove(w->pending + i, w->pending + i + 1, (--w->n_pending - i) * sizeof w->pending[0]);
        deliver(w, m);
    }
    for (uint32_t r = 0; r < w->n; r++) {
        assert_true(w->over[r]);
    }
}
