/* peer_progress.h - what the other ranks have learned so far, for the bar and the log of rank 0,
 * and what they have read and hold, for its summary.
 *
 *     a rank   tn_reporter_add                  each step; once a second it sends a REPORT
 *              tn_reporter_say                  sends one now, since rank 0 will ask for the sums
 *              tn_rank_counts_pack              for each DONE: what it has read and holds
 *     rank 0   tn_peer_progress_take            on tn-net: a REPORT has come
 *              tn_peer_progress_add_counts      a DONE has come: as of the last meeting
 *              tn_peer_progress_sums_of, _scores    when it draws or records
 *              tn_peer_progress_counts          for the summary and `table` records
 *
 * A report holds sums since its rank began. So a report that is lost, repeated or late changes
 * nothing, and a rank that is silent is never added twice. Scores are histograms of 2^12 bins,
 * about 10 kB per report and 64 kB of memory per rank. At staleness 0 losses come with the weights
 * of each step (cluster/sync/sync_client.h), exact, and reports have none.
 */
#pragma once

#include "cluster/group/group.h"
#include "cluster/wire/control_messages.h"
#include "metrics/metrics_pack.h"
#include "train/group/ranks.h"
#include "train/report/run_counts.h"
#include "train/step/step.h"

/* Counts that a rank sends with each DONE. */
typedef struct tn_rank_counts {
    uint64_t number; /* grows with each DONE of the rank */
    uint64_t epoch;  /* the epoch of `met` */
    tn_held held;
    tn_met met;
} tn_rank_counts;

/* Little-endian u64: number, epoch; of the table created, admitted, rows, bytes, expired,
 * evicted; of the epoch bytes, records, blank, bad, duplicate_key, contradictions, and of each of
 * TN_TASKS_MAX tasks rows, clicks; then the reasons.
 * Appends; tn_text_check says whether it fitted. */
void tn_rank_counts_pack(const tn_rank_counts *f, tn_text *out);

/* ---- a rank that reports ---- */

typedef struct tn_reporter {
    tn_group *group;
    tn_metrics *metrics; /* owned */
    tn_text packed;
    tn_report_note note;
    uint64_t next_ns; /* when to report again */
} tn_reporter;

/* `kinds`: target and sampling count. `group` must outlive it. After a failure done is fine. */
tn_status tn_reporter_init(tn_reporter *r, tn_group *group, const tn_metrics_opts *kinds,
                           tn_error *err) TN_MUST_USE;
void tn_reporter_done(tn_reporter *r);

/* A step of this rank. */
typedef struct tn_reporter_step {
    uint32_t rows;             /* their scores are added to the reporter's metrics beside this */
    const tn_learned *learned; /* NULL: rank 0 knows the loss by itself */
    double weight;             /* the loss is the mean over it */
    uint64_t epoch;            /* the present one */
    uint64_t records, bad;     /* so many this rank has read of the epoch */
} tn_reporter_step;

/* Reports when a second has passed since the last one. */
tn_status tn_reporter_add(tn_reporter *r, const tn_reporter_step *step, uint64_t now_ns,
                          tn_error *err) TN_MUST_USE;

/* Reports now. */
tn_status tn_reporter_say(tn_reporter *r, uint64_t now_ns, tn_error *err) TN_MUST_USE;

/* ---- rank 0 ---- */

typedef struct tn_peer_progress tn_peer_progress;

/* On failure *out is NULL. */
tn_status tn_peer_progress_new(tn_peer_progress **out, uint32_t n_ranks,
                               const tn_metrics_opts *kinds, tn_error *err) TN_MUST_USE;
void tn_peer_progress_free(tn_peer_progress *r); /* when no report comes any more; NULL is fine */

/* A report of a rank; `arg` is the tn_peer_progress. One that is no report is logged, and
 * does not count. Any thread. */
void tn_peer_progress_take(void *arg, uint32_t rank, const tn_report_note *note);

void tn_peer_progress_sums_of(tn_peer_progress *r, tn_ranks_sums *out);

/* Figures of a rank (tn_rank_counts_pack), which count if newer than the last. Any thread. */
void tn_peer_progress_add_counts(tn_peer_progress *r, uint32_t rank, tn_note_bytes figures);

/* Adds what the tables of the others hold, and, unless NULL, what they have read of that epoch by
 * their last DONE. */
void tn_peer_progress_counts(tn_peer_progress *r, tn_held *held, uint64_t epoch, tn_met *met);

/* Replaces what `m` holds, which is coarse. */
tn_status tn_peer_progress_scores(tn_peer_progress *r, tn_metrics *m, tn_error *err) TN_MUST_USE;
