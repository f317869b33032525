/* modelrank0.c - rank 0 of the simulated group: the ledger, and ranks that come and go. */
#include "modelstate.h"

#include "base/core/error.h"

/* The final answer to a rank's ask. */
static void report(model *m, uint32_t rank, uint64_t id, tn_ledger_answer answer,
                   const tn_ledger_deal *deal)
{
    pair *p = rank == 0 ? NULL : model_pair(m, rank, 0);
    const bool first =
        p == NULL || tn_dedup_check(&p->dedup, p->dedup.incarnation, id) == TN_DEDUP_APPLY;
    if (first && answer == TN_LEDGER_PART) {
        m->holder[deal->part] = rank;
        m->holds_from[deal->part] = deal->position;
    }
    if (p == NULL) {
        model_got_part(m, 0, answer, deal);
        return;
    }
    if (first) {
        tn_dedup_mark(&p->dedup, id);
        p->applied++;
    } else {
        m->result.repeated++;
    }
    const net_message to = {.kind = NET_ASK,
                            .from = rank,
                            .to = 0,
                            .sequence = id,
                            .incarnation = p->dedup.incarnation};
    net_message x = {.answer = answer};
    if (answer == TN_LEDGER_PART) {
        x.deal = *deal;
    }
    model_answer(m, &to, x);
}

static void wake(model *m)
{
    tn_ledger_wake w;
    while (tn_ledger_woken(m->ledger, m->net.now_ns, &w)) {
        report(m, w.rank, w.id, w.answer, &w.deal);
    }
}

void model_ask(model *m, const net_message *x)
{
    if (x->n_held > 0 &&
        tn_ledger_done(m->ledger, x->from, x->held[0].part, x->held[0].attempt, m->net.now_ns)) {
        m->holder[x->held[0].part] = UINT32_MAX;
    }
    tn_ledger_deal deal;
    const tn_ledger_answer answer =
        tn_ledger_ask(m->ledger, x->from, MODEL_EPOCH, x->sequence, m->net.now_ns, &deal);
    if (answer == TN_LEDGER_PART || answer == TN_LEDGER_NO_MORE) {
        report(m, x->from, x->sequence, answer, &deal);
    }
    wake(m);
}

void model_returned(model *m, const tn_ledger_held *held)
{
    if (tn_ledger_returned(m->ledger, held)) {
        m->result.returned++;
        m->holder[held->part] = UINT32_MAX;
        wake(m);
    }
}

void model_beat(model *m, const net_message *x)
{
    const uint32_t unclaimed =
        tn_ledger_claim(m->ledger, x->from, x->held, x->n_held, m->net.now_ns);
    if (unclaimed > 0 && !m->opts.relaxed) {
        model_fail(m, "does not claim its part", x->from);
    }
    wake(m);
}

void model_tick_rank0(model *m)
{
    tn_ledger_held held;
    while (tn_ledger_straggler(m->ledger, m->net.now_ns, &held)) {
        if (held.rank == 0) {
            model_give_back(m, 0, &held);
        } else {
            model_request(
                m, (net_message){.kind = NET_RETURN, .from = 0, .to = held.rank, .held = {held}});
        }
    }
    uint32_t rank = 0;
    while (tn_ledger_silent(m->ledger, m->net.now_ns, &rank)) {
        /* Exact: it lives and will answer; to roll back each time may never come to an end. */
        if (m->opts.relaxed && rank != 0) {
            model_kill(m, rank);
        }
    }
}

/* The shard's memory goes with the rank. */
static void forget(model *m, uint32_t rank)
{
    for (uint64_t i = 0; i < m->result.records; i++) {
        if (model_key_owner(m, i) == rank) {
            m->shows[i] = m->weight[i] = 0;
        }
        if (model_dense_owner(m, i) == rank) {
            m->dense[i % MODEL_DENSE] = 0;
        }
    }
    for (uint32_t s = 0; s < m->opts.ranks; s++) {
        pair *p = m->member[s].to[rank];
        if (p != NULL) {
            p->dedup = (tn_dedup){0};
            p->applied = 0;
        }
    }
}

void model_silence(model *m, uint32_t rank)
{
    member *r = &m->member[rank];
    for (uint32_t i = 0; i < r->n_dest; i++) {
        tn_retransmit_clear(&r->to[r->dest[i]]->retransmit);
    }
    *r = (member){.incarnation = r->incarnation,
                  .to = r->to,
                  .dest = r->dest,
                  .n_dest = r->n_dest,
                  .ask_id = r->ask_id,
                  .was_busy = r->was_busy};
}

/* All that it did of its parts may be done once more, and its shard is empty. */
static void lose(model *m, uint32_t rank)
{
    m->was_killed[rank] = true;
    for (uint32_t i = 0; i < m->opts.parts; i++) {
        if (m->holder[i] == rank) {
            m->extra_max += m->part_first[i + 1] - m->part_first[i] - m->holds_from[i];
            m->holder[i] = UINT32_MAX;
        }
    }
    forget(m, rank);
}

void model_kill(model *m, uint32_t rank)
{
    member *r = &m->member[rank];
    if (r->incarnation == 0) {
        return;
    }
    m->result.kills++;
    model_silence(m, rank);
    r->incarnation = 0;
    if (m->opts.relaxed) {
        lose(m, rank);
    }
    const net_message again = {.kind = NET_RESTART, .to = rank};
    const uint64_t away = net_chance(&m->net, .5) ? NET_SECOND / 4 : 20 * NET_SECOND;
    net_put(&m->net, m->net.now_ns + net_draw(&m->net, away), &again);
}

/* What the others still hold for the rank is all that its empty memory waits for. */
static void adopt(model *m, uint32_t sender, uint32_t rank)
{
    const member *s = &m->member[sender];
    pair *p = s->to[rank];
    if (p == NULL || s->incarnation == 0) {
        return;
    }
    uint64_t open[TN_RETRANSMIT_MAX];
    const uint32_t n = recovery_open(&p->retransmit, open);
    const uint64_t acknowledged = recovery_acknowledged(&p->retransmit);
    if (!recovery_adopt(&p->dedup, s->incarnation, p->retransmit.next, open, n)) {
        model_fail(m, "has no list of open requests", sender);
    }
    m->result.updates_lost += acknowledged - p->lost;
    p->lost = acknowledged;
    model_reconnect(m, sender, rank);
}

void model_restart(model *m, uint32_t rank)
{
    member *r = &m->member[rank];
    if (!m->opts.relaxed) {
        r->reborn = ++m->incarnations;
        model_roll_back(m);
        return;
    }
    r->incarnation = ++m->incarnations;
    for (uint32_t i = 0; i < r->n_dest; i++) {
        pair *p = r->to[r->dest[i]];
        tn_retransmit_init(&p->retransmit, m->opts.seed ^ r->incarnation, TN_RETRANSMIT_TIMEOUT_NS);
        p->connection++;
        p->applied = p->lost = 0;
        if (m->member[r->dest[i]].incarnation != 0) {
            tn_dedup_begin(&p->dedup, r->incarnation);
        }
    }
    for (uint32_t s = 0; s < m->opts.ranks; s++) {
        adopt(m, s, rank);
    }
    tn_ledger_lost(m->ledger, rank);
    wake(m);
    const net_message tick = {.kind = NET_TICK, .to = rank, .incarnation = r->incarnation};
    net_put(&m->net, m->net.now_ns, &tick);
}
