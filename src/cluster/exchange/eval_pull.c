/* eval_pull.c - PEEK requests of a worker, and the replies of an owner. */
#include "cluster/exchange/eval_pull.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "cluster/exchange/batch_messages.h"
#include "cluster/exchange/owner_messages.h"

#include <string.h>

static const uint64_t again_ns = 1000000000;

struct tn_eval_pull {
    tn_exchange x;
    uint32_t n_ranks;

    /* The worker's. */
    uint64_t number; /* number of the peek that runs */
    tn_owner_slices slices;
    bool *missing;
    uint32_t *first; /* partitions + 1: of the own slice */

    /* tn-net's. */
    tn_reply_path reply;
    tn_keyblock block;
    float *given;
    bool *lacks;
    size_t given_max, lacks_max;
};

tn_eval_pull *tn_eval_pull_new(const tn_exchange *x)
{
    tn_eval_pull *p = TN_NEW(x->arena, tn_eval_pull);
    *p = (tn_eval_pull){.x = *x,
                        .reply = {x->pool, tn_reply_by_link, x->link},
                        .n_ranks = x->shares->owners.n_peers,
                        .first = TN_NEW_ARRAY(x->arena, uint32_t, TN_PARTITIONS + 1)};
    return p;
}

void tn_eval_pull_free(tn_eval_pull *p)
{
    if (p == NULL) {
        return;
    }
    tn_keyblock_done(&p->block);
    tn_free(p->given);
    tn_free(p->lacks);
    tn_owner_slices_done(&p->slices);
}

/* ---- the owner, on tn-net ---- */

static bool make_room(tn_eval_pull *p, size_t floats, size_t keys)
{
    const char *what = "rows for a peer";
    return TN_RESERVE(p->lacks, p->lacks_max, keys, what, NULL) == TN_OK &&
           TN_RESERVE(p->given, p->given_max, floats, what, NULL) == TN_OK;
}

/* Answers a PEEK. Without memory there is no reply: the worker asks again. */
static void answer(tn_eval_pull *p, const tn_frame *f)
{
    const tn_keyset *keys = &p->block.keys;
    const uint32_t n = keys->floats;
    const size_t row_bytes = n * tn_values_bytes(TN_VALUES_F32);
    const uint64_t bytes = TN_ROWS_PARAMS + row_bytes + (keys->n + 7) / 8;
    tn_out_message *rows = NULL;
    if (!make_room(p, n, keys->n) || tn_out_message_take(&rows, p->x.pool, bytes, NULL) != TN_OK) {
        return;
    }
    if (keys->n > 0) {
        tn_shard_peek(p->x.shard, NULL, keys, p->given, p->lacks);
    }
    char *to = tn_out_message_payload(rows);
    rows->frame.type = TN_FRAME_ROWS;
    rows->frame.flags = TN_FRAME_MISSING; /* and floats of 32 bits */
    rows->frame.count[TN_KEYS] = keys->n;
    rows->frame.count[TN_ROW_FLOATS] = n;
    memcpy(to, &(tn_rows_params){0}, TN_ROWS_PARAMS);
    tn_missing_put(to + TN_ROWS_PARAMS + row_bytes, p->lacks, keys->n);
    if (tn_values_write(TN_VALUES_F32, p->given, n, to + TN_ROWS_PARAMS) != TN_VALUES_FINITE) {
        tn_out_message_drop(rows);
        tn_reply_refuse(&p->reply, f, TN_REFUSAL_DAMAGED);
        return;
    }
    tn_link_answer(p->x.link, f, rows);
}

void tn_eval_pull_take_request(tn_eval_pull *p, tn_in_message *incoming)
{
    const tn_frame *f = &incoming->frame;
    const tn_keyblock_rules rules = {&p->x.shares->owners, p->x.layout, p->x.rank};
    tn_drop why = tn_keyblock_read(&p->block, f->payload, f->bytes, f->count, &rules);
    if (why == TN_DROP_NONE) {
        answer(p, f);
    } else if (why != TN_DROP_MEMORY) {
        tn_reply_refuse(&p->reply, f, TN_REFUSAL_DAMAGED);
    }
    tn_in_message_close(incoming);
}

/* ---- the worker ---- */

