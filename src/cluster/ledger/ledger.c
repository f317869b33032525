/* ledger.c - parts are dealt, finished and dealt again; overdue parts; the way into a manifest and
 * back.
 *
 * A part is in one list by its state, and while it is dealt in the list of its rank, too. Lists by
 * age begin with the part that was dealt, or asked for, first.
 */
#include "cluster/ledger/ledger.h"

#include "base/core/alloc.h"
#include "base/core/arena.h"
#include "base/core/error.h"
#include "cluster/ledger/running_median.h"

#include <stdint.h>
#include <stdlib.h>

#define NOBODY UINT32_MAX

typedef struct part_links {
    uint32_t before, next;
} part_links;

typedef struct part_list {
    uint32_t first, last, n;
} part_list;

/* ---- lists ---- */

static inline void list_init(part_list *list)
{
    *list = (part_list){.first = NOBODY, .last = NOBODY};
}

/* Puts i after `before`; NOBODY: at the front. */
static inline void list_put(part_list *list, part_links *links, uint32_t before, uint32_t i)
{
    uint32_t next = before == NOBODY ? list->first : links[before].next;
    links[i] = (part_links){.before = before, .next = next};
    if (before == NOBODY) {
        list->first = i;
    } else {
        links[before].next = i;
    }
    if (next == NOBODY) {
        list->last = i;
    } else {
        links[next].before = i;
    }
    list->n++;
}

static inline void list_add(part_list *list, part_links *links, uint32_t i)
{
    list_put(list, links, list->last, i);
}

/* Removes i, which must be in this list. */
static inline void list_remove(part_list *list, part_links *links, uint32_t i)
{
    TN_ASSERT(list->n > 0);
    const part_links at = links[i];
    if (at.before == NOBODY) {
        list->first = at.next;
    } else {
        links[at.before].next = at.next;
    }
    if (at.next == NOBODY) {
        list->last = at.before;
    } else {
        links[at.next].before = at.before;
    }
    list->n--;
}

typedef enum list_kind {
    LIST_FREE,   /* to be dealt, in order; BY_RULE: not kept */
    LIST_DEALT,  /* by age */
    LIST_ASKED,  /* dealt and asked back, by the time of asking */
    LIST_SILENT, /* the same, unanswered for silent_ns */
    LIST_NONE,
    LISTS = LIST_NONE,
} list_kind;

typedef struct ledger_part {
    uint64_t begin, end;
    uint64_t start, position; /* begin of this attempt, and the position it has reached */
    uint64_t dealt_ns, claimed_ns, asked_ns;
    uint32_t source, rank, attempt;
    tn_part_state state;
    list_kind list;
    bool claimed; /* by the rank that has it now, at least once */
} ledger_part;

typedef struct ledger_rank {
    uint64_t id; /* id of its last ask, 0: none */
    tn_ledger_answer answer;
    tn_ledger_deal deal;
    part_list held; /* in the order of dealing */
    uint32_t next;  /* BY_RULE: none of its parts before this one is free */
    bool waits;
} ledger_rank;

struct tn_ledger {
    tn_arena *arena; /* memory of all this, and of the struct itself */
    tn_ledger_opts opts;
    uint32_t n_done, n_again;
    ledger_part *part;
    uint32_t *sorted;  /* parts by source and begin */
    part_links *links; /* links of parts, for list[] */
    part_links *held;  /* links of parts, for rank[].held */
    ledger_rank *rank;
    part_links *waits; /* links of ranks, for waiting */
    part_list list[LISTS];
    part_list waiting;
    tn_running_median ages; /* ages of finished parts */
};

/* Moves a part out of its list into another one, or into none. */
static void move_part(tn_ledger *l, uint32_t part, list_kind to)
{
    ledger_part *p = &l->part[part];
    if (p->list != LIST_NONE) {
        list_remove(&l->list[p->list], l->links, part);
    }
    p->list = to;
    if (to != LIST_NONE) {
        list_add(&l->list[to], l->links, part);
    }
}

/* Returns the part if this rank holds it under this attempt, else NULL. */
static ledger_part *current_part(tn_ledger *l, uint32_t rank, uint32_t part, uint32_t attempt)
{
    TN_ASSERT(rank < l->opts.ranks);
    if (part >= l->opts.n_parts) {
        return NULL;
    }
    ledger_part *p = &l->part[part];
    bool current = p->state == TN_PART_DEALT && p->rank == rank && p->attempt == attempt;
    return current ? p : NULL;
}

