/* sync_server.c - the steps of all ranks at one owner: done in turns, and answered. */
#include "cluster/sync/sync_server.h"

#include "base/core/alloc.h"
#include "base/core/bytes.h"
#include "cluster/sync/sync_server_state.h"

#include <math.h>
#include <string.h>

tn_status tn_serve_new(tn_serve **out, const tn_serve_opts *opts, uint64_t step, tn_error *err)
{
    const tn_shares *shares = opts->shares;
    const char *what = "the steps of all ranks";
    *out = NULL;
    tn_serve *s = tn_try_alloc(1, sizeof *s, what, err);
    if (s == NULL) {
        return TN_E_MEMORY;
    }
    s->opts = *opts;
    s->n_ranks = shares->owners.n_peers;
    s->dense = shares->dense[opts->rank + 1] - shares->dense[opts->rank];
    (void)pthread_mutex_init(&s->lock, NULL);
    s->rank = tn_try_alloc(s->n_ranks, sizeof *s->rank, what, err);
    tn_status status = s->rank != NULL ? TN_OK : TN_E_MEMORY;
    if (status == TN_OK) {
        const tn_lockstep_opts lockstep = {.n_ranks = s->n_ranks,
                                           .shard = opts->shard,
                                           .owners = &shares->owners,
                                           .layout = opts->layout,
                                           .dense = s->dense};
        status = tn_lockstep_new(&s->lockstep, &lockstep, step, err);
    }
    if (status != TN_OK) {
        tn_serve_free(s);
        return status;
    }
    *out = s;
    return TN_OK;
}

static void free_news(tn_serve_news *n)
{
    while (n != NULL) {
        tn_serve_news *next = n->next;
        tn_free(n);
        n = next;
    }
}

void tn_serve_free(tn_serve *s)
{
    if (s == NULL) {
        return;
    }
    for (uint32_t r = 0; s->rank != NULL && r < s->n_ranks; r++) {
        for (uint32_t i = 0; i < TN_PULLS_AHEAD; i++) {
            tn_keyblock_done(&s->rank[r].pull[i].block);
        }
        tn_free(s->rank[r].grads);
        tn_free(s->rank[r].dense);
    }
    free_news(s->first);
    free_news(s->spare);
    tn_lockstep_free(s->lockstep);
    tn_free(s->rank);
    tn_free(s->rows);
    (void)pthread_mutex_destroy(&s->lock);
    tn_free(s);
}

/* ---- answers ---- */

static uint64_t turn_of(const tn_serve_rank *r)
{
    return atomic_load(&r->done) % TN_PULLS_AHEAD;
}

static tn_status take_rows(tn_serve *s, const tn_joint_note *note, tn_values kind, uint64_t n,
                           tn_parcel **out, tn_error *err)
{
    TN_TRY(tn_parcel_take(out, s->opts.parcels, TN_ROWS_PARAMS + n * tn_values_bytes(kind), err));
    (*out)->frame.type = TN_FRAME_ROWS;
    (*out)->frame.flags = tn_frame_flags(kind, TN_VALUES_F32);
    (*out)->frame.code = note->meet ? TN_MEET : 0;
    (*out)->frame.count[TN_ROW_FLOATS] = (uint32_t)n;
    tn_rows_params_put(tn_parcel_payload(*out),
                       &(tn_rows_params){note->first_row, note->rows, note->weight_sum});
    return TN_OK;
}

/* Of a step in which nothing weighs anything: no rows. */
static tn_status answer_skipped(tn_serve *s, uint32_t rank, tn_error *err)
{
    const tn_serve_rank *r = &s->rank[rank];
    tn_parcel *p = NULL;
    TN_TRY(take_rows(s, &r->skipped_note, tn_frame_row_values(r->skipped.flags), 0, &p, err));
    s->opts.answer(s->opts.arg, &r->skipped, p);
    return TN_OK;
}

static tn_status answer_rows(tn_serve *s, uint32_t rank, tn_team *team, tn_error *err)
{
    tn_serve_rank *r = &s->rank[rank];
    const tn_frame *request = &r->asked[turn_of(r)];
    const tn_keyset *keys = &r->pull[turn_of(r)].block.keys;
    const tn_values kind = tn_frame_row_values(request->flags);
    const uint32_t n = keys->n == 0 ? 0 : keys->at[keys->n];
    const tn_joint_note note = tn_lockstep_note(s->lockstep, rank);
    tn_parcel *p = NULL;
    if (!tn_serve_room(&s->rows, &s->rows_max, n)) {
        return tn_fail(err, TN_E_MEMORY, "no memory for the rows of rank %u", rank);
    }
    TN_TRY(take_rows(s, &note, kind, n, &p, err));
    p->frame.count[TN_KEYS] = n > 0 ? keys->n : 0;
    if (n > 0) {
        tn_lockstep_give(s->lockstep, team, rank, s->rows);
    }
    if (tn_values_write(kind, s->rows, n, tn_parcel_payload(p) + TN_ROWS_PARAMS) !=
        TN_VALUES_FINITE) {
        tn_parcel_drop(p);
        tn_serve_refuse(s, request, TN_REFUSAL_DIVERGED);
        return TN_OK;
    }
    s->opts.answer(s->opts.arg, request, p);
    return TN_OK;
}

