/* sync_server.c - the owner's side at staleness 0: requests are received on the net thread, steps
 * are done by the worker.
 *
 * tn_sync_server_take writes a rank's buffers and tn_sync_server_run reads them, in turns: a pull
 * uses the buffer of its parity, of which at most two are under way, and a push the only one.
 * `done` and `push_in` say whose turn it is. While the worker rests, tn_sync_server_take answers
 * retransmitted requests, under the lock.
 */
#include "cluster/sync/sync_server.h"

#include "base/core/alloc.h"
#include "base/core/bytes.h"

#include <math.h>
#include <string.h>

enum { PULLS_AHEAD = 2 };

typedef struct served_rank {
    uint64_t pulled; /* requests; take's */
    tn_owner_pull pull[PULLS_AHEAD];
    tn_push_params push;
    tn_owner_floats grads;       /* gradients of the push */
    _Atomic uint64_t done;       /* steps of it that were applied or skipped */
    atomic_bool push_in;         /* a push was taken and not applied yet */
    tn_frame asked[PULLS_AHEAD]; /* run's: pulls that wait for an answer, by parity */
    tn_frame pushed;             /* run's: the last push */
    bool answered;               /* the last push was */
    tn_frame skipped;            /* the last pull of a step that was skipped */
    tn_joint_batch skipped_note;
} served_rank;

/* A request in the inbox: tn_sync_server_take puts it in, tn_sync_server_run takes it out. */
typedef struct inbox_entry {
    tn_frame frame; /* without its payload */
    bool again;
    double norm2; /* squared norm of a SHARE */
    struct inbox_entry *next;
} inbox_entry;

struct tn_sync_server {
    const tn_exchange *x;
    tn_reply_path reply;
    tn_sync_share *share;
    tn_sync_step *steps;
    uint32_t n_ranks;
    size_t dense; /* floats of the shard's range */
    served_rank *rank;
    float *rows; /* run's: rows of one rank */
    size_t rows_max;

    pthread_mutex_t lock;
    inbox_entry *first, *last; /* guarded by lock: the inbox, oldest first */
    bool rests;                /* likewise: the worker rests, and so nothing of run's changes */
};

/* ---- replies ---- */

static uint64_t turn_of(const served_rank *r)
{
    return atomic_load(&r->done) % PULLS_AHEAD;
}

/* Rows that follow the note: none in a step in which nothing weighs anything. */
static tn_rows_reply rows_reply(const tn_joint_batch *note)
{
    return (tn_rows_reply){.code = note->meet ? TN_MEET : 0,
                           .params = {note->first_row, note->rows, note->weight_sum}};
}

static tn_status answer_skipped(tn_sync_server *s, uint32_t rank, tn_error *err)
{
    const served_rank *r = &s->rank[rank];
    const tn_rows_reply none = rows_reply(&r->skipped_note);
    return tn_reply_rows(&s->reply, &r->skipped, &none, err);
}

static tn_status answer_dense(tn_sync_server *s, uint32_t rank, tn_error *err)
{
    const tn_dense_params params = {.grad_norm = sqrt(tn_sync_step_norm2(s->steps)),
                                    .loss = tn_sync_step_loss(s->steps)};
    return tn_reply_dense(&s->reply, &s->rank[rank].pushed, &params, s->x->own, s->dense, err);
}

static tn_status answer_rows(tn_sync_server *s, uint32_t rank, tn_team *team, tn_error *err)
{
    const served_rank *r = &s->rank[rank];
    const tn_owner_pull *pull = &r->pull[turn_of(r)];
    const tn_joint_batch note = tn_sync_step_note(s->steps, rank);
    tn_rows_reply out = rows_reply(&note);
    out.n_keys = pull->block.keys.n;
    out.n_floats = tn_owner_pull_floats(pull);
    if (TN_RESERVE(s->rows, s->rows_max, out.n_floats, "values of a rank", NULL) != TN_OK) {
        return tn_fail(err, TN_E_MEMORY, "no memory for the rows of rank %u", rank);
    }
    if (out.n_floats > 0) {
        tn_sync_step_give(s->steps, team, rank, s->rows);
    }
    out.rows = s->rows;
    return tn_reply_rows(&s->reply, &r->asked[turn_of(r)], &out, err);
}

