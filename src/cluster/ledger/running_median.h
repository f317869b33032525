/* running_median.h - the median of the last TN_RECENT_MAX values: what is usual, for telling what
 * is not.
 *
 * A median of few values that a single slow one does not move. Adding takes TN_RECENT_MAX moves at
 * most. One thread.
 */
#ifndef TN_CLUSTER_RUNNING_MEDIAN_H
#define TN_CLUSTER_RUNNING_MEDIAN_H

#include <stdint.h>

enum { TN_RECENT_MAX = 255 };

typedef struct tn_recent {          /* zeros: empty */
    uint64_t added;                 /* since the beginning */
    uint64_t value[TN_RECENT_MAX];  /* the k-th that was added, at k % TN_RECENT_MAX */
    uint64_t sorted[TN_RECENT_MAX]; /* the same, ascending */
} tn_recent;

void tn_recent_add(tn_recent *r, uint64_t value);

/* The upper one of two. 0 when empty. */
uint64_t tn_recent_median(const tn_recent *r);

#endif
