/* syncopen.c - a group is opened, joined and closed, and its letters come in. */
#include "base/alloc.h"
#include "ps/syncstate.h"

static void got_request(void *arg, tn_letter *letter)
{
    tn_sync *g = arg;
    const tn_frame_type type = letter->frame.type;
    if (type == TN_FRAME_PULL || type == TN_FRAME_PUSH || type == TN_FRAME_SHARE) {
        tn_serve_take(g->serve, &letter->frame);
    }
    tn_letter_close(letter);
}

static void got_answer(void *arg, tn_letter *letter)
{
    tn_sync *g = arg;
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

static void ticked(void *arg, uint64_t now_ns)
{
    (void)arg;
    (void)now_ns;
}

static tn_status make_batches(tn_sync *g, tn_error *err)
{
    for (uint32_t i = 0; i < TN_SYNC_BATCHES; i++) {
        g->batch[i].share = tn_try_alloc(g->n_ranks, sizeof(tn_share), "a group of peers", err);
        if (g->batch[i].share == NULL) {
            return TN_E_MEMORY;
        }
    }
    return TN_OK;
}

static tn_status make(tn_sync *g, const tn_endpoint *own, char bound[TN_ENDPOINT_SIZE],
                      tn_error *err)
{
    const tn_sync_opts *o = &g->opts;
    const char *what = "a group of peers";
    TN_TRY(make_batches(g, err));
    TN_TRY(tn_parcels_new(&g->parcels, err));
    g->has_weights = tn_try_alloc(g->n_ranks, sizeof *g->has_weights, what, err);
    if (g->has_weights == NULL) {
        return TN_E_MEMORY;
    }
    if (o->dense_values != TN_VALUES_F32) {
        size_t n = o->shares->dense[g->n_ranks];
        g->residual = tn_try_alloc(n + 1, sizeof *g->residual, what, err);
        if (g->residual == NULL) {
            return TN_E_MEMORY;
        }
    }
    const tn_serve_opts serve = {.rank = o->rank,
                                 .shares = o->shares,
                                 .layout = o->layout,
                                 .shard = o->shard,
                                 .weights = o->own,
                                 .parcels = g->parcels,
                                 .bell = &g->bell,
                                 .answer = tn_sync_answer,
                                 .send = tn_sync_send,
                                 .arg = g};
    TN_TRY(tn_serve_new(&g->serve, &serve, o->step, err));
    const tn_link_opts link = {.rank = o->rank,
                               .size = g->n_ranks,
                               .job = o->job,
                               .incarnation = o->incarnation,
                               .resend_ns = o->resend_ns,
                               .security = o->security,
                               .parcels = g->parcels,
                               .events = {g, got_request, got_answer, ticked}};
    return tn_link_open(&g->link, o->zmq, &link, own, bound, err);
}

tn_status tn_sync_open(tn_sync **out, const tn_sync_opts *opts, const tn_endpoint *own,
                       char bound[TN_ENDPOINT_SIZE], tn_error *err)
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
    tn_status status = make(g, own, bound, err);
    if (status != TN_OK) {
        tn_sync_close(g);
        return status;
    }
    *out = g;
    return TN_OK;
}

tn_status tn_sync_join(tn_sync *g, uint64_t session, const uint64_t *incarnation,
                       const tn_endpoint *at, tn_error *err)
{
    TN_ASSERT(incarnation[g->opts.rank] == g->opts.incarnation);
    for (uint32_t r = 0; r < g->n_ranks; r++) {
        tn_serve_admit(g->serve, r, incarnation[r]);
    }
    tn_link_set_session(g->link, session);
    for (uint32_t r = 0; r < g->n_ranks; r++) {
        if (r != g->opts.rank) {
            tn_link_expect(g->link, r, incarnation[r]);
            TN_TRY(tn_link_dial(g->link, r, &at[r], err));
        }
    }
    return TN_OK;
}

void tn_sync_close(tn_sync *g)
{
    if (g == NULL) {
        return;
    }
    tn_link_close(g->link);
    while (g->first != NULL) {
        tn_letter *letter = g->first;
        g->first = letter->next;
        tn_letter_close(letter);
    }
    tn_serve_free(g->serve);
    tn_parcels_free(g->parcels);
    for (uint32_t i = 0; i < TN_SYNC_BATCHES; i++) {
        tn_free(g->batch[i].share);
        tn_free(g->batch[i].index);
        tn_free(g->batch[i].scratch);
    }
    tn_free(g->has_weights);
    tn_free(g->residual);
    tn_bell_done(&g->bell);
    (void)pthread_mutex_destroy(&g->lock);
    tn_free(g);
}
