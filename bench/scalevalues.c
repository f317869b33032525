/* scalevalues.c - keys and floats of one step: see scale.h.
 *
 * Rank 0 is the worker whose messages to all owners are timed, and the owner whose messages from
 * all ranks are. What the others would send is made beforehand. Its own messages to itself are
 * among them: in a run they are written and read, too, but not sealed. */
#include "config/diag.h"
#include "config/tree.h"
#include "ps/optim/optim.h"
#include "ps/shard/dense.h"
#include "ps/shard/shard.h"
#include "scale.h"
#include "tablerows.h"

#include "base/core/alloc.h"
#include "cluster/sync/sync_step.h"
#include "cluster/wire/request_headers.h"
#include "config/field.h"

#include <math.h>
#include <string.h>

/* One owner of a part of the model that is trained.
 *
 * 26 groups whose rows have a wide and a deep segment, under row-wise Adagrad; Adam on the dense
 * vector. No global clip: owners do not wait for each other.
 */
typedef struct owner {
    tn_arena *arena;
    tn_bench_model base; /* for its options */
    tn_share_group group[TN_SCALE_SLOTS];
    tn_rule rule[TN_SCALE_SLOTS * TN_SEGMENTS_MAX];
    tn_record record;
    tn_layout layout;
    tn_rules rules;
    float *weights;
    size_t dense; /* floats of its range */
    tn_shard shard;
    tn_sync_step *steps;
    tn_keyblock *block;          /* of each rank */
    float **grads, **dense_grad; /* of each rank; the caller takes memory for what comes */
    float *rows;                 /* for one */
} owner;

static tn_rule dense_rule(tn_arena *arena)
{
    const tn_optim *adam = &tn_optim_adam;
    tn_diag diag = {0};
    tn_binder binder = {.arena = arena, .diag = &diag};
    tn_tree *none = tn_tree_new(arena, TN_TREE_MAP, (tn_origin){.source = "bench"});
    void *opts = tn_arena_alloc(arena, 1, adam->choice.size, TN_CACHE_LINE);
    tn_fields_bind(&binder, adam->choice.fields, none, opts);
    TN_ASSERT(diag.n_errors == 0);
    return (tn_rule){
        .optim = adam, .opts = opts, .clip_row = (double)INFINITY, .clip_value = (double)INFINITY};
}

static void make_model(owner *own)
{
    own->arena = tn_arena_new(1 << 16);
    tn_bench_model_init(&own->base, TN_SCALE_WIDTH - 1, NULL, own->arena);
    own->record = (tn_record){.width = TN_SCALE_WIDTH,
                              .n_segments = 2,
                              .segment = {{"wide", 0, 1}, {"deep", 1, TN_SCALE_WIDTH - 1}}};
    own->layout = (tn_layout){TN_SCALE_SLOTS, own->group, 1, &own->record};
    for (uint32_t g = 0; g < TN_SCALE_SLOTS; g++) {
        own->group[g].name = "slot";
        for (uint32_t s = 0; s < own->record.n_segments; s++) {
            own->rule[g * TN_SEGMENTS_MAX + s] = own->base.rule[0];
        }
    }
    own->rules = (tn_rules){.layout = &own->layout,
                            .rule = own->rule,
                            .dense = dense_rule(own->arena),
                            .clip_global = (double)INFINITY};
}

static void make_shard(owner *own)
{
    const tn_dense_run run = {0, own->dense};
    const tn_dense_opts dense = {.rule = &own->rules.dense,
                                 .weights = own->weights,
                                 .size = own->dense,
                                 .runs = &run,
                                 .n_runs = own->dense > 0};
    const tn_table_opts table = {.rules = &own->rules, .seed = 1};
    own->shard.rules = &own->rules;
    tn_status status = tn_table_new(&own->shard.table, &table, NULL);
    TN_ASSERT(status == TN_OK);
    status = tn_dense_new(&own->shard.dense, &dense, NULL);
    TN_ASSERT(status == TN_OK);
}

