/* async_worker.c - what a free-running worker asks of all owners, and what they answer. */
#include "cluster/async/async_worker.h"

#include "base/core/clock.h"
#include "cluster/async/async_worker_state.h"
#include "cluster/async/pushnorm.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const uint64_t look_ns = 100000000; /* at least so often, at what may have gone wrong */

/* ---- answers, on the worker's thread ---- */

static void strange(tn_async *g, uint32_t rank, const char *what)
{
    if (g->failed == TN_OK) {
        g->failed = tn_fail(&g->err, TN_E_PEER, "rank %u sent %s that nobody can use", rank, what);
    }
}

/* Of any batch that was pulled and has no rows of that owner yet. */
static void hear_rows(tn_async *g, const tn_frame *f, uint32_t from)
{
    for (uint64_t i = g->n_pushed; i < g->n_pulled; i++) {
        tn_flight *x = &g->flight[g->order[i % g->permits]];
        if (x->number == f->step && tn_owner_slices_rows(&x->slices, from, f, true)) {
            return;
        }
    }
    strange(g, from, "rows");
}

static void hear_refusal(tn_async *g, const tn_frame *f, uint32_t from)
{
    if (g->failed == TN_OK) {
        bool diverged = f->code == TN_REFUSAL_DIVERGED;
        g->failed = tn_fail(&g->err, diverged ? TN_E_DIVERGED : TN_E_PEER,
                            "rank %u refused a request of step %" PRIu64 ": %s", from, f->step + 1,
                            tn_refusal_text(f->code));
    }
}

static void hear(tn_async *g, const tn_letter *letter)
{
    const tn_frame *f = &letter->frame;
    if (f->type == TN_FRAME_ROWS) {
        hear_rows(g, f, letter->from);
    } else if (f->type == TN_FRAME_REFUSED) {
        hear_refusal(g, f, letter->from);
    } else if (f->type == TN_FRAME_DENSE) {
        strange(g, letter->from, "weights");
    }
}

static tn_status hear_letters(tn_async *g, tn_error *err)
{
    (void)pthread_mutex_lock(&g->lock);
    tn_letter *letter = g->first;
    g->first = NULL;
    if (g->ended != TN_OK && g->failed == TN_OK) {
        g->err = g->why;
        g->failed = g->ended;
    }
    (void)pthread_mutex_unlock(&g->lock);
    while (letter != NULL) {
        tn_letter *next = letter->next;
        hear(g, letter);
        tn_letter_close(letter);
        letter = next;
    }
    return g->failed == TN_OK ? TN_OK : tn_fail(err, g->failed, "%s", g->err.text);
}

/* ---- waiting ---- */

/* What a call waits for: 1 + a rank that it is due from, 0 when it is there. */
typedef uint32_t due_of(tn_async *g);

/* Of the push that has waited longest among those with a permit. */
static uint32_t late_push(tn_async *g, uint32_t *n_held)
{
    const tn_flight *first = NULL;
    uint32_t late = 0;
    *n_held = 0;
    (void)pthread_mutex_lock(&g->lock);
    for (uint32_t i = 0; i < g->permits; i++) {
        const tn_flight *f = &g->flight[i];
        *n_held += f->held;
        if (f->held && f->pushed && (first == NULL || f->number < first->number)) {
            first = f;
        }
    }
    for (uint32_t r = 0; first != NULL && r < g->n_ranks && late == 0; r++) {
        late = first->acknowledged[r] ? 0 : 1 + r;
    }
    (void)pthread_mutex_unlock(&g->lock);
    return late;
}

static uint32_t due_permit(tn_async *g)
{
    uint32_t n_held;
    const uint32_t late = late_push(g, &n_held);
    return n_held < g->permits ? 0 : late;
}

static uint32_t due_all_permits(tn_async *g)
{
    uint32_t n_held;
    const uint32_t late = late_push(g, &n_held);
    return n_held == 0 ? 0 : late;
}

static tn_flight *oldest(tn_async *g)
{
    TN_ASSERT(g->n_pushed < g->n_pulled);
    return &g->flight[g->order[g->n_pushed % g->permits]];
}

static uint32_t due_rows(tn_async *g)
{
    const tn_owner_slice *of = oldest(g)->slices.of;
    uint32_t r = 0;
    while (r < g->n_ranks && (r == g->opts.rank || of[r].has_rows)) {
        r++;
    }
    return r < g->n_ranks ? 1 + r : 0;
}

