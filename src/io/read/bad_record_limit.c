/* bad_record_limit.c - data.bad_records_max: a number or a share, read and judged. */
#include "io/read/bad_record_limit.h"

#include "base/core/number.h"

#include <inttypes.h>
#include <string.h>

enum { SHARE_FROM = 10000 }; /* records, before a share is judged while reading */

tn_status tn_bad_record_limit_read(const char *text, tn_bad_record_limit *out, tn_error *err)
{
    *out = (tn_bad_record_limit){.text = text};
    size_t size = strlen(text);
    if (size > 0 && text[size - 1] == '%') {
        double percent;
        if (tn_read_f64(text, size - 1, &percent) == TN_NUM_OK && percent >= 0 && percent <= 100) {
            out->share = percent / 100; /* none is none */
            return TN_OK;
        }
    } else if (tn_read_u64(text, size, &out->most) == TN_NUM_OK) {
        return TN_OK;
    }
    return tn_fail(err, TN_E_CONFIG,
                   "data.bad_records_max must be a number or a share as in 0.1%%, not '%s'", text);
}

static bool is_within(const tn_bad_record_limit *limit, uint64_t records, uint64_t bad)
{
    return limit->share > 0 ? (double)bad <= limit->share * (double)records : bad <= limit->most;
}

bool tn_bad_record_limit_allows(const tn_bad_record_limit *limit, uint64_t records, uint64_t bad)
{
    return (limit->share > 0 && records < SHARE_FROM) || is_within(limit, records, bad);
}

tn_status tn_bad_record_limit_end(const tn_bad_record_limit *limit, uint64_t records, uint64_t bad,
                                  tn_error *err)
{
    if (bad > 0 && bad >= records) {
        return tn_fail(err, TN_E_DATA,
                       "no record is good: all %" PRIu64 " are bad\nhint: data.bad_records_max "
                       "(%s) lets some pass, never all; 'tnet-data check' tells what is wrong",
                       bad, limit->text);
    }
    if (!is_within(limit, records, bad)) {
        return tn_fail(err, TN_E_DATA,
                       "%" PRIu64 " of %" PRIu64 " records are bad, more than data.bad_records_max "
                       "(%s)\nhint: 'tnet-data check' tells what is wrong",
                       bad, records, limit->text);
    }
    return TN_OK;
}