static tn_status ask(tn_eval_pull *p, uint32_t owner, tn_error *err)
{
    tn_out_message *outgoing = NULL;
    tn_owner_slice *a = &p->slices.of[owner];
    const tn_keyblock_shape shape = tn_keyblock_measure(p->slices.keys, a->order);
    TN_TRY(tn_out_message_take(&outgoing, p->x.pool, shape.bytes, err));
    a->floats = shape.floats;
    outgoing->frame.type = TN_FRAME_PEEK;
    outgoing->frame.flags = TN_FRAME_MISSING;
    outgoing->frame.step = p->number;
    outgoing->frame.count[TN_KEYS] = a->order.n;
    outgoing->frame.count[TN_ROW_FLOATS] = shape.floats;
    tn_keyblock_write(p->slices.keys, a->order, &shape, tn_out_message_payload(outgoing));
    tn_link_post(p->x.link, owner, outgoing);
    return TN_OK;
}

static void receive(void *arg, const tn_frame *f, uint32_t from)
{
    tn_eval_pull *p = arg;
    tn_owner_slice *a = &p->slices.of[from];
    const tn_owner_slices *s = &p->slices;
    tn_reply_queue *q = p->x.replies;
    if (q->failed != TN_OK || f->sequence != 0 || f->step != p->number || a->has_rows) {
        return; /* the last: a reply to a request that was sent twice */
    }
    const char *rows = f->payload + TN_ROWS_PARAMS;
    bool good = f->type == TN_FRAME_ROWS && (f->flags & TN_FRAME_MISSING) != 0 &&
                f->count[TN_KEYS] == a->order.n && f->count[TN_ROW_FLOATS] == a->floats;
    const tn_values kind = tn_frame_row_values(f->flags);
    good = good && tn_values_scatter(kind, rows, s->keys, a->order, s->rows) == TN_VALUES_FINITE &&
           tn_missing_get(p->missing, a->order, rows + a->floats * tn_values_bytes(kind)) ==
               TN_DROP_NONE;
    if (!good) {
        q->failed = tn_fail(&q->err, TN_E_PEER, "rank %u answered a request for rows with %s", from,
                            f->type == TN_FRAME_REFUSED ? tn_refusal_text(f->code) : "nonsense");
        return;
    }
    a->has_rows = true;
    TN_ASSERT(p->slices.n_rows < p->n_ranks);
    p->slices.n_rows++;
}

static tn_status ask_all(tn_eval_pull *p, tn_error *err)
{
    for (uint32_t r = 0; r < p->n_ranks; r++) {
        if (r != p->x.rank && !p->slices.of[r].has_rows) {
            TN_TRY(ask(p, r, err));
        }
    }
    return TN_OK;
}

static void peek_own(tn_eval_pull *p, tn_team *team)
{
    const tn_range own = tn_keys_of_peer(p->slices.keys, p->x.rank);
    const tn_keyset slice = tn_shares_slice(p->slices.keys, p->x.rank, p->first);
    if (slice.n > 0) {
        tn_shard_peek(p->x.shard, team, &slice, p->slices.rows, p->missing + own.from);
    }
}

tn_status tn_eval_pull_rows(tn_eval_pull *p, tn_team *team, const tn_keyset *keys, float *rows,
                            bool *missing, tn_error *err)
{
    TN_ASSERT(keys->owners->n_peers == p->n_ranks && (keys->n == 0 || rows != NULL));
    tn_owner_slices *s = &p->slices;
    TN_TRY(tn_owner_slices_begin(s, p->n_ranks, keys, rows, err));
    p->number++;
    p->missing = missing;
    s->n_rows = 1;
    for (uint32_t r = 0; r < p->n_ranks; r++) {
        const tn_range part = tn_keys_of_peer(keys, r);
        s->of[r].order = tn_keyblock_sort(keys, r, s->scratch, s->index + part.from);
        s->of[r].has_rows = s->of[r].order.n == 0 && r != p->x.rank;
        s->n_rows += s->of[r].has_rows;
    }
    TN_TRY(ask_all(p, err));
    peek_own(p, team);
    uint64_t again = tn_clock_ns() + tn_timer_ns(again_ns);
    for (;;) {
        const uint64_t seen = tn_reply_queue_read(p->x.replies, receive, p);
        TN_TRY(tn_reply_queue_check(p->x.replies, err));
        if (s->n_rows == p->n_ranks) {
            return TN_OK;
        }
        if (!tn_wakeup_wait(&p->x.replies->wakeup, seen, again)) {
            TN_TRY(ask_all(p, err));
            again = tn_clock_ns() + tn_timer_ns(again_ns);
        }
    }
}
