/* async_worker_open.c - a free-running worker is opened and closed, and its letters come in. */
#include "base/core/alloc.h"
#include "cluster/async/async_worker_state.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static void answer(void *arg, const tn_frame *request, tn_parcel *parcel)
{
    const tn_async *g = arg;
    tn_link_answer(g->opts.link, request, parcel);
}

static void shard_failed(void *arg, tn_status status, const char *why)
{
    tn_async_fail(arg, status, why);
}

static tn_status make_arrays(tn_async *g, tn_error *err)
{
    const tn_async_opts *o = &g->opts;
    const char *what = "a group of peers";
    g->parcel = tn_try_alloc(g->n_ranks, sizeof(void *), what, err);
    g->newest = tn_try_alloc(g->n_ranks, sizeof(void *), what, err);
    g->zeros = tn_try_alloc(TN_PARTITIONS + 1, sizeof *g->zeros, what, err);
    g->trained = tn_try_alloc((size_t)o->n_trained + 1, sizeof *g->trained, what, err);
    bool made = g->parcel != NULL && g->newest != NULL && g->zeros != NULL && g->trained != NULL;
    for (uint32_t i = 0; i < g->permits && made; i++) {
        g->flight[i].acknowledged = tn_try_alloc(g->n_ranks, sizeof(bool), what, err);
        made = g->flight[i].acknowledged != NULL;
    }
    if (!made) {
        return TN_E_MEMORY;
    }
    if (o->n_trained > 0) {
        memcpy(g->trained, o->trained, o->n_trained * sizeof *g->trained);
    }
    g->none = (tn_keyset){.owners = &o->shares->owners, .at = g->zeros, .first = g->zeros};
    return TN_OK;
}

static tn_status make(tn_async *g, tn_error *err)
{
    const tn_async_opts *o = &g->opts;
    TN_TRY(make_arrays(g, err));
    TN_TRY(tn_batchio_init(&g->io, o->parcels, o->shares, o->row_values, o->dense_values, err));
    const tn_freeserve_opts serve = {.rank = o->rank,
                                     .permits = g->permits,
                                     .step = o->step,
                                     .shares = o->shares,
                                     .layout = o->layout,
                                     .shard = o->shard,
                                     .moving = o->moving,
                                     .n_moving = o->n_moving,
                                     .once = o->once,
                                     .parcels = o->parcels,
                                     .answer = answer,
                                     .failed = shard_failed,
                                     .arg = g};
    return tn_freeserve_open(&g->serve, &serve, err);
}

tn_status tn_async_open(tn_async **out, const tn_async_opts *opts, tn_error *err)
{
    *out = NULL;
    tn_async *g = tn_try_alloc(1, sizeof *g, "a group of peers", err);
    if (g == NULL) {
        return TN_E_MEMORY;
    }
    g->opts = *opts;
    g->n_ranks = opts->shares->owners.n_peers;
    g->permits = tn_permits_of(opts->staleness);
    tn_bell_init(&g->bell);
    (void)pthread_mutex_init(&g->lock, NULL);
    tn_status status = make(g, err);
    if (status != TN_OK) {
        tn_async_close(g);
        return status;
    }
    *out = g;
    return TN_OK;
}

void tn_async_stop(tn_async *g)
{
    tn_freeserve_stop(g->serve);
}

void tn_async_close(tn_async *g)
{
    if (g == NULL) {
        return;
    }
    tn_freeserve_close(g->serve);
    while (g->first != NULL) {
        tn_letter *letter = g->first;
        g->first = letter->next;
        tn_letter_close(letter);
    }
    for (uint32_t r = 0; g->newest != NULL && r < g->n_ranks; r++) {
        tn_letter_close(g->newest[r]);
    }
    for (uint32_t i = 0; i < g->permits; i++) {
        tn_owner_slices_done(&g->flight[i].slices);
        tn_free(g->flight[i].acknowledged);
    }
    tn_batchio_done(&g->io);
    tn_free(g->parcel);
    tn_free(g->newest);
    tn_free(g->zeros);
    tn_free(g->trained);
    tn_bell_done(&g->bell);
    (void)pthread_mutex_destroy(&g->lock);
    tn_free(g);
}

