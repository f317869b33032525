/* sync_worker.c - what a worker asks of all owners at staleness 0, and what they answer. */
#include "cluster/sync/sync_worker.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "cluster/exchange/batch_messages.h"
#include "cluster/group/allgather.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { BATCHES = 2 };

/* What a worker waits for. */
typedef enum wait_kind { WAIT_ROWS, WAIT_STATISTICS, WAIT_WEIGHTS, WAIT_KINDS } wait_kind;

typedef struct asked_batch {
    tn_owner_slices slices;
    uint64_t examples;
    double weight_sum;
    bool meet;
    tn_joint_batch note;
} asked_batch;

struct tn_sync_worker {
    tn_sync_worker_opts opts;
    uint32_t n_ranks;
    tn_wakeup wakeup;
    tn_sync_server *server;
    uint64_t own_sequence;
    uint64_t n_pulled, n_got, n_done; /* batches asked for, with rows, pushed or skipped */
    asked_batch batch[BATCHES];       /* by number modulo 2 */
    tn_batchio io;
    uint32_t n_weights; /* owners whose weights have come */
    double loss;
    bool *has_weights; /* n_ranks */
    double *norm;      /* likewise: of the gradients, as each owner says */
    tn_allgather *gather;
    uint32_t n_gathers; /* in the step that runs */
    tn_status failed;
    tn_error err;
    uint64_t waited_ns[WAIT_KINDS];
    _Atomic uint32_t waits_for;

    pthread_mutex_t lock;
    tn_in_message *first, *last; /* guarded by lock: answers, oldest first .. */
    tn_status ended;             /* .. and what tn_sync_worker_fail said */
    tn_error why;
};

/* ---- replies, on the worker's thread ---- */

static const uint64_t look_ns = 100000000; /* how often failures are checked at least */

static void fail(tn_sync_worker *g, tn_status status)
{
    g->failed = g->failed != TN_OK ? g->failed : status;
}

static void reject(tn_sync_worker *g, uint32_t rank, const char *what)
{
    if (g->failed == TN_OK) {
        fail(g, tn_fail(&g->err, TN_E_PEER, "rank %u sent %s that nobody can use", rank, what));
    }
}

static void receive_rows(tn_sync_worker *g, const tn_frame *f, uint32_t from)
{
    asked_batch *b = &g->batch[g->n_got % BATCHES];
    tn_rows_params p;
    bool known = g->n_got < g->n_pulled && tn_rows_params_get(&p, f->payload) == TN_DROP_NONE;
    if (!known || !tn_owner_slices_rows(&b->slices, from, f, p.weight_sum > 0)) {
        reject(g, from, "rows");
        return;
    }
    b->note.first_row = p.first;
    b->note.rows = p.examples;
    b->note.weight_sum = p.weight_sum;
    b->note.over = p.examples == 0;
    b->note.meet = f->code == TN_MEET;
}

static void receive_weights(tn_sync_worker *g, const tn_frame *f, uint32_t from)
{
    const size_t *cut = g->opts.shares->dense;
    const size_t n = cut[from + 1] - cut[from];
    tn_dense_params p;
    if (g->has_weights[from] || f->count[TN_DENSE_FLOATS] != n ||
        tn_dense_params_get(&p, f->payload) != TN_DROP_NONE ||
        tn_values_read(tn_frame_dense_values(f->flags), f->payload + TN_DENSE_PARAMS, n,
                       g->opts.weights + cut[from]) != TN_VALUES_FINITE) {
        reject(g, from, "weights");
        return;
    }
    g->has_weights[from] = true;
    g->n_weights++;
    g->norm[from] = p.grad_norm;
    g->loss = p.loss; /* all owners add up the same numbers in the same order */
}

static void receive_refusal(tn_sync_worker *g, const tn_frame *f, uint32_t from)
{
    if (g->failed == TN_OK) {
        bool diverged = f->code == TN_REFUSAL_DIVERGED;
        fail(g, tn_fail(&g->err, diverged ? TN_E_DIVERGED : TN_E_PEER,
                        "rank %u refused a request of step %" PRIu64 ": %s", from, f->step + 1,
                        tn_refusal_text(f->code)));
    }
}

static void receive(tn_sync_worker *g, const tn_frame *f, uint32_t from)
{
    if (f->type == TN_FRAME_ROWS) {
        receive_rows(g, f, from);
    } else if (f->type == TN_FRAME_DENSE) {
        receive_weights(g, f, from);
    } else if (f->type == TN_FRAME_REFUSED) {
        receive_refusal(g, f, from);
    }
}

