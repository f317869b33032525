/* metrics_pack.h - metrics of many peers, from what each reports of its whole run so far.
 *
 *     tn_metrics_pack(m, &text);                        a peer, now and then: all since its start
 *     tn_peer_metrics_put(p, peer, sequence, ..);       the owner keeps the newest of each peer
 *     tn_peer_metrics_total(p, m);                      and adds those up
 *
 * Values are cumulative, so a report that is lost, repeated or late changes no total: an older or
 * equal sequence is ignored, and a peer that is silent is never added again. Packed bytes may come
 * from outside: whatever they hold, unpacking them is safe. A report takes about 4 bytes per score
 * that occurs; rows that are kept one by one (exact_auc, grouped) stay at home.
 */
#pragma once

#include "base/core/text.h"
#include "metrics/metrics.h"

/* Appends `m`; tn_text_check reports whether it fitted. */
void tn_metrics_pack(const tn_metrics *m, tn_text *out);

/* Replaces the contents of `m`; its options must be those that were packed. TN_E_PEER when the
 * bytes are no such metrics, then `m` is empty. */
tn_status tn_metrics_unpack(tn_metrics *m, const char *bytes, size_t size,
                            tn_error *err) TN_MUST_USE;

/* Subtracts `older`, an earlier state of `m` with the same options. A count that is less than in
 * `older` becomes 0. */
void tn_metrics_subtract(tn_metrics *m, const tn_metrics *older);

typedef struct tn_peer_metrics tn_peer_metrics;

enum { TN_METRIC_PEERS_MAX = 1024 };

/* Makes a table of reports. `opts` as those of the peers, without exact_auc and grouped. */
tn_status tn_peer_metrics_new(tn_peer_metrics **out, uint32_t peers, const tn_metrics_opts *opts,
                              tn_error *err) TN_MUST_USE;
void tn_peer_metrics_free(tn_peer_metrics *r); /* NULL is fine */

/* Keeps a peer's report. Sequences of a peer start at 1 and grow. A peer that was restored from a
 * checkpoint reports what the checkpoint held and goes on from there, under larger sequences. */
tn_status tn_peer_metrics_put(tn_peer_metrics *r, uint32_t peer, uint64_t sequence,
                              const char *bytes, size_t size, tn_error *err) TN_MUST_USE;

/* Replaces the contents of `m`. */
tn_status tn_peer_metrics_total(tn_peer_metrics *r, tn_metrics *m, tn_error *err) TN_MUST_USE;
