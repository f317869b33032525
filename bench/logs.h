/* logs.h - click logs out of nothing, in each format that bench_parse reads. */
#ifndef TN_BENCH_LOGS_H
#define TN_BENCH_LOGS_H

#include "base/core/text.h"

typedef struct tn_log {
    const char *name;
    const char *limit; /* of the target */
    void (*add_row)(tn_text *out, uint64_t row);
    void (*add_config)(tn_text *out);
} tn_log;

extern const tn_log tn_logs[]; /* up to one without a name */

#endif