static tn_status await(tn_async *g, due_of *due, const char *what, tn_error *err)
{
    const uint64_t begin = tn_clock_ns();
    for (;;) {
        uint64_t heard = tn_bell_rings(&g->bell);
        TN_TRY(hear_letters(g, err));
        const uint32_t late = due(g);
        atomic_store(&g->waits_for, late);
        if (late == 0) {
            return TN_OK;
        }
        uint64_t now = tn_clock_ns();
        if (now - begin > g->opts.patience_ns) {
            return tn_fail(err, TN_E_PEER, "%s of rank %u did not come within %.0f s", what,
                           late - 1, (double)(now - begin) * 1e-9);
        }
        (void)tn_bell_wait(&g->bell, heard, now + look_ns);
    }
}

/* ---- calls ---- */

static tn_flight *take_permit(tn_async *g)
{
    uint32_t i = 0;
    (void)pthread_mutex_lock(&g->lock);
    while (g->flight[i].held) {
        i++;
        TN_ASSERT(i < g->permits);
    }
    tn_flight *f = &g->flight[i];
    f->held = true;
    f->pushed = false;
    f->number = g->opts.step + g->n_pulled;
    f->norm2 = 0;
    f->staleness = 0;
    memset(f->acknowledged, 0, g->n_ranks * sizeof *f->acknowledged);
    (void)pthread_mutex_unlock(&g->lock);
    return f;
}

static void post(tn_async *g, const tn_flight *f, uint32_t owner, tn_parcel *p)
{
    p->frame.step = f->number;
    tn_link_post(g->opts.link, owner, p);
}

static tn_status ask(tn_async *g, const tn_async_batch *batch, tn_error *err)
{
    TN_ASSERT(g->n_pulled - g->n_pushed < g->permits);
    TN_TRY(await(g, due_permit, "the acknowledgement", err));
    tn_flight *f = take_permit(g);
    const tn_pull_params params = {batch->examples, batch->weight_sum};
    f->of = *batch;
    f->has_rows = false;
    TN_TRY(tn_owner_slices_begin(&f->slices, g->n_ranks, batch->keys, batch->rows, err));
    g->order[g->n_pulled++ % g->permits] = (uint32_t)(f - g->flight);
    for (uint32_t owner = 0; owner < g->n_ranks; owner++) {
        tn_parcel *p = NULL;
        if (owner != g->opts.rank) {
            TN_TRY(tn_owner_slices_pull(&f->slices, &g->io, owner, &params, &p, err));
            post(g, f, owner, p);
        }
    }
    return TN_OK;
}

tn_status tn_async_pull(tn_async *g, const tn_async_batch *batch, tn_error *err)
{
    TN_ASSERT(batch->examples > 0 && batch->weight_sum > 0);
    return ask(g, batch, err);
}

/* All weights that have come. */
static tn_status take_weights(tn_async *g, tn_error *err)
{
    const size_t *cut = g->opts.shares->dense;
    for (uint32_t r = 0; r < g->n_ranks; r++) {
        float *to = g->opts.weights + cut[r];
        (void)pthread_mutex_lock(&g->lock);
        tn_letter *letter = g->newest[r];
        g->newest[r] = NULL;
        (void)pthread_mutex_unlock(&g->lock);
        if (letter != NULL && tn_values_read(tn_frame_dense_values(letter->frame.flags),
                                             letter->frame.payload + TN_DENSE_PARAMS,
                                             cut[r + 1] - cut[r], to) != TN_VALUES_FINITE) {
            strange(g, r, "weights that are not finite");
        }
        tn_letter_close(letter);
    }
    tn_dense_copy(g->opts.shard->dense, g->opts.weights + cut[g->opts.rank]);
    return g->failed == TN_OK ? TN_OK : tn_fail(err, g->failed, "%s", g->err.text);
}

tn_status tn_async_rows(tn_async *g, tn_team *team, tn_error *err)
{
    tn_flight *f = oldest(g);
    TN_ASSERT(!f->has_rows);
    const uint32_t place = (uint32_t)(f - g->flight);
    TN_TRY(tn_freeserve_pull(g->serve, team, place, f->of.keys, f->of.rows, err));
    TN_TRY(await(g, due_rows, "rows", err));
    f->has_rows = true;
    return take_weights(g, err);
}

