/* running_median.c - a ring of values, sorted when their median is asked for. */
#include "cluster/ledger/running_median.h"

#include <stdlib.h>
#include <string.h>

void tn_running_median_add(tn_running_median *r, uint64_t value)
{
    r->value[r->added++ % TN_RUNNING_MEDIAN_MAX] = value;
}

static int ascending(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

uint64_t tn_running_median_value(const tn_running_median *r)
{
    const size_t n = r->added < TN_RUNNING_MEDIAN_MAX ? r->added : TN_RUNNING_MEDIAN_MAX;
    uint64_t sorted[TN_RUNNING_MEDIAN_MAX];
    if (r->added == 0) {
        return 0;
    }
    memcpy(sorted, r->value, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, ascending);
    return sorted[n / 2];
}
