/* async_server.c - the owner's side above staleness 0: requests are received on tn-net and served
 * on tn-shard; the own rank's are served by its worker.
 *
 * A slot of a rank holds one pull until its push is applied. `state` says which thread may use it:
 * tn-net decodes keys into a FREE one and gradients into a GIVEN one, tn-shard serves those that
 * are ASKED or PUSHED.
 *
 * Delay compensation corrects a late gradient for how far its weights have moved:
 *
 *     g += dc * g * g * (w - w when it was pulled)        before all else of ps/optim/rule.h
 *
 * g * g replaces the diagonal of the Hessian: Zheng et al., Asynchronous SGD with Delay
 * Compensation (2017). `dc` is an option of each optimizer; where it is 0 everywhere nothing is
 * kept. From a pull until its push the owner keeps what it sent: the rows, and its range of the
 * dense vector at that moment, which is at most one message newer than what the worker computes
 * with. A norm that came with the push is of the gradients as they were sent.
 */
#include "cluster/async/async_server.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/core/compiler.h"
#include "base/keys/record.h"
#include "base/thread/threads.h"
#include "cluster/net/wakeup.h"
#include "ps/optim/optim.h"
#include "ps/optim/rule.h"
#include "ps/shard/dense.h"

#include <math.h>
#include <string.h>

enum { AGAIN_MAX = 64 };

typedef enum slot_state {
    SLOT_FREE,   /* nothing is in it */
    SLOT_ASKED,  /* a pull that was not served yet */
    SLOT_GIVEN,  /* rows were given; its push is to come */
    SLOT_PUSHED, /* gradients that were not applied yet */
} slot_state;

/* The result of a push, for its reply. */
typedef struct push_done {
    uint64_t sequence; /* 0: none */
    tn_dense_params what;
} push_done;

typedef struct pull_slot {
    slot_state state; /* guarded by lock, as are these two */
    bool queued;
    struct pull_slot *next;
    tn_owner_pull pull;
    tn_push_params push;
    tn_owner_floats grads;  /* gradients of the push */
    tn_frame asked, pushed; /* the requests, without payload */
    uint64_t updates;       /* updates of the shard, when the rows were given first */
    tn_owner_floats delayed;
    push_done done; /* guarded by lock: the last push that was applied from here */
} pull_slot;

/* A push whose answer got lost. */
typedef struct lost_answer {
    tn_frame pushed;
    tn_dense_params what;
} lost_answer;

typedef struct own_pull {
    tn_keyset keys; /* keys of this shard; kept at this address: ps/table/lookup.c */
    uint32_t *first;
    uint64_t updates;
    tn_owner_floats delayed;
} own_pull;

struct tn_async_server {
    const tn_exchange *x;
    tn_reply_path reply;
    uint32_t n_ranks, permits;
    size_t dense; /* floats of the shard's range */
    tn_dense_run *moving;
    uint32_t n_moving;
    pull_slot (*rank)[TN_PERMITS_MAX]; /* permits for each rank */
    own_pull own[TN_PERMITS_MAX];
    bool delays; /* some rule has delay compensation */
    _Atomic uint64_t updates;
    tn_owner_floats out;          /* tn-shard's: of one answer */
    tn_owner_floats now, own_now; /* tn-shard's, the worker's: for delay compensation */
    tn_thread *thread;
    tn_wakeup wakeup;
    atomic_bool stop;

    pthread_mutex_t lock;
    pull_slot *first, *last; /* guarded by lock, like the rest: the inbox, oldest first */
    lost_answer again[AGAIN_MAX];
    uint32_t n_again; /* pushes whose replies are sent again */
};

/* One update, on the thread of the caller. */
typedef struct update {
    tn_team *team;
    tn_gradients grads; /* dense: of the shard's range */
    tn_push push;       /* all but step */
    double norm;        /* norm of the whole push; 0: not known */
    uint64_t pulled;    /* updates when it was pulled */
    tn_owner_floats *delayed;
    tn_owner_floats *now; /* memory of the calling thread */
} update;

/* ---- delay compensation ---- */

static bool has_delays(const tn_rules *rules)
{
    if (tn_rule_common(&rules->dense)->dc > 0) {
        return true;
    }
    for (uint32_t g = 0; g < rules->layout->n_groups; g++) {
        const tn_record *record = tn_record_of(rules->layout, g);
        for (uint32_t i = 0; i < record->n_segments; i++) {
            if (tn_rule_common(&rules->rule[g * TN_SEGMENTS_MAX + i])->dc > 0) {
                return true;
            }
        }
    }
    return false;
}

