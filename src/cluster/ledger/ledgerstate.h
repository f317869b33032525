/* ledgerstate.h - the inside of a ledger, for the files that are it.
 *
 * A part is in one list by what happens to it, and while it is dealt in the list of its rank. Lists
 * by age begin with the part that was dealt, or asked for, first.
 */
#ifndef TN_CLUSTER_LEDGERSTATE_H
#define TN_CLUSTER_LEDGERSTATE_H

#include "cluster/ledger/ledger.h"
#include "cluster/ledger/ledgerlist.h"
#include "cluster/ledger/running_median.h"

typedef enum tn_ledger_list {
    TN_LIST_FREE,   /* to be dealt, in order; BY_RULE: not kept */
    TN_LIST_DEALT,  /* by age */
    TN_LIST_ASKED,  /* dealt, and asked back, by the age of that */
    TN_LIST_SILENT, /* the same without an answer */
    TN_LIST_NONE,
    TN_LISTS = TN_LIST_NONE,
} tn_ledger_list;

typedef struct tn_ledger_part {
    uint64_t begin, end;
    uint64_t start, position; /* of this attempt, and reached by it */
    uint64_t dealt_ns, claimed_ns, asked_ns;
    uint32_t source, rank, attempt;
    tn_part_state state;
    tn_ledger_list list;
    bool claimed; /* by the rank that has it now, at least once */
} tn_ledger_part;

typedef struct tn_ledger_rank {
    uint64_t id; /* of its last ask, 0: none */
    tn_ledger_answer answer;
    tn_ledger_deal deal;
    tn_list held;  /* in the order of dealing */
    uint32_t next; /* BY_RULE: none of its parts before this one is free */
    bool waits;
} tn_ledger_rank;

struct tn_ledger {
    uint32_t epoch, ranks, n_parts, n_done, n_again;
    tn_ledger_mode mode;
    bool relaxed;
    uint64_t straggler_ns, silent_ns;
    tn_ledger_part *part; /* owned, as are the arrays below */
    uint32_t *sorted;     /* parts by source and begin */
    tn_links *links;      /* of parts, for list[] */
    tn_links *held;       /* of parts, for rank[].held */
    tn_ledger_rank *rank;
    tn_links *waits; /* of ranks, for waiting */
    tn_list list[TN_LISTS];
    tn_list waiting;
    tn_recent ages; /* of finished parts */
};

/* The part if this rank holds it under this attempt, else NULL. */
tn_ledger_part *tn_ledger_current(tn_ledger *l, uint32_t rank, uint32_t part, uint32_t attempt);

/* Out of its list into another one, or into none. */
void tn_ledger_move(tn_ledger *l, uint32_t part, tn_ledger_list to);

/* A dealt part is free again under the next attempt, from `start` on, and the next to be dealt. */
void tn_ledger_free_again(tn_ledger *l, uint32_t part, uint64_t start);

/* All lists anew from the states of the parts, of which none is dealt; nobody has asked. */
void tn_ledger_relist(tn_ledger *l);

#endif
