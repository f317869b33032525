/* ledger.c - parts are dealt, finished and given again; see ledger.h. */
#include "cluster/ledger/ledger.h"

#include "base/core/alloc.h"
#include "cluster/ledger/ledgerstate.h"

#include <stdlib.h>

void tn_ledger_move(tn_ledger *l, uint32_t part, tn_ledger_list to)
{
    tn_ledger_part *p = &l->part[part];
    if (p->list != TN_LIST_NONE) {
        tn_list_remove(&l->list[p->list], l->links, part);
    }
    p->list = to;
    if (to != TN_LIST_NONE) {
        tn_list_add(&l->list[to], l->links, part);
    }
}

tn_ledger_part *tn_ledger_current(tn_ledger *l, uint32_t rank, uint32_t part, uint32_t attempt)
{
    TN_ASSERT(rank < l->ranks);
    if (part >= l->n_parts) {
        return NULL;
    }
    tn_ledger_part *p = &l->part[part];
    bool current = p->state == TN_PART_DEALT && p->rank == rank && p->attempt == attempt;
    return current ? p : NULL;
}

void tn_ledger_free_again(tn_ledger *l, uint32_t part, uint64_t start)
{
    tn_ledger_part *p = &l->part[part];
    TN_ASSERT(p->state == TN_PART_DEALT);
    tn_list_remove(&l->rank[p->rank].held, l->held, part);
    tn_ledger_move(l, part, TN_LIST_NONE);
    p->state = TN_PART_FREE;
    p->attempt++;
    l->n_again++;
    p->start = p->position = start;
    if (l->mode == TN_LEDGER_ON_REQUEST) {
        p->list = TN_LIST_FREE;
        tn_list_put(&l->list[TN_LIST_FREE], l->links, TN_NOBODY, part);
        return;
    }
    tn_ledger_rank *owner = &l->rank[part % l->ranks];
    owner->next = part < owner->next ? part : owner->next;
}

void tn_ledger_relist(tn_ledger *l)
{
    for (uint32_t i = 0; i < TN_LISTS; i++) {
        tn_list_init(&l->list[i]);
    }
    tn_list_init(&l->waiting);
    for (uint32_t r = 0; r < l->ranks; r++) {
        l->rank[r] = (tn_ledger_rank){.next = r};
        tn_list_init(&l->rank[r].held);
    }
    l->n_done = 0;
    for (uint32_t i = 0; i < l->n_parts; i++) {
        tn_ledger_part *p = &l->part[i];
        p->list = TN_LIST_NONE;
        l->n_done += p->state == TN_PART_DONE;
        if (p->state == TN_PART_FREE && l->mode == TN_LEDGER_ON_REQUEST) {
            tn_ledger_move(l, i, TN_LIST_FREE);
        }
    }
}