/* Repeats the reply to a request, if there was one that needs no step; locked or by run. */
static tn_status answer_again(tn_sync_server *s, const tn_frame *request, tn_error *err)
{
    const served_rank *r = &s->rank[request->rank];
    const bool is_pull = request->type == TN_FRAME_PULL;
    if (request->type == TN_FRAME_SHARE) {
        tn_reply_noted(&s->reply, request);
    } else if (is_pull && r->skipped.sequence == request->sequence) {
        return answer_skipped(s, request->rank, err);
    } else if (!is_pull && r->answered && r->pushed.sequence == request->sequence) {
        return answer_dense(s, request->rank, err);
    }
    return TN_OK;
}

/* ---- receiving, on the net thread or by the own worker ---- */

static void enqueue(tn_sync_server *s, inbox_entry *entry, const inbox_entry *what)
{
    *entry = *what;
    entry->next = NULL;
    (void)pthread_mutex_lock(&s->lock);
    if (s->first == NULL) {
        s->first = entry;
    } else {
        s->last->next = entry;
    }
    s->last = entry;
    (void)pthread_mutex_unlock(&s->lock);
    tn_wakeup_signal(&s->x->replies->wakeup);
}

static uint32_t take_pull(tn_sync_server *s, const tn_frame *f, served_rank *r)
{
    if (r->pulled - atomic_load(&r->done) >= PULLS_AHEAD) {
        return TN_REFUSAL_FULL;
    }
    const uint32_t refusal = tn_owner_pull_read(&r->pull[r->pulled % PULLS_AHEAD], s->x, f);
    r->pulled += refusal == 0;
    return refusal;
}

/* Takes a push, whose rows are those of the rank's oldest pull that is not done. */
static uint32_t take_push(tn_sync_server *s, const tn_frame *f, served_rank *r)
{
    const uint64_t done = atomic_load(&r->done);
    const size_t n_dense = f->count[TN_DENSE_FLOATS];
    if (atomic_load(&r->push_in) || r->pulled == done) {
        return TN_REFUSAL_FULL;
    }
    if (tn_push_params_get(&r->push, f->payload) != TN_DROP_NONE ||
        (n_dense != 0 && n_dense != s->dense)) {
        return TN_REFUSAL_DAMAGED;
    }
    const uint32_t refusal = tn_owner_gradients_read(&r->grads, f, &r->pull[done % PULLS_AHEAD]);
    atomic_store(&r->push_in, refusal == 0);
    return refusal;
}

static uint32_t take_norm(const tn_frame *f, double *norm2)
{
    if (f->count[TN_DENSE_FLOATS] != 1) {
        return TN_REFUSAL_DAMAGED;
    }
    *norm2 = tn_load_f64(f->payload);
    return *norm2 >= 0 ? 0 : TN_REFUSAL_DIVERGED;
}

static uint32_t take(tn_sync_server *s, const tn_frame *f, inbox_entry *what)
{
    served_rank *r = &s->rank[f->rank];
    return f->type == TN_FRAME_PULL   ? take_pull(s, f, r)
           : f->type == TN_FRAME_PUSH ? take_push(s, f, r)
                                      : take_norm(f, &what->norm2);
}

static void take_new(tn_sync_server *s, const tn_frame *f, inbox_entry *entry, inbox_entry *what)
{
    const uint32_t refusal = take(s, f, what);
    if (refusal == 0) {
        tn_dedup_mark(&s->x->dedup[f->rank], f->sequence);
        enqueue(s, entry, what);
        return;
    }
    tn_free(entry);
    tn_reply_refuse(&s->reply, f, refusal);
}

/* Replies to a retransmitted request while the worker rests. Without memory it is retransmitted
 * once more. */
static bool answer_at_rest(tn_sync_server *s, const tn_frame *frame)
{
    (void)pthread_mutex_lock(&s->lock);
    const bool rests = s->rests;
    if (rests) {
        tn_status status = answer_again(s, frame, NULL);
        (void)status;
    }
    (void)pthread_mutex_unlock(&s->lock);
    return rests;
}

