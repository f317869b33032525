/* batch_union_sort.h - keys of several ranks in one order; for batch_union.c only.
 *
 * Every rank's keys of a partition are a sorted run, so sorting them is merging: neighbours, then
 * neighbours of those, until one run is left (Knuth, TAOCP 3, 5.2.4, natural merge). Stable: the
 * same key of several ranks stays in rank order. n log(ranks) steps.
 */
#ifndef TN_CLUSTER_BATCH_UNION_SORT_H
#define TN_CLUSTER_BATCH_UNION_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A key of one rank. */
typedef struct tn_member {
    uint64_t key;
    uint32_t index; /* among the rank's keys */
    uint16_t rank;
    uint16_t group;
} tn_member;

static inline bool tn_member_is_same(const tn_member *a, const tn_member *b)
{
    return a->key == b->key && a->group == b->group;
}

/* By (key, group); `spare` has room for n. */
void tn_members_sort(tn_member *m, tn_member *spare, size_t n);

#endif
