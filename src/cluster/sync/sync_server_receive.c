/* sync_server_receive.c - requests of ranks are checked, decoded and handed to whoever does the
 * steps. */
#include "base/core/alloc.h"
#include "base/core/bytes.h"
#include "cluster/sync/sync_server_state.h"
#include "cluster/wire/control_messages.h"

#include <string.h>

void tn_serve_refuse(tn_serve *s, const tn_frame *request, tn_refusal why)
{
    tn_parcel *p = NULL;
    if (tn_parcel_take(&p, s->opts.parcels, 0, NULL) == TN_OK) { /* else it is asked again */
        p->frame.type = TN_FRAME_REFUSED;
        p->frame.code = why;
        s->opts.answer(s->opts.arg, request, p);
    }
}

bool tn_serve_room(float **floats, size_t *most, size_t n)
{
    if (*floats != NULL && n <= *most) {
        return true;
    }
    tn_free(*floats);
    *most = n + n / 4 + 1;
    *floats = tn_try_alloc(*most, sizeof **floats, "values of a rank", NULL);
    *most = *floats != NULL ? *most : 0;
    return *floats != NULL;
}

static tn_serve_news *news_of(tn_serve *s)
{
    (void)pthread_mutex_lock(&s->lock);
    tn_serve_news *n = s->spare;
    if (n != NULL) {
        s->spare = n->next;
    }
    (void)pthread_mutex_unlock(&s->lock);
    return n != NULL ? n : tn_try_alloc(1, sizeof *n, "a request", NULL);
}

static void tell(tn_serve *s, tn_serve_news *news, const tn_serve_news *what)
{
    *news = *what;
    news->next = NULL;
    (void)pthread_mutex_lock(&s->lock);
    if (s->first == NULL) {
        s->first = news;
    } else {
        s->last->next = news;
    }
    s->last = news;
    (void)pthread_mutex_unlock(&s->lock);
    tn_bell_ring(s->opts.bell);
}

typedef enum taken { TAKEN, DAMAGED, NOT_FINITE, TOO_EARLY, NO_MEMORY } taken;

static taken take_pull(tn_serve *s, const tn_frame *f, tn_serve_rank *r)
{
    if (r->pulled - atomic_load(&r->done) >= TN_PULLS_AHEAD) {
        return TOO_EARLY;
    }
    tn_serve_pull *p = &r->pull[r->pulled % TN_PULLS_AHEAD];
    const tn_keyblock_rules rules = {&s->opts.shares->owners, s->opts.layout, s->opts.rank};
    if (tn_pull_params_get(&p->params, f->payload) != TN_DROP_NONE) {
        return DAMAGED;
    }
    tn_drop why = tn_keyblock_read(&p->block, f->payload + TN_PULL_PARAMS,
                                   f->bytes - TN_PULL_PARAMS, f->count, &rules);
    if (why == TN_DROP_MEMORY) {
        return NO_MEMORY;
    }
    r->pulled += why == TN_DROP_NONE;
    return why == TN_DROP_NONE ? TAKEN : DAMAGED;
}

/* The push's rows are those of the rank's oldest pull that is not done. */
static taken take_push(tn_serve *s, const tn_frame *f, tn_serve_rank *r)
{
    uint64_t done = atomic_load(&r->done);
    if (atomic_load(&r->push_in) || r->pulled == done) {
        return TOO_EARLY;
    }
    const tn_keyset *keys = &r->pull[done % TN_PULLS_AHEAD].block.keys;
    const size_t n = f->count[TN_ROW_FLOATS];
    const size_t n_dense = f->count[TN_DENSE_FLOATS];
    const tn_values kind = tn_frame_row_values(f->flags);
    const char *from = f->payload + TN_PUSH_PARAMS;
    bool fits = f->count[TN_KEYS] == keys->n && n == (keys->n > 0 ? keys->at[keys->n] : 0) &&
                (n_dense == 0 || n_dense == s->dense);
    if (tn_push_params_get(&r->push, f->payload) != TN_DROP_NONE || !fits) {
        return DAMAGED;
    }
    if (!tn_serve_room(&r->grads, &r->grads_max, n) ||
        !tn_serve_room(&r->dense, &r->dense_max, n_dense)) {
        return NO_MEMORY;
    }
    r->has_dense = n_dense > 0;
    if (tn_values_read(kind, from, n, r->grads) != TN_VALUES_FINITE ||
        tn_values_read(tn_frame_dense_values(f->flags), from + n * tn_values_bytes(kind), n_dense,
                       r->dense) != TN_VALUES_FINITE) {
        return NOT_FINITE;
    }
    atomic_store(&r->push_in, true);
    return TAKEN;
}

