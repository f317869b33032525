/* syncopen.c - a worker among its peers is opened and closed, and its letters come in. */
#include "base/alloc.h"
#include "ps/syncstate.h"

static tn_status make(tn_sync *g, tn_error *err)
{
    const tn_sync_opts *o = &g->opts;
    const char *what = "a group of peers";
    TN_TRY(tn_batchio_init(&g->io, o->parcels, o->shares, o->row_values, o->dense_values, err));
    g->has_weights = tn_try_alloc(g->n_ranks, sizeof *g->has_weights, what, err);
    if (g->has_weights == NULL) {
        return TN_E_MEMORY;
    }
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

void tn_sync_take_request(tn_sync *g, tn_letter *letter)
{
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
    for (uint32_t i = 0; i < TN_SYNC_BATCHES; i++) {
        tn_slices_done(&g->batch[i].slices);
    }
    tn_free(g->has_weights);
    tn_batchio_done(&g->io);
    tn_bell_done(&g->bell);
    (void)pthread_mutex_destroy(&g->lock);
    tn_free(g);
}
