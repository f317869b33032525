/* sync_client.c - requests of a worker to all owners at staleness 0, and their replies. */
#include "cluster/sync/sync_client.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "cluster/exchange/batch_messages.h"
#include "cluster/sync/allgather.h"
#include "cluster/sync/sync_server.h"
#include "ps/shard/dense.h"
#include "ps/shard/shard.h"

#include <math.h>
#include <string.h>

enum { BATCHES = 2 };

/* Replies that a worker waits for. */
typedef enum wait_kind { WAIT_ROWS, WAIT_STATISTICS, WAIT_WEIGHTS, WAIT_KINDS } wait_kind;

typedef struct asked_batch {
    tn_owner_slices slices;
    uint64_t examples;
    double weight_sum;
    bool meet;
    tn_joint_batch note;
} asked_batch;

typedef struct sync_client {
    tn_exchange x;
    uint32_t n_ranks;
    tn_sync_server *server;
    uint64_t own_sequence;
    uint64_t n_pulled, n_got, n_done; /* batches asked for, with rows, pushed or skipped */
    asked_batch batch[BATCHES];       /* by number modulo 2 */
    float *residual;                  /* rounding errors of dense gradients in 16 bits */
    uint32_t n_weights;               /* owners whose weights have come */
    double loss;
    bool *has_weights; /* n_ranks */
    double *norm;      /* likewise: of the gradients, as each owner says */
    tn_allgather *gather;
    uint32_t n_gathers; /* in the step that runs */
    uint64_t waited_ns[WAIT_KINDS];
} sync_client;

/* ---- replies, on the worker's thread ---- */

static void receive_rows(sync_client *g, const tn_frame *f, uint32_t from)
{
    asked_batch *b = &g->batch[g->n_got % BATCHES];
    tn_rows_params p;
    bool known = g->n_got < g->n_pulled && tn_rows_params_get(&p, f->payload) == TN_DROP_NONE;
    if (!known || !tn_owner_slices_rows(&b->slices, from, f, p.weight_sum > 0)) {
        tn_reply_queue_reject(g->x.replies, from, "rows");
        return;
    }
    b->note.first_row = p.first;
    b->note.rows = p.examples;
    b->note.weight_sum = p.weight_sum;
    b->note.over = p.examples == 0;
    b->note.meet = f->code == TN_MEET;
}

static void receive_weights(sync_client *g, const tn_frame *f, uint32_t from)
{
    const size_t *cut = g->x.shares->dense;
    const size_t n = cut[from + 1] - cut[from];
    tn_dense_params p;
    if (g->has_weights[from] || f->count[TN_DENSE_FLOATS] != n ||
        tn_dense_params_get(&p, f->payload) != TN_DROP_NONE ||
        tn_values_read(tn_frame_dense_values(f->flags), f->payload + TN_DENSE_PARAMS, n,
                       g->x.weights + cut[from]) != TN_VALUES_FINITE) {
        tn_reply_queue_reject(g->x.replies, from, "weights");
        return;
    }
    g->has_weights[from] = true;
    g->n_weights++;
    g->norm[from] = p.grad_norm;
    g->loss = p.loss; /* all owners add up the same numbers in the same order */
}

static void receive(void *arg, const tn_frame *f, uint32_t from)
{
    sync_client *g = arg;
    if (f->sequence == 0) {
        return; /* a late reply to an evaluation */
    }
    if (f->type == TN_FRAME_ROWS) {
        receive_rows(g, f, from);
    } else if (f->type == TN_FRAME_DENSE) {
        receive_weights(g, f, from);
    } else if (f->type == TN_FRAME_REFUSED) {
        tn_reply_queue_refused(g->x.replies, f, from);
    }
}

/* ---- the own shard ---- */

/* Sends a reply of the own shard to a rank, this one included. */
static void answer(void *arg, const tn_frame *request, tn_out_message *outgoing)
{
    sync_client *g = arg;
    if (request->rank != g->x.rank) {
        tn_link_answer(g->x.link, request, outgoing);
        return;
    }
    tn_frame f = outgoing->frame;
    f.sequence = request->sequence;
    f.step = request->step;
    f.payload = tn_out_message_payload(outgoing);
    receive(g, &f, g->x.rank);
    tn_out_message_drop(outgoing);
}

