/* async_server.c - requests of other ranks are served and answered, on a thread of their own. */
#include "cluster/async/async_server.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "cluster/async/async_server_state.h"

#include <string.h>

static const uint64_t look_ns = 1000000000; /* at least so often, at whether to stop */

uint32_t tn_permits_of(double staleness)
{
    TN_ASSERT(staleness >= 0);
    return staleness < TN_PERMITS_MAX - 1 ? (uint32_t)staleness + 1 : TN_PERMITS_MAX;
}

/* ---- answers ---- */

static tn_status answer_rows(tn_freeserve *s, const tn_free_place *p, const tn_frame *request,
                             tn_error *err)
{
    const tn_keyset *keys = &p->block.keys;
    const tn_values kind = tn_frame_row_values(request->flags);
    const uint32_t n = keys->n > 0 ? keys->at[keys->n] : 0;
    tn_parcel *parcel = NULL;
    TN_TRY(
        tn_parcel_take(&parcel, s->opts.parcels, TN_ROWS_PARAMS + n * tn_values_bytes(kind), err));
    parcel->frame.type = TN_FRAME_ROWS;
    parcel->frame.flags = tn_frame_flags(kind, TN_VALUES_F32);
    parcel->frame.count[TN_KEYS] = keys->n;
    parcel->frame.count[TN_ROW_FLOATS] = n;
    tn_rows_params_put(tn_parcel_payload(parcel), &(tn_rows_params){0});
    if (tn_values_write(kind, s->rows, n, tn_parcel_payload(parcel) + TN_ROWS_PARAMS) !=
        TN_VALUES_FINITE) {
        tn_parcel_drop(parcel);
        tn_free_refuse(s, request, TN_REFUSAL_DIVERGED);
        return TN_OK;
    }
    s->opts.answer(s->opts.arg, request, parcel);
    return TN_OK;
}

static tn_status answer_dense(tn_freeserve *s, const tn_frame *request, const tn_pushed_here *what,
                              tn_error *err)
{
    const tn_values kind = tn_frame_dense_values(request->flags);
    tn_parcel *parcel = NULL;
    TN_TRY(tn_parcel_take(&parcel, s->opts.parcels,
                          TN_DENSE_PARAMS + s->dense * tn_values_bytes(kind), err));
    parcel->frame.type = TN_FRAME_DENSE;
    parcel->frame.flags = tn_frame_flags(TN_VALUES_F32, kind);
    parcel->frame.count[TN_DENSE_FLOATS] = (uint32_t)s->dense;
    tn_dense_params_put(tn_parcel_payload(parcel),
                        &(tn_dense_params){what->norm, what->staleness, 0});
    tn_dense_copy(s->opts.shard->dense, s->weights);
    if (tn_values_write(kind, s->weights, s->dense, tn_parcel_payload(parcel) + TN_DENSE_PARAMS) !=
        TN_VALUES_FINITE) {
        tn_parcel_drop(parcel);
        tn_free_refuse(s, request, TN_REFUSAL_DIVERGED);
        return TN_OK;
    }
    s->opts.answer(s->opts.arg, request, parcel);
    return TN_OK;
}

/* ---- requests ---- */

/* Rows of now, for the first time or again; how stale they will be counts from the first. */
static tn_status give(tn_freeserve *s, tn_free_place *p, bool again, tn_error *err)
{
    const tn_keyset *keys = &p->block.keys;
    const tn_frame request = p->asked;
    if (!again) {
        p->updates = atomic_load(&s->updates);
    }
    if (keys->n > 0) {
        if (!tn_free_room(&s->rows, &s->rows_max, keys->at[keys->n])) {
            return tn_fail(err, TN_E_MEMORY, "no memory for the rows of rank %u", request.rank);
        }
        TN_TRY(tn_shard_pull(s->opts.shard, NULL, keys, s->rows, err));
    }
    if (s->delays && !again) {
        TN_TRY(tn_delay_keep(&p->delayed, s->opts.shard, keys, s->rows, s->dense, err));
    }
    if (!again) { /* before the answer, which the push may follow at once */
        (void)pthread_mutex_lock(&s->lock);
        p->state = TN_FREE_GIVEN;
        (void)pthread_mutex_unlock(&s->lock);
    }
    return answer_rows(s, p, &request, err);
}

static tn_status take_gradients(tn_freeserve *s, tn_free_place *p, tn_error *err)
{
    const tn_frame request = p->pushed;
    tn_pushed_here what = {0};
    if (p->pull.weight_sum > 0) {
        tn_free_update u = {.grads = {&p->block.keys, p->grads, p->dense},
                            .push = {.weight_sum = p->pull.weight_sum,
                                     .lr_factor = p->push.lr_factor,
                                     .day = p->push.day},
                            .norm = (double)p->push.norm,
                            .pulled = p->updates,
                            .delayed = &p->delayed,
                            .now = &s->now};
        TN_TRY(tn_free_apply(s, &u, &what, err));
    }
    (void)pthread_mutex_lock(&s->lock);
    p->done = (tn_free_done){request.sequence, what};
    p->state = TN_FREE_PLACE;
    (void)pthread_mutex_unlock(&s->lock);
    return answer_dense(s, &request, &what, err);
}

