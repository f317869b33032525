/* part_progress.h - which parts of an epoch one reader was dealt, and how far they are learned.
 *
 *     dealt       7        3     9        4
 *                 settled  over  in hand  in hand
 *                                ^ progress {part 2, position 300} of the last batch learned
 *
 * A reader asks ahead: a part is dealt long before its first record is learned. The reader's
 * threads add parts and report them as flushed, whoever trains notes: under `lock`, which also
 * guards what the owner shares with these threads. Only records and ended take it themselves.
 */
#pragma once

#include "cluster/ledger/ledger.h"
#include "io/rows/batch.h"

#include <pthread.h>

typedef struct tn_part_progress {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* signalled by the owner */
    tn_ledger_held
        *entry; /* owned; dealt[0 .. n-1]: where the reader begins, then what is learned */
    uint32_t n, most;
    uint64_t learned;         /* batches */
    uint32_t flushed;         /* parts that are over after batch `flushed_batch` */
    uint64_t flushed_batch;   /* a number of batches learned */
    uint64_t flushed_records; /* records in `flushed` parts */
    uint64_t records;         /* records in parts that are over, those left out included */
    uint32_t over;            /* parts that are over, of all that the reader was dealt */
    uint32_t settled;         /* parts of `over` that the ledger knows of */
} tn_part_progress;

void tn_part_progress_init(tn_part_progress *b);
void tn_part_progress_done(tn_part_progress *b);

/* Locked: until it changes or the time has come. */
void tn_part_progress_wait(tn_part_progress *b, uint64_t until_ns);

/* As the members `records` and `over`. */
uint64_t tn_part_progress_records(tn_part_progress *b);
uint32_t tn_part_progress_ended(tn_part_progress *b);

/* The reader is dealt this part, after those before; it has learned nothing of it yet. */
tn_status tn_part_progress_add(tn_part_progress *b, const tn_ledger_deal *deal,
                               tn_error *err) TN_MUST_USE;

/* One more batch is learned, and so everything up to `at`, its progress. */
void tn_part_progress_note(tn_part_progress *b, const tn_progress *at);

/* From the reader (tn_dealer.flushed): the first `parts` parts, of so many records, are over when
 * so many batches are learned. Progress alone does not show that a part has no more rows. */
void tn_part_progress_flushed(tn_part_progress *b, uint32_t parts, uint64_t batches,
                              uint64_t records);

/* Parts that are over and not settled yet, in the order they were dealt, as for tn_ledger_done.
 * They are lent; returns how many there are. */
uint32_t tn_part_progress_over(const tn_part_progress *b, const tn_ledger_held **out);

/* The ledger knows that the first `n` of these are done. Before parts are saved all that a note has
 * ended must be settled: their `position` is after their end. */
void tn_part_progress_settle(tn_part_progress *b, uint32_t n);

/* The same for all that are not settled, with what is learned of them, for claims: one that is over
 * is claimed until the ledger knows. `rank` of each is 0. */
uint32_t tn_part_progress_held(const tn_part_progress *b, const tn_ledger_held **out);

/* The reader is closed: takes the last part that is not settled out of the book, to be given back.
 * False: there is none, and the book is as new, for another reader. */
bool tn_part_progress_drop(tn_part_progress *b, tn_ledger_held *out);