/* Peer 0 of `shares`, which must outlive it. It stays in place. */
static void owner_init(owner *own, const tn_shares *shares)
{
    const uint32_t n = shares->owners.n_peers;
    make_model(own);
    own->dense = shares->dense[1] - shares->dense[0];
    own->weights = tn_alloc(own->dense + 1, sizeof(float), "weights");
    make_shard(own);
    const tn_exchange exchange = {
        .arena = own->arena, .shares = shares, .layout = &own->layout, .shard = &own->shard};
    tn_status status = tn_sync_step_new(&own->steps, &exchange, NULL);
    TN_ASSERT(status == TN_OK);
    own->block = tn_alloc(n, sizeof *own->block, "keys");
    own->grads = tn_alloc(n, sizeof *own->grads, "gradients");
    own->dense_grad = tn_alloc(n, sizeof *own->dense_grad, "gradients");
    own->rows = tn_alloc(TN_SCALE_FLOATS, sizeof(float), "rows");
}

static void owner_done(owner *own, uint32_t n_ranks)
{
    for (uint32_t r = 0; r < n_ranks; r++) {
        tn_keyblock_done(&own->block[r]);
        tn_free(own->grads[r]);
        tn_free(own->dense_grad[r]);
    }
    tn_sync_step_free(own->steps);
    tn_dense_free(own->shard.dense);
    tn_table_free(own->shard.table);
    tn_arena_free(own->arena);
    tn_free(own->block);
    tn_free((void *)own->grads);
    tn_free((void *)own->dense_grad);
    tn_free(own->rows);
    tn_free(own->weights);
}

/* ---- a step ---- */

typedef struct world {
    uint32_t n;
    tn_shares *shares;
    tn_scale_batch *batch;
    tn_key_order *order; /* of the worker's keys of each owner */
    float *rows, *dense; /* the worker's */
    owner own;
    tn_scale_message *pull, *push, *give, *back; /* to, to, from and from each owner */
    tn_scale_message *asks, *brings;             /* from each rank to the owner */
    tn_scale_message answer;
} world;

/* ---- a worker ---- */

static uint32_t dense_of(const world *w, uint32_t peer)
{
    return (uint32_t)(w->shares->dense[peer + 1] - w->shares->dense[peer]);
}

static void write_pull(const tn_scale_batch *b, uint32_t from, tn_key_order order,
                       tn_scale_message *m)
{
    const tn_keyblock_shape shape = tn_keyblock_measure(&b->keys, order);
    char *payload = tn_scale_payload(m, TN_PULL_PARAMS + shape.bytes);
    memcpy(payload,
           &(tn_pull_params){.examples = TN_SCALE_EXAMPLES, .weight_sum = TN_SCALE_EXAMPLES},
           TN_PULL_PARAMS);
    tn_keyblock_write(&b->keys, order, &shape, payload + TN_PULL_PARAMS);
    tn_scale_seal(
        m, &(tn_frame){.type = TN_FRAME_PULL, .rank = from, .count = {order.n, shape.floats}});
}

static void write_push(const world *w, const tn_scale_batch *b, uint32_t from, uint32_t to,
                       tn_key_order order, tn_scale_message *m)
{
    const size_t floats = (size_t)order.n * TN_SCALE_WIDTH;
    const uint32_t n_dense = dense_of(w, to);
    char *payload = tn_scale_payload(m, TN_PUSH_PARAMS + sizeof(float) * (floats + n_dense));
    memcpy(payload, &(tn_push_params){.pull = 1, .lr_factor = 1}, TN_PUSH_PARAMS);
    payload += TN_PUSH_PARAMS;
    size_t rows = tn_values_gather(TN_VALUES_F32, &b->keys, order, w->rows, payload);
    size_t dense = tn_values_write(TN_VALUES_F32, w->dense + w->shares->dense[to], n_dense,
                                   payload + sizeof(float) * floats);
    TN_ASSERT(rows == TN_VALUES_FINITE && dense == TN_VALUES_FINITE);
    tn_scale_seal(m, &(tn_frame){.type = TN_FRAME_PUSH,
                                 .rank = from,
                                 .count = {order.n, (uint32_t)floats, n_dense}});
}