static tn_status answer_dense(tn_serve *s, uint32_t rank, tn_error *err)
{
    tn_serve_rank *r = &s->rank[rank];
    const tn_values kind = tn_frame_dense_values(r->pushed.flags);
    tn_parcel *p = NULL;
    TN_TRY(tn_parcel_take(&p, s->opts.parcels, TN_DENSE_PARAMS + s->dense * tn_values_bytes(kind),
                          err));
    p->frame.type = TN_FRAME_DENSE;
    p->frame.flags = tn_frame_flags(TN_VALUES_F32, kind);
    p->frame.count[TN_DENSE_FLOATS] = (uint32_t)s->dense;
    tn_dense_params_put(tn_parcel_payload(p),
                        &(tn_dense_params){.grad_norm = sqrt(tn_lockstep_norm2(s->lockstep)),
                                           .loss = tn_lockstep_loss(s->lockstep)});
    if (tn_values_write(kind, s->opts.weights, s->dense, tn_parcel_payload(p) + TN_DENSE_PARAMS) !=
        TN_VALUES_FINITE) {
        tn_parcel_drop(p);
        tn_serve_refuse(s, &r->pushed, TN_REFUSAL_DIVERGED);
        return TN_OK;
    }
    s->opts.answer(s->opts.arg, &r->pushed, p);
    return TN_OK;
}

static void answer_noted(tn_serve *s, const tn_frame *request)
{
    tn_parcel *p = NULL;
    if (tn_parcel_take(&p, s->opts.parcels, 0, NULL) == TN_OK) {
        p->frame.type = TN_FRAME_NOTED;
        s->opts.answer(s->opts.arg, request, p);
    }
}

/* ---- requests ---- */

static tn_status hear_pull(tn_serve *s, const tn_serve_news *news, tn_error *err)
{
    tn_serve_rank *r = &s->rank[news->frame.rank];
    /* Either buffer may be meant: the older one is not asked for any more, or was asked first. */
    uint64_t at = turn_of(r);
    at = r->asked[at].sequence == 0 ? at : (at + 1) % TN_PULLS_AHEAD;
    const tn_serve_pull *p = &r->pull[at];
    const tn_batch_note note = {.rows = p->params.examples,
                                .weight_sum = p->params.weight_sum,
                                .meet = news->frame.code == TN_MEET};
    r->asked[at] = news->frame;
    return tn_lockstep_pull(s->lockstep, news->frame.rank, &note,
                            p->block.keys.n > 0 ? &p->block.keys : NULL, err);
}

static tn_status hear_push(tn_serve *s, const tn_serve_news *news, tn_error *err)
{
    tn_serve_rank *r = &s->rank[news->frame.rank];
    const tn_pushed pushed = {.grads = r->grads,
                              .dense = r->has_dense ? r->dense : NULL,
                              .lr_factor = r->push.lr_factor,
                              .day = r->push.day,
                              .loss = r->push.loss};
    r->pushed = news->frame;
    r->answered = false;
    return tn_lockstep_push(s->lockstep, news->frame.rank, &pushed, err);
}

tn_status tn_serve_again(tn_serve *s, tn_serve_kind kind, const tn_frame *request, tn_error *err)
{
    tn_serve_rank *r = &s->rank[request->rank];
    if (kind == TN_SERVE_NORM) {
        answer_noted(s, request);
    } else if (kind == TN_SERVE_PUSH && r->answered && r->pushed.sequence == request->sequence) {
        return answer_dense(s, request->rank, err);
    } else if (kind == TN_SERVE_PULL && r->skipped.sequence == request->sequence) {
        return answer_skipped(s, request->rank, err);
    }
    return TN_OK;
}

/* An answer that was given already is given again; one that was not will be. */
static tn_status hear_again(tn_serve *s, const tn_serve_news *news, tn_team *team, tn_error *err)
{
    const tn_frame *f = &news->frame;
    const tn_serve_rank *r = &s->rank[f->rank];
    if (news->kind == TN_SERVE_PULL && tn_lockstep_can_give(s->lockstep, f->rank) &&
        r->asked[turn_of(r)].sequence == f->sequence) {
        return answer_rows(s, f->rank, team, err);
    }
    return tn_serve_again(s, news->kind, f, err);
}