void tn_sync_server_take(tn_sync_server *s, const tn_frame *frame)
{
    TN_ASSERT(frame->rank < s->n_ranks);
    TN_ASSERT(frame->type == TN_FRAME_PULL || frame->type == TN_FRAME_PUSH ||
              frame->type == TN_FRAME_SHARE);
    inbox_entry what = {.frame = *frame};
    what.frame.payload = NULL;
    if (!tn_owner_admits(&s->reply, &s->x->dedup[frame->rank], frame, &what.again) ||
        (what.again && answer_at_rest(s, frame))) {
        return;
    }
    inbox_entry *entry = tn_try_alloc(1, sizeof *entry, "a request", NULL);
    if (entry == NULL) {
        return; /* it is retransmitted */
    }
    if (what.again) {
        enqueue(s, entry, &what);
    } else {
        take_new(s, frame, entry, &what);
    }
}

/* ---- requests, by the worker ---- */

static tn_status receive_pull(tn_sync_server *s, const inbox_entry *entry, tn_error *err)
{
    served_rank *r = &s->rank[entry->frame.rank];
    /* A rank pulls in the order of steps: this pull is for the current step if none waits for it,
     * else for the next. */
    uint64_t at = turn_of(r);
    at = r->asked[at].sequence == 0 ? at : (at + 1) % PULLS_AHEAD;
    const tn_owner_pull *p = &r->pull[at];
    const tn_batch_note note = {.rows = p->params.examples,
                                .weight_sum = p->params.weight_sum,
                                .meet = entry->frame.code == TN_MEET};
    r->asked[at] = entry->frame;
    return tn_sync_step_pull(s->steps, entry->frame.rank, &note,
                             p->block.keys.n > 0 ? &p->block.keys : NULL, err);
}

static tn_status receive_push(tn_sync_server *s, const inbox_entry *entry, tn_error *err)
{
    served_rank *r = &s->rank[entry->frame.rank];
    const tn_pushed pushed = {.grads = r->grads.rows,
                              .dense = r->grads.n_dense > 0 ? r->grads.dense : NULL,
                              .lr_factor = r->push.lr_factor,
                              .day = r->push.day,
                              .loss = r->push.loss};
    r->pushed = entry->frame;
    r->answered = false;
    return tn_sync_step_push(s->steps, entry->frame.rank, &pushed, err);
}

/* Sends a reply again if there was one; else it is still to come. */
static tn_status receive_again(tn_sync_server *s, const inbox_entry *entry, tn_team *team,
                               tn_error *err)
{
    const tn_frame *f = &entry->frame;
    const served_rank *r = &s->rank[f->rank];
    if (f->type == TN_FRAME_PULL && tn_sync_step_can_give(s->steps, f->rank) &&
        r->asked[turn_of(r)].sequence == f->sequence) {
        return answer_rows(s, f->rank, team, err);
    }
    return answer_again(s, f, err);
}

static tn_status receive(tn_sync_server *s, const inbox_entry *entry, tn_team *team, tn_error *err)
{
    if (entry->again) {
        return receive_again(s, entry, team, err);
    }
    if (entry->frame.type == TN_FRAME_PULL) {
        return receive_pull(s, entry, err);
    }
    if (entry->frame.type == TN_FRAME_PUSH) {
        return receive_push(s, entry, err);
    }
    tn_reply_noted(&s->reply, &entry->frame);
    return tn_sync_step_norm(s->steps, entry->frame.rank, entry->norm2, err);
}

static tn_status receive_all(tn_sync_server *s, tn_team *team, tn_error *err)
{
    tn_status status = TN_OK;
    while (status == TN_OK) {
        (void)pthread_mutex_lock(&s->lock);
        inbox_entry *entry = s->first;
        s->first = entry != NULL ? entry->next : NULL;
        (void)pthread_mutex_unlock(&s->lock);
        if (entry == NULL) {
            return TN_OK;
        }
        status = receive(s, entry, team, err);
        tn_free(entry);
    }
    return status;
}

/* ---- steps ---- */

static void step_is_done(tn_sync_server *s)
{
    for (uint32_t r = 0; r < s->n_ranks; r++) {
        served_rank *rank = &s->rank[r];
        rank->asked[turn_of(rank)].sequence = 0;
        atomic_store(&rank->push_in, false);
        (void)atomic_fetch_add(&rank->done, 1);
    }
}