/* Asks all owners, reads their rows, tells them the gradients, reads their weights. */
static void work(world *w)
{
    tn_scale_batch *b = w->batch;
    tn_frame f;
    for (uint32_t o = 0; o < w->n; o++) {
        uint32_t *index = b->index + tn_keys_of_peer(&b->keys, o).from;
        w->order[o] = tn_keyblock_sort(&b->keys, o, b->scratch, index);
        write_pull(b, 0, w->order[o], &w->pull[o]);
    }
    for (uint32_t o = 0; o < w->n; o++) {
        tn_scale_open(&w->give[o], w->n, &f);
        size_t bad = tn_values_scatter(TN_VALUES_F32, f.payload + TN_ROWS_PARAMS, &b->keys,
                                       w->order[o], w->rows);
        TN_ASSERT(bad == TN_VALUES_FINITE);
    }
    for (uint32_t o = 0; o < w->n; o++) {
        write_push(w, b, 0, o, w->order[o], &w->push[o]);
    }
    for (uint32_t o = 0; o < w->n; o++) {
        tn_scale_open(&w->back[o], w->n, &f);
        size_t bad = tn_values_read(TN_VALUES_F32, f.payload + TN_DENSE_PARAMS, dense_of(w, o),
                                    w->dense + w->shares->dense[o]);
        TN_ASSERT(bad == TN_VALUES_FINITE);
    }
}

/* ---- an owner ---- */

static void write_rows(const float *rows, uint32_t keys, tn_scale_message *m)
{
    const uint32_t n = keys * TN_SCALE_WIDTH;
    char *payload = tn_scale_payload(m, TN_ROWS_PARAMS + sizeof(float) * n);
    memcpy(payload,
           &(tn_rows_params){.examples = TN_SCALE_EXAMPLES, .weight_sum = TN_SCALE_EXAMPLES},
           TN_ROWS_PARAMS);
    size_t bad = tn_values_write(TN_VALUES_F32, rows, n, payload + TN_ROWS_PARAMS);
    TN_ASSERT(bad == TN_VALUES_FINITE);
    tn_scale_seal(m, &(tn_frame){.type = TN_FRAME_ROWS, .count = {keys, n}});
}

static void write_dense(const float *weights, uint32_t n, tn_scale_message *m)
{
    char *payload = tn_scale_payload(m, TN_DENSE_PARAMS + sizeof(float) * n);
    memcpy(payload, &(tn_dense_params){.grad_norm = 1}, TN_DENSE_PARAMS);
    size_t bad = tn_values_write(TN_VALUES_F32, weights, n, payload + TN_DENSE_PARAMS);
    TN_ASSERT(bad == TN_VALUES_FINITE);
    tn_scale_seal(m, &(tn_frame){.type = TN_FRAME_DENSE, .count = {0, 0, n}});
}

static void read_pull(world *w, uint32_t rank)
{
    const tn_keyblock_rules rules = {&w->shares->owners, &w->own.layout, 0};
    tn_frame f;
    tn_pull_params params;
    tn_scale_open(&w->asks[rank], w->n, &f);
    tn_drop why = tn_pull_params_get(&params, f.payload);
    TN_ASSERT(why == TN_DROP_NONE);
    why = tn_keyblock_read(&w->own.block[rank], f.payload + TN_PULL_PARAMS,
                           f.bytes - TN_PULL_PARAMS, f.count, &rules);
    TN_ASSERT(why == TN_DROP_NONE);
}