/* For the global clip, which others can only make with it. */
static tn_status measure(tn_async *g, tn_team *team, const tn_flight *f, tn_slices_gradients *grads,
                         tn_error *err)
{
    const tn_rules *rules = g->opts.shard->rules;
    if (!isfinite(rules->clip_global) || g->n_ranks == 1) {
        return TN_OK;
    }
    const tn_pushnorm all = {.rules = rules,
                             .keys = f->of.keys,
                             .rows = f->of.rows,
                             .grads = grads->rows,
                             .run = g->trained,
                             .n_runs = g->opts.n_trained,
                             .weights = g->opts.weights,
                             .dense = grads->dense,
                             .push = grads->push};
    grads->norm = sqrt(tn_pushnorm2(team, &all));
    if (!isfinite((float)grads->norm)) {
        return tn_fail(err, TN_E_DIVERGED, "the gradient of step %" PRIu64 " is not finite",
                       grads->push->step + 1);
    }
    return TN_OK;
}

/* To all other owners, or to none. */
static tn_status send_gradients(tn_async *g, tn_flight *f, const tn_slices_gradients *grads,
                                tn_error *err)
{
    tn_status status = TN_OK;
    memset(g->parcel, 0, g->n_ranks * sizeof(void *));
    for (uint32_t owner = 0; owner < g->n_ranks && status == TN_OK; owner++) {
        if (owner != g->opts.rank) {
            status = tn_owner_slices_push(&f->slices, &g->io, owner, grads, &g->parcel[owner], err);
        }
    }
    (void)pthread_mutex_lock(&g->lock);
    f->pushed = true;
    f->n_left = g->n_ranks;
    (void)pthread_mutex_unlock(&g->lock);
    for (uint32_t owner = 0; owner < g->n_ranks; owner++) {
        if (g->parcel[owner] != NULL && status == TN_OK) {
            post(g, f, owner, g->parcel[owner]);
        } else {
            tn_parcel_drop(g->parcel[owner]);
        }
    }
    return status;
}

static void acknowledge_own(tn_async *g, tn_flight *f, const tn_pushed_here *what)
{
    (void)pthread_mutex_lock(&g->lock);
    tn_flight_acknowledge(g, f, g->opts.rank, what);
    (void)pthread_mutex_unlock(&g->lock);
}

tn_status tn_async_push(tn_async *g, tn_team *team, const float *grads, const float *dense,
                        const tn_push *push, tn_error *err)
{
    tn_flight *f = oldest(g);
    TN_ASSERT(f->has_rows && f->of.examples > 0);
    tn_push of_batch = *push;
    of_batch.step = f->number;
    of_batch.weight_sum = f->of.weight_sum;
    tn_slices_gradients all = {.rows = grads, .dense = dense, .push = &of_batch};
    TN_TRY(measure(g, team, f, &all, err));
    TN_TRY(send_gradients(g, f, &all, err));
    const tn_own_push own = {.place = (uint32_t)(f - g->flight),
                             .rows = grads,
                             .dense = dense + g->opts.shares->dense[g->opts.rank],
                             .norm = all.norm,
                             .push = &of_batch};
    tn_pushed_here what;
    TN_TRY(tn_freeserve_push(g->serve, team, &own, &what, err));
    g->n_pushed++;
    acknowledge_own(g, f, &what);
    return TN_OK;
}

tn_status tn_async_drain(tn_async *g, tn_error *err)
{
    TN_ASSERT(g->n_pushed == g->n_pulled);
    return await(g, due_all_permits, "the acknowledgement", err);
}

/* A batch without examples changes nothing, and its push is answered with the weights of now. */
tn_status tn_async_refresh(tn_async *g, tn_error *err)
{
    TN_ASSERT(g->n_pushed == g->n_pulled);
    const tn_async_batch none = {.keys = &g->none};
    const tn_push push = {.lr_factor = 0};
    const tn_slices_gradients grads = {.push = &push};
    TN_TRY(ask(g, &none, err));
    tn_flight *f = oldest(g);
    TN_TRY(await(g, due_rows, "an answer", err));
    TN_TRY(send_gradients(g, f, &grads, err));
    g->n_pushed++;
    acknowledge_own(g, f, &(tn_pushed_here){0});
    TN_TRY(tn_async_drain(g, err));
    return take_weights(g, err);
}

uint32_t tn_async_waits_for(const tn_async *g)
{
    return atomic_load(&g->waits_for);
}
