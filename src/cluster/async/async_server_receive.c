/* async_server_receive.c - requests of other ranks are checked, decoded and queued, on the net
 * thread. */
#include "base/core/alloc.h"
#include "cluster/async/async_server_state.h"
#include "cluster/wire/control_messages.h"

typedef enum taken { TAKEN, DAMAGED, NOT_FINITE, NO_PLACE, NO_PULL, NO_MEMORY } taken;

void tn_free_refuse(tn_freeserve *s, const tn_frame *request, tn_refusal why)
{
    tn_parcel *p = NULL;
    if (tn_parcel_take(&p, s->opts.parcels, 0, NULL) == TN_OK) { /* else it is asked again */
        p->frame.type = TN_FRAME_REFUSED;
        p->frame.code = why;
        s->opts.answer(s->opts.arg, request, p);
    }
}

bool tn_free_room(float **floats, size_t *most, size_t n)
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

/* Under the lock. */
static void enqueue(tn_freeserve *s, tn_free_place *p)
{
    if (p->queued) {
        return;
    }
    p->queued = true;
    p->next = NULL;
    if (s->first == NULL) {
        s->first = p;
    } else {
        s->last->next = p;
    }
    s->last = p;
}

/* The place of a rank in that state whose pull is `sequence`; any, where that is 0: of free ones
 * that whose last push is the oldest, so that its answer is known for long. */
static tn_free_place *find(tn_freeserve *s, uint32_t rank, tn_free_state state, uint64_t sequence)
{
    tn_free_place *best = NULL;
    (void)pthread_mutex_lock(&s->lock);
    for (uint32_t i = 0; i < s->opts.permits; i++) {
        tn_free_place *p = &s->rank[rank].place[i];
        if (p->state == state && (sequence == 0 || p->asked.sequence == sequence) &&
            (best == NULL || p->done.sequence < best->done.sequence)) {
            best = p;
        }
    }
    (void)pthread_mutex_unlock(&s->lock);
    return best;
}

static taken take_pull(tn_freeserve *s, const tn_frame *f, tn_free_place **out)
{
    tn_free_place *p = find(s, f->rank, TN_FREE_PLACE, 0);
    const tn_keyblock_rules rules = {&s->opts.shares->owners, s->opts.layout, s->opts.rank};
    if (p == NULL) {
        return NO_PLACE;
    }
    if (tn_pull_params_get(&p->pull, f->payload) != TN_DROP_NONE ||
        (p->pull.examples == 0 && f->count[TN_KEYS] > 0)) {
        return DAMAGED;
    }
    tn_drop why = tn_keyblock_read(&p->block, f->payload + TN_PULL_PARAMS,
                                   f->bytes - TN_PULL_PARAMS, f->count, &rules);
    if (why == TN_DROP_MEMORY) {
        return NO_MEMORY;
    }
    p->asked = *f;
    p->asked.payload = NULL;
    *out = p;
    return why == TN_DROP_NONE ? TAKEN : DAMAGED;
}

/* All gradients of a batch, or of none nothing. */
static bool fits(const tn_freeserve *s, const tn_frame *f, const tn_free_place *p)
{
    const tn_keyset *keys = &p->block.keys;
    return f->count[TN_KEYS] == keys->n &&
           f->count[TN_ROW_FLOATS] == (keys->n > 0 ? keys->at[keys->n] : 0) &&
           f->count[TN_DENSE_FLOATS] == (p->pull.examples > 0 ? s->dense : 0);
}

static taken take_push(tn_freeserve *s, const tn_frame *f, tn_free_place **out)
{
    const size_t n = f->count[TN_ROW_FLOATS];
    const size_t n_dense = f->count[TN_DENSE_FLOATS];
    const tn_values kind = tn_frame_row_values(f->flags);
    const char *from = f->payload + TN_PUSH_PARAMS;
    tn_push_params params;
    if (tn_push_params_get(&params, f->payload) != TN_DROP_NONE) {
        return DAMAGED;
    }
    tn_free_place *p = find(s, f->rank, TN_FREE_GIVEN, params.pull);
    if (p == NULL) {
        return NO_PULL;
    }
    if (!fits(s, f, p)) {
        return DAMAGED;
    }
    if (!tn_free_room(&p->grads, &p->grads_max, n) ||
        !tn_free_room(&p->dense, &p->dense_max, n_dense)) {
        return NO_MEMORY;
    }
    if (tn_values_read(kind, from, n, p->grads) != TN_VALUES_FINITE ||
        tn_values_read(tn_frame_dense_values(f->flags), from + n * tn_values_bytes(kind), n_dense,
                       p->dense) != TN_VALUES_FINITE) {
        return NOT_FINITE;
    }
    p->push = params;
    p->pushed = *f;
    p->pushed.payload = NULL;
    *out = p;
    return TAKEN;
}

