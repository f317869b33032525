/* sync_worker.c - what a worker asks of all owners, and what they answer. */
#include "base/core/clock.h"
#include "cluster/sync/sync_worker_state.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const uint64_t look_ns = 100000000; /* at least so often, at what may have gone wrong */

/* ---- answers, on the worker's thread ---- */

static void fail(tn_sync *g, tn_status status)
{
    g->failed = g->failed != TN_OK ? g->failed : status;
}

static void strange(tn_sync *g, uint32_t rank, const char *what)
{
    if (g->failed == TN_OK) {
        fail(g, tn_fail(&g->err, TN_E_PEER, "rank %u sent %s that nobody can use", rank, what));
    }
}

static void hear_rows(tn_sync *g, const tn_frame *f, uint32_t from)
{
    tn_asked *b = &g->batch[g->n_got % TN_SYNC_BATCHES];
    tn_rows_params p;
    bool known = g->n_got < g->n_pulled && tn_rows_params_get(&p, f->payload) == TN_DROP_NONE;
    if (!known || !tn_owner_slices_rows(&b->slices, from, f, p.weight_sum > 0)) {
        strange(g, from, "rows");
        return;
    }
    b->note.first_row = p.first;
    b->note.rows = p.examples;
    b->note.weight_sum = p.weight_sum;
    b->note.over = p.examples == 0;
    b->note.meet = f->code == TN_MEET;
}

static void hear_weights(tn_sync *g, const tn_frame *f, uint32_t from)
{
    const size_t *cut = g->opts.shares->dense;
    const size_t n = cut[from + 1] - cut[from];
    tn_dense_params p;
    if (g->has_weights[from] || f->count[TN_DENSE_FLOATS] != n ||
        tn_dense_params_get(&p, f->payload) != TN_DROP_NONE ||
        tn_values_read(tn_frame_dense_values(f->flags), f->payload + TN_DENSE_PARAMS, n,
                       g->opts.weights + cut[from]) != TN_VALUES_FINITE) {
        strange(g, from, "weights");
        return;
    }
    g->has_weights[from] = true;
    g->n_weights++;
    g->norm[from] = p.grad_norm;
    g->loss = p.loss; /* all owners add up the same numbers in the same order */
}

static void hear_refusal(tn_sync *g, const tn_frame *f, uint32_t from)
{
    if (g->failed == TN_OK) {
        bool diverged = f->code == TN_REFUSAL_DIVERGED;
        fail(g, tn_fail(&g->err, diverged ? TN_E_DIVERGED : TN_E_PEER,
                        "rank %u refused a request of step %" PRIu64 ": %s", from, f->step + 1,
                        tn_refusal_text(f->code)));
    }
}

static void hear(tn_sync *g, const tn_frame *f, uint32_t from)
{
    if (f->type == TN_FRAME_ROWS) {
        hear_rows(g, f, from);
    } else if (f->type == TN_FRAME_DENSE) {
        hear_weights(g, f, from);
    } else if (f->type == TN_FRAME_REFUSED) {
        hear_refusal(g, f, from);
    }
}

static void hear_letters(tn_sync *g)
{
    (void)pthread_mutex_lock(&g->lock);
    tn_letter *letter = g->first;
    g->first = NULL;
    if (g->ended != TN_OK && g->failed == TN_OK) {
        g->err = g->why;
        fail(g, g->ended);
    }
    (void)pthread_mutex_unlock(&g->lock);
    while (letter != NULL) {
        tn_letter *next = letter->next;
        hear(g, &letter->frame, letter->from);
        tn_letter_close(letter);
        letter = next;
    }
}

/* ---- what the own shard says ---- */

void tn_sync_answer(void *arg, const tn_frame *request, tn_parcel *parcel)
{
    tn_sync *g = arg;
    if (request->rank != g->opts.rank) {
        tn_link_answer(g->opts.link, request, parcel);
        return;
    }
    tn_frame f = parcel->frame;
    f.sequence = request->sequence;
    f.step = request->step;
    f.payload = tn_parcel_payload(parcel);
    hear(g, &f, g->opts.rank);
    tn_parcel_drop(parcel);
}

void tn_sync_send(void *arg, uint32_t to, tn_parcel *parcel)
{
    tn_sync *g = arg;
    parcel->frame.step = g->opts.step + g->n_done;
    if (to != g->opts.rank) {
        tn_link_post(g->opts.link, to, parcel);
        return;
    }
    tn_frame f = parcel->frame;
    f.rank = to;
    f.incarnation = g->opts.once[to].incarnation;
    f.sequence = ++g->own_sequence;
    f.payload = tn_parcel_payload(parcel);
    tn_serve_take(g->serve, &f);
    tn_parcel_drop(parcel);
}

/* ---- calls ---- */

static bool has_come(const tn_sync *g, tn_sync_kind kind, uint32_t from)
{
    return kind == TN_SYNC_ROWS ? g->batch[g->n_got % TN_SYNC_BATCHES].slices.of[from].has_rows
                                : g->has_weights[from];
}

/* Everybody's answers wait for the one that is late, which the own shard knows. When it has
 * answered, what it lacks now is of the turn to come: then an owner is late. */
static uint32_t late_rank(const tn_sync *g, tn_sync_kind kind)
{
    if (kind == TN_SYNC_STATISTICS) {
        return tn_gather_waits_for(g->gather);
    }
    if (!has_come(g, kind, g->opts.rank)) {
        return tn_serve_waits_for(g->serve);
    }
    uint32_t r = 0;
    while (r < g->n_ranks && has_come(g, kind, r)) {
        r++;
    }
    return r < g->n_ranks ? 1 + r : 0;
}

