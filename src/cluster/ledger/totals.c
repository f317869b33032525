/* totals.c - see totals.h. */
#include "cluster/ledger/totals.h"

#include "base/core/alloc.h"

enum { RANKS_MAX = 1024 };

typedef struct reporter {
    uint64_t incarnation; /* 0: it has not begun */
    uint64_t sequence;    /* of `newest` */
    tn_read_total newest;
} reporter;

struct tn_totals {
    uint32_t ranks;
    tn_read_total past; /* of the checkpoint, and of former starts */
    reporter rank[];
};

tn_totals *tn_totals_new(uint32_t ranks)
{
    TN_ASSERT(ranks > 0 && ranks <= RANKS_MAX);
    tn_totals *t = tn_alloc(1, sizeof(tn_totals) + ranks * sizeof(reporter), "totals of the ranks");
    t->ranks = ranks;
    return t;
}

void tn_totals_free(tn_totals *t)
{
    tn_free(t);
}

static void add(tn_read_total *sum, const tn_read_total *x)
{
    sum->records += x->records;
    sum->samples += x->samples;
    sum->bad += x->bad;
}

void tn_totals_begin(tn_totals *t, uint32_t rank, uint64_t incarnation)
{
    TN_ASSERT(rank < t->ranks && incarnation != 0);
    add(&t->past, &t->rank[rank].newest);
    t->rank[rank] = (reporter){.incarnation = incarnation};
}

void tn_totals_restore(tn_totals *t, const tn_read_total *base)
{
    for (uint32_t r = 0; r < t->ranks; r++) {
        t->rank[r] = (reporter){0};
    }
    t->past = *base;
}

bool tn_totals_put(tn_totals *t, uint32_t rank, uint64_t incarnation, uint64_t sequence,
                   const tn_read_total *report)
{
    TN_ASSERT(rank < t->ranks);
    reporter *r = &t->rank[rank];
    if (incarnation == 0 || incarnation != r->incarnation || sequence <= r->sequence) {
        return false;
    }
    r->sequence = sequence;
    r->newest = *report;
    return true;
}

tn_read_total tn_totals_sum(const tn_totals *t)
{
    tn_read_total sum = t->past;
    for (uint32_t r = 0; r < t->ranks; r++) {
        add(&sum, &t->rank[r].newest);
    }
    return sum;
}