/* Keeps in d the rows that the pull of `keys` has just brought, and the dense weights of now. */
static tn_status keep_delayed(const tn_async_server *s, tn_owner_floats *d, const tn_keyset *keys,
                              const float *rows, tn_error *err)
{
    TN_TRY(tn_owner_floats_reserve(d, keys->floats, s->dense, err));
    for (uint32_t k = 0; k < keys->n; k++) {
        memcpy(d->rows + keys->at[k], rows + keys->at[k], tn_row_width(keys, k) * sizeof *rows);
    }
    tn_dense_copy(s->x->shard->dense, d->dense);
    return TN_OK;
}

/* Sets was := g + dc * g * g * (now - was). */
TN_HOT static void delay_compensate(size_t n, float *restrict was, const float *restrict now,
                                    const float *restrict g, float dc)
{
    for (size_t i = 0; i < n; i++) {
        was[i] = g[i] + dc * g[i] * g[i] * (now[i] - was[i]);
    }
}

static void compensate_rows(float *was, const float *now, const tn_rules *rules,
                            const tn_gradients *grads)
{
    const tn_keyset *keys = grads->keys;
    for (uint32_t k = 0; k < keys->n; k++) {
        const uint32_t group = keys->group[k];
        const tn_record *record = tn_record_of(rules->layout, group);
        for (uint32_t i = 0; i < record->n_segments; i++) {
            const tn_segment *seg = &record->segment[i];
            const tn_rule *rule = &rules->rule[group * TN_SEGMENTS_MAX + i];
            const size_t at = (size_t)keys->at[k] + seg->at;
            delay_compensate(seg->dim, was + at, now + at, grads->rows + at,
                             (float)tn_rule_common(rule)->dc);
        }
    }
}

/* Puts the gradients in place of the weights as they were pulled. */
static tn_status compensate(tn_shard *shard, update *u, tn_error *err)
{
    const tn_keyset *keys = u->grads.keys;
    const double dc = tn_rule_common(&shard->rules->dense)->dc;
    tn_owner_floats *was = u->delayed;
    tn_owner_floats *now = u->now;
    TN_TRY(tn_owner_floats_reserve(now, keys->floats, was->n_dense, err));
    if (keys->n > 0) {
        tn_shard_peek(shard, u->team, keys, now->rows, NULL);
        compensate_rows(was->rows, now->rows, shard->rules, &u->grads);
        u->grads.rows = was->rows;
    }
    if (dc > 0) {
        tn_dense_copy(shard->dense, now->dense);
        delay_compensate(was->n_dense, was->dense, now->dense, u->grads.dense, (float)dc);
        u->grads.dense = was->dense;
    }
    return TN_OK;
}

/* ---- one update, and the requests of the own rank ---- */

/* Moves running statistics, which have no gradient: their new value is in its place. */
static void move(tn_async_server *s, const float *dense)
{
    for (uint32_t i = 0; i < s->n_moving; i++) {
        const tn_dense_run *run = &s->moving[i];
        tn_dense_set(s->x->shard->dense, run->begin, run->end - run->begin, dense + run->begin);
    }
}

static tn_status apply(tn_async_server *s, update *u, tn_dense_params *out, tn_error *err)
{
    tn_shard *shard = s->x->shard;
    u->push.step = atomic_fetch_add(&s->updates, 1);
    const float *moved = u->grads.dense;
    if (s->delays) {
        TN_TRY(compensate(shard, u, err));
    }
    const bool told = isfinite(shard->rules->clip_global) && u->norm > 0;
    double norm2 = u->norm * u->norm;
    TN_TRY(told ? tn_shard_apply(shard, u->team, &u->grads, &u->push, norm2, err)
                : tn_shard_update(shard, u->team, &u->grads, &u->push, &norm2, err));
    move(s, moved);
    *out = (tn_dense_params){.grad_norm = sqrt(norm2), .staleness = u->push.step - u->pulled};
    return TN_OK;
}

tn_status tn_async_server_pull(tn_async_server *s, tn_team *team, uint32_t place,
                               const tn_keyset *keys, float *rows, tn_error *err)
{
    TN_ASSERT(place < s->permits);
    own_pull *own = &s->own[place];
    own->keys = tn_shares_slice(keys, s->x->rank, own->first);
    own->updates = atomic_load(&s->updates);
    TN_TRY(tn_shard_pull(s->x->shard, team, &own->keys, rows, err));
    return s->delays ? keep_delayed(s, &own->delayed, &own->keys, rows, err) : TN_OK;
}