static void send_request(sync_client *g, uint32_t to, tn_out_message *outgoing)
{
    outgoing->frame.step = g->x.step + g->n_done;
    if (to != g->x.rank) {
        tn_link_post(g->x.link, to, outgoing);
        return;
    }
    tn_frame f = outgoing->frame;
    f.rank = to;
    f.incarnation = g->x.dedup[to].incarnation;
    f.sequence = ++g->own_sequence;
    f.payload = tn_out_message_payload(outgoing);
    tn_sync_server_take(g->server, &f);
    tn_out_message_drop(outgoing);
}

static tn_status share(void *arg, uint32_t code, const double *values, uint32_t n, tn_error *err)
{
    sync_client *g = arg;
    for (uint32_t to = 0; to < g->n_ranks; to++) {
        tn_out_message *p = NULL;
        if (to == g->x.rank) {
            continue;
        }
        TN_TRY(tn_out_message_take(&p, g->x.pool, n * sizeof *values, err));
        p->frame.type = TN_FRAME_SHARE;
        p->frame.code = code;
        p->frame.count[TN_DENSE_FLOATS] = n;
        memcpy(tn_out_message_payload(p), values, n * sizeof(double));
        send_request(g, to, p);
    }
    return TN_OK;
}

/* ---- calls ---- */

static bool has_come(const sync_client *g, wait_kind kind, uint32_t from)
{
    return kind == WAIT_ROWS ? g->batch[g->n_got % BATCHES].slices.of[from].has_rows
                             : g->has_weights[from];
}

/* Returns 1 + the rank that is late. All replies wait for the same late rank, which the own shard
 * knows. Once the own shard has replied, what it lacks belongs to the next turn: then an owner is
 * late. */
static uint32_t late_rank(const sync_client *g, wait_kind kind)
{
    if (kind == WAIT_STATISTICS) {
        return tn_allgather_waits_for(g->gather);
    }
    if (!has_come(g, kind, g->x.rank)) {
        return tn_sync_server_waits_for(g->server);
    }
    uint32_t r = 0;
    while (r < g->n_ranks && has_come(g, kind, r)) {
        r++;
    }
    return r < g->n_ranks ? 1 + r : 0;
}

/* Works for the own shard and listens until `*count` is that of all ranks. */
static tn_status await(sync_client *g, tn_team *team, wait_kind kind, const uint32_t *count,
                       tn_error *err)
{
    tn_reply_queue *q = g->x.replies;
    for (;;) {
        const uint64_t seen = tn_reply_queue_read(q, receive, g);
        if (q->failed == TN_OK) {
            q->failed = tn_sync_server_run(g->server, team, &q->err);
        }
        if (q->failed == TN_OK && kind == WAIT_STATISTICS) {
            q->failed = tn_allgather_poll(g->gather, &q->err);
        }
        TN_TRY(tn_reply_queue_check(q, err));
        atomic_store(&q->late, *count < g->n_ranks ? late_rank(g, kind) : 0);
        if (*count == g->n_ranks) {
            return TN_OK;
        }
        const uint64_t now = tn_clock_ns();
        tn_reply_queue_wait(q, seen, now);
        g->waited_ns[kind] += tn_clock_ns() - now;
    }
}

static tn_status pull_from(sync_client *g, asked_batch *b, uint32_t owner, tn_error *err)
{
    const tn_pull_params params = {b->examples, b->weight_sum};
    tn_out_message *p = NULL;
    TN_TRY(tn_owner_slices_pull(&b->slices, &g->x, owner, &params, &p, err));
    p->frame.code = b->meet ? TN_MEET : 0;
    send_request(g, owner, p);
    return TN_OK;
}