static int by_place(const void *a, const void *b, void *ctx)
{
    const tn_ledger_part *part = ctx;
    const tn_ledger_part *x = &part[*(const uint32_t *)a];
    const tn_ledger_part *y = &part[*(const uint32_t *)b];
    if (x->source != y->source) {
        return x->source < y->source ? -1 : 1;
    }
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* Memory for n parts, zeroed; with one more, so that it is never none. */
static tn_status allocate(tn_ledger *l, tn_error *err)
{
    const char *what = "the ledger of parts";
    size_t n = (size_t)l->n_parts + 1;
    bool ok = (l->part = tn_try_alloc(n, sizeof *l->part, what, err)) != NULL &&
              (l->sorted = tn_try_alloc(n, sizeof *l->sorted, what, err)) != NULL &&
              (l->links = tn_try_alloc(n, sizeof *l->links, what, err)) != NULL &&
              (l->held = tn_try_alloc(n, sizeof *l->held, what, err)) != NULL &&
              (l->rank = tn_try_alloc(l->ranks, sizeof *l->rank, what, err)) != NULL &&
              (l->waits = tn_try_alloc(l->ranks, sizeof *l->waits, what, err)) != NULL;
    return ok ? TN_OK : TN_E_MEMORY;
}

tn_status tn_ledger_new(tn_ledger **out, const tn_ledger_opts *opts, tn_error *err)
{
    TN_ASSERT(opts->ranks > 0 && opts->ranks <= TN_LEDGER_RANKS_MAX);
    *out = NULL;
    if (opts->n_parts > TN_LEDGER_PARTS_MAX) {
        return tn_fail(err, TN_E_LIMIT,
                       "too many parts of data: %u, at most %d\nhint: larger 'data.part_bytes'",
                       opts->n_parts, TN_LEDGER_PARTS_MAX);
    }
    tn_ledger *l = tn_try_alloc(1, sizeof *l, "the ledger of parts", err);
    if (l == NULL) {
        return TN_E_MEMORY;
    }
    l->epoch = opts->epoch;
    l->ranks = opts->ranks;
    l->n_parts = opts->n_parts;
    l->mode = opts->mode;
    l->relaxed = opts->relaxed;
    l->straggler_ns = opts->straggler_ns != 0 ? opts->straggler_ns : TN_LEDGER_STRAGGLER_NS;
    l->silent_ns = opts->silent_ns != 0 ? opts->silent_ns : TN_LEDGER_SILENT_NS;
    if (allocate(l, err) != TN_OK) {
        tn_ledger_free(l);
        return TN_E_MEMORY;
    }
    for (uint32_t i = 0; i < l->n_parts; i++) {
        const tn_ledger_span *span = &opts->part[i];
        l->part[i] = (tn_ledger_part){
            .source = span->source, .begin = span->begin, .end = span->end, .state = TN_PART_FREE};
        l->sorted[i] = i;
    }
    qsort_r(l->sorted, l->n_parts, sizeof l->sorted[0], by_place, l->part);
    tn_ledger_relist(l);
    *out = l;
    return TN_OK;
}

void tn_ledger_free(tn_ledger *l)
{
    if (l == NULL) {
        return;
    }
    tn_free(l->part);
    tn_free(l->sorted);
    tn_free(l->links);
    tn_free(l->held);
    tn_free(l->rank);
    tn_free(l->waits);
    tn_free(l);
}

bool tn_ledger_is_over(const tn_ledger *l)
{
    return l->n_done == l->n_parts;
}

uint32_t tn_ledger_spare_ranks(const tn_ledger *l)
{
    return l->ranks > l->n_parts ? l->ranks - l->n_parts : 0;
}

uint32_t tn_ledger_reassigned(const tn_ledger *l)
{
    return l->n_again;
}

/* Who reads fast would ask far ahead of what it learns: a rank holds the part that it learns from,
 * one more, and not more than its share of what is not done. */
static bool has_share(const tn_ledger *l, uint32_t rank)
{
    const uint32_t left = l->n_parts - l->n_done;
    const uint32_t held = l->rank[rank].held.n;
    return held >= TN_LEDGER_AHEAD || held >= (left + l->ranks - 1) / l->ranks;
}

/* The part that `rank` would get now, or TN_NOBODY. */
static uint32_t next_free(tn_ledger *l, uint32_t rank)
{
    if (l->mode == TN_LEDGER_ON_REQUEST) {
        return has_share(l, rank) ? TN_NOBODY : l->list[TN_LIST_FREE].first;
    }
    uint32_t *next = &l->rank[rank].next;
    while (*next < l->n_parts && l->part[*next].state != TN_PART_FREE) {
        *next += l->ranks;
    }
    return *next < l->n_parts ? *next : TN_NOBODY;
}

static void deal(tn_ledger *l, uint32_t rank, uint32_t part, uint64_t now_ns)
{
    tn_ledger_part *p = &l->part[part];
    TN_ASSERT(p->state == TN_PART_FREE);
    p->state = TN_PART_DEALT;
    p->rank = rank;
    p->dealt_ns = p->claimed_ns = now_ns;
    p->claimed = false;
    tn_ledger_move(l, part, TN_LIST_DEALT);
    tn_list_add(&l->rank[rank].held, l->held, part);
    l->rank[rank].deal = (tn_ledger_deal){.part = part,
                                          .attempt = p->attempt,
                                          .span = {p->source, p->begin, p->end},
                                          .position = p->start};
}

static void set_waiting(tn_ledger *l, uint32_t rank, bool waits)
{
    tn_ledger_rank *r = &l->rank[rank];
    if (r->waits == waits) {
        return;
    }
    r->waits = waits;
    if (waits) {
        tn_list_add(&l->waiting, l->waits, rank);
    } else {
        tn_list_remove(&l->waiting, l->waits, rank);
    }
}

/* Answers the rank's last ask as well as it can be answered now. */
static tn_ledger_answer answer(tn_ledger *l, uint32_t rank, uint64_t now_ns)
{
    tn_ledger_rank *r = &l->rank[rank];
    uint32_t part = next_free(l, rank);
    if (part != TN_NOBODY) {
        deal(l, rank, part, now_ns);
        r->answer = TN_LEDGER_PART;
    } else if (l->mode == TN_LEDGER_BY_RULE || tn_ledger_is_over(l)) {
        r->answer = TN_LEDGER_NO_MORE;
    } else {
        r->answer = TN_LEDGER_WAIT;
    }
    set_waiting(l, rank, r->answer == TN_LEDGER_WAIT);
    return r->answer;
}

tn_ledger_answer tn_ledger_ask(tn_ledger *l, uint32_t rank, uint32_t epoch, uint64_t id,
                               uint64_t now_ns, tn_ledger_deal *out)
{
    TN_ASSERT(rank < l->ranks);
    tn_ledger_rank *r = &l->rank[rank];
    if (epoch > l->epoch) {
        return TN_LEDGER_WAIT;
    }
    if (epoch < l->epoch || id == 0 || id < r->id) {
        return TN_LEDGER_OLD;
    }
    bool known = id == r->id && r->answer != TN_LEDGER_WAIT;
    r->id = id;
    tn_ledger_answer a = known ? r->answer : answer(l, rank, now_ns);
    if (a == TN_LEDGER_PART) {
        *out = r->deal;
    }
    return a;
}

bool tn_ledger_woken(tn_ledger *l, uint64_t now_ns, tn_ledger_wake *out)
{
    const bool over = tn_ledger_is_over(l);
    uint32_t rank = over || l->list[TN_LIST_FREE].n > 0 ? l->waiting.first : TN_NOBODY;
    while (rank != TN_NOBODY && !over && has_share(l, rank)) {
        rank = l->waits[rank].next;
    }
    if (rank == TN_NOBODY) {
        return false;
    }
    tn_ledger_answer a = answer(l, rank, now_ns);
    *out = (tn_ledger_wake){
        .rank = rank, .id = l->rank[rank].id, .answer = a, .deal = l->rank[rank].deal};
    return true;
}

bool tn_ledger_done(tn_ledger *l, uint32_t rank, uint32_t part, uint32_t attempt, uint64_t now_ns)
{
    tn_ledger_part *p = tn_ledger_current(l, rank, part, attempt);
    if (p == NULL) {
        return false;
    }
    p->state = TN_PART_DONE;
    tn_ledger_move(l, part, TN_LIST_NONE);
    tn_list_remove(&l->rank[rank].held, l->held, part);
    tn_recent_add(&l->ages, now_ns - p->dealt_ns);
    l->n_done++;
    return true;
}

void tn_ledger_lost(tn_ledger *l, uint32_t rank)
{
    TN_ASSERT(rank < l->ranks);
    tn_ledger_rank *r = &l->rank[rank];
    set_waiting(l, rank, false);
    r->id = 0;
    /* The last is freed first, so that they are dealt again in their order. */
    while (l->relaxed && r->held.last != TN_NOBODY) {
        tn_ledger_free_again(l, r->held.last, l->part[r->held.last].start);
    }
}