static void read_push(world *w, uint32_t rank)
{
    tn_frame f;
    tn_push_params params;
    tn_scale_open(&w->brings[rank], w->n, &f);
    tn_drop why = tn_push_params_get(&params, f.payload);
    TN_ASSERT(why == TN_DROP_NONE);
    const char *from = f.payload + TN_PUSH_PARAMS;
    const size_t n = f.count[TN_ROW_FLOATS];
    size_t rows = tn_values_read(TN_VALUES_F32, from, n, w->own.grads[rank]);
    size_t dense = tn_values_read(TN_VALUES_F32, from + sizeof(float) * n, f.count[TN_DENSE_FLOATS],
                                  w->own.dense_grad[rank]);
    TN_ASSERT(rows == TN_VALUES_FINITE && dense == TN_VALUES_FINITE);
}

static void go_on(owner *own, tn_turn expected)
{
    tn_turn turn;
    tn_status status = tn_sync_step_advance(own->steps, NULL, &turn, NULL);
    TN_ASSERT(status == TN_OK && turn == expected);
}

/* One step of all ranks. Seconds of messages, and of the shard. */
static void serve(world *w, double *messages, double *shard)
{
    const tn_batch_note note = {.rows = TN_SCALE_EXAMPLES, .weight_sum = TN_SCALE_EXAMPLES};
    owner *own = &w->own;
    double time[5] = {tn_scale_cpu_s()};
    for (uint32_t r = 0; r < w->n; r++) {
        read_pull(w, r);
    }
    time[1] = tn_scale_cpu_s();
    for (uint32_t r = 0; r < w->n; r++) {
        tn_status status = tn_sync_step_pull(own->steps, r, &note, &own->block[r].keys, NULL);
        TN_ASSERT(status == TN_OK);
    }
    go_on(own, TN_TURN_ROWS);
    time[2] = tn_scale_cpu_s();
    for (uint32_t r = 0; r < w->n; r++) {
        tn_sync_step_give(own->steps, NULL, r, own->rows);
        write_rows(own->rows, own->block[r].keys.n, &w->answer);
    }
    for (uint32_t r = 0; r < w->n; r++) {
        read_push(w, r);
    }
    time[3] = tn_scale_cpu_s();
    for (uint32_t r = 0; r < w->n; r++) {
        const tn_pushed pushed = {.grads = own->grads[r],
                                  .dense = own->dense > 0 ? own->dense_grad[r] : NULL,
                                  .lr_factor = 1};
        tn_status status = tn_sync_step_push(own->steps, r, &pushed, NULL);
        TN_ASSERT(status == TN_OK);
    }
    go_on(own, TN_TURN_APPLIED);
    time[4] = tn_scale_cpu_s();
    for (uint32_t r = 0; r < w->n; r++) {
        write_dense(own->weights, (uint32_t)own->dense, &w->answer);
    }
    *shard = time[2] - time[1] + time[4] - time[3];
    *messages = tn_scale_cpu_s() - time[0] - *shard;
}

/* ---- both are made ---- */

/* What ranks send to the owner, and room for it. */
static void make_requests(world *w)
{
    for (uint32_t r = 0; r < w->n; r++) {
        tn_scale_batch *b = w->batch;
        tn_scale_batch_fill(b, &w->shares->owners, r);
        const tn_key_order order = tn_keyblock_sort(&b->keys, 0, b->scratch, b->index);
        write_pull(b, r, order, &w->asks[r]);
        write_push(w, b, r, 0, order, &w->brings[r]);
        w->own.grads[r] =
            tn_alloc((size_t)order.n * TN_SCALE_WIDTH + 1, sizeof(float), "gradients");
        w->own.dense_grad[r] = tn_alloc(w->own.dense + 1, sizeof(float), "gradients");
    }
}

/* The batch of the worker, and what owners answer it. */
static void make_answers(world *w)
{
    tn_scale_batch_fill(w->batch, &w->shares->owners, 0);
    for (uint32_t o = 0; o < w->n; o++) {
        const tn_range own = tn_keys_of_peer(&w->batch->keys, o);
        write_rows(w->rows, own.to - own.from, &w->give[o]);
        write_dense(w->dense, dense_of(w, o), &w->back[o]);
    }
}