static tn_status pull(void *self, const tn_client_batch *batch, tn_error *err)
{
    sync_client *g = self;
    TN_ASSERT(g->n_pulled - g->n_done < BATCHES);
    tn_sync_server_wake(g->server);
    asked_batch *b = &g->batch[g->n_pulled % BATCHES];
    TN_TRY(tn_owner_slices_begin(&b->slices, g->n_ranks, batch->keys, batch->rows, err));
    b->examples = batch->examples;
    b->weight_sum = batch->weight_sum;
    b->meet = batch->meet;
    g->n_pulled++;
    for (uint32_t p = 0; p < g->n_ranks; p++) {
        TN_TRY(pull_from(g, b, p, err));
    }
    return TN_OK;
}

static tn_status rows(void *self, tn_team *team, tn_joint_batch *out, tn_error *err)
{
    sync_client *g = self;
    TN_ASSERT(g->n_got < g->n_pulled && g->n_got == g->n_done);
    asked_batch *b = &g->batch[g->n_got % BATCHES];
    TN_TRY(await(g, team, WAIT_ROWS, &b->slices.n_rows, err));
    g->n_got++;
    g->n_done += b->note.weight_sum == 0;
    g->n_gathers = 0;
    *out = b->note;
    return TN_OK;
}

static tn_status gather(void *self, tn_team *team, const double *own, uint32_t n,
                        const double **all, tn_error *err)
{
    sync_client *g = self;
    TN_ASSERT(g->n_got == g->n_done + 1);
    g->n_gathers++;
    TN_TRY(tn_allgather_begin(g->gather, g->x.step + g->n_done, g->n_gathers, own, n, err));
    TN_TRY(share(g, g->n_gathers, own, n, err));
    TN_TRY(await(g, team, WAIT_STATISTICS, tn_allgather_count(g->gather), err));
    *all = tn_allgather_all(g->gather);
    return TN_OK;
}

/* Puts the running statistics into the own shard's range: owners answer pushes with them. */
static void set_moving(const sync_client *g, const float *dense)
{
    const size_t *cut = g->x.shares->dense + g->x.rank;
    for (uint32_t i = 0; i < g->x.n_moving; i++) {
        const tn_dense_run *run = &g->x.moving[i];
        const size_t from = run->begin > cut[0] ? run->begin : cut[0];
        const size_t to = run->end < cut[1] ? run->end : cut[1];
        if (from < to) {
            tn_dense_set(g->x.shard->dense, from - cut[0], to - from, dense + from);
        }
    }
}

static tn_status send_gradients(sync_client *g, const tn_client_gradients *grads,
                                const tn_push *push, tn_error *err)
{
    const asked_batch *b = &g->batch[g->n_done % BATCHES];
    tn_push numbered = *push;
    numbered.step = g->x.step + g->n_done;
    const tn_slices_gradients x = {.rows = grads->rows,
                                   .dense = grads->rows != NULL ? grads->dense : NULL,
                                   .residual = g->residual,
                                   .loss = grads->loss,
                                   .push = &numbered};
    g->n_weights = 0;
    memset(g->has_weights, 0, g->n_ranks * sizeof *g->has_weights);
    for (uint32_t owner = 0; owner < g->n_ranks; owner++) {
        tn_out_message *p = NULL;
        TN_TRY(tn_owner_slices_push(&b->slices, &g->x, owner, &x, &p, err));
        send_request(g, owner, p);
    }
    return TN_OK;
}

/* Adds up in rank order: arrival decides no bit. With the global clip every owner knows all of
 * it. */
static double norm_of_all(const sync_client *g)
{
    double norm2 = 0;
    for (uint32_t r = 0; r < g->n_ranks; r++) {
        norm2 += g->norm[r] * g->norm[r];
    }
    return isfinite(g->x.shard->rules->clip_global) ? g->norm[0] : sqrt(norm2);
}

/* Returns when all owners have applied the step and the weights are up to date. */
static tn_status push(void *self, tn_team *team, const tn_client_gradients *grads,
                      const tn_push *how, tn_client_update *out, tn_error *err)
{
    sync_client *g = self;
    TN_ASSERT(g->n_got == g->n_done + 1);
    set_moving(g, grads->dense);
    TN_TRY(send_gradients(g, grads, how, err));
    TN_TRY(await(g, team, WAIT_WEIGHTS, &g->n_weights, err));
    g->n_done++;
    *out = (tn_client_update){.norm = norm_of_all(g), .loss = g->loss};
    for (uint32_t i = 0; i < g->x.n_moving; i++) {
        const tn_dense_run *run = &g->x.moving[i];
        memcpy(g->x.weights + run->begin, grads->dense + run->begin,
               (run->end - run->begin) * sizeof *g->x.weights);
    }
    return TN_OK;
}

