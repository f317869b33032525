/* async_client.c - requests of a worker to all owners above staleness 0, and their replies. */
#include "cluster/async/async_client.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "cluster/async/async_server.h"
#include "cluster/async/pushnorm.h"
#include "cluster/exchange/batch_messages.h"
#include "ps/shard/dense.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define FOR_ROWS UINT32_MAX

/* A batch on its way: one permit. */
typedef struct flight {
    tn_owner_slices slices; /* the worker's, as is this */
    tn_client_batch of;
    /* Guarded by lock: */
    bool held; /* the permit is */
    bool pushed;
    uint64_t number;    /* `step` of its messages */
    uint32_t n_left;    /* owners that have not acknowledged the push */
    bool *acknowledged; /* n_ranks */
    double norm2;       /* sum of squares of all its gradients so far */
    uint64_t staleness; /* the largest so far */
} flight;

typedef struct async_client {
    tn_exchange x;
    uint32_t n_ranks, permits;
    tn_async_server *server;
    float *residual;           /* rounding errors of dense gradients in 16 bits */
    tn_out_message **outgoing; /* n_ranks: of one push */
    tn_keyset none;            /* no keys */
    uint64_t n_pulled, n_pushed;
    /* indexes into `flight` by number of the pull, modulo permits */
    uint32_t order[TN_PERMITS_MAX];

    pthread_mutex_t lock;
    flight flight[TN_PERMITS_MAX]; /* permits; guarded by lock in part */
    /* guarded by lock, like the rest: last weights of each rank, not read yet */
    tn_in_message **newest;
    uint64_t acknowledged; /* number of the newest acknowledged push */
    double norm;           /* norm of that push's gradients before the global clip */
    uint64_t staleness;    /* largest staleness since the worker asked */
} async_client;

/* ---- replies, on the worker's thread ---- */

/* Rows of any batch that was pulled and has no rows of that owner yet. */
static void receive_rows(async_client *g, const tn_frame *f, uint32_t from)
{
    for (uint64_t i = g->n_pushed; i < g->n_pulled; i++) {
        flight *x = &g->flight[g->order[i % g->permits]];
        if (x->number == f->step && tn_owner_slices_rows(&x->slices, from, f, true)) {
            return;
        }
    }
    tn_reply_queue_reject(g->x.replies, from, "rows");
}

static void receive(void *arg, const tn_frame *f, uint32_t from)
{
    async_client *g = arg;
    if (f->sequence == 0) {
        return; /* a late reply to an evaluation */
    }
    if (f->type == TN_FRAME_ROWS) {
        receive_rows(g, f, from);
    } else if (f->type == TN_FRAME_REFUSED) {
        tn_reply_queue_refused(g->x.replies, f, from);
    } else if (f->type == TN_FRAME_DENSE) {
        tn_reply_queue_reject(g->x.replies, from, "weights");
    }
}

/* ---- waiting ---- */

/* Returns 1 + a rank that has not acknowledged the oldest push with a permit; 0: at most `held_max`
 * are held. */
static uint32_t late_push(async_client *g, uint32_t held_max)
{
    const flight *first = NULL;
    uint32_t n_held = 0;
    uint32_t late = 0;
    (void)pthread_mutex_lock(&g->lock);
    for (uint32_t i = 0; i < g->permits; i++) {
        const flight *f = &g->flight[i];
        n_held += f->held;
        if (f->held && f->pushed && (first == NULL || f->number < first->number)) {
            first = f;
        }
    }
    for (uint32_t r = 0; first != NULL && n_held > held_max && r < g->n_ranks && late == 0; r++) {
        late = first->acknowledged[r] ? 0 : 1 + r;
    }
    (void)pthread_mutex_unlock(&g->lock);
    return late;
}

static flight *oldest(async_client *g)
{
    TN_ASSERT(g->n_pushed < g->n_pulled);
    return &g->flight[g->order[g->n_pushed % g->permits]];
}

static uint32_t late_rows(async_client *g)
{
    const tn_owner_slice *of = oldest(g)->slices.of;
    uint32_t r = 0;
    while (r < g->n_ranks && (r == g->x.rank || of[r].has_rows)) {
        r++;
    }
    return r < g->n_ranks ? 1 + r : 0;
}

/* Waits until the oldest batch has its rows (FOR_ROWS), or at most `held_max` permits are held. */
static tn_status await(async_client *g, uint32_t held_max, tn_error *err)
{
    for (;;) {
        const uint64_t seen = tn_reply_queue_read(g->x.replies, receive, g);
        TN_TRY(tn_reply_queue_check(g->x.replies, err));
        const uint32_t late = held_max == FOR_ROWS ? late_rows(g) : late_push(g, held_max);
        atomic_store(&g->x.replies->late, late);
        if (late == 0) {
            return TN_OK;
        }
        tn_reply_queue_wait(g->x.replies, seen, tn_clock_ns());
    }
}