tn_status tn_async_server_push(tn_async_server *s, tn_team *team, uint32_t place,
                               const tn_slices_gradients *grads, tn_dense_params *out,
                               tn_error *err)
{
    TN_ASSERT(place < s->permits);
    own_pull *pulled = &s->own[place];
    update u = {.team = team,
                .grads = {.keys = &pulled->keys,
                          .rows = grads->rows,
                          .dense = grads->dense + s->x->shares->dense[s->x->rank]},
                .push = *grads->push,
                .norm = grads->norm,
                .pulled = pulled->updates,
                .delayed = &pulled->delayed,
                .now = &s->own_now};
    return apply(s, &u, out, err);
}

/* ---- receiving, on tn-net ---- */

/* Appends it to the others, once; under the lock. */
static void enqueue(tn_async_server *s, pull_slot *p)
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

/* Returns the slot of a rank in `state` whose pull is `sequence` (0: any). Of free slots it takes
 * that with the oldest push, so that the results of pushes are known for long. */
static pull_slot *find(tn_async_server *s, uint32_t rank, slot_state state, uint64_t sequence)
{
    pull_slot *best = NULL;
    (void)pthread_mutex_lock(&s->lock);
    for (uint32_t i = 0; i < s->permits; i++) {
        pull_slot *p = &s->rank[rank][i];
        if (p->state == state && (sequence == 0 || p->asked.sequence == sequence) &&
            (best == NULL || p->done.sequence < best->done.sequence)) {
            best = p;
        }
    }
    (void)pthread_mutex_unlock(&s->lock);
    return best;
}

static uint32_t take_pull(tn_async_server *s, const tn_frame *f, pull_slot **out)
{
    pull_slot *p = find(s, f->rank, SLOT_FREE, 0);
    if (p == NULL) {
        return TN_REFUSAL_FULL;
    }
    const uint32_t refusal = tn_owner_pull_read(&p->pull, s->x, f);
    if (refusal == 0 && p->pull.params.examples == 0 && f->count[TN_KEYS] > 0) {
        return TN_REFUSAL_DAMAGED;
    }
    p->asked = *f;
    p->asked.payload = NULL;
    *out = p;
    return refusal;
}

/* Takes a push, which has all dense gradients of its batch, or none if that is empty. */
static uint32_t take_push(tn_async_server *s, const tn_frame *f, pull_slot **out)
{
    tn_push_params params;
    if (tn_push_params_get(&params, f->payload) != TN_DROP_NONE) {
        return TN_REFUSAL_DAMAGED;
    }
    pull_slot *p = find(s, f->rank, SLOT_GIVEN, params.pull);
    if (p == NULL) {
        return TN_REFUSAL_PULL;
    }
    if (f->count[TN_DENSE_FLOATS] != (p->pull.params.examples > 0 ? s->dense : 0)) {
        return TN_REFUSAL_DAMAGED;
    }
    p->push = params;
    p->pushed = *f;
    p->pushed.payload = NULL;
    *out = p;
    return tn_owner_gradients_read(&p->grads, f, &p->pull);
}

static void take_new(tn_async_server *s, const tn_frame *f)
{
    const bool is_pull = f->type == TN_FRAME_PULL;
    pull_slot *p = NULL;
    const uint32_t refusal = is_pull ? take_pull(s, f, &p) : take_push(s, f, &p);
    if (refusal != 0) {
        tn_reply_refuse(&s->reply, f, refusal);
        return;
    }
    tn_dedup_mark(&s->x->dedup[f->rank], f->sequence);
    (void)pthread_mutex_lock(&s->lock);
    p->state = is_pull ? SLOT_ASKED : SLOT_PUSHED;
    enqueue(s, p);
    (void)pthread_mutex_unlock(&s->lock);
    tn_wakeup_signal(&s->wakeup);
}

/* Sends rows again. A queued pull will be answered anyway; one whose push came has its rows. */
static void give_again(tn_async_server *s, const tn_frame *f)
{
    for (uint32_t i = 0; i < s->permits; i++) {
        pull_slot *p = &s->rank[f->rank][i];
        if (p->state == SLOT_GIVEN && p->asked.sequence == f->sequence) {
            enqueue(s, p);
        }
    }
}

