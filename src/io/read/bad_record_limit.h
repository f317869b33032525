/* bad_record_limit.h - how many bad records are let pass: data.bad_records_max, read and judged.
 *
 *     tn_bad_record_limit limit;
 *     TN_TRY(tn_bad_record_limit_read("0.1%", &limit, err));
 *     while (..) {
 *         if (!tn_bad_record_limit_allows(&limit, records, bad)) ..     this record is one too many
 *     }
 *     TN_TRY(tn_bad_record_limit_end(&limit, records, bad, err));       once more, of all there was
 *
 * A share of few records says little, so one is judged from 10,000 records on, and at the end of
 * the data, however many they were.
 */
#pragma once

#include "base/core/error.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tn_bad_record_limit {
    const char *text; /* as given; lent */
    double share;     /* share of records; 0: `most` is the limit */
    uint64_t most;
} tn_bad_record_limit;

/* "N" or "P%"; TN_E_CONFIG otherwise. `text` must outlive *out. */
tn_status tn_bad_record_limit_read(const char *text, tn_bad_record_limit *out,
                                   tn_error *err) TN_MUST_USE;

/* Whether reading goes on when `bad` of the `records` so far are bad. */
bool tn_bad_record_limit_allows(const tn_bad_record_limit *limit, uint64_t records, uint64_t bad);

/* At the end of the data. TN_E_DATA: too many are bad, or all of them, which no limit allows. */
tn_status tn_bad_record_limit_end(const tn_bad_record_limit *limit, uint64_t records, uint64_t bad,
                                  tn_error *err) TN_MUST_USE;