/* Frees a dealt part: it is the next to be dealt, under the next attempt and from `start` on. */
static void free_again(tn_ledger *l, uint32_t part, uint64_t start)
{
    ledger_part *p = &l->part[part];
    TN_ASSERT(p->state == TN_PART_DEALT && start >= p->start);
    TN_ASSERT(p->list != LIST_FREE && p->list != LIST_NONE);
    list_remove(&l->rank[p->rank].held, l->held, part);
    move_part(l, part, LIST_NONE);
    p->state = TN_PART_FREE;
    p->attempt++;
    l->n_again++;
    p->start = p->position = start;
    if (l->opts.mode == TN_LEDGER_ON_REQUEST) {
        p->list = LIST_FREE;
        list_put(&l->list[LIST_FREE], l->links, NOBODY, part);
        return;
    }
    ledger_rank *owner = &l->rank[part % l->opts.ranks];
    owner->next = part < owner->next ? part : owner->next;
}

/* Rebuilds all lists from the states of the parts, none of which is dealt; no rank has asked. */
static void rebuild_lists(tn_ledger *l)
{
    for (uint32_t i = 0; i < LISTS; i++) {
        list_init(&l->list[i]);
    }
    list_init(&l->waiting);
    for (uint32_t r = 0; r < l->opts.ranks; r++) {
        l->rank[r] = (ledger_rank){.next = r};
        list_init(&l->rank[r].held);
    }
    l->n_done = 0;
    for (uint32_t i = 0; i < l->opts.n_parts; i++) {
        ledger_part *p = &l->part[i];
        p->list = LIST_NONE;
        l->n_done += p->state == TN_PART_DONE;
        if (p->state == TN_PART_FREE && l->opts.mode == TN_LEDGER_ON_REQUEST) {
            move_part(l, i, LIST_FREE);
        }
    }
}

static int by_place(const void *a, const void *b, void *ctx)
{
    const ledger_part *part = ctx;
    const ledger_part *x = &part[*(const uint32_t *)a];
    const ledger_part *y = &part[*(const uint32_t *)b];
    if (x->source != y->source) {
        return x->source < y->source ? -1 : 1;
    }
    return (x->begin > y->begin) - (x->begin < y->begin);
}

void tn_ledger_free(tn_ledger *l)
{
    if (l != NULL) {
        tn_arena_free(l->arena);
    }
}

tn_status tn_ledger_new(tn_ledger **out, const tn_ledger_opts *opts, tn_error *err)
{
    const size_t n = opts->n_parts;
    const size_t ranks = opts->ranks;
    TN_ASSERT(ranks > 0 && ranks <= TN_LEDGER_RANKS_MAX);
    *out = NULL;
    if (n > TN_LEDGER_PARTS_MAX) {
        return tn_fail(err, TN_E_LIMIT,
                       "too many parts of data: %u, at most %d\nhint: larger 'data.part_bytes'",
                       opts->n_parts, TN_LEDGER_PARTS_MAX);
    }
    tn_arena *arena = NULL;
    TN_TRY(tn_arena_open(
        &arena,
        sizeof(tn_ledger) + n * (sizeof(ledger_part) + sizeof(uint32_t) + 2 * sizeof(part_links)) +
            ranks * (sizeof(ledger_rank) + sizeof(part_links)) + (size_t)7 * TN_CACHE_LINE,
        "the ledger of parts", err));
    tn_ledger *l = TN_NEW(arena, tn_ledger);
    *l = (tn_ledger){.arena = arena,
                     .opts = *opts,
                     .part = TN_NEW_ARRAY(arena, ledger_part, n),
                     .sorted = TN_NEW_ARRAY(arena, uint32_t, n),
                     .links = TN_NEW_ARRAY(arena, part_links, n),
                     .held = TN_NEW_ARRAY(arena, part_links, n),
                     .rank = TN_NEW_ARRAY(arena, ledger_rank, ranks),
                     .waits = TN_NEW_ARRAY(arena, part_links, ranks)};
    l->opts.straggler_ns = opts->straggler_ns != 0 ? opts->straggler_ns : TN_LEDGER_STRAGGLER_NS;
    l->opts.silent_ns = opts->silent_ns != 0 ? opts->silent_ns : TN_LEDGER_SILENT_NS;
    for (uint32_t i = 0; i < n; i++) {
        const tn_ledger_span *span = &opts->part[i];
        l->part[i] = (ledger_part){
            .source = span->source, .begin = span->begin, .end = span->end, .state = TN_PART_FREE};
        l->sorted[i] = i;
    }
    qsort_r(l->sorted, n, sizeof l->sorted[0], by_place, l->part);
    rebuild_lists(l);
    *out = l;
    return TN_OK;
}