static void receive_answers(tn_sync_worker *g)
{
    (void)pthread_mutex_lock(&g->lock);
    tn_in_message *incoming = g->first;
    g->first = NULL;
    if (g->ended != TN_OK && g->failed == TN_OK) {
        g->err = g->why;
        fail(g, g->ended);
    }
    (void)pthread_mutex_unlock(&g->lock);
    while (incoming != NULL) {
        tn_in_message *next = incoming->next;
        receive(g, &incoming->frame, incoming->from);
        tn_in_message_close(incoming);
        incoming = next;
    }
}

/* ---- the own shard ---- */

/* Of the own shard (tn_sync_server_opts): an answer to a rank, a request to an owner. arg: the
 * group. */
static void answer(void *arg, const tn_frame *request, tn_out_message *outgoing)
{
    tn_sync_worker *g = arg;
    if (request->rank != g->opts.rank) {
        tn_link_answer(g->opts.link, request, outgoing);
        return;
    }
    tn_frame f = outgoing->frame;
    f.sequence = request->sequence;
    f.step = request->step;
    f.payload = tn_out_message_payload(outgoing);
    receive(g, &f, g->opts.rank);
    tn_out_message_drop(outgoing);
}

static void send_request(void *arg, uint32_t to, tn_out_message *outgoing)
{
    tn_sync_worker *g = arg;
    outgoing->frame.step = g->opts.step + g->n_done;
    if (to != g->opts.rank) {
        tn_link_post(g->opts.link, to, outgoing);
        return;
    }
    tn_frame f = outgoing->frame;
    f.rank = to;
    f.incarnation = g->opts.dedup[to].incarnation;
    f.sequence = ++g->own_sequence;
    f.payload = tn_out_message_payload(outgoing);
    tn_sync_server_take(g->server, &f);
    tn_out_message_drop(outgoing);
}

/* ---- calls ---- */

static bool has_come(const tn_sync_worker *g, wait_kind kind, uint32_t from)
{
    return kind == WAIT_ROWS ? g->batch[g->n_got % BATCHES].slices.of[from].has_rows
                             : g->has_weights[from];
}

/* 1 + the rank that is late. All replies wait for the same late rank, which the own shard knows.
 * Once the own shard has replied, what it lacks belongs to the next turn: then an owner is late. */
static uint32_t late_rank(const tn_sync_worker *g, wait_kind kind)
{
    if (kind == WAIT_STATISTICS) {
        return tn_allgather_waits_for(g->gather);
    }
    if (!has_come(g, kind, g->opts.rank)) {
        return tn_sync_server_waits_for(g->server);
    }
    uint32_t r = 0;
    while (r < g->n_ranks && has_come(g, kind, r)) {
        r++;
    }
    return r < g->n_ranks ? 1 + r : 0;
}

/* Works for the own shard and listens until `*count` is that of all ranks. */
static tn_status await(tn_sync_worker *g, tn_team *team, wait_kind kind, const uint32_t *count,
                       tn_error *err)
{
    static const char *const what[WAIT_KINDS] = {"rows", "statistics", "weights"};
    const uint64_t begin = tn_clock_ns();
    for (;;) {
        uint64_t seen = tn_wakeup_count(&g->wakeup);
        receive_answers(g);
        if (g->failed == TN_OK) {
            fail(g, tn_sync_server_run(g->server, team, &g->err));
        }
        if (g->failed == TN_OK && kind == WAIT_STATISTICS) {
            fail(g, tn_allgather_poll(g->gather, &g->err));
        }
        if (g->failed != TN_OK) {
            return tn_fail(err, g->failed, "%s", g->err.text);
        }
        const uint32_t late = *count < g->n_ranks ? late_rank(g, kind) : 0;
        atomic_store(&g->waits_for, late);
        if (*count == g->n_ranks) {
            return TN_OK;
        }
        uint64_t now = tn_clock_ns();
        if (now - begin > g->opts.patience_ns) {
            return tn_fail(err, TN_E_PEER,
                           "%s of %u of %u ranks did not come within %.0f s, first that of rank %u",
                           what[kind], g->n_ranks - *count, g->n_ranks,
                           (double)(now - begin) * 1e-9, late - 1);
        }
        (void)tn_wakeup_wait(&g->wakeup, seen, now + look_ns);
        g->waited_ns[kind] += tn_clock_ns() - now;
    }
}

static tn_status pull_from(tn_sync_worker *g, asked_batch *b, uint32_t owner, tn_error *err)
{
    const tn_pull_params params = {b->examples, b->weight_sum};
    tn_out_message *p = NULL;
    TN_TRY(tn_owner_slices_pull(&b->slices, &g->io, owner, &params, &p, err));
    p->frame.code = b->meet ? TN_MEET : 0;
    send_request(g, owner, p);
    return TN_OK;
}

