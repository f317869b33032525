/* model.c - sets a simulated group up, runs it to its end and checks what its shards counted. */
#include "model.h"

#include "modelstate.h"
#include "support/test.h"

enum { TICK_MS = 250, TICKS_PER_BEAT = 4, SECONDS_MAX = 3600, EVENTS_PER_RECORD = 4000 };

static const uint64_t events_more = UINT64_C(2000000);

void model_fail(const model *m, const char *what, uint32_t rank)
{
    fail_msg("TNET_SEED=%llu (%u ranks, %u parts, %s): at %.3f s rank %u %s",
             (unsigned long long)m->opts.seed, m->opts.ranks, m->opts.parts,
             m->opts.mode == TN_LEDGER_BY_RULE ? "by rule" : "on request",
             (double)m->net.now_ns * 1e-9, rank, what);
}

/* What the first ranks that are not ready wait for. */
static void does_not_end(const model *m)
{
    for (uint32_t r = 0, told = 0; r < m->opts.ranks && told < 8; r++) {
        const member *x = &m->member[r];
        if (x->finished && x->incarnation != 0) {
            continue;
        }
        told++;
        print_error("rank %u:%s%s%s%s, %u requests open, part %u, record %llu of %llu\n", r,
                    x->incarnation == 0 ? " dead" : "", x->asks ? " waits for a part" : "",
                    x->holds ? " works" : "", x->drains ? " to be given back" : "", m->open,
                    x->deal.part, (unsigned long long)x->done, (unsigned long long)x->size);
    }
    model_fail(m, "and all others do not come to an end", 0);
}

static void make_parts(model *m)
{
    const uint32_t n = m->opts.parts;
    tn_ledger_span *span = tn_alloc(n + 1, sizeof *span, "spans");
    m->part_first = tn_alloc(n + 1, sizeof *m->part_first, "records");
    m->holder = tn_alloc(n + 1, sizeof *m->holder, "holders");
    m->holds_from = tn_alloc(n + 1, sizeof *m->holds_from, "positions");
    for (uint32_t i = 0; i < n; i++) {
        m->part_first[i + 1] = m->part_first[i] + net_draw(&m->net, m->opts.records_max + 1);
        m->holder[i] = UINT32_MAX;
        span[i] = (tn_ledger_span){.source = i / 3, .begin = i % 3, .end = i % 3 + 1};
    }
    const tn_ledger_opts opts = {.epoch = MODEL_EPOCH,
                                 .ranks = m->opts.ranks,
                                 .n_parts = n,
                                 .mode = m->opts.mode,
                                 .relaxed = m->opts.relaxed,
                                 .part = span};
    assert_int_equal(tn_ledger_new(&m->ledger, &opts, NULL), TN_OK);
    tn_free(span);
    m->result.records = m->part_first[n];
    m->shows = tn_alloc(m->result.records + 1, sizeof *m->shows, "shows");
    m->weight = tn_alloc(m->result.records + 1, sizeof *m->weight, "weights");
}

/* Early, while there is work, or within the time that restarts take. */
static uint64_t some_time(model *m)
{
    const bool early = m->opts.relaxed || net_chance(&m->net, .5);
    return net_draw(&m->net, (early ? 2 : 20) * NET_SECOND);
}

static void plan_faults(model *m)
{
    const uint32_t kept = m->opts.relaxed; /* rank 0 */
    for (uint32_t i = 0; i < m->opts.faults.kills && m->opts.ranks > kept; i++) {
        const net_message x = {.kind = NET_KILL,
                               .to = kept + (uint32_t)net_draw(&m->net, m->opts.ranks - kept)};
        net_put(&m->net, some_time(m), &x);
    }
    for (uint32_t i = 0; i < m->opts.faults.cuts; i++) {
        const net_message x = {.kind = NET_CUT};
        net_put(&m->net, some_time(m), &x);
    }
    for (uint32_t i = 0; i < m->opts.faults.reconnects; i++) {
        const net_message x = {.kind = NET_RECONNECT,
                               .from = (uint32_t)net_draw(&m->net, m->opts.ranks),
                               .to = (uint32_t)net_draw(&m->net, m->opts.ranks)};
        net_put(&m->net, some_time(m), &x);
    }
}

static void begin(model *m, const model_opts *opts)
{
    *m = (model){.opts = *opts};
    const uint32_t n = opts->ranks;
    net_init(&m->net, opts->seed);
    make_parts(m);
    m->member = tn_alloc(n, sizeof *m->member, "ranks");
    m->was_killed = tn_alloc(n, sizeof *m->was_killed, "flags");
    for (uint32_t r = 0; r < n; r++) {
        m->member[r].to = tn_alloc(n, sizeof(pair *), "pairs");
        m->member[r].dest = tn_alloc(n, sizeof(uint32_t), "destinations");
        m->member[r].incarnation = ++m->incarnations;
        const net_message first = {
            .kind = NET_TICK, .to = r, .incarnation = m->member[r].incarnation};
        net_put(&m->net, net_draw(&m->net, TICK_MS * NET_MS), &first);
    }
    plan_faults(m);
    model_cut_begin(m);
}

static void end(model *m)
{
    for (uint32_t r = 0; r < m->opts.ranks; r++) {
        member *x = &m->member[r];
        for (uint32_t i = 0; i < x->n_dest; i++) {
            tn_retransmit_clear(&x->to[x->dest[i]]->retransmit);
            tn_free(x->to[x->dest[i]]);
        }
        tn_free(x->to);
        tn_free(x->dest);
    }
    model_cut_end(m);
    tn_ledger_free(m->ledger);
    tn_free(m->member);
    tn_free(m->was_killed);
    tn_free(m->part_first);
    tn_free(m->holder);
    tn_free(m->holds_from);
    tn_free(m->shows);
    tn_free(m->weight);
    net_done(&m->net);
}