bool tn_ledger_is_over(const tn_ledger *l)
{
    return l->n_done == l->opts.n_parts;
}

uint32_t tn_ledger_reassigned(const tn_ledger *l)
{
    return l->n_again;
}

/* ---- dealing ---- */

/* Returns whether a rank holds enough. One that reads fast would ask far ahead of what it learns:
 * it may hold the part that it learns from and one more, and no more than its share of the parts
 * that are not done. */
static bool has_share(const tn_ledger *l, uint32_t rank)
{
    TN_ASSERT(l->n_done <= l->opts.n_parts);
    const uint32_t left = l->opts.n_parts - l->n_done;
    const uint32_t held = l->rank[rank].held.n;
    return held >= TN_LEDGER_AHEAD || held >= (left + l->opts.ranks - 1) / l->opts.ranks;
}

/* Returns the part that `rank` would get now, or NOBODY. */
static uint32_t next_free(tn_ledger *l, uint32_t rank)
{
    if (l->opts.mode == TN_LEDGER_ON_REQUEST) {
        return has_share(l, rank) ? NOBODY : l->list[LIST_FREE].first;
    }
    uint32_t *next = &l->rank[rank].next;
    while (*next < l->opts.n_parts && l->part[*next].state != TN_PART_FREE) {
        *next += l->opts.ranks;
    }
    return *next < l->opts.n_parts ? *next : NOBODY;
}

static void deal(tn_ledger *l, uint32_t rank, uint32_t part, uint64_t now_ns)
{
    ledger_part *p = &l->part[part];
    TN_ASSERT(p->state == TN_PART_FREE);
    TN_ASSERT(p->list == (l->opts.mode == TN_LEDGER_ON_REQUEST ? LIST_FREE : LIST_NONE));
    p->state = TN_PART_DEALT;
    p->rank = rank;
    p->dealt_ns = p->claimed_ns = now_ns;
    p->claimed = false;
    move_part(l, part, LIST_DEALT);
    list_add(&l->rank[rank].held, l->held, part);
    l->rank[rank].deal = (tn_ledger_deal){.part = part,
                                          .attempt = p->attempt,
                                          .span = {p->source, p->begin, p->end},
                                          .position = p->start};
}

static void set_waiting(tn_ledger *l, uint32_t rank, bool waits)
{
    ledger_rank *r = &l->rank[rank];
    if (r->waits == waits) {
        return;
    }
    r->waits = waits;
    if (waits) {
        list_add(&l->waiting, l->waits, rank);
    } else {
        list_remove(&l->waiting, l->waits, rank);
    }
}