tn_status tn_sync_worker_pull(tn_sync_worker *g, const tn_sync_worker_batch *batch, tn_error *err)
{
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

tn_status tn_sync_worker_rows(tn_sync_worker *g, tn_team *team, tn_joint_batch *out, tn_error *err)
{
    TN_ASSERT(g->n_got < g->n_pulled && g->n_got == g->n_done);
    asked_batch *b = &g->batch[g->n_got % BATCHES];
    TN_TRY(await(g, team, WAIT_ROWS, &b->slices.n_rows, err));
    g->n_got++;
    g->n_done += b->note.weight_sum == 0;
    g->n_gathers = 0;
    *out = b->note;
    return TN_OK;
}

tn_status tn_sync_worker_gather(tn_sync_worker *g, tn_team *team, const double *own, uint32_t n,
                                const double **all, tn_error *err)
{
    TN_ASSERT(g->n_got == g->n_done + 1);
    g->n_gathers++;
    TN_TRY(tn_allgather_begin(g->gather, g->opts.step + g->n_done, g->n_gathers, own, n, err));
    for (uint32_t to = 0; to < g->n_ranks; to++) {
        tn_out_message *p = NULL;
        if (to == g->opts.rank) {
            continue;
        }
        TN_TRY(tn_out_message_take(&p, g->opts.pool, n * sizeof *own, err));
        p->frame.type = TN_FRAME_SHARE;
        p->frame.code = g->n_gathers;
        p->frame.count[TN_DENSE_FLOATS] = n;
        tn_share_put(tn_out_message_payload(p), own, n);
        send_request(g, to, p);
    }
    TN_TRY(await(g, team, WAIT_STATISTICS, tn_allgather_count(g->gather), err));
    *all = tn_allgather_all(g->gather);
    return TN_OK;
}

tn_status tn_sync_worker_push(tn_sync_worker *g, const tn_sync_worker_learned *learned,
                              const tn_push *push, tn_error *err)
{
    TN_ASSERT(g->n_got == g->n_done + 1);
    const asked_batch *b = &g->batch[g->n_done % BATCHES];
    tn_push numbered = *push;
    numbered.step = g->opts.step + g->n_done;
    const tn_slices_gradients x = {
        .rows = learned->rows, .dense = learned->dense, .loss = learned->loss, .push = &numbered};
    g->n_weights = 0;
    memset(g->has_weights, 0, g->n_ranks * sizeof *g->has_weights);
    for (uint32_t owner = 0; owner < g->n_ranks; owner++) {
        tn_out_message *p = NULL;
        TN_TRY(tn_owner_slices_push(&b->slices, &g->io, owner, &x, &p, err));
        send_request(g, owner, p);
    }
    return TN_OK;
}

/* In rank order: arrival decides no bit. With the global clip every owner knows all of it. */
static double norm_of_all(const tn_sync_worker *g)
{
    double norm2 = 0;
    for (uint32_t r = 0; r < g->n_ranks; r++) {
        norm2 += g->norm[r] * g->norm[r];
    }
    return isfinite(g->opts.shard->rules->clip_global) ? g->norm[0] : sqrt(norm2);
}

tn_status tn_sync_worker_weights(tn_sync_worker *g, tn_team *team, tn_sync_worker_step *out,
                                 tn_error *err)
{
    TN_ASSERT(g->n_got == g->n_done + 1);
    TN_TRY(await(g, team, WAIT_WEIGHTS, &g->n_weights, err));
    g->n_done++;
    *out = (tn_sync_worker_step){.norm = norm_of_all(g), .loss = g->loss};
    return TN_OK;
}

tn_status tn_sync_worker_rest(tn_sync_worker *g, tn_team *team, tn_error *err)
{
    TN_ASSERT(g->n_pulled == g->n_done);
    return tn_sync_server_rest(g->server, team, err);
}

uint32_t tn_sync_worker_waits_for(const tn_sync_worker *g)
{
    return atomic_load(&g->waits_for);
}

tn_sync_worker_waits tn_sync_worker_waited(const tn_sync_worker *g)
{
    return (tn_sync_worker_waits){
        .rows_s = (double)g->waited_ns[WAIT_ROWS] * 1e-9,
        .weights_s = (double)(g->waited_ns[WAIT_STATISTICS] + g->waited_ns[WAIT_WEIGHTS]) * 1e-9};
}

/* ---- messages, on tn-net ---- */

/* A SHARE of an allgather, which counts once. Without memory there is no reply, and it is
 * retransmitted. */
static void take_part(tn_sync_worker *g, tn_in_message *incoming)
{
    const tn_frame f = incoming->frame;
    tn_dedup *dedup = &g->opts.dedup[f.rank];
    const tn_dedup_verdict verdict = tn_dedup_check(dedup, f.incarnation, f.sequence);
    tn_out_message *p = NULL;
    if (tn_out_message_take(&p, g->opts.pool, 0, NULL) != TN_OK) {
        tn_in_message_close(incoming);
        return;
    }
    p->frame.type = TN_FRAME_NOTED;
    if (verdict == TN_DEDUP_APPLY && tn_allgather_put(g->gather, incoming)) {
        tn_dedup_mark(dedup, f.sequence);
        tn_wakeup_signal(&g->wakeup);
    } else {
        tn_in_message_close(incoming);
        if (verdict != TN_DEDUP_REPEATED) {
            p->frame.type = TN_FRAME_REFUSED;
            p->frame.code = verdict == TN_DEDUP_STALE    ? TN_REFUSAL_INCARNATION
                            : verdict == TN_DEDUP_BEYOND ? TN_REFUSAL_BEYOND
                                                         : TN_REFUSAL_FULL;
        }
    }
    tn_link_answer(g->opts.link, &f, p);
}

void tn_sync_worker_take_request(tn_sync_worker *g, tn_in_message *incoming)
{
    if (incoming->frame.type == TN_FRAME_SHARE && incoming->frame.code != 0) {
        take_part(g, incoming);
        return;
    }
    tn_sync_server_take(g->server, &incoming->frame);
    tn_in_message_close(incoming);
}

void tn_sync_worker_take_answer(tn_sync_worker *g, tn_in_message *incoming)
{
    incoming->next = NULL;
    (void)pthread_mutex_lock(&g->lock);
    if (g->first == NULL) {
        g->first = incoming;
    } else {
        g->last->next = incoming;
    }
    g->last = incoming;
    (void)pthread_mutex_unlock(&g->lock);
    tn_wakeup_signal(&g->wakeup);
}

void tn_sync_worker_fail(tn_sync_worker *g, tn_status status, const char *why)
{
    (void)pthread_mutex_lock(&g->lock);
    if (g->ended == TN_OK) {
        g->ended = tn_fail(&g->why, status, "%s", why);
    }
    (void)pthread_mutex_unlock(&g->lock);
    tn_wakeup_signal(&g->wakeup);
}

/* ---- opening and closing ---- */

static tn_status make(tn_sync_worker *g, tn_error *err)
{
    const tn_sync_worker_opts *o = &g->opts;
    const char *what = "a group of peers";
    TN_TRY(tn_batchio_init(&g->io, o->pool, o->shares, o->row_values, o->dense_values, err));
    g->has_weights = tn_try_alloc(g->n_ranks, sizeof *g->has_weights, what, err);
    g->norm = tn_try_alloc(g->n_ranks, sizeof *g->norm, what, err);
    if (g->has_weights == NULL || g->norm == NULL) {
        return TN_E_MEMORY;
    }
    TN_TRY(tn_allgather_new(&g->gather, o->rank, g->n_ranks, err));
    const tn_sync_server_opts server = {.rank = o->rank,
                                        .shares = o->shares,
                                        .layout = o->layout,
                                        .shard = o->shard,
                                        .weights = o->own,
                                        .dedup = o->dedup,
                                        .pool = o->pool,
                                        .wakeup = &g->wakeup,
                                        .answer = answer,
                                        .send = send_request,
                                        .arg = g};
    return tn_sync_server_new(&g->server, &server, o->step, err);
}

void tn_sync_worker_close(tn_sync_worker *g)
{
    if (g == NULL) {
        return;
    }
    while (g->first != NULL) {
        tn_in_message *incoming = g->first;
        g->first = incoming->next;
        tn_in_message_close(incoming);
    }
    tn_sync_server_free(g->server);
    tn_allgather_free(g->gather);
    for (uint32_t i = 0; i < BATCHES; i++) {
        tn_owner_slices_done(&g->batch[i].slices);
    }
    tn_free(g->has_weights);
    tn_free(g->norm);
    tn_batchio_done(&g->io);
    tn_wakeup_done(&g->wakeup);
    (void)pthread_mutex_destroy(&g->lock);
    tn_free(g);
}

tn_status tn_sync_worker_open(tn_sync_worker **out, const tn_sync_worker_opts *opts, tn_error *err)
{
    *out = NULL;
    tn_sync_worker *g = tn_try_alloc(1, sizeof *g, "a group of peers", err);
    if (g == NULL) {
        return TN_E_MEMORY;
    }
    g->opts = *opts;
    g->n_ranks = opts->shares->owners.n_peers;
    tn_wakeup_init(&g->wakeup);
    (void)pthread_mutex_init(&g->lock, NULL);
    tn_status status = make(g, err);
    if (status != TN_OK) {
        tn_sync_worker_close(g);
        return status;
    }
    *out = g;
    return TN_OK;
}
