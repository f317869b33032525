/* modelcut.c - cuts of the simulated group, what they must hold, and the way back to the last one.
 */
#include "base/core/alloc.h"
#include "modelstate.h"

#include <string.h>

void model_cut_begin(model *m)
{
    cut *c = &m->last;
    const size_t ranks = m->opts.ranks;
    const size_t records = (size_t)m->result.records + 1;
    c->part = tn_alloc((size_t)m->opts.parts + 1, sizeof *c->part, "parts");
    c->shows = tn_alloc(records, sizeof *c->shows, "shows");
    c->weight = tn_alloc(records, sizeof *c->weight, "weights");
    c->low = tn_alloc(ranks * ranks, sizeof *c->low, "low sequences");
    c->n_parts = tn_ledger_save(m->ledger, c->part);
}

void model_cut_end(model *m)
{
    tn_free(m->last.part);
    tn_free(m->last.shows);
    tn_free(m->last.weight);
    tn_free(m->last.low);
}

/* Every rank tells how far it is: that is its last claim before the mark. Asks may be open, they
 * change the ledger alone. */
static bool is_drained(model *m)
{
    uint32_t asks = 0;
    for (uint32_t r = 0; r < m->opts.ranks; r++) {
        const member *x = &m->member[r];
        if (x->incarnation == 0 || x->n_batches > 0 || x->gave_back) {
            return false;
        }
        asks += x->asks && r != 0;
    }
    return m->open == asks;
}

static void report_progress(model *m)
{
    for (uint32_t r = 0; r < m->opts.ranks; r++) {
        const member *x = &m->member[r];
        net_message beat = {.from = r, .incarnation = x->incarnation};
        if (x->holds) {
            beat.held[beat.n_held++] = (tn_ledger_held){.part = x->deal.part,
                                                        .attempt = x->deal.attempt,
                                                        .position = x->deal.position + x->done};
        }
        if (x->has_done) {
            beat.held[beat.n_held++] = x->done_part;
        }
        model_beat(m, &beat);
    }
}

/* Records of a part that the manifest says are done. */
static uint64_t covered(const model *m, uint32_t part)
{
    const uint32_t source = part / 3;
    const uint64_t begin = part % 3;
    for (uint32_t i = 0; i < m->last.n_parts; i++) {
        const tn_epoch_part *row = &m->last.part[i];
        if (row->source == source && row->begin <= begin && begin < row->end) {
            return row->state == TN_PART_DONE ? m->part_first[part + 1] - m->part_first[part]
                                              : row->position;
        }
    }
    model_fail(m, "saved a ledger that lacks a part", 0);
    return 0;
}

static uint64_t sum_of(const uint64_t *dense)
{
    uint64_t sum = 0;
    for (uint32_t e = 0; e < MODEL_DENSE; e++) {
        sum += dense[e];
    }
    return sum;
}

/* I3: a record is applied once if the manifest's progress covers it, else not at all. */
static void check(const model *m)
{
    uint64_t dense[MODEL_DENSE] = {0};
    for (uint32_t part = 0; part < m->opts.parts; part++) {
        const uint64_t end = m->part_first[part] + covered(m, part);
        for (uint64_t i = m->part_first[part]; i < m->part_first[part + 1]; i++) {
            const uint32_t want = i < end;
            if (m->weight[i] != want || m->shows[i] != want) {
                model_fail(m,
                           "has a record in its checkpoint that its progress does not cover, "
                           "or lacks one",
                           model_key_owner(m, i));
            }
            dense[i % MODEL_DENSE] += want;
        }
    }
    if (memcmp(dense, m->dense, sizeof dense) != 0) {
        model_fail(m, "has a wrong dense sum in its checkpoint", 0);
    }
}

static void keep(model *m)
{
    cut *c = &m->last;
    c->n_parts = tn_ledger_save(m->ledger, c->part);
    c->read = sum_of(m->dense);
    memcpy(c->shows, m->shows, m->result.records * sizeof *c->shows);
    memcpy(c->weight, m->weight, m->result.records * sizeof *c->weight);
    memcpy(c->dense, m->dense, sizeof c->dense);
    for (uint32_t s = 0; s < m->opts.ranks; s++) {
        for (uint32_t d = 0; d < m->opts.ranks; d++) {
            const pair *p = m->member[s].to[d];
            if (p != NULL && recovery_holes(&p->dedup) != 0) {
                model_fail(m, "has holes at the mark of a cut", d);
            }
            c->low[(size_t)s * m->opts.ranks + d] = p == NULL ? 0 : p->dedup.low;
        }
    }
}

void model_cut(model *m)
{
    if (!is_drained(m)) {
        return;
    }
    m->cutting = false;
    m->result.cuts++;
    report_progress(m);
    keep(m);
    check(m);
    for (uint32_t r = 0; r < m->opts.ranks; r++) {
        model_work(m, r);
    }
}

/* One pair as the cut has it: both sides go on after the same number. */
static void restore_pair(model *m, uint32_t sender, uint32_t shard)
{
    const member *s = &m->member[sender];
    pair *p = s->to[shard];
    const bool again = p->dedup.incarnation == s->incarnation; /* else its numbers begin anew */
    const uint64_t low = again ? m->last.low[(size_t)sender * m->opts.ranks + shard] : 0;
    recovery_init(&p->retransmit, m->opts.seed ^ m->net.session, TN_RETRANSMIT_TIMEOUT_NS, low);
    recovery_restore(&p->dedup, s->incarnation, low);
    p->lost = low;
    p->applied = 0;
    p->connection++;
}

/* A new session: everybody drops what he has and loads the last cut. */
void model_roll_back(model *m)
{
    const cut *c = &m->last;
    for (uint32_t r = 0; r < m->opts.ranks; r++) {
        if (m->member[r].incarnation == 0 && m->member[r].reborn == 0) {
            return; /* another one is missing still; its return brings the session */
        }
    }
    m->net.session++;
    m->cutting = false;
    m->result.rollbacks += c->read > 0;
    memcpy(m->shows, c->shows, m->result.records * sizeof *c->shows);
    memcpy(m->weight, c->weight, m->result.records * sizeof *c->weight);
    memcpy(m->dense, c->dense, sizeof c->dense);
    if (tn_ledger_restore(m->ledger, c->part, c->n_parts, NULL) != TN_OK) {
        model_fail(m, "cannot restore its ledger", 0);
    }
    for (uint32_t r = 0; r < m->opts.ranks; r++) {
        member *x = &m->member[r];
        x->incarnation = x->reborn != 0 ? x->reborn : x->incarnation;
        model_silence(m, r);
        for (uint32_t i = 0; i < x->n_dest; i++) {
            restore_pair(m, r, x->dest[i]);
        }
        const net_message tick = {.kind = NET_TICK, .to = r, .incarnation = x->incarnation};
        net_put(&m->net, m->net.now_ns + net_draw(&m->net, NET_SECOND / 4), &tick);
    }
}
