/* slices.h - the metrics of every value of a slot, in bounded memory.
 *
 *     tn_slices_add(s, &rows, &(tn_slice_keys){sign, start}, err);    like tn_metrics_add
 *     n = tn_slices_report(s, out, err);                              largest first, "other" last
 *
 * One object per slot. The first slices_max values get a slice each; later ones go to "other", and
 * in a report slices of fewer than rows_min rows, too. A row with several values counts once in
 * each of their slices, a row without values in none. A slice costs about 70 KB (coarse histogram:
 * 2^-7 of a logit per bin).
 */
#pragma once

#include "metrics/metrics.h"

typedef struct tn_slices tn_slices;

enum { TN_SLICES_MAX = 1 << 16 };

typedef struct tn_slices_opts {
    uint32_t slices_max; /* 1 .. TN_SLICES_MAX */
    uint64_t rows_min;   /* 0: every slice is reported */
    double sampling;     /* as in tn_metrics_opts, as the next */
    tn_target target;
} tn_slices_opts;

/* Signs of the slot's values. Lent for the call. */
typedef struct tn_slice_keys {
    const uint64_t *sign;
    const uint32_t
        *start; /* signs of row i: sign[start[i]] .. sign[start[i + 1] - 1]; NULL: one per row */
} tn_slice_keys;

typedef struct tn_slice {
    uint64_t sign;
    bool is_other;
    const tn_metrics *metrics; /* lent until the slices change */
} tn_slice;

tn_status tn_slices_new(tn_slices **out, const tn_slices_opts *opts, tn_error *err) TN_MUST_USE;
void tn_slices_free(tn_slices *s); /* NULL is fine */

tn_status tn_slices_add(tn_slices *s, const tn_scored *rows, const tn_slice_keys *keys,
                        tn_error *err) TN_MUST_USE;

uint32_t tn_slices_count(const tn_slices *s); /* values that have a place */

/* Reports slices by rows, the largest first, equal ones by sign; then "other", when anything is in
 * it. `out` holds tn_slices_count + 1. */
tn_status tn_slices_report(tn_slices *s, tn_slice *out, uint32_t *n, tn_error *err) TN_MUST_USE;
