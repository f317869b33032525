/* summary.h - summary.json: how a run ended, for programs (docs/formats.md section 9).
 *
 *     tn_summary s = {.status = "ok", .run_id = id, ..};
 *     TN_TRY(tn_summary_write(&s, "runs/a/summary.json", err));
 *
 * Replaced as a whole by tmp and rename. Parts that there were not (no test data, no best) are NULL
 * and become null, as does what is not finite.
 */
#ifndef TN_TRAIN_SUMMARY_H
#define TN_TRAIN_SUMMARY_H

#include "base/core/error.h"
#include "base/core/text.h"
#include "metrics/metrics.h"

typedef struct tn_summary_data {
    uint32_t sources;
    uint64_t bytes, records, blank, bad, duplicate_key, parts_reassigned;
    /* "reason\0count\0" pairs, as tn_reader_counts_of gives them; may be empty. */
    const char *bad_reasons;
    size_t bad_reasons_size;
} tn_summary_data;

typedef struct tn_summary_best {
    const char *name; /* of the metric */
    double value;
    uint64_t step;
} tn_summary_best;

typedef struct tn_summary {
    const char *status; /* ok stopped failed */
    int exit_code;
    const char *error; /* what failed; NULL: nothing, and no member */
    uint64_t run_id;
    const char *config_hash;
    double started; /* Unix seconds */
    double seconds;
    uint64_t steps, samples;
    uint32_t epochs;
    double rows_per_s;
    double step_predicted, step_measured; /* ms: by the first steps, and of all */
    uint32_t peers;
    uint64_t pulled_bytes, pushed_bytes; /* received and sent by rank 0 */
    tn_summary_data data;
    double train_loss;
    const tn_metrics *valid, *test;
    const char *const *metrics; /* names of metrics that valid and test show besides the usual */
    uint32_t n_metrics;
    const tn_summary_best *best;
    uint64_t dense_params, sparse_rows, sparse_bytes;
    uint64_t sparse_bytes_max; /* embedding.memory of this process; 0: none .. */
    const char *memory;        /* .. and where it comes from */
    const char *checkpoint;    /* its name; NULL: none */
    uint32_t checkpoint_crc;
    const char *cpu, *blas;
    uint32_t cores;
    uint64_t peak_rss_bytes;
    const char *const *warnings;
    uint32_t n_warnings;
} tn_summary;

/* Appends the document; tn_text_check tells whether it fitted. */
void tn_summary_text(const tn_summary *s, tn_text *out);

tn_status tn_summary_write(const tn_summary *s, const char *path, tn_error *err) TN_MUST_USE;

#endif
