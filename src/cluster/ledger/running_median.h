/* running_median.h - the median of the last TN_RUNNING_MEDIAN_MAX values.
 *
 * It says what is usual, so that the unusual can be seen; a single slow value does not move
 * it. Asking sorts the values. One thread.
 */
#pragma once

#include <stdint.h>

enum { TN_RUNNING_MEDIAN_MAX = 255 };

typedef struct tn_running_median {         /* zeros: empty */
    uint64_t added;                        /* since the beginning */
    uint64_t value[TN_RUNNING_MEDIAN_MAX]; /* the k-th at k % TN_RUNNING_MEDIAN_MAX */
} tn_running_median;

void tn_running_median_add(tn_running_median *r, uint64_t value);

/* Returns the median, the upper one of two. 0 when empty. */
uint64_t tn_running_median_value(const tn_running_median *r);
