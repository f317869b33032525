/* ledgerage.c - parts that take too long: not claimed, stragglers, no answer; see ledger.h. */
#include "cluster/ledger/ledger.h"
#include "cluster/ledger/ledgerstate.h"

/* The answer that deals the part has perhaps not arrived: the rank has neither claimed it nor asked
 * for another since. It will repeat its ask. */
static bool is_under_way(const tn_ledger *l, uint32_t rank, uint32_t part)
{
    const tn_ledger_rank *r = &l->rank[rank];
    return !l->part[part].claimed && r->answer == TN_LEDGER_PART && r->deal.part == part;
}

uint32_t tn_ledger_claim(tn_ledger *l, uint32_t rank, const tn_ledger_held *held, uint32_t n,
                         uint64_t now_ns)
{
    for (uint32_t i = 0; i < n; i++) {
        tn_ledger_part *p = tn_ledger_current(l, rank, held[i].part, held[i].attempt);
        if (p != NULL) { /* heartbeats may come late: a position only grows */
            p->position = held[i].position > p->position ? held[i].position : p->position;
            p->claimed_ns = now_ns;
            p->claimed = true;
        }
    }
    uint32_t unclaimed = 0;
    uint32_t before = 0;
    for (uint32_t i = l->rank[rank].held.last; i != TN_NOBODY; i = before) {
        before = l->held[i].before;
        if (now_ns - l->part[i].claimed_ns < l->silent_ns || is_under_way(l, rank, i)) {
            continue;
        }
        unclaimed++;
        if (l->relaxed) {
            tn_ledger_free_again(l, i, l->part[i].start);
        }
    }
    return unclaimed;
}

/* Ranks that have nothing to do. One that waits for the part after its present one is none. */
static uint32_t idle(const tn_ledger *l)
{
    uint32_t n = 0;
    for (uint32_t r = l->waiting.first; r != TN_NOBODY; r = l->waits[r].next) {
        n += l->rank[r].held.n == 0;
    }
    return n;
}

bool tn_ledger_straggler(tn_ledger *l, uint64_t now_ns, tn_ledger_held *out)
{
    const uint32_t oldest = l->list[TN_LIST_DEALT].first;
    if (oldest == TN_NOBODY || l->ages.added < TN_LEDGER_FINISHED_MIN ||
        l->list[TN_LIST_ASKED].n >= idle(l)) {
        return false; /* nobody is asked for more than there are ranks to take it */
    }
    tn_ledger_part *p = &l->part[oldest];
    const uint64_t age = now_ns - p->dealt_ns;
    if (age < l->straggler_ns || age <= 3 * tn_recent_median(&l->ages)) {
        return false;
    }
    p->asked_ns = now_ns;
    tn_ledger_move(l, oldest, TN_LIST_ASKED);
    *out = (tn_ledger_held){
        .rank = p->rank, .part = oldest, .attempt = p->attempt, .position = p->position};
    return true;
}

/* Who waits with parts in hand has asked ahead; when it gives them back others come first. */
static void wait_anew(tn_ledger *l, uint32_t rank)
{
    if (l->rank[rank].waits) {
        tn_list_remove(&l->waiting, l->waits, rank);
        tn_list_add(&l->waiting, l->waits, rank);
    }
}

bool tn_ledger_returned(tn_ledger *l, const tn_ledger_held *held)
{
    const tn_ledger_part *p = tn_ledger_current(l, held->rank, held->part, held->attempt);
    if (p == NULL || held->position < p->start) {
        return false;
    }
    tn_ledger_free_again(l, held->part, held->position);
    wait_anew(l, held->rank);
    return true;
}

bool tn_ledger_silent(tn_ledger *l, uint64_t now_ns, uint32_t *rank)
{
    const uint32_t first = l->list[TN_LIST_ASKED].first;
    if (first == TN_NOBODY || now_ns - l->part[first].asked_ns < l->silent_ns) {
        return false;
    }
    tn_ledger_move(l, first, TN_LIST_SILENT);
    *rank = l->part[first].rank;
    return true;
}