/* ---- calls ---- */

static flight *take_permit(async_client *g)
{
    uint32_t i = 0;
    (void)pthread_mutex_lock(&g->lock);
    while (g->flight[i].held) {
        i++;
        TN_ASSERT(i < g->permits);
    }
    flight *f = &g->flight[i];
    f->held = true;
    f->pushed = false;
    f->number = g->x.step + g->n_pulled;
    f->norm2 = 0;
    f->staleness = 0;
    memset(f->acknowledged, 0, g->n_ranks * sizeof *f->acknowledged);
    (void)pthread_mutex_unlock(&g->lock);
    return f;
}

static void post(async_client *g, const flight *f, uint32_t owner, tn_out_message *p)
{
    p->frame.step = f->number;
    tn_link_post(g->x.link, owner, p);
}

static tn_status ask(async_client *g, const tn_client_batch *batch, tn_error *err)
{
    TN_ASSERT(g->n_pulled - g->n_pushed < g->permits);
    TN_TRY(await(g, g->permits - 1, err));
    flight *f = take_permit(g);
    const tn_pull_params params = {batch->examples, batch->weight_sum};
    f->of = *batch;
    TN_TRY(tn_owner_slices_begin(&f->slices, g->n_ranks, batch->keys, batch->rows, err));
    g->order[g->n_pulled++ % g->permits] = (uint32_t)(f - g->flight);
    for (uint32_t owner = 0; owner < g->n_ranks; owner++) {
        tn_out_message *p = NULL;
        if (owner != g->x.rank) {
            TN_TRY(tn_owner_slices_pull(&f->slices, &g->x, owner, &params, &p, err));
            post(g, f, owner, p);
        }
    }
    return TN_OK;
}

static tn_status pull(void *self, const tn_client_batch *batch, tn_error *err)
{
    TN_ASSERT(batch->examples > 0 && batch->weight_sum > 0);
    return ask(self, batch, err);
}

/* Reads all weights that have come. */
static tn_status take_weights(async_client *g, tn_error *err)
{
    const size_t *cut = g->x.shares->dense;
    for (uint32_t r = 0; r < g->n_ranks; r++) {
        float *to = g->x.weights + cut[r];
        (void)pthread_mutex_lock(&g->lock);
        tn_in_message *incoming = g->newest[r];
        g->newest[r] = NULL;
        (void)pthread_mutex_unlock(&g->lock);
        if (incoming != NULL && tn_values_read(tn_frame_dense_values(incoming->frame.flags),
                                               incoming->frame.payload + TN_DENSE_PARAMS,
                                               cut[r + 1] - cut[r], to) != TN_VALUES_FINITE) {
            tn_reply_queue_reject(g->x.replies, r, "weights that are not finite");
        }
        tn_in_message_close(incoming);
    }
    tn_dense_copy(g->x.shard->dense, g->x.weights + cut[g->x.rank]);
    return tn_reply_queue_check(g->x.replies, err);
}

static tn_status rows(void *self, tn_team *team, tn_joint_batch *out, tn_error *err)
{
    async_client *g = self;
    flight *f = oldest(g);
    const uint32_t place = (uint32_t)(f - g->flight);
    TN_TRY(tn_async_server_pull(g->server, team, place, f->of.keys, f->of.rows, err));
    TN_TRY(await(g, FOR_ROWS, err));
    *out = (tn_joint_batch){.rows = f->of.examples, .weight_sum = f->of.weight_sum};
    return take_weights(g, err);
}

/* Computes the norm of the whole push, which owners need for the global clip. */
static tn_status measure(async_client *g, tn_team *team, const flight *f,
                         tn_slices_gradients *grads, tn_error *err)
{
    const tn_rules *rules = g->x.shard->rules;
    if (!isfinite(rules->clip_global) || g->n_ranks == 1) {
        return TN_OK;
    }
    const tn_gradients all = {.keys = f->of.keys, .rows = grads->rows, .dense = grads->dense};
    grads->norm = sqrt(tn_pushnorm2(team, &g->x, f->of.rows, &all, grads->push));
    if (!isfinite((float)grads->norm)) {
        return tn_fail(err, TN_E_DIVERGED, "the gradient of step %" PRIu64 " is not finite",
                       grads->push->step + 1);
    }
    return TN_OK;
}