static void take_new(tn_freeserve *s, const tn_frame *f)
{
    static const tn_refusal refusal[] = {[DAMAGED] = TN_REFUSAL_DAMAGED,
                                         [NOT_FINITE] = TN_REFUSAL_DIVERGED,
                                         [NO_PLACE] = TN_REFUSAL_FULL,
                                         [NO_PULL] = TN_REFUSAL_PULL};
    const bool is_pull = f->type == TN_FRAME_PULL;
    tn_free_place *p = NULL;
    taken t = is_pull ? take_pull(s, f, &p) : take_push(s, f, &p);
    if (t == TAKEN) {
        tn_once_mark(&s->opts.once[f->rank], f->sequence);
        (void)pthread_mutex_lock(&s->lock);
        p->state = is_pull ? TN_FREE_ASKED : TN_FREE_PUSHED;
        enqueue(s, p);
        (void)pthread_mutex_unlock(&s->lock);
        tn_bell_ring(&s->bell);
    } else if (t != NO_MEMORY) { /* then it is sent again */
        tn_free_refuse(s, f, refusal[t]);
    }
}

/* Rows that were given are given once more. A pull that is queued will be answered; one whose push
 * has come was. */
static void give_again(tn_freeserve *s, const tn_frame *f)
{
    for (uint32_t i = 0; i < s->opts.permits; i++) {
        tn_free_place *p = &s->rank[f->rank].place[i];
        if (p->state == TN_FREE_GIVEN && p->asked.sequence == f->sequence) {
            enqueue(s, p);
        }
    }
}

/* What became of it may be known no more; that it was applied is. */
static void acknowledge_again(tn_freeserve *s, const tn_frame *f)
{
    tn_free_again again = {.pushed = *f};
    again.pushed.payload = NULL;
    for (uint32_t i = 0; i < s->opts.permits; i++) {
        const tn_free_place *p = &s->rank[f->rank].place[i];
        if (p->state == TN_FREE_PUSHED && p->pushed.sequence == f->sequence) {
            return;
        }
        if (p->done.sequence == f->sequence) {
            again.what = p->done.what;
        }
    }
    if (s->n_again < TN_FREE_AGAIN) { /* else it comes once more */
        s->again[s->n_again++] = again;
    }
}

static void take_again(tn_freeserve *s, const tn_frame *f)
{
    (void)pthread_mutex_lock(&s->lock);
    if (f->type == TN_FRAME_PULL) {
        give_again(s, f);
    } else {
        acknowledge_again(s, f);
    }
    (void)pthread_mutex_unlock(&s->lock);
    tn_bell_ring(&s->bell);
}

void tn_freeserve_take(tn_freeserve *s, const tn_frame *frame)
{
    TN_ASSERT(frame->rank < s->n_ranks);
    if (frame->rank == s->opts.rank) {
        return; /* somebody who says to be this rank, which asks by calls */
    }
    if (frame->type != TN_FRAME_PULL && frame->type != TN_FRAME_PUSH) {
        tn_free_refuse(s, frame, TN_REFUSAL_DAMAGED);
        return;
    }
    switch (tn_once_ask(&s->opts.once[frame->rank], frame->incarnation, frame->sequence)) {
    case TN_ONCE_STALE:
        tn_free_refuse(s, frame, TN_REFUSAL_INCARNATION);
        break;
    case TN_ONCE_BEYOND:
        tn_free_refuse(s, frame, TN_REFUSAL_BEYOND);
        break;
    case TN_ONCE_REPEATED:
        take_again(s, frame);
        break;
    case TN_ONCE_APPLY:
    default:
        take_new(s, frame);
        break;
    }
}