void tn_async_take_request(tn_async *g, tn_letter *letter)
{
    tn_freeserve_take(g->serve, &letter->frame);
    tn_letter_close(letter);
}

/* ---- answers ---- */

void tn_flight_acknowledge(tn_async *g, tn_flight *f, uint32_t owner, const tn_pushed_here *what)
{
    const bool whole = isfinite(g->opts.shard->rules->clip_global); /* then its sender knew it */
    f->acknowledged[owner] = true;
    const double norm2 = what->norm * what->norm;
    f->norm2 = whole ? fmax(f->norm2, norm2) : f->norm2 + norm2;
    f->staleness = what->staleness > f->staleness ? what->staleness : f->staleness;
    if (--f->n_left > 0) {
        return;
    }
    f->held = false;
    if (f->of.examples > 0) {
        g->seen.pushes++;
        g->seen.staleness_max =
            f->staleness > g->seen.staleness_max ? f->staleness : g->seen.staleness_max;
        g->seen.norm = f->number >= g->seen_number ? sqrt(f->norm2) : g->seen.norm;
        g->seen_number = f->number >= g->seen_number ? f->number : g->seen_number;
    }
}

static tn_flight *flight_of(tn_async *g, uint64_t number)
{
    for (uint32_t i = 0; i < g->permits; i++) {
        tn_flight *f = &g->flight[i];
        if (f->held && f->pushed && f->number == number) {
            return f;
        }
    }
    return NULL;
}

/* Under the lock. Gives permits back at once, whatever the worker does; the weights wait for it,
 * those of the last request alone. False: it is none that is due. */
static bool take_dense(tn_async *g, tn_letter *letter)
{
    const size_t *cut = g->opts.shares->dense;
    const uint32_t from = letter->from;
    const tn_frame *frame = &letter->frame;
    tn_flight *f = flight_of(g, frame->step);
    tn_dense_params p;
    if (f == NULL || from == g->opts.rank || f->acknowledged[from] ||
        frame->count[TN_DENSE_FLOATS] != cut[from + 1] - cut[from] ||
        tn_dense_params_get(&p, frame->payload) != TN_DROP_NONE) {
        return false;
    }
    tn_flight_acknowledge(g, f, from, &(tn_pushed_here){p.grad_norm, p.staleness});
    tn_letter *old = letter;
    if (g->newest[from] == NULL || g->newest[from]->frame.sequence < frame->sequence) {
        old = g->newest[from];
        g->newest[from] = letter;
    }
    tn_letter_close(old);
    return true;
}

static void keep(tn_async *g, tn_letter *letter)
{
    letter->next = NULL;
    if (g->first == NULL) {
        g->first = letter;
    } else {
        g->last->next = letter;
    }
    g->last = letter;
}

void tn_async_take_answer(tn_async *g, tn_letter *letter)
{
    TN_ASSERT(letter->from < g->n_ranks);
    (void)pthread_mutex_lock(&g->lock);
    if (letter->frame.type != TN_FRAME_DENSE || !take_dense(g, letter)) {
        keep(g, letter); /* the worker says what is wrong with it */
    }
    (void)pthread_mutex_unlock(&g->lock);
    tn_bell_ring(&g->bell);
}

void tn_async_fail(tn_async *g, tn_status status, const char *why)
{
    (void)pthread_mutex_lock(&g->lock);
    if (g->ended == TN_OK) {
        g->ended = tn_fail(&g->why, status, "%s", why);
    }
    (void)pthread_mutex_unlock(&g->lock);
    tn_bell_ring(&g->bell);
}

void tn_async_take_seen(tn_async *g, tn_async_seen *out)
{
    (void)pthread_mutex_lock(&g->lock);
    *out = g->seen;
    g->seen.pushes = 0;
    g->seen.staleness_max = 0;
    (void)pthread_mutex_unlock(&g->lock);
}

uint64_t tn_async_updates(const tn_async *g)
{
    return tn_freeserve_updates(g->serve);
}