/* Queues the reply to a duplicate push. Its result may be forgotten, not that it was applied. */
static void acknowledge_again(tn_async_server *s, const tn_frame *f)
{
    lost_answer again = {.pushed = *f};
    again.pushed.payload = NULL;
    for (uint32_t i = 0; i < s->permits; i++) {
        const pull_slot *p = &s->rank[f->rank][i];
        if (p->state == SLOT_PUSHED && p->pushed.sequence == f->sequence) {
            return;
        }
        if (p->done.sequence == f->sequence) {
            again.what = p->done.what;
        }
    }
    if (s->n_again < AGAIN_MAX) { /* else it comes once more */
        s->again[s->n_again++] = again;
    }
}

static void take_again(tn_async_server *s, const tn_frame *f)
{
    (void)pthread_mutex_lock(&s->lock);
    if (f->type == TN_FRAME_PULL) {
        give_again(s, f);
    } else {
        acknowledge_again(s, f);
    }
    (void)pthread_mutex_unlock(&s->lock);
    tn_wakeup_signal(&s->wakeup);
}

void tn_async_server_take(tn_async_server *s, const tn_frame *frame)
{
    TN_ASSERT(frame->rank < s->n_ranks);
    if (frame->rank == s->x->rank) {
        return; /* forged: this rank makes calls */
    }
    if (frame->type != TN_FRAME_PULL && frame->type != TN_FRAME_PUSH) {
        tn_reply_refuse(&s->reply, frame, TN_REFUSAL_DAMAGED);
        return;
    }
    bool again = false;
    if (!tn_owner_admits(&s->reply, &s->x->dedup[frame->rank], frame, &again)) {
        return;
    }
    if (again) {
        take_again(s, frame);
    } else {
        take_new(s, frame);
    }
}

/* ---- serving, on tn-shard ---- */

static tn_status answer_dense(tn_async_server *s, const tn_frame *request,
                              const tn_dense_params *what, tn_error *err)
{
    tn_dense_copy(s->x->shard->dense, s->out.dense);
    return tn_reply_dense(&s->reply, request, what, s->out.dense, s->dense, err);
}

/* Sends the rows of now. Staleness counts from the first reply, not from one sent again. */
static tn_status give(tn_async_server *s, pull_slot *p, bool again, tn_error *err)
{
    const tn_keyset *keys = &p->pull.block.keys;
    const tn_frame request = p->asked;
    const uint32_t n = tn_owner_pull_floats(&p->pull);
    if (!again) {
        p->updates = atomic_load(&s->updates);
    }
    if (keys->n > 0) {
        if (tn_owner_floats_reserve(&s->out, n, s->dense, NULL) != TN_OK) {
            return tn_fail(err, TN_E_MEMORY, "no memory for the rows of rank %u", request.rank);
        }
        TN_TRY(tn_shard_pull(s->x->shard, NULL, keys, s->out.rows, err));
    }
    if (s->delays && !again) {
        TN_TRY(keep_delayed(s, &p->delayed, keys, s->out.rows, err));
    }
    if (!again) { /* before the reply, since the push may follow at once */
        (void)pthread_mutex_lock(&s->lock);
        p->state = SLOT_GIVEN;
        (void)pthread_mutex_unlock(&s->lock);
    }
    const tn_rows_reply rows = {.n_keys = keys->n, .n_floats = n, .rows = s->out.rows};
    return tn_reply_rows(&s->reply, &request, &rows, err);
}

static tn_status take_gradients(tn_async_server *s, pull_slot *p, tn_error *err)
{
    const tn_frame request = p->pushed;
    tn_dense_params what = {0};
    if (p->pull.params.weight_sum > 0) {
        update u = {
            .grads = {.keys = &p->pull.block.keys, .rows = p->grads.rows, .dense = p->grads.dense},
            .push = {.weight_sum = p->pull.params.weight_sum,
                     .lr_factor = p->push.lr_factor,
                     .day = p->push.day},
            .norm = (double)p->push.norm,
            .pulled = p->updates,
            .delayed = &p->delayed,
            .now = &s->now};
        TN_TRY(apply(s, &u, &what, err));
    }
    (void)pthread_mutex_lock(&s->lock);
    p->done = (push_done){request.sequence, what};
    p->state = SLOT_FREE;
    (void)pthread_mutex_unlock(&s->lock);
    return answer_dense(s, &request, &what, err);
}

/* Serves the next request. Pushes that were applied already only need a reply, and come first. */
static tn_status serve_one(tn_async_server *s, bool *served, tn_error *err)
{
    (void)pthread_mutex_lock(&s->lock);
    lost_answer again = {0};
    const bool is_again = s->n_again > 0;
    if (is_again) {
        again = s->again[--s->n_again];
    }
    pull_slot *p = is_again ? NULL : s->first;
    slot_state state = SLOT_FREE;
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
    case SLOT_ASKED:
    case SLOT_GIVEN:
        return give(s, p, state == SLOT_GIVEN, err);
    case SLOT_PUSHED:
        return take_gradients(s, p, err);
    case SLOT_FREE:
    default:
        return TN_OK;
    }
}