/* Works for the own shard and listens until `*count` is that of all ranks. */
static tn_status await(tn_sync *g, tn_team *team, tn_sync_kind kind, const uint32_t *count,
                       tn_error *err)
{
    static const char *const what[TN_SYNC_KINDS] = {"rows", "statistics", "weights"};
    const uint64_t begin = tn_clock_ns();
    for (;;) {
        uint64_t heard = tn_bell_rings(&g->bell);
        hear_letters(g);
        if (g->failed == TN_OK) {
            fail(g, tn_serve_run(g->serve, team, &g->err));
        }
        if (g->failed == TN_OK && kind == TN_SYNC_STATISTICS) {
            fail(g, tn_gather_look(g->gather, &g->err));
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
        (void)tn_bell_wait(&g->bell, heard, now + look_ns);
        g->waited_ns[kind] += tn_clock_ns() - now;
    }
}

static tn_status pull_from(tn_sync *g, tn_asked *b, uint32_t owner, tn_error *err)
{
    const tn_pull_params params = {b->examples, b->weight_sum};
    tn_parcel *p = NULL;
    TN_TRY(tn_owner_slices_pull(&b->slices, &g->io, owner, &params, &p, err));
    p->frame.code = b->meet ? TN_MEET : 0;
    tn_sync_send(g, owner, p);
    return TN_OK;
}

tn_status tn_sync_pull(tn_sync *g, const tn_sync_batch *batch, tn_error *err)
{
    TN_ASSERT(g->n_pulled - g->n_done < TN_SYNC_BATCHES);
    tn_serve_wake(g->serve);
    tn_asked *b = &g->batch[g->n_pulled % TN_SYNC_BATCHES];
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

tn_status tn_sync_rows(tn_sync *g, tn_team *team, tn_joint_note *out, tn_error *err)
{
    TN_ASSERT(g->n_got < g->n_pulled && g->n_got == g->n_done);
    tn_asked *b = &g->batch[g->n_got % TN_SYNC_BATCHES];
    TN_TRY(await(g, team, TN_SYNC_ROWS, &b->slices.n_rows, err));
    g->n_got++;
    g->n_done += b->note.weight_sum == 0;
    g->n_gathers = 0;
    *out = b->note;
    return TN_OK;
}

tn_status tn_sync_gather(tn_sync *g, tn_team *team, const double *own, uint32_t n,
                         const double **all, tn_error *err)
{
    TN_ASSERT(g->n_got == g->n_done + 1);
    g->n_gathers++;
    TN_TRY(tn_gather_begin(g->gather, g->opts.step + g->n_done, g->n_gathers, own, n, err));
    for (uint32_t to = 0; to < g->n_ranks; to++) {
        tn_parcel *p = NULL;
        if (to == g->opts.rank) {
            continue;
        }
        TN_TRY(tn_parcel_take(&p, g->opts.parcels, n * sizeof *own, err));
        p->frame.type = TN_FRAME_SHARE;
        p->frame.code = g->n_gathers;
        p->frame.count[TN_DENSE_FLOATS] = n;
        tn_share_put(tn_parcel_payload(p), own, n);
        tn_sync_send(g, to, p);
    }
    TN_TRY(await(g, team, TN_SYNC_STATISTICS, tn_gather_count(g->gather), err));
    *all = tn_gather_all(g->gather);
    return TN_OK;
}

tn_status tn_sync_push(tn_sync *g, const tn_sync_learned *learned, const tn_push *push,
                       tn_error *err)
{
    TN_ASSERT(g->n_got == g->n_done + 1);
    const tn_asked *b = &g->batch[g->n_done % TN_SYNC_BATCHES];
    tn_push numbered = *push;
    numbered.step = g->opts.step + g->n_done;
    const tn_slices_gradients x = {
        .rows = learned->rows, .dense = learned->dense, .loss = learned->loss, .push = &numbered};
    g->n_weights = 0;
    memset(g->has_weights, 0, g->n_ranks * sizeof *g->has_weights);
    for (uint32_t owner = 0; owner < g->n_ranks; owner++) {
        tn_parcel *p = NULL;
        TN_TRY(tn_owner_slices_push(&b->slices, &g->io, owner, &x, &p, err));
        tn_sync_send(g, owner, p);
    }
    return TN_OK;
}

/* In rank order: arrival decides no bit. With the global clip every owner knows all of it. */
static double norm_of_all(const tn_sync *g)
{
    double norm2 = 0;
    for (uint32_t r = 0; r < g->n_ranks; r++) {
        norm2 += g->norm[r] * g->norm[r];
    }
    return isfinite(g->opts.shard->rules->clip_global) ? g->norm[0] : sqrt(norm2);
}

tn_status tn_sync_weights(tn_sync *g, tn_team *team, tn_sync_step *out, tn_error *err)
{
    TN_ASSERT(g->n_got == g->n_done + 1);
    TN_TRY(await(g, team, TN_SYNC_WEIGHTS, &g->n_weights, err));
    g->n_done++;
    *out = (tn_sync_step){.norm = norm_of_all(g), .loss = g->loss};
    return TN_OK;
}

tn_status tn_sync_rest(tn_sync *g, tn_team *team, tn_error *err)
{
    TN_ASSERT(g->n_pulled == g->n_done);
    return tn_serve_rest(g->serve, team, err);
}

uint32_t tn_sync_waits_for(const tn_sync *g)
{
    return atomic_load(&g->waits_for);
}

tn_sync_waits tn_sync_waited(const tn_sync *g)
{
    return (tn_sync_waits){
        .rows_s = (double)g->waited_ns[TN_SYNC_ROWS] * 1e-9,
        .weights_s =
            (double)(g->waited_ns[TN_SYNC_STATISTICS] + g->waited_ns[TN_SYNC_WEIGHTS]) * 1e-9};
}
