/* totals.h - what all ranks have read, from what each reports of its whole run so far.
 *
 * Reports are cumulative under a sequence that grows: the newest of each rank counts, so one that
 * is lost, repeated or late changes no total, and a rank that is silent is never added again.
 * Metrics travel the same way (metrics/metrics_pack.h). One thread.
 */
#ifndef TN_CLUSTER_TOTALS_H
#define TN_CLUSTER_TOTALS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tn_read_total {
    uint64_t records; /* read, bad ones included */
    uint64_t samples; /* trained on */
    uint64_t bad;
} tn_read_total;

typedef struct tn_totals tn_totals;

tn_totals *tn_totals_new(uint32_t ranks); /* at most 1024; never NULL */
void tn_totals_free(tn_totals *t);        /* NULL is fine */

/* A new start of a rank, whose counts and sequences begin anew. What it reported before remains in
 * the total: its records were applied. */
void tn_totals_begin(tn_totals *t, uint32_t rank, uint64_t incarnation);

/* Back to a checkpoint that had read `base`: all that was reported is forgotten, and every rank
 * must begin. */
void tn_totals_restore(tn_totals *t, const tn_read_total *base);

/* All of this start of the rank so far. False: ignored, a newer one is known or it is not of this
 * start. Sequences are above 0. */
bool tn_totals_put(tn_totals *t, uint32_t rank, uint64_t incarnation, uint64_t sequence,
                   const tn_read_total *report);

tn_read_total tn_totals_sum(const tn_totals *t);

#endif
