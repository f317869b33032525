/* running_median.c - a ring of values and the same values sorted. */
#include "cluster/ledger/running_median.h"

#include "base/core/error.h"

#include <string.h>

static uint32_t count(const tn_running_median *r)
{
    return r->added < TN_RUNNING_MEDIAN_MAX ? (uint32_t)r->added : TN_RUNNING_MEDIAN_MAX;
}

/* Counts the n sorted values that are below `value`. */
static uint32_t below(const tn_running_median *r, uint32_t n, uint64_t value)
{
    uint32_t low = 0;
    while (low < n) {
        uint32_t middle = low + (n - low) / 2;
        if (r->sorted[middle] < value) {
            low = middle + 1;
        } else {
            n = middle;
        }
    }
    return low;
}

void tn_running_median_add(tn_running_median *r, uint64_t value)
{
    uint32_t n = count(r);
    uint64_t *oldest = &r->value[r->added % TN_RUNNING_MEDIAN_MAX];
    if (n == TN_RUNNING_MEDIAN_MAX) {
        uint32_t i = below(r, n, *oldest);
        TN_ASSERT(i < n && r->sorted[i] == *oldest);
        n--;
        memmove(&r->sorted[i], &r->sorted[i + 1], (n - i) * sizeof r->sorted[0]);
    }
    TN_ASSERT(n < TN_RUNNING_MEDIAN_MAX);
    uint32_t i = below(r, n, value);
    memmove(&r->sorted[i + 1], &r->sorted[i], (n - i) * sizeof r->sorted[0]);
    r->sorted[i] = value;
    *oldest = value;
    r->added++;
}

uint64_t tn_running_median_value(const tn_running_median *r)
{
    uint32_t n = count(r);
    return n == 0 ? 0 : r->sorted[n / 2];
}