/* Answers the rank's last ask as well as it can be answered now. */
static tn_ledger_answer answer(tn_ledger *l, uint32_t rank, uint64_t now_ns)
{
    ledger_rank *r = &l->rank[rank];
    uint32_t part = next_free(l, rank);
    if (part != NOBODY) {
        deal(l, rank, part, now_ns);
        r->answer = TN_LEDGER_PART;
    } else if (l->opts.mode == TN_LEDGER_BY_RULE || tn_ledger_is_over(l)) {
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
    TN_ASSERT(rank < l->opts.ranks);
    ledger_rank *r = &l->rank[rank];
    if (epoch > l->opts.epoch) {
        return TN_LEDGER_WAIT;
    }
    if (epoch < l->opts.epoch || id == 0 || id < r->id) {
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
    uint32_t rank = over || l->list[LIST_FREE].n > 0 ? l->waiting.first : NOBODY;
    while (rank != NOBODY && !over && has_share(l, rank)) {
        rank = l->waits[rank].next;
    }
    if (rank == NOBODY) {
        return false;
    }
    TN_ASSERT(l->rank[rank].waits);
    tn_ledger_answer a = answer(l, rank, now_ns);
    *out = (tn_ledger_wake){
        .rank = rank, .id = l->rank[rank].id, .answer = a, .deal = l->rank[rank].deal};
    return true;
}

bool tn_ledger_done(tn_ledger *l, uint32_t rank, uint32_t part, uint32_t attempt, uint64_t now_ns)
{
    ledger_part *p = current_part(l, rank, part, attempt);
    if (p == NULL) {
        return false;
    }
    TN_ASSERT(p->list != LIST_FREE && p->list != LIST_NONE);
    p->state = TN_PART_DONE;
    move_part(l, part, LIST_NONE);
    list_remove(&l->rank[rank].held, l->held, part);
    tn_running_median_add(&l->ages, now_ns - p->dealt_ns);
    TN_ASSERT(l->n_done < l->opts.n_parts);
    l->n_done++;
    return true;
}

void tn_ledger_lost(tn_ledger *l, uint32_t rank)
{
    TN_ASSERT(rank < l->opts.ranks);
    ledger_rank *r = &l->rank[rank];
    set_waiting(l, rank, false);
    r->id = 0;
    /* The last is freed first, so that they are dealt again in their order. */
    while (l->opts.relaxed && r->held.last != NOBODY) {
        free_again(l, r->held.last, l->part[r->held.last].start);
    }
}

/* ---- overdue parts ---- */

/* Returns whether the reply with the part may be lost: the rank has neither claimed the part nor
 * asked for another one since. It will retransmit its ask. */
static bool is_under_way(const tn_ledger *l, uint32_t rank, uint32_t part)
{
    const ledger_rank *r = &l->rank[rank];
    return !l->part[part].claimed && r->answer == TN_LEDGER_PART && r->deal.part == part;
}

uint32_t tn_ledger_claim(tn_ledger *l, uint32_t rank, const tn_ledger_held *held, uint32_t n,
                         uint64_t now_ns)
{
    TN_ASSERT(rank < l->opts.ranks);
    for (uint32_t i = 0; i < n; i++) {
        ledger_part *p = current_part(l, rank, held[i].part, held[i].attempt);
        if (p != NULL) { /* heartbeats may come late: a position only grows */
            p->position = held[i].position > p->position ? held[i].position : p->position;
            p->claimed_ns = now_ns;
            p->claimed = true;
        }
    }
    uint32_t unclaimed = 0;
    uint32_t before = 0;
    for (uint32_t i = l->rank[rank].held.last; i != NOBODY; i = before) {
        before = l->held[i].before;
        if (now_ns - l->part[i].claimed_ns < l->opts.silent_ns || is_under_way(l, rank, i)) {
            continue;
        }
        unclaimed++;
        if (l->opts.relaxed) {
            free_again(l, i, l->part[i].start);
        }
    }
    return unclaimed;
}

/* Counts ranks without a part. A rank that has a part and waits for its next one is not idle. */
static uint32_t idle(const tn_ledger *l)
{
    uint32_t n = 0;
    for (uint32_t r = l->waiting.first; r != NOBODY; r = l->waits[r].next) {
        n += l->rank[r].held.n == 0;
    }
    return n;
}

bool tn_ledger_straggler(tn_ledger *l, uint64_t now_ns, tn_ledger_held *out)
{
    const uint32_t oldest = l->list[LIST_DEALT].first;
    if (oldest == NOBODY || l->ages.added < TN_LEDGER_FINISHED_MIN ||
        l->list[LIST_ASKED].n >= idle(l)) {
        return false; /* at most one part is asked back for each idle rank */
    }
    ledger_part *p = &l->part[oldest];
    TN_ASSERT(p->state == TN_PART_DEALT);
    const uint64_t age = now_ns - p->dealt_ns;
    if (age < l->opts.straggler_ns || age <= 3 * tn_running_median_value(&l->ages)) {
        return false;
    }
    p->asked_ns = now_ns;
    move_part(l, oldest, LIST_ASKED);
    *out = (tn_ledger_held){
        .rank = p->rank, .part = oldest, .attempt = p->attempt, .position = p->position};
    return true;
}

/* Moves a rank that holds parts and waits, since it has asked ahead, to the end of the queue when
 * it gives a part back. */
static void wait_anew(tn_ledger *l, uint32_t rank)
{
    if (l->rank[rank].waits) {
        list_remove(&l->waiting, l->waits, rank);
        list_add(&l->waiting, l->waits, rank);
    }
}

bool tn_ledger_returned(tn_ledger *l, const tn_ledger_held *held)
{
    const ledger_part *p = current_part(l, held->rank, held->part, held->attempt);
    if (p == NULL || held->position < p->start) {
        return false;
    }
    free_again(l, held->part, held->position);
    wait_anew(l, held->rank);
    return true;
}

bool tn_ledger_silent(tn_ledger *l, uint64_t now_ns, uint32_t *rank)
{
    const uint32_t first = l->list[LIST_ASKED].first;
    if (first == NOBODY || now_ns - l->part[first].asked_ns < l->opts.silent_ns) {
        return false;
    }
    TN_ASSERT(l->part[first].state == TN_PART_DEALT);
    move_part(l, first, LIST_SILENT);
    *rank = l->part[first].rank;
    return true;
}

/* ---- manifests ---- */

/* Returns whether `p` is done and begins where the done part `before` ends. */
static bool continues(const tn_epoch_part *before, const ledger_part *p)
{
    return before->state == TN_PART_DONE && p->state == TN_PART_DONE &&
           before->source == p->source && before->end == p->begin;
}

uint32_t tn_ledger_save(const tn_ledger *l, tn_epoch_part *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->opts.n_parts; i++) {
        const ledger_part *p = &l->part[l->sorted[i]];
        const bool done = p->state == TN_PART_DONE;
        if (n > 0 && continues(&out[n - 1], p)) {
            out[n - 1].end = p->end;
            continue;
        }
        out[n++] = (tn_epoch_part){
            .source = p->source,
            .begin = p->begin,
            .end = p->end,
            .state = p->state,
            .attempt = done ? 0 : p->attempt,
            .position = done ? 0 : p->position,
        };
    }
    return n;
}

/* Returns the first of the sorted parts that is not before `row`. */
static uint32_t find(const tn_ledger *l, const tn_epoch_part *row)
{
    uint32_t low = 0;
    uint32_t high = l->opts.n_parts;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const ledger_part *p = &l->part[l->sorted[middle]];
        bool before =
            p->source < row->source || (p->source == row->source && p->begin < row->begin);
        low = before ? middle + 1 : low;
        high = before ? high : middle;
    }
    return low;
}