static tn_status share_norm(tn_sync_server *s, tn_error *err)
{
    const double norm2 = tn_sync_step_norm2(s->steps);
    TN_TRY(s->share(s->reply.arg, 0, &norm2, 1, err));
    return tn_sync_step_norm(s->steps, s->x->rank, norm2, err);
}

static tn_status skip_step(tn_sync_server *s, tn_error *err)
{
    for (uint32_t r = 0; r < s->n_ranks; r++) {
        served_rank *rank = &s->rank[r];
        rank->skipped = rank->asked[turn_of(rank)];
        rank->skipped_note = tn_sync_step_note(s->steps, r);
        TN_TRY(answer_skipped(s, r, err));
    }
    step_is_done(s);
    return TN_OK;
}

static tn_status do_turn(tn_sync_server *s, tn_turn turn, tn_team *team, tn_error *err)
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

static tn_status do_turns(tn_sync_server *s, tn_team *team, tn_error *err)
{
    tn_turn turn = TN_TURN_ROWS;
    while (turn != TN_TURN_NONE) {
        tn_status status = tn_sync_step_advance(s->steps, team, &turn, err);
        for (uint32_t r = 0; status == TN_E_DIVERGED && r < s->n_ranks; r++) {
            tn_reply_refuse(&s->reply, &s->rank[r].pushed, TN_REFUSAL_DIVERGED);
        }
        TN_TRY(status);
        TN_TRY(do_turn(s, turn, team, err));
    }
    return TN_OK;
}

tn_status tn_sync_server_run(tn_sync_server *s, tn_team *team, tn_error *err)
{
    TN_TRY(receive_all(s, team, err));
    return do_turns(s, team, err);
}

tn_status tn_sync_server_rest(tn_sync_server *s, tn_team *team, tn_error *err)
{
    bool rests = false;
    while (!rests) {
        TN_TRY(tn_sync_server_run(s, team, err));
        (void)pthread_mutex_lock(&s->lock);
        rests = s->first == NULL;
        s->rests = rests;
        (void)pthread_mutex_unlock(&s->lock);
    }
    return TN_OK;
}

void tn_sync_server_wake(tn_sync_server *s)
{
    (void)pthread_mutex_lock(&s->lock);
    s->rests = false;
    (void)pthread_mutex_unlock(&s->lock);
}

uint32_t tn_sync_server_waits_for(const tn_sync_server *s)
{
    return tn_sync_step_waits_for(s->steps);
}

/* ---- opening and closing ---- */

void tn_sync_server_free(tn_sync_server *s)
{
    if (s == NULL) {
        return;
    }
    for (uint32_t r = 0; r < s->n_ranks; r++) {
        for (uint32_t i = 0; i < PULLS_AHEAD; i++) {
            tn_owner_pull_done(&s->rank[r].pull[i]);
        }
        tn_owner_floats_done(&s->rank[r].grads);
    }
    while (s->first != NULL) {
        inbox_entry *entry = s->first;
        s->first = entry->next;
        tn_free(entry);
    }
    tn_sync_step_free(s->steps);
    tn_free(s->rows);
    (void)pthread_mutex_destroy(&s->lock);
}

tn_status tn_sync_server_new(tn_sync_server **out, const tn_exchange *x, const tn_reply_path *reply,
                             tn_sync_share *share, tn_error *err)
{
    *out = NULL;
    tn_sync_server *s = TN_NEW(x->arena, tn_sync_server);
    s->x = x;
    s->reply = *reply;
    s->share = share;
    s->n_ranks = x->shares->owners.n_peers;
    s->rank = TN_NEW_ARRAY(x->arena, served_rank, s->n_ranks);
    s->dense = tn_exchange_dense(x);
    (void)pthread_mutex_init(&s->lock, NULL);
    tn_status status = tn_sync_step_new(&s->steps, x, err);
    if (status != TN_OK) {
        tn_sync_server_free(s);
        return status;
    }
    *out = s;
    return TN_OK;
}

size_t tn_sync_server_rank_bytes(void)
{
    return sizeof(served_rank);
}
