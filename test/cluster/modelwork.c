/* modelwork.c - a worker: asks for a part, goes through it in batches, tells that it is done. */
#include "modelstate.h"

#include "base/core/error.h"

enum { OWNERS_MAX = 64 };

static batch *batch_of(member *r, uint64_t number)
{
    return &r->batch[number % MODEL_WINDOW];
}

static uint32_t add(uint32_t *seen, uint32_t n, uint32_t rank)
{
    for (uint32_t i = 0; i < n; i++) {
        if (seen[i] == rank) {
            return n;
        }
    }
    TN_ASSERT(n < OWNERS_MAX);
    seen[n] = rank;
    return n + 1;
}

/* To every owner of something in the batch; what the rank owns itself is a plain call. */
static void send_to_owners(model *m, uint32_t rank, uint64_t number, net_kind kind)
{
    batch *b = batch_of(&m->member[rank], number);
    uint32_t seen[OWNERS_MAX];
    uint32_t n = 0;
    for (uint64_t i = b->first; i < b->first + b->n; i++) {
        n = add(seen, n, model_key_owner(m, i));
        n = add(seen, n, model_dense_owner(m, i));
    }
    for (uint32_t j = 0; j < n; j++) {
        const net_message x = {.kind = kind,
                               .from = rank,
                               .to = seen[j],
                               .batch = number,
                               .first = b->first,
                               .n = b->n};
        if (seen[j] == rank) {
            model_apply(m, &x);
        } else {
            b->open++;
            model_request(m, x);
        }
    }
}

/* Finished batches leave in order, so that what is done is always a beginning of the part. */
static void retire(member *r)
{
    while (r->n_batches > 0 && batch_of(r, r->batches)->phase == PUSHED) {
        const uint32_t n = batch_of(r, r->batches)->n;
        r->done += n;
        r->batches++;
        r->n_batches--;
    }
}

/* The batch's requests are all acknowledged: on to its next phase. */
static void advance(model *m, uint32_t rank, uint64_t number)
{
    member *r = &m->member[rank];
    batch *b = batch_of(r, number);
    if (b->phase == PULLING) {
        b->phase = COMPUTING;
        const bool slow = m->opts.slow > 1 && rank == m->opts.ranks - 1;
        const uint64_t takes =
            (5 * NET_MS + net_draw(&m->net, 10 * NET_MS)) * (slow ? m->opts.slow : 1);
        const net_message timer = {
            .kind = NET_COMPUTED, .to = rank, .incarnation = r->incarnation, .batch = number};
        net_put(&m->net, m->net.now_ns + takes, &timer);
        return;
    }
    TN_ASSERT(b->phase == PUSHING);
    b->phase = PUSHED;
    retire(r);
    model_work(m, rank);
}

void model_computed(model *m, const net_message *x)
{
    batch *b = batch_of(&m->member[x->to], x->batch);
    TN_ASSERT(b->phase == COMPUTING);
    b->phase = PUSHING;
    send_to_owners(m, x->to, x->batch, NET_PUSH);
    if (b->open == 0) {
        advance(m, x->to, x->batch);
    }
}

static void start_batch(model *m, uint32_t rank)
{
    member *r = &m->member[rank];
    const uint64_t number = r->batches + r->n_batches++;
    const uint64_t left = r->size - r->next;
    batch *b = batch_of(r, number);
    *b = (batch){
        .phase = PULLING,
        .first = m->part_first[r->deal.part] + r->deal.position + r->next,
        .n = left < m->opts.batch ? (uint32_t)left : m->opts.batch,
    };
    r->next += b->n;
    send_to_owners(m, rank, number, NET_PULL);
    if (b->open == 0) {
        advance(m, rank, number);
    }
}

static void end_part(model *m, uint32_t rank)
{
    member *r = &m->member[rank];
    tn_ledger_held held = {.rank = rank, .part = r->deal.part, .attempt = r->deal.attempt};
    const bool whole = r->next == r->size;
    held.position = r->deal.position + r->done;
    r->holds = r->drains = false;
    if (whole) {
        r->has_done = true;
        r->done_part = held;
        return;
    }
    if (rank == 0) {
        model_returned(m, &held);
    } else {
        r->gave_back = true;
        r->back_part = held;
        model_request(m,
                      (net_message){.kind = NET_RETURNED, .from = rank, .to = 0, .held = {held}});
    }
}

static void ask(model *m, uint32_t rank)
{
    member *r = &m->member[rank];
    net_message x = {
        .kind = NET_ASK, .from = rank, .to = 0, .n_held = r->has_done, .held = {r->done_part}};
    r->asks = true;
    if (rank == 0) {
        x.sequence = ++r->ask_id;
        x.incarnation = r->incarnation;
        model_ask(m, &x);
    } else {
        model_request(m, x);
    }
}

void model_work(model *m, uint32_t rank)
{
    member *r = &m->member[rank];
    while (r->holds && !r->drains && !m->cutting && r->next < r->size &&
           r->n_batches < MODEL_WINDOW) {
        start_batch(m, rank);
    }
    if (r->holds && r->n_batches == 0 && (r->drains || r->next == r->size)) {
        end_part(m, rank);
    }
    if (!r->holds && !r->asks && !r->finished) {
        ask(m, rank);
    }
}

void model_got_part(model *m, uint32_t rank, tn_ledger_answer answer, const tn_ledger_deal *deal)
{
    member *r = &m->member[rank];
    TN_ASSERT(r->asks && !r->holds);
    r->asks = r->has_done = false;
    if (answer == TN_LEDGER_NO_MORE) {
        r->finished = true;
        return;
    }
    const uint64_t records = m->part_first[deal->part + 1] - m->part_first[deal->part];
    if (deal->position > records) {
        model_fail(m, "got a part that begins behind its end", rank);
    }
    r->holds = r->was_busy = true;
    r->deal = *deal;
    r->next = r->done = 0;
    r->size = records - deal->position;
    model_work(m, rank);
}

void model_answered(model *m, const net_message *x)
{
    if (x->request == NET_ASK) {
        model_got_part(m, x->to, x->answer, &x->deal);
    } else if (x->request == NET_RETURNED) {
        m->member[x->to].gave_back = false;
    } else if (x->request == NET_PULL || x->request == NET_PUSH) {
        batch *b = batch_of(&m->member[x->to], x->batch);
        TN_ASSERT(b->open > 0);
        if (--b->open == 0) {
            advance(m, x->to, x->batch);
        }
    }
}

void model_give_back(model *m, uint32_t rank, const tn_ledger_held *held)
{
    member *r = &m->member[rank];
    if (r->holds && r->deal.part == held->part && r->deal.attempt == held->attempt) {
        r->drains = true;
        model_work(m, rank);
    }
}