/* What was applied already only needs an answer: those first. */
static tn_status serve_one(tn_freeserve *s, bool *served, tn_error *err)
{
    (void)pthread_mutex_lock(&s->lock);
    tn_free_again again = {0};
    const bool is_again = s->n_again > 0;
    if (is_again) {
        again = s->again[--s->n_again];
    }
    tn_free_place *p = is_again ? NULL : s->first;
    tn_free_state state = TN_FREE_PLACE;
    if (p != NULL) {
        s->first = p->next;
        p->queued = false;
        state = p->state;
    }
    (void)pthread_mutex_unlock(&s->lock);
    *served = is_again || p != NULL;
    if (is_again) {
        return answer_dense(s, &again.pushed, &again.what, err);
    }
    switch (state) {
    case TN_FREE_ASKED:
    case TN_FREE_GIVEN:
        return give(s, p, state == TN_FREE_GIVEN, err);
    case TN_FREE_PUSHED:
        return take_gradients(s, p, err);
    case TN_FREE_PLACE:
    default:
        return TN_OK;
    }
}

static tn_status serve_all(void *arg, tn_error *err)
{
    tn_freeserve *s = arg;
    tn_status status = TN_OK;
    while (!atomic_load(&s->stop)) {
        uint64_t heard = tn_bell_rings(&s->bell);
        bool served = true;
        while (served && status == TN_OK && !atomic_load(&s->stop)) {
            status = serve_one(s, &served, err);
        }
        if (status != TN_OK) {
            s->opts.failed(s->opts.arg, status, err->text);
            return status;
        }
        (void)tn_bell_wait(&s->bell, heard, tn_clock_ns() + look_ns);
    }
    return TN_OK;
}

/* ---- opening and closing ---- */

static tn_status make(tn_freeserve *s, tn_error *err)
{
    const tn_freeserve_opts *o = &s->opts;
    const char *what = "the requests of all ranks";
    s->rank = tn_try_alloc(s->n_ranks, sizeof *s->rank, what, err);
    s->moving = tn_try_alloc((size_t)o->n_moving + 1, sizeof *s->moving, what, err);
    if (s->rank == NULL || s->moving == NULL) {
        return TN_E_MEMORY;
    }
    s->n_moving = tn_shares_runs(o->shares, o->rank, o->moving, o->n_moving, s->moving);
    for (uint32_t i = 0; i < o->permits; i++) {
        s->own[i].first = tn_try_alloc(TN_PARTITIONS + 1, sizeof(uint32_t), what, err);
        if (s->own[i].first == NULL) {
            return TN_E_MEMORY;
        }
    }
    if (!tn_free_room(&s->weights, &s->weights_max, s->dense)) {
        return tn_fail(err, TN_E_MEMORY, "no memory for %zu weights", s->dense);
    }
    return tn_thread_start(&s->thread, "tn-shard", serve_all, s, err);
}

tn_status tn_freeserve_open(tn_freeserve **out, const tn_freeserve_opts *opts, tn_error *err)
{
    TN_ASSERT(opts->permits >= 1 && opts->permits <= TN_PERMITS_MAX);
    *out = NULL;
    tn_freeserve *s = tn_try_alloc(1, sizeof *s, "the requests of all ranks", err);
    if (s == NULL) {
        return TN_E_MEMORY;
    }
    s->opts = *opts;
    s->n_ranks = opts->shares->owners.n_peers;
    s->dense = opts->shares->dense[opts->rank + 1] - opts->shares->dense[opts->rank];
    s->delays = tn_delay_is_on(opts->shard->rules);
    atomic_store(&s->updates, opts->step);
    (void)pthread_mutex_init(&s->lock, NULL);
    tn_bell_init(&s->bell);
    tn_status status = make(s, err);
    if (status != TN_OK) {
        tn_freeserve_close(s);
        return status;
    }
    *out = s;
    return TN_OK;
}

static void free_rank(tn_free_rank *r)
{
    for (uint32_t i = 0; i < TN_PERMITS_MAX; i++) {
        tn_keyblock_done(&r->place[i].block);
        tn_free(r->place[i].grads);
        tn_free(r->place[i].dense);
        tn_delayed_done(&r->place[i].delayed);
    }
}

void tn_freeserve_stop(tn_freeserve *s)
{
    atomic_store(&s->stop, true);
    tn_bell_ring(&s->bell);
    tn_status ended = tn_thread_join(s->thread, NULL);
    (void)ended; /* it has told */
    s->thread = NULL;
}

void tn_freeserve_close(tn_freeserve *s)
{
    if (s == NULL) {
        return;
    }
    tn_freeserve_stop(s);
    for (uint32_t r = 0; s->rank != NULL && r < s->n_ranks; r++) {
        free_rank(&s->rank[r]);
    }
    for (uint32_t i = 0; i < TN_PERMITS_MAX; i++) {
        tn_free(s->own[i].first);
        tn_delayed_done(&s->own[i].delayed);
    }
    tn_delay_now_done(&s->now);
    tn_delay_now_done(&s->own_now);
    tn_free(s->rank);
    tn_free(s->moving);
    tn_free(s->rows);
    tn_free(s->weights);
    tn_bell_done(&s->bell);
    (void)pthread_mutex_destroy(&s->lock);
    tn_free(s);
}