/* Sends gradients to all other owners, or to none. */
static tn_status send_gradients(async_client *g, flight *f, const tn_slices_gradients *grads,
                                tn_error *err)
{
    tn_status status = TN_OK;
    memset(g->outgoing, 0, g->n_ranks * sizeof(void *));
    for (uint32_t owner = 0; owner < g->n_ranks && status == TN_OK; owner++) {
        if (owner != g->x.rank) {
            status =
                tn_owner_slices_push(&f->slices, &g->x, owner, grads, &g->outgoing[owner], err);
        }
    }
    (void)pthread_mutex_lock(&g->lock);
    f->pushed = true;
    f->n_left = g->n_ranks;
    (void)pthread_mutex_unlock(&g->lock);
    for (uint32_t owner = 0; owner < g->n_ranks; owner++) {
        if (g->outgoing[owner] != NULL && status == TN_OK) {
            post(g, f, owner, g->outgoing[owner]);
        } else {
            tn_out_message_drop(g->outgoing[owner]);
        }
    }
    return status;
}

/* Notes that one owner has acknowledged a push; under the lock. */
static void acknowledge(async_client *g, flight *f, uint32_t owner, const tn_dense_params *what)
{
    const bool whole = isfinite(g->x.shard->rules->clip_global); /* then its sender knew it */
    f->acknowledged[owner] = true;
    const double norm2 = what->grad_norm * what->grad_norm;
    f->norm2 = whole ? fmax(f->norm2, norm2) : f->norm2 + norm2;
    f->staleness = what->staleness > f->staleness ? what->staleness : f->staleness;
    if (--f->n_left > 0) {
        return;
    }
    f->held = false;
    if (f->of.examples > 0) {
        g->staleness = f->staleness > g->staleness ? f->staleness : g->staleness;
        g->norm = f->number >= g->acknowledged ? sqrt(f->norm2) : g->norm;
        g->acknowledged = f->number >= g->acknowledged ? f->number : g->acknowledged;
    }
}

static uint64_t updates(const void *self)
{
    const async_client *g = self;
    return tn_async_server_updates(g->server);
}

static tn_status push(void *self, tn_team *team, const tn_client_gradients *grads,
                      const tn_push *how, tn_client_update *out, tn_error *err)
{
    async_client *g = self;
    flight *f = oldest(g);
    TN_ASSERT(f->of.examples > 0);
    tn_push of_batch = *how;
    of_batch.step = f->number;
    of_batch.weight_sum = f->of.weight_sum;
    tn_slices_gradients all = {
        .rows = grads->rows, .dense = grads->dense, .residual = g->residual, .push = &of_batch};
    TN_TRY(measure(g, team, f, &all, err));
    TN_TRY(send_gradients(g, f, &all, err));
    tn_dense_params what;
    TN_TRY(tn_async_server_push(g->server, team, (uint32_t)(f - g->flight), &all, &what, err));
    g->n_pushed++;
    *out = (tn_client_update){.loss = grads->loss, .updates = updates(g)};
    (void)pthread_mutex_lock(&g->lock);
    acknowledge(g, f, g->x.rank, &what);
    out->norm = g->norm;
    out->staleness = g->staleness;
    g->staleness = 0;
    (void)pthread_mutex_unlock(&g->lock);
    return TN_OK;
}

/* Waits until every push is acknowledged. */
static tn_status drain(async_client *g, tn_error *err)
{
    TN_ASSERT(g->n_pushed == g->n_pulled);
    return await(g, 0, err);
}

static tn_status rest(void *self, tn_team *team, tn_error *err)
{
    (void)team;
    return drain(self, err);
}

/* Refreshes the weights by a batch without examples, which changes nothing, and whose push is
 * answered with the weights of now. */
static tn_status refresh(void *self, tn_error *err)
{
    async_client *g = self;
    TN_ASSERT(g->n_pushed == g->n_pulled);
    const tn_client_batch none = {.keys = &g->none};
    const tn_push still = {.lr_factor = 0};
    const tn_slices_gradients grads = {.push = &still};
    TN_TRY(ask(g, &none, err));
    flight *f = oldest(g);
    TN_TRY(await(g, FOR_ROWS, err));
    TN_TRY(send_gradients(g, f, &grads, err));
    g->n_pushed++;
    (void)pthread_mutex_lock(&g->lock);
    acknowledge(g, f, g->x.rank, &(tn_dense_params){0});
    (void)pthread_mutex_unlock(&g->lock);
    TN_TRY(drain(g, err));
    return take_weights(g, err);
}

/* ---- messages, on tn-net ---- */