/* Gives the parts that `row` covers to it. False: it is no sequence of whole parts, or one of them
 * is covered already. */
static bool cover(const tn_ledger *l, const tn_epoch_part *row, uint32_t number, uint32_t *covered)
{
    const bool done = row->state == TN_PART_DONE; /* else it is one part alone */
    uint64_t reached = row->begin;
    uint32_t n = 0;
    for (uint32_t i = find(l, row); i < l->opts.n_parts && (done || n == 0); i++) {
        const ledger_part *p = &l->part[l->sorted[i]];
        if (p->source != row->source || p->begin != reached || p->end > row->end ||
            covered[l->sorted[i]] != NOBODY) {
            break;
        }
        covered[l->sorted[i]] = number;
        reached = p->end;
        n++;
    }
    return n > 0 && reached == row->end;
}

static tn_status cover_all(const tn_ledger *l, const tn_epoch_part *part, uint32_t n,
                           uint32_t *covered, tn_error *err)
{
    for (uint32_t i = 0; i < l->opts.n_parts; i++) {
        covered[i] = NOBODY;
    }
    for (uint32_t k = 0; k < n; k++) {
        if (!cover(l, &part[k], k, covered)) {
            return tn_fail(err, TN_E_CKPT,
                           "the checkpoint's parts are not those of the data: "
                           "source %u, bytes %llu to %llu",
                           part[k].source, (unsigned long long)part[k].begin,
                           (unsigned long long)part[k].end);
        }
    }
    for (uint32_t i = 0; i < l->opts.n_parts; i++) {
        if (covered[i] == NOBODY) {
            return tn_fail(err, TN_E_CKPT,
                           "the checkpoint does not know a part of the data: "
                           "source %u, bytes %llu to %llu",
                           l->part[i].source, (unsigned long long)l->part[i].begin,
                           (unsigned long long)l->part[i].end);
        }
    }
    return TN_OK;
}

static void stand(ledger_part *p, const tn_epoch_part *row)
{
    const bool done = row->state == TN_PART_DONE;
    p->state = done ? TN_PART_DONE : TN_PART_FREE;
    p->attempt = done ? 0 : row->attempt + (row->state == TN_PART_DEALT);
    p->start = p->position = done ? 0 : row->position;
}

tn_status tn_ledger_restore(tn_ledger *l, const tn_epoch_part *part, uint32_t n, tn_error *err)
{
    uint32_t *covered = NULL;
    TN_TRY(TN_ALLOC(covered, (size_t)l->opts.n_parts + 1, "the ledger of parts", err));
    tn_status status = cover_all(l, part, n, covered, err);
    if (status == TN_OK) {
        for (uint32_t i = 0; i < l->opts.n_parts; i++) {
            TN_ASSERT(covered[i] < n);
            stand(&l->part[i], &part[covered[i]]);
        }
        rebuild_lists(l);
    }
    tn_free(covered);
    return status;
}