/* All parts that rank 0 must not give to others: at work, and finished or given back as long as
 * that is not acknowledged. */
static void beat(model *m, uint32_t rank)
{
    member *r = &m->member[rank];
    net_message x = {.kind = NET_BEAT, .from = rank, .to = 0, .incarnation = r->incarnation};
    if (r->holds) {
        x.held[x.n_held++] = (tn_ledger_held){.part = r->deal.part,
                                              .attempt = r->deal.attempt,
                                              .position = r->deal.position + r->done};
    }
    if (r->has_done) {
        x.held[x.n_held++] = r->done_part;
    }
    if (r->gave_back) {
        x.held[x.n_held++] = r->back_part;
    }
    if (rank == 0) {
        model_beat(m, &x);
        model_tick_rank0(m);
    } else {
        model_send(m, &x);
    }
}

static void tick(model *m, const net_message *x)
{
    member *r = &m->member[x->to];
    net_put(&m->net, m->net.now_ns + TICK_MS * NET_MS, x);
    if (r->ticks++ == 0) {
        model_work(m, x->to);
    }
    model_pump(m, x->to);
    if (r->ticks % TICKS_PER_BEAT == 0) {
        beat(m, x->to);
    }
}

static void handle(model *m, const net_message *x)
{
    const bool current = x->incarnation == m->member[x->to].incarnation;
    switch (x->kind) {
    case NET_TICK:
        if (current) {
            tick(m, x);
        }
        return;
    case NET_COMPUTED:
        if (current) {
            model_computed(m, x);
        }
        return;
    case NET_KILL:
        model_kill(m, x->to);
        return;
    case NET_RESTART:
        model_restart(m, x->to);
        return;
    case NET_RECONNECT:
        model_reconnect(m, x->from, x->to);
        return;
    case NET_CUT:
        m->cutting = !m->opts.relaxed;
        return;
    case NET_PULL:
    case NET_PUSH:
    case NET_ASK:
    case NET_RETURN:
    case NET_RETURNED:
    case NET_ANSWER:
    case NET_BEAT:
        model_receive(m, x);
        return;
    }
}

static bool is_over(const model *m)
{
    bool over = m->open == 0;
    for (uint32_t r = 0; over && r < m->opts.ranks; r++) {
        over = m->member[r].incarnation != 0 && m->member[r].finished;
    }
    return over;
}

/* Every record once; with kills, at the owners that kept their memory, once or more. */
static void check_tally(model *m)
{
    const bool killed = m->opts.relaxed && m->result.kills > 0;
    uint64_t dense[MODEL_DENSE] = {0};
    uint64_t more_shows = 0;
    for (uint64_t i = 0; i < m->result.records; i++) {
        const uint32_t owner = model_key_owner(m, i);
        dense[i % MODEL_DENSE]++;
        if (m->was_killed[owner]) {
            continue;
        }
        if (m->weight[i] == 0 || m->shows[i] == 0) {
            model_fail(m, "lost a record", owner);
        }
        m->result.extra += m->weight[i] - 1;
        more_shows += m->shows[i] - 1;
    }
    if (m->result.extra > m->extra_max || more_shows > m->extra_max) {
        model_fail(m, "and others counted records more often than lost parts explain", 0);
    }
    for (uint32_t e = 0; e < MODEL_DENSE; e++) {
        const bool kept = !m->was_killed[e % m->opts.ranks];
        if ((kept && m->dense[e] < dense[e]) || (!killed && m->dense[e] > dense[e])) {
            model_fail(m, "has a wrong dense sum", e % m->opts.ranks);
        }
    }
}

/* What a cut asserts, and that a shard misses just what was acknowledged before it was lost. */
static void check_pairs(const model *m)
{
    for (uint32_t r = 0; r < m->opts.ranks; r++) {
        const member *x = &m->member[r];
        for (uint32_t i = 0; i < x->n_dest; i++) {
            const pair *p = x->to[x->dest[i]];
            const uint64_t sent = p->retransmit.next - 1;
            if (p->dedup.low != sent || recovery_holes(&p->dedup) != 0) {
                model_fail(m, "did not apply all that was sent to it", x->dest[i]);
            }
            if (p->applied != sent - p->lost) {
                model_fail(m, "misses other requests than it should", x->dest[i]);
            }
        }
    }
}

model_result model_run(const model_opts *opts)
{
    model m;
    begin(&m, opts);
    const uint64_t events_max = events_more + m.result.records * EVENTS_PER_RECORD;
    net_message x;
    bool over = false;
    while (!over && net_take(&m.net, &x)) {
        handle(&m, &x);
        if (m.cutting) {
            model_cut(&m);
        }
        if (++m.result.events > events_max || m.net.now_ns > SECONDS_MAX * NET_SECOND) {
            does_not_end(&m);
        }
        over = x.kind == NET_TICK && x.to == 0 && is_over(&m);
    }
    if (!tn_ledger_is_over(m.ledger)) {
        model_fail(&m, "has parts that nobody read", 0);
    }
    check_tally(&m);
    check_pairs(&m);
    m.result.end_ns = m.net.now_ns;
    for (uint32_t r = 0; r < opts->ranks; r++) {
        m.result.idle_ranks += !m.member[r].was_busy;
    }
    end(&m);
    return m.result;
}
