/* part_dealer.h - the parts of an epoch dealt from a ledger in this process: to its own reader, and
 * to other ranks that ask for one.
 *
 *     TN_TRY(tn_part_dealer_open(&d, &opts, err));            fresh, or where a checkpoint stands
 *     reader_opts.dealer = tn_part_dealer_dealer(d);
 *     tn_part_dealer_note(d, &batch->progress, now_ns);       behind each batch that is learned
 *     parts = tn_part_dealer_parts(d, arena, &n, now_ns);     for a checkpoint
 *
 * A process alone that goes on from a checkpoint of several has one rank: it reads what is left, in
 * order. Several may deal themselves by rule, each from a ledger of its own that stands where all
 * others do: no messages are needed, and rank 0 follows the others by their progress. Parts are
 * numbered by their places in the order of reading (tn_reader_part).
 *
 * The ledger's time is that of a monotonic clock less the time that all ranks stood still: no rank
 * is late because of an evaluation.
 */
#ifndef TN_TRAIN_PART_DEALER_H
#define TN_TRAIN_PART_DEALER_H

#include "base/core/arena.h"
#include "cluster/ledger/ledger.h"
#include "io/read/reader.h"
#include "train/checkpoint/run_state.h"

typedef struct tn_part_dealer_opts {
    uint32_t epoch, ranks;
    uint32_t rank; /* of this process */
    tn_ledger_mode mode;
    bool relaxed;                   /* as in tn_ledger_opts */
    const tn_epoch_parts *map;      /* of the epoch; NULL: the reader tells, which is opened next */
    const tn_epoch_position *stand; /* NULL, or not within an epoch: at its beginning. Lent until
                                   the map is known */
} tn_part_dealer_opts;

typedef struct tn_part_dealer tn_part_dealer;

/* Lends nothing. TN_E_DATA: the stand is one of other data. TN_E_LIMIT: too many parts. */
tn_status tn_part_dealer_open(tn_part_dealer **out, const tn_part_dealer_opts *opts,
                              tn_error *err) TN_MUST_USE;
/* Behind the reader, which asks until it is closed. NULL is fine. */
void tn_part_dealer_close(tn_part_dealer *d);

uint32_t tn_part_dealer_epoch(const tn_part_dealer *d);
uint32_t tn_part_dealer_reassigned(tn_part_dealer *d); /* as tn_ledger_reassigned */

/* For the reader of this process, one; must outlive it. */
const tn_dealer *tn_part_dealer_dealer(const tn_part_dealer *d);

/* This process has learned one more batch, whose progress this is. Times as in
 * cluster/ledger/ledger.h. */
void tn_part_dealer_note(tn_part_dealer *d, const tn_progress *at, uint64_t now_ns);

/* Records that the present reader of this process has brought, those left out included. */
uint64_t tn_part_dealer_records(tn_part_dealer *d);
uint32_t tn_part_dealer_ended(tn_part_dealer *d); /* parts of its that are over */

/* BY_RULE: another rank deals itself, and stands here. TN_E_PEER: there it cannot be. */
tn_status tn_part_dealer_follow(tn_part_dealer *d, uint32_t rank, const tn_progress *at,
                                uint64_t now_ns, tn_error *err) TN_MUST_USE;

/* ON_REQUEST: what another rank says of what it holds, as tn_ledger_claim. */
uint32_t tn_part_dealer_claim(tn_part_dealer *d, uint32_t rank, const tn_ledger_held *held,
                              uint32_t n, uint64_t now_ns);

/* This process gives back what it holds; its reader is closed, and another one asks anew. */
void tn_part_dealer_give_back(tn_part_dealer *d, uint64_t now_ns);

/* All ranks stand still from now on, or no more. */
void tn_part_dealer_pause(tn_part_dealer *d, bool still, uint64_t now_ns);

/* How all parts stand, for a manifest; with what others have claimed, or were followed to. Lives in
 * the arena. */
const tn_manifest_part *tn_part_dealer_parts(tn_part_dealer *d, tn_arena *arena, uint32_t *n,
                                             uint64_t now_ns);

/* The ledger itself, for the asks and answers of other ranks: nobody else gets in until unlock,
 * which wakes whoever waited for what has changed. */
tn_ledger *tn_part_dealer_lock(tn_part_dealer *d);
void tn_part_dealer_unlock(tn_part_dealer *d);

/* Locked: the ledger's time at a moment of the clock, and whether it stands. */
uint64_t tn_part_dealer_time(const tn_part_dealer *d, uint64_t now_ns);
bool tn_part_dealer_is_paused(const tn_part_dealer *d);

/* `woken` is called under the lock when the wait of another rank is over; NULL: nothing is, and
 * that rank finds out by asking again. */
void tn_part_dealer_on_wake(tn_part_dealer *d, void (*woken)(void *arg, const tn_ledger_wake *wake),
                            void *arg);

#endif