static taken take_norm(const tn_frame *f, double *norm2)
{
    if (f->count[TN_DENSE_FLOATS] != 1) {
        return DAMAGED;
    }
    *norm2 = tn_load_f64(f->payload);
    return *norm2 >= 0 ? TAKEN : NOT_FINITE;
}

static taken take(tn_serve *s, const tn_frame *f, tn_serve_news *what)
{
    tn_serve_rank *r = &s->rank[f->rank];
    switch (what->kind) {
    case TN_SERVE_PULL:
        return take_pull(s, f, r);
    case TN_SERVE_PUSH:
        return take_push(s, f, r);
    case TN_SERVE_NORM:
    default:
        return take_norm(f, &what->norm2);
    }
}

static void take_new(tn_serve *s, const tn_frame *f, tn_serve_news *news, tn_serve_news *what)
{
    static const tn_refusal refusal[] = {[DAMAGED] = TN_REFUSAL_DAMAGED,
                                         [NOT_FINITE] = TN_REFUSAL_DIVERGED,
                                         [TOO_EARLY] = TN_REFUSAL_FULL};
    taken t = take(s, f, what);
    if (t == TAKEN) {
        tn_once_mark(&s->opts.once[f->rank], f->sequence);
        tell(s, news, what);
        return;
    }
    tn_free(news);
    if (t != NO_MEMORY) { /* then it is sent again */
        tn_serve_refuse(s, f, refusal[t]);
    }
}

/* What comes again while the worker rests. Without memory it comes once more. */
static bool answer_at_rest(tn_serve *s, const tn_frame *frame, tn_serve_kind kind)
{
    (void)pthread_mutex_lock(&s->lock);
    const bool rests = s->rests;
    if (rests) {
        tn_status status = tn_serve_again(s, kind, frame, NULL);
        (void)status;
    }
    (void)pthread_mutex_unlock(&s->lock);
    return rests;
}

void tn_serve_take(tn_serve *s, const tn_frame *frame)
{
    TN_ASSERT(frame->rank < s->n_ranks);
    TN_ASSERT(frame->type == TN_FRAME_PULL || frame->type == TN_FRAME_PUSH ||
              frame->type == TN_FRAME_SHARE);
    tn_serve_news what = {.frame = *frame,
                          .kind = frame->type == TN_FRAME_PULL   ? TN_SERVE_PULL
                                  : frame->type == TN_FRAME_PUSH ? TN_SERVE_PUSH
                                                                 : TN_SERVE_NORM};
    what.frame.payload = NULL;
    const tn_once *once = &s->opts.once[frame->rank];
    tn_once_verdict verdict = tn_once_ask(once, frame->incarnation, frame->sequence);
    if (verdict == TN_ONCE_STALE || verdict == TN_ONCE_BEYOND) {
        tn_serve_refuse(s, frame,
                        verdict == TN_ONCE_STALE ? TN_REFUSAL_INCARNATION : TN_REFUSAL_BEYOND);
        return;
    }
    if (verdict == TN_ONCE_REPEATED && answer_at_rest(s, frame, what.kind)) {
        return;
    }
    tn_serve_news *news = news_of(s);
    if (news == NULL) {
        return; /* it is sent again */
    }
    if (verdict == TN_ONCE_REPEATED) {
        what.again = true;
        tell(s, news, &what);
    } else {
        take_new(s, frame, news, &what);
    }
}
