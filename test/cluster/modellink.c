/* modellink.c - how requests and answers travel, and the shards that they reach. */
#include "base/core/alloc.h"
#include "base/math/key.h"
#include "modelstate.h"

/* A request that is kept until it is answered. */
typedef struct kept {
    tn_retransmit_request link; /* first: release and pump cast */
    net_message message;
    model *m;
} kept;

static void release(tn_retransmit_request *x)
{
    kept *k = (kept *)x;
    k->m->open--;
    tn_free(k);
}

uint32_t model_key_owner(const model *m, uint64_t record)
{
    return (uint32_t)(((tn_mix(record) >> 32) * m->opts.ranks) >> 32);
}

uint32_t model_dense_owner(const model *m, uint64_t record)
{
    return (uint32_t)(record % MODEL_DENSE % m->opts.ranks);
}

pair *model_pair(model *m, uint32_t from, uint32_t to)
{
    TN_ASSERT(from != to);
    member *s = &m->member[from];
    if (s->to[to] == NULL) {
        pair *p = tn_alloc(1, sizeof *p, "a pair of ranks");
        tn_retransmit_init(&p->retransmit, m->opts.seed + ((uint64_t)from << 32) + to,
                           TN_RETRANSMIT_TIMEOUT_NS);
        if (s->incarnation != 0) {
            tn_dedup_begin(&p->dedup, s->incarnation);
        }
        p->connection = 1;
        s->to[to] = p;
        s->dest[s->n_dest++] = to;
    }
    return s->to[to];
}

/* One message on its way: it may get lost, come late, twice, or before others. */
static void transmit(model *m, pair *p, const net_message *x)
{
    const model_faults *f = &m->opts.faults;
    const bool is_answer = x->kind == NET_ANSWER;
    if (net_chance(&m->net, f->repeat)) {
        net_message copy = *x;
        copy.connection = NET_ANY;
        net_put(&m->net, m->net.now_ns + net_draw(&m->net, 10 * NET_SECOND), &copy);
    }
    if (net_chance(&m->net, f->drop) || (is_answer && net_chance(&m->net, f->drop_answer))) {
        return;
    }
    uint64_t at = m->net.now_ns + NET_MS / 10 + net_draw(&m->net, 20 * NET_MS);
    if (!net_chance(&m->net, f->reorder)) {
        at = at > p->last_ns[is_answer] ? at : p->last_ns[is_answer];
        p->last_ns[is_answer] = at;
    }
    net_put(&m->net, at, x);
}

static void pump(model *m, pair *p)
{
    const tn_retransmit_request *x = NULL;
    while ((x = tn_retransmit_due(&p->retransmit, m->net.now_ns)) != NULL) {
        net_message message = ((const kept *)x)->message;
        message.connection = p->connection;
        transmit(m, p, &message);
        tn_retransmit_sent(&p->retransmit, m->net.now_ns);
    }
}

void model_pump(model *m, uint32_t rank)
{
    member *s = &m->member[rank];
    for (uint32_t i = 0; i < s->n_dest; i++) {
        pump(m, s->to[s->dest[i]]);
    }
}

void model_request(model *m, net_message x)
{
    pair *p = model_pair(m, x.from, x.to);
    if (tn_retransmit_is_full(&p->retransmit)) {
        model_fail(m, "has too many requests open", x.from);
    }
    kept *k = tn_alloc(1, sizeof *k, "a request");
    x.incarnation = m->member[x.from].incarnation;
    x.sequence = p->retransmit.next;
    *k = (kept){.message = x, .m = m};
    k->link = (tn_retransmit_request){.release = release};
    tn_retransmit_put(&p->retransmit, &k->link);
    m->open++;
    pump(m, p);
}

void model_send(model *m, const net_message *x)
{
    pair *p = model_pair(m, x->from, x->to);
    net_message message = *x;
    message.incarnation = m->member[x->from].incarnation;
    message.connection = p->connection;
    transmit(m, p, &message);
}

void model_answer(model *m, const net_message *to, net_message answer)
{
    pair *p = model_pair(m, to->from, to->to);
    answer.kind = NET_ANSWER;
    answer.request = to->kind;
    answer.from = to->to;
    answer.to = to->from;
    answer.sequence = to->sequence;
    answer.batch = to->batch;
    answer.meant = to->incarnation;
    answer.incarnation = m->member[to->to].incarnation;
    answer.connection = p->connection;
    transmit(m, p, &answer);
}

void model_reconnect(model *m, uint32_t from, uint32_t to)
{
    if (from != to && m->member[from].to[to] != NULL) {
        pair *p = m->member[from].to[to];
        p->connection++;
        recovery_reconnected(&p->retransmit);
        pump(m, p);
    }
}

/* What a request does to the rank it reached; everything, or nothing when it comes again. */
void model_apply(model *m, const net_message *x)
{
    switch (x->kind) {
    case NET_PULL:
    case NET_PUSH:
        for (uint64_t i = x->first; i < x->first + x->n; i++) {
            if (model_key_owner(m, i) == x->to) {
                (x->kind == NET_PULL ? m->shows : m->weight)[i]++;
            }
            if (x->kind == NET_PUSH && model_dense_owner(m, i) == x->to) {
                m->dense[i % MODEL_DENSE]++;
            }
        }
        return;
    case NET_RETURN:
        model_give_back(m, x->to, &x->held[0]);
        return;
    case NET_RETURNED:
        model_returned(m, &x->held[0]);
        return;
    case NET_TICK:
    case NET_COMPUTED:
    case NET_KILL:
    case NET_RESTART:
    case NET_RECONNECT:
    case NET_CUT:
    case NET_ASK:
    case NET_ANSWER:
    case NET_BEAT:
        break;
    }
    model_fail(m, "got a request of no kind", x->to);
}

static void serve(model *m, pair *p, const net_message *x)
{
    const tn_dedup_verdict verdict = tn_dedup_check(&p->dedup, x->incarnation, x->sequence);
    if (verdict == TN_DEDUP_STALE) {
        m->result.stale++;
        return;
    }
    if (verdict == TN_DEDUP_BEYOND) {
        model_fail(m, "got a number beyond the window", x->to);
    }
    if (x->kind == NET_ASK) {
        model_ask(m, x);
        return;
    }
    if (verdict == TN_DEDUP_APPLY) {
        model_apply(m, x);
        tn_dedup_mark(&p->dedup, x->sequence);
        p->applied++;
    } else {
        m->result.repeated++;
    }
    model_answer(m, x, (net_message){0});
}

void model_receive(model *m, const net_message *x)
{
    member *to = &m->member[x->to];
    const bool is_answer = x->kind == NET_ANSWER;
    pair *p = is_answer ? model_pair(m, x->to, x->from) : model_pair(m, x->from, x->to);
    if (to->incarnation == 0 || (x->connection != NET_ANY && x->connection != p->connection)) {
        return;
    }
    if (x->to == x->from) {
        model_fail(m, "talks to itself", x->to);
    }
    if (!is_answer && x->kind != NET_BEAT) {
        serve(m, p, x);
        return;
    }
    /* An answer of a former start speaks of a memory that is gone. */
    if (x->incarnation != m->member[x->from].incarnation ||
        (is_answer && x->meant != to->incarnation)) {
        m->result.stale++;
    } else if (!is_answer) {
        model_beat(m, x);
    } else if (tn_retransmit_acknowledge(&p->retransmit, x->sequence)) {
        model_answered(m, x);
    }
}