static const uint64_t look_ns = 1000000000; /* how often `stop` is checked at least */

static tn_status serve_all(void *arg, tn_error *err)
{
    tn_async_server *s = arg;
    tn_status status = TN_OK;
    while (!atomic_load(&s->stop)) {
        uint64_t seen = tn_wakeup_count(&s->wakeup);
        bool served = true;
        while (served && status == TN_OK && !atomic_load(&s->stop)) {
            status = serve_one(s, &served, err);
        }
        if (status != TN_OK) {
            tn_reply_queue_end(s->x->replies, status, err->text);
            return status;
        }
        (void)tn_wakeup_wait(&s->wakeup, seen, tn_clock_ns() + look_ns);
    }
    return TN_OK;
}

/* ---- opening and closing ---- */

static tn_status make(tn_async_server *s, tn_error *err)
{
    const tn_exchange *x = s->x;
    TN_TRY(TN_ALLOC(s->rank, s->n_ranks, "the requests of all ranks", err));
    s->moving = TN_NEW_ARRAY(x->arena, tn_dense_run, (size_t)x->n_moving + 1);
    s->n_moving = tn_shares_runs(x->shares, x->rank, x->moving, x->n_moving, s->moving);
    for (uint32_t i = 0; i < s->permits; i++) {
        s->own[i].first = TN_NEW_ARRAY(x->arena, uint32_t, TN_PARTITIONS + 1);
    }
    if (tn_owner_floats_reserve(&s->out, 0, s->dense, NULL) != TN_OK) {
        return tn_fail(err, TN_E_MEMORY, "no memory for %zu weights", s->dense);
    }
    return tn_thread_start(&s->thread, "tn-shard", serve_all, s, err);
}

void tn_async_server_stop(tn_async_server *s)
{
    atomic_store(&s->stop, true);
    tn_wakeup_signal(&s->wakeup);
    tn_status ended = tn_thread_join(s->thread, NULL);
    (void)ended; /* it has reported its failure */
    s->thread = NULL;
}

void tn_async_server_close(tn_async_server *s)
{
    if (s == NULL) {
        return;
    }
    tn_async_server_stop(s);
    for (uint32_t r = 0; s->rank != NULL && r < s->n_ranks; r++) {
        for (uint32_t i = 0; i < s->permits; i++) {
            tn_owner_pull_done(&s->rank[r][i].pull);
            tn_owner_floats_done(&s->rank[r][i].grads);
            tn_owner_floats_done(&s->rank[r][i].delayed);
        }
    }
    for (uint32_t i = 0; i < TN_PERMITS_MAX; i++) {
        tn_owner_floats_done(&s->own[i].delayed);
    }
    tn_owner_floats_done(&s->now);
    tn_owner_floats_done(&s->own_now);
    tn_free(s->rank);
    tn_owner_floats_done(&s->out);
    tn_wakeup_done(&s->wakeup);
    (void)pthread_mutex_destroy(&s->lock);
}

tn_status tn_async_server_open(tn_async_server **out, const tn_exchange *x,
                               const tn_reply_path *reply, tn_error *err)
{
    *out = NULL;
    tn_async_server *s = TN_NEW(x->arena, tn_async_server);
    s->x = x;
    s->reply = *reply;
    s->n_ranks = x->shares->owners.n_peers;
    s->permits = tn_async_permits_of(x->staleness);
    s->dense = tn_exchange_dense(x);
    s->delays = has_delays(x->shard->rules);
    atomic_store(&s->updates, x->step);
    (void)pthread_mutex_init(&s->lock, NULL);
    tn_wakeup_init(&s->wakeup);
    tn_status status = make(s, err);
    if (status != TN_OK) {
        tn_async_server_close(s);
        return status;
    }
    *out = s;
    return TN_OK;
}

/* ---- what others ask ---- */

uint32_t tn_async_permits_of(double staleness)
{
    TN_ASSERT(staleness >= 0);
    return staleness < TN_PERMITS_MAX - 1 ? (uint32_t)staleness + 1 : TN_PERMITS_MAX;
}

uint64_t tn_async_server_updates(const tn_async_server *s)
{
    return atomic_load(&s->updates);
}