static world *world_new(uint32_t n)
{
    world *w = tn_alloc(1, sizeof *w, "peers");
    tn_scale_message **lists[] = {&w->pull, &w->push, &w->give, &w->back, &w->asks, &w->brings};
    w->n = n;
    tn_status status = tn_shares_new(&w->shares, n, TN_SCALE_DENSE, NULL);
    TN_ASSERT(status == TN_OK);
    w->batch = tn_alloc(1, sizeof *w->batch, "a batch");
    w->order = tn_alloc(n, sizeof *w->order, "a batch");
    w->rows = tn_alloc(TN_SCALE_FLOATS, sizeof(float), "rows");
    w->dense = tn_alloc(TN_SCALE_DENSE, sizeof(float), "weights");
    for (uint32_t i = 0; i < TN_SCALE_FLOATS; i++) {
        w->rows[i] = 1e-3F * (float)(i % 7);
    }
    for (uint32_t i = 0; i < TN_SCALE_DENSE; i++) {
        w->dense[i] = 1e-3F * (float)(i % 5);
    }
    for (uint32_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        *lists[i] = tn_alloc(n, sizeof **lists[i], "messages");
    }
    owner_init(&w->own, w->shares);
    make_requests(w);
    make_answers(w);
    return w;
}

static void world_free(world *w)
{
    tn_scale_message *lists[] = {w->pull, w->push, w->give, w->back, w->asks, w->brings};
    for (uint32_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        for (uint32_t r = 0; r < w->n; r++) {
            tn_scale_message_done(&lists[i][r]);
        }
        tn_free(lists[i]);
    }
    owner_done(&w->own, w->n);
    tn_scale_message_done(&w->answer);
    tn_shares_free(w->shares);
    tn_free(w->batch);
    tn_free(w->order);
    tn_free(w->rows);
    tn_free(w->dense);
    tn_free(w);
}

/* Bytes of all messages but those to itself. */
static double bytes_to_others(const tn_scale_message *m, uint32_t n)
{
    double bytes = 0;
    for (uint32_t i = 1; i < n; i++) {
        bytes += (double)m[i].size;
    }
    return bytes;
}

void tn_scale_step_measure(tn_scale_step *s, uint32_t n_ranks, uint32_t steps)
{
    enum { WARM = 3 };
    world *w = world_new(n_ranks);
    for (uint32_t i = 0; i < steps + WARM; i++) {
        double messages;
        double shard;
        const double start = tn_scale_cpu_s();
        work(w);
        const double worker = tn_scale_cpu_s() - start;
        serve(w, &messages, &shard);
        if (i >= WARM) {
            tn_sample(&s->worker, 1e3 * worker);
            tn_sample(&s->owner, 1e3 * messages);
            tn_sample(&s->shard, 1e3 * shard);
        }
    }
    s->keys = w->batch->keys.n;
    s->joint = (double)tn_table_rows(w->own.shard.table);
    s->pull = bytes_to_others(w->pull, n_ranks);
    s->push = bytes_to_others(w->push, n_ranks);
    for (uint32_t r = 1; r < n_ranks; r++) { /* as owner: to each rank */
        s->rows += TN_FRAME_HEAD + TN_ROWS_PARAMS +
                   (double)sizeof(float) * w->own.block[r].keys.n * TN_SCALE_WIDTH;
        s->dense += TN_FRAME_HEAD + TN_DENSE_PARAMS + (double)sizeof(float) * (double)w->own.dense;
    }
    s->sent = s->pull + s->push + s->rows + s->dense;
    s->received = bytes_to_others(w->give, n_ranks) + bytes_to_others(w->back, n_ranks) +
                  bytes_to_others(w->asks, n_ranks) + bytes_to_others(w->brings, n_ranks);
    double others = s->keys - (tn_keys_of_peer(&w->batch->keys, 0).to);
    s->per_key = others > 0 ? s->pull / others : 0;
    world_free(w);
}