static void take_request(void *self, tn_in_message *incoming)
{
    async_client *g = self;
    tn_async_server_take(g->server, &incoming->frame);
    tn_in_message_close(incoming);
}

static flight *flight_of(async_client *g, uint64_t number)
{
    for (uint32_t i = 0; i < g->permits; i++) {
        flight *f = &g->flight[i];
        if (f->held && f->pushed && f->number == number) {
            return f;
        }
    }
    return NULL;
}

/* Takes an answer to a push, under the lock. Gives the permit back at once, whatever the worker
 * does; only the newest weights wait for the worker. Returns false when the message is not due. */
static bool take_dense(async_client *g, tn_in_message *incoming)
{
    const size_t *cut = g->x.shares->dense;
    const uint32_t from = incoming->from;
    const tn_frame *frame = &incoming->frame;
    flight *f = flight_of(g, frame->step);
    tn_dense_params p;
    if (f == NULL || from == g->x.rank || f->acknowledged[from] ||
        frame->count[TN_DENSE_FLOATS] != cut[from + 1] - cut[from] ||
        tn_dense_params_get(&p, frame->payload) != TN_DROP_NONE) {
        return false;
    }
    acknowledge(g, f, from, &p);
    tn_in_message *old = incoming;
    if (g->newest[from] == NULL || g->newest[from]->frame.sequence < frame->sequence) {
        old = g->newest[from];
        g->newest[from] = incoming;
    }
    tn_in_message_close(old);
    return true;
}

static void take_answer(void *self, tn_in_message *incoming)
{
    async_client *g = self;
    TN_ASSERT(incoming->from < g->n_ranks);
    (void)pthread_mutex_lock(&g->lock);
    const bool is_taken = incoming->frame.type == TN_FRAME_DENSE && take_dense(g, incoming);
    (void)pthread_mutex_unlock(&g->lock);
    if (is_taken) {
        tn_wakeup_signal(&g->x.replies->wakeup);
    } else {
        tn_reply_queue_put(g->x.replies, incoming); /* the worker reports what is wrong with it */
    }
}

/* ---- opening and closing ---- */

static tn_status make(async_client *g, tn_error *err)
{
    tn_arena *arena = g->x.arena;
    const tn_reply_path reply = {g->x.pool, tn_reply_by_link, g->x.link};
    g->outgoing = TN_NEW_ARRAY(arena, tn_out_message *, g->n_ranks);
    g->newest = TN_NEW_ARRAY(arena, tn_in_message *, g->n_ranks);
    for (uint32_t i = 0; i < g->permits; i++) {
        g->flight[i].acknowledged = TN_NEW_ARRAY(arena, bool, g->n_ranks);
    }
    uint32_t *zeros = TN_NEW_ARRAY(arena, uint32_t, TN_PARTITIONS + 1);
    g->none = (tn_keyset){.owners = &g->x.shares->owners, .first = zeros};
    if (g->x.values != TN_VALUES_F32) {
        TN_TRY(TN_ALLOC(g->residual, g->x.shares->dense[g->n_ranks] + 1, "a group of peers", err));
    }
    return tn_async_server_open(&g->server, &g->x, &reply, err);
}

static void stop(void *self)
{
    async_client *g = self;
    tn_async_server_stop(g->server);
}

static void close_client(void *self)
{
    async_client *g = self;
    if (g == NULL) {
        return;
    }
    tn_async_server_close(g->server);
    for (uint32_t r = 0; r < g->n_ranks; r++) {
        tn_in_message_close(g->newest[r]);
    }
    for (uint32_t i = 0; i < g->permits; i++) {
        tn_owner_slices_done(&g->flight[i].slices);
    }
    tn_free(g->residual);
    (void)pthread_mutex_destroy(&g->lock);
}

const tn_client_ops tn_client_async = {
    .pulls_next = true,
    .pull = pull,
    .rows = rows,
    .push = push,
    .rest = rest,
    .refresh = refresh,
    .updates = updates,
    .take_request = take_request,
    .take_answer = take_answer,
    .stop = stop,
    .close = close_client,
};

tn_status tn_async_client_open(tn_client *out, const tn_exchange *x, tn_error *err)
{
    *out = (tn_client){&tn_client_async, NULL};
    async_client *g = TN_NEW(x->arena, async_client);
    g->x = *x;
    g->n_ranks = x->shares->owners.n_peers;
    g->permits = tn_async_permits_of(x->staleness);
    (void)pthread_mutex_init(&g->lock, NULL);
    tn_status status = make(g, err);
    if (status != TN_OK) {
        close_client(g);
        return status;
    }
    out->self = g;
    return TN_OK;
}
