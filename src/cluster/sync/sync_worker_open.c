/* sync_worker_open.c - a worker among its peers is opened and closed, and its letters come in. */
#include "base/core/alloc.h"
#include "cluster/sync/sync_worker_state.h"

static tn_status make(tn_sync *g, tn_error *err)
{
    const tn_sync_opts *o = &g->opts;
    const char *what = "a group of peers";
    TN_TRY(tn_batchio_init(&g->io, o->parcels, o->shares, o->row_values, o->dense_values, err));
    g->has_weights = tn_try_alloc(g->n_ranks, sizeof *g->has_weights, what, err);
    g->norm = tn_try_alloc(g->n_ranks, sizeof *g->norm, what, err);
    if (g->has_weights == NULL || g->norm == NULL) {
        return TN_E_MEMORY;
    }
    TN_TRY(tn_gather_new(&g->gather, o->rank, g->n_ranks, err));
    const tn_serve_opts serve = {.rank = o->rank,
                                 .shares = o->shares,
                                 .layout = o->layout,
                                 .shard = o->shard,
                                 .weights = o->own,
                                 .once = o->once,
                                 .parcels = o->parcels,
                                 .bell = &g->bell,
                                 .answer = tn_sync_answer,
                                 .send = tn_sync_send,
                                 .arg = g};
    return tn_serve_new(&g->serve, &serve, o->step, err);
}

tn_status tn_sync_open(tn_sync **out, const tn_sync_opts *opts, tn_error *err)
{
    *out = NULL;
    tn_sync *g = tn_try_alloc(1, sizeof *g, "a group of peers", err);
    if (g == NULL) {
        return TN_E_MEMORY;
    }
    g->opts = *opts;
    g->n_ranks = opts->shares->owners.n_peers;
    tn_bell_init(&g->bell);
    (void)pthread_mutex_init(&g->lock, NULL);
    tn_status status = make(g, err);
    if (status != TN_OK) {
        tn_sync_close(g);
        return status;
    }
    *out = g;
    return TN_OK;
}

/* A part of an exchange, which counts once. Where there is no memory it comes again. */
static void take_part(tn_sync *g, tn_letter *letter)
{
    const tn_frame f = letter->frame;
    tn_once *once = &g->opts.once[f.rank];
    const tn_once_verdict verdict = tn_once_ask(once, f.incarnation, f.sequence);
    tn_parcel *p = NULL;
    if (tn_parcel_take(&p, g->opts.parcels, 0, NULL) != TN_OK) {
        tn_letter_close(letter);
        return;
    }
    p->frame.type = TN_FRAME_NOTED;
    if (verdict == TN_ONCE_APPLY && tn_gather_put(g->gather, letter)) {
        tn_once_mark(once, f.sequence);
        tn_bell_ring(&g->bell);
    } else {
        tn_letter_close(letter);
        if (verdict != TN_ONCE_REPEATED) {
            p->frame.type = TN_FRAME_REFUSED;
            p->frame.code = verdict == TN_ONCE_STALE    ? TN_REFUSAL_INCARNATION
                            : verdict == TN_ONCE_BEYOND ? TN_REFUSAL_BEYOND
                                                        : TN_REFUSAL_FULL;
        }
    }
    tn_link_answer(g->opts.link, &f, p);
}

void tn_sync_take_request(tn_sync *g, tn_letter *letter)
{
    if (letter->frame.type == TN_FRAME_SHARE && letter->frame.code != 0) {
        take_part(g, letter);
        return;
    }
    tn_serve_take(g->serve, &letter->frame);
    tn_letter_close(letter);
}

void tn_sync_take_answer(tn_sync *g, tn_letter *letter)
{
    letter->next = NULL;
    (void)pthread_mutex_lock(&g->lock);
    if (g->first == NULL) {
        g->first = letter;
    } else {
        g->last->next = letter;
    }
    g->last = letter;
    (void)pthread_mutex_unlock(&g->lock);
    tn_bell_ring(&g->bell);
}

void tn_sync_fail(tn_sync *g, tn_status status, const char *why)
{
    (void)pthread_mutex_lock(&g->lock);
    if (g->ended == TN_OK) {
        g->ended = tn_fail(&g->why, status, "%s", why);
    }
    (void)pthread_mutex_unlock(&g->lock);
    tn_bell_ring(&g->bell);
}

void tn_sync_close(tn_sync *g)
{
    if (g == NULL) {
        return;
    }
    while (g->first != NULL) {
        tn_letter *letter = g->first;
        g->first = letter->next;
        tn_letter_close(letter);
    }
    tn_serve_free(g->serve);
    tn_gather_free(g->gather);
    for (uint32_t i = 0; i < TN_SYNC_BATCHES; i++) {
        tn_owner_slices_done(&g->batch[i].slices);
    }
    tn_free(g->has_weights);
    tn_free(g->norm);
    tn_batchio_done(&g->io);
    tn_bell_done(&g->bell);
    (void)pthread_mutex_destroy(&g->lock);
    tn_free(g);
}