static tn_status rest(void *self, tn_team *team, tn_error *err)
{
    const sync_client *g = self;
    TN_ASSERT(g->n_pulled == g->n_done);
    return tn_sync_server_rest(g->server, team, err);
}

/* Returns the waits; work for the own shard does not count as waiting. */
static tn_client_waits waited(const void *self)
{
    const sync_client *g = self;
    return (tn_client_waits){
        .rows_s = (double)g->waited_ns[WAIT_ROWS] * 1e-9,
        .weights_s = (double)(g->waited_ns[WAIT_STATISTICS] + g->waited_ns[WAIT_WEIGHTS]) * 1e-9};
}

/* ---- messages, on tn-net ---- */

/* Takes a SHARE of an allgather, which counts once. */
static void take_part(sync_client *g, tn_in_message *incoming)
{
    const tn_frame f = incoming->frame;
    const tn_reply_path to = {g->x.pool, tn_reply_by_link, g->x.link};
    tn_dedup *dedup = &g->x.dedup[f.rank];
    bool again = false;
    const bool is_admitted = tn_owner_admits(&to, dedup, &f, &again);
    const bool is_kept = is_admitted && !again && tn_allgather_put(g->gather, incoming);
    if (is_kept) {
        tn_dedup_mark(dedup, f.sequence);
        tn_wakeup_signal(&g->x.replies->wakeup);
    } else {
        tn_in_message_close(incoming);
    }
    if (is_kept || again) {
        tn_reply_noted(&to, &f);
    } else if (is_admitted) {
        tn_reply_refuse(&to, &f, TN_REFUSAL_FULL);
    }
}

static void take_request(void *self, tn_in_message *incoming)
{
    sync_client *g = self;
    if (incoming->frame.type == TN_FRAME_SHARE && incoming->frame.code != 0) {
        take_part(g, incoming);
        return;
    }
    tn_sync_server_take(g->server, &incoming->frame);
    tn_in_message_close(incoming);
}

/* ---- opening and closing ---- */

static tn_status make(sync_client *g, tn_error *err)
{
    if (g->x.values != TN_VALUES_F32) {
        TN_TRY(TN_ALLOC(g->residual, g->x.shares->dense[g->n_ranks] + 1, "a group of peers", err));
    }
    const tn_reply_path reply = {g->x.pool, answer, g};
    return tn_sync_server_new(&g->server, &g->x, &reply, share, err);
}

static void close_client(void *self)
{
    sync_client *g = self;
    if (g == NULL) {
        return;
    }
    tn_sync_server_free(g->server);
    tn_allgather_free(g->gather);
    for (uint32_t i = 0; i < BATCHES; i++) {
        tn_owner_slices_done(&g->batch[i].slices);
    }
    tn_free(g->residual);
}

const tn_client_ops tn_client_sync = {
    .is_joint = true,
    .pulls_next = true,
    .pull = pull,
    .rows = rows,
    .gather = gather,
    .push = push,
    .rest = rest,
    .waited = waited,
    .take_request = take_request,
    .close = close_client,
};

tn_status tn_sync_client_open(tn_client *out, const tn_exchange *x, tn_error *err)
{
    *out = (tn_client){&tn_client_sync, NULL};
    const uint32_t n = x->shares->owners.n_peers;
    sync_client *g = TN_NEW(x->arena, sync_client);
    *g = (sync_client){.x = *x,
                       .n_ranks = n,
                       .has_weights = TN_NEW_ARRAY(x->arena, bool, n),
                       .norm = TN_NEW_ARRAY(x->arena, double, n),
                       .gather = tn_allgather_new(x->arena, x->rank, n)};
    tn_status status = make(g, err);
    if (status != TN_OK) {
        close_client(g);
        return status;
    }
    out->self = g;
    return TN_OK;
}