static tn_status hear(tn_serve *s, const tn_serve_news *news, tn_team *team, tn_error *err)
{
    if (news->again) {
        return hear_again(s, news, team, err);
    }
    switch (news->kind) {
    case TN_SERVE_PULL:
        return hear_pull(s, news, err);
    case TN_SERVE_PUSH:
        return hear_push(s, news, err);
    case TN_SERVE_NORM:
    default:
        answer_noted(s, &news->frame);
        return tn_lockstep_norm(s->lockstep, news->frame.rank, news->norm2, err);
    }
}

static tn_status hear_all(tn_serve *s, tn_team *team, tn_error *err)
{
    tn_status status = TN_OK;
    while (status == TN_OK) {
        (void)pthread_mutex_lock(&s->lock);
        tn_serve_news *news = s->first;
        s->first = news != NULL ? news->next : NULL;
        (void)pthread_mutex_unlock(&s->lock);
        if (news == NULL) {
            return TN_OK;
        }
        status = hear(s, news, team, err);
        (void)pthread_mutex_lock(&s->lock);
        news->next = s->spare;
        s->spare = news;
        (void)pthread_mutex_unlock(&s->lock);
    }
    return status;
}

/* ---- steps ---- */

static void step_is_done(tn_serve *s)
{
    for (uint32_t r = 0; r < s->n_ranks; r++) {
        tn_serve_rank *rank = &s->rank[r];
        rank->asked[turn_of(rank)].sequence = 0;
        atomic_store(&rank->push_in, false);
        (void)atomic_fetch_add(&rank->done, 1);
    }
}

static tn_status share_norm(tn_serve *s, tn_error *err)
{
    const double norm2 = tn_lockstep_norm2(s->lockstep);
    for (uint32_t to = 0; to < s->n_ranks; to++) {
        tn_parcel *p = NULL;
        if (to == s->opts.rank) {
            continue;
        }
        TN_TRY(tn_parcel_take(&p, s->opts.parcels, sizeof norm2, err));
        p->frame.type = TN_FRAME_SHARE;
        p->frame.count[TN_DENSE_FLOATS] = 1;
        tn_store_f64(tn_parcel_payload(p), norm2);
        s->opts.send(s->opts.arg, to, p);
    }
    return tn_lockstep_norm(s->lockstep, s->opts.rank, norm2, err);
}

static tn_status skip_step(tn_serve *s, tn_error *err)
{
    for (uint32_t r = 0; r < s->n_ranks; r++) {
        tn_serve_rank *rank = &s->rank[r];
        rank->skipped = rank->asked[turn_of(rank)];
        rank->skipped_note = tn_lockstep_note(s->lockstep, r);
        TN_TRY(answer_skipped(s, r, err));
    }
    step_is_done(s);
    return TN_OK;
}

static tn_status do_turn(tn_serve *s, tn_turn turn, tn_team *team, tn_error *err)
{
    switch (turn) {
    case TN_TURN_ROWS:
        for (uint32_t r = 0; r < s->n_ranks; r++) {
            TN_TRY(answer_rows(s, r, team, err));
        }
        return TN_OK;
    case TN_TURN_SKIPPED:
        return skip_step(s, err);
    case TN_TURN_NORM:
        return share_norm(s, err);
    case TN_TURN_APPLIED:
        step_is_done(s);
        for (uint32_t r = 0; r < s->n_ranks; r++) {
            s->rank[r].answered = true;
            TN_TRY(answer_dense(s, r, err));
        }
        return TN_OK;
    case TN_TURN_NONE:
    default:
        return TN_OK;
    }
}

static tn_status do_turns(tn_serve *s, tn_team *team, tn_error *err)
{
    tn_turn turn = TN_TURN_ROWS;
    while (turn != TN_TURN_NONE) {
        tn_status status = tn_lockstep_do(s->lockstep, team, &turn, err);
        for (uint32_t r = 0; status == TN_E_DIVERGED && r < s->n_ranks; r++) {
            tn_serve_refuse(s, &s->rank[r].pushed, TN_REFUSAL_DIVERGED);
        }
        TN_TRY(status);
        TN_TRY(do_turn(s, turn, team, err));
    }
    return TN_OK;
}

tn_status tn_serve_run(tn_serve *s, tn_team *team, tn_error *err)
{
    TN_TRY(hear_all(s, team, err));
    return do_turns(s, team, err);
}

tn_status tn_serve_rest(tn_serve *s, tn_team *team, tn_error *err)
{
    bool rests = false;
    while (!rests) {
        TN_TRY(tn_serve_run(s, team, err));
        (void)pthread_mutex_lock(&s->lock);
        rests = s->first == NULL;
        s->rests = rests;
        (void)pthread_mutex_unlock(&s->lock);
    }
    return TN_OK;
}

void tn_serve_wake(tn_serve *s)
{
    (void)pthread_mutex_lock(&s->lock);
    s->rests = false;
    (void)pthread_mutex_unlock(&s->lock);
}

uint32_t tn_serve_waits_for(const tn_serve *s)
{
    return tn_lockstep_waits_for(s->lockstep);
}
